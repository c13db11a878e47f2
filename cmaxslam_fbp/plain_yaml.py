"""YAML as plain values: no aliases, no objects, no depth that takes forever to read."""

from __future__ import annotations

from typing import Any

from cmaxslam_fbp.errors import CmaxSlamError

_DEEPEST = 50  # no file of ours, of a camera or of a bag comes near


def load_yaml(text: str, source: str, kind: type[CmaxSlamError]) -> Any:
    """Return the values of a text; where it is not plain YAML, an error of this kind that names the source.

    OpenCV's dialect is read too: a `%YAML:1.0` line, and `!!opencv-matrix` tags.
    """
    import yaml  # when it is needed: most of what the program does is not

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            # A few lines of aliases of aliases stand for more values than any memory holds.
            if self.check_event(yaml.AliasEvent):
                raise kind(f"{source} has an alias (*name); write the value out instead")
            if self.depth > _DEEPEST:  # the time to read it grows with the square of the depth
                raise kind(f"{source} is nested too deeply")
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    Loader.add_constructor(
        "tag:yaml.org,2002:opencv-matrix",
        lambda loader, node: loader.construct_mapping(node, deep=True),  # type: ignore[arg-type]
    )
    try:
        return yaml.load(text.partition("\n")[2] if text.startswith("%YAML:") else text, Loader)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:
        # What YAML takes for a date, a number or a tag, Python may not: its own errors come through.
        raise kind(f"{source} is not valid YAML: {' '.join(str(error).split())}") from None
