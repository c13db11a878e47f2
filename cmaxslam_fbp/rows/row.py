"""A row of a study: work that is done once, and whose result is kept in a file named after all that determines it."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cmaxslam_fbp import __version__
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.rows.sources import source_digest

Values = dict[str, Any]  # what JSON can hold
Work = Callable[[Mapping[str, Any], Path], Values]

FOLDER = "rows"
_KEY_LENGTH = 20


@dataclass(frozen=True)
class Row:
    """One piece of work.

    Attributes
    ----------
    name : str
        For people.
    work : function of a module
        Takes the settings and the study's folder, and returns plain values. Files that it writes below that folder are
        named in the values under "files", relative to it; with a file missing, the row counts as not done.
    settings : dict
        All that determines the result, as JSON can hold it.
    places : dict
        Where things lie that the settings identify by their content. The work finds them among its settings.
    """

    name: str
    work: Work
    settings: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """A digest of the work, its settings and the sources that it uses; it travels with the row to a worker."""
        described = {
            "work": f"{self.work.__module__}.{self.work.__qualname__}",
            "settings": dict(self.settings),
            "sources": source_digest(Path(inspect.getfile(self.work))),
        }
        text = json.dumps(described, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]

    def path(self, out: Path) -> Path:
        """Return the file of the result."""
        return out / FOLDER / f"{self.key}.json"

    def known(self, out: Path) -> Values | None:
        """Return the result of an earlier run; None where there is none, or it is damaged."""
        try:
            document = json.loads(self.path(out).read_text())
            values: Values = document["values"]
            complete = all((out / name).exists() for name in values.get("files", ()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return values if complete else None

    def compute(self, out: Path, jobs: int = 1) -> Values:
        """Do the work and keep its result; `jobs` is how many rows were computed at the same time."""
        began = time.perf_counter()
        values = {**self.work({**self.settings, **self.places}, out), "jobs": jobs}
        document = {
            "name": self.name,
            "version": __version__,
            "settings": dict(self.settings),
            "seconds": time.perf_counter() - began,
            "values": values,
        }
        write_file(self.path(out), json.dumps(document, indent=1, allow_nan=False) + "\n", make_folder=True)
        return values
