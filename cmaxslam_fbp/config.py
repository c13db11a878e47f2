"""The configuration: frozen sections with every default in this one place, YAML files over them, `--set` over those."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cmaxslam_fbp.errors import ConfigError


class Section(BaseModel):
    """A part of the configuration: it cannot be changed, and knows all its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RecordingConfig(Section):
    """What a recording cannot tell by itself."""

    events_topic: str | None = None
    """Topic of the events, where a bag has several."""
    poses_topic: str | None = None
    """Topic of the reference poses, where a bag has several."""
    imu_topic: str | None = None
    """Topic of the IMU, where a bag has several."""
    calibration: Path | None = None
    """Calibration file to use instead of the recording's own."""
    sensor_size: tuple[int, int] | None = None
    """Width and height in pixels, where the recording does not tell them."""


class Config(Section):
    """The whole configuration."""

    recording: RecordingConfig = RecordingConfig()


def presets_folder() -> Path:
    """Return the folder of the presets: inside an installed package, or beside it in a source tree."""
    inside = Path(__file__).parent / "configs"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "configs"


def preset_names() -> list[str]:
    """Return the names of the presets, e.g. `ecd/boxes_rotation`."""
    folder = presets_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def load_config(
    names: Sequence[str] = (), assignments: Sequence[str] = (), flags: Mapping[str, Any] | None = None
) -> Config:
    """Resolve a configuration: defaults, then presets or files in order, then `section.key=value`, then flags.

    Parameters
    ----------
    names : preset names or paths of YAML files, the later over the earlier
    assignments : texts `section.key=value`, the value in YAML notation
    flags : values of command-line flags by `section.key`; None stands for a flag that was not given
    """
    values: dict[str, Any] = {}
    for name in names:
        _merge(values, _read(name))
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {assignment!r} is not of the form section.key=value")
        _assign(values, key.strip(), _parse_yaml(text, f"--set {assignment}"))
    for key, value in (flags or {}).items():
        if value is not None:
            _assign(values, key, value)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, names)) from None


def dump_config(config: Config) -> str:
    """Return a configuration as YAML, complete."""
    import yaml

    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def _read(name: str) -> dict[str, Any]:
    """Read a preset or a file."""
    preset = presets_folder() / f"{name}.yaml"
    path = preset if name in preset_names() else Path(name)
    if not path.is_file():
        close = difflib.get_close_matches(name, preset_names(), n=1)
        hint = f"did you mean {close[0]}?" if close else f"the presets are {', '.join(preset_names())}"
        raise ConfigError(f"{name} is neither a preset nor a file; {hint}")
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration {path} cannot be read: {error}") from None
    document = _parse_yaml(text, str(path))
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a configuration: expected sections with keys")
    return document


def _parse_yaml(text: str, source: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not valid YAML: {' '.join(str(error).split())}") from None


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Put values over others, section by section."""
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _assign(values: dict[str, Any], key: str, value: Any) -> None:
    """Set `section.key`."""
    *sections, last = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{key}: {section} is a value, not a section")
    values[last] = value


def _explain(error: ValidationError, names: Sequence[str]) -> str:
    """Say in one line what is wrong with the first faulty key, by its full name."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    key = ".".join(place)
    source = f" (in {', '.join(names)})" if names else ""
    if first["type"] != "extra_forbidden":
        return f"{key}: {first['msg']}, not {first['input']!r}{source}"
    known = _keys_beside(place)
    close = difflib.get_close_matches(place[-1], known, n=1)
    hint = f"did you mean {'.'.join([*place[:-1], close[0]])}?" if close else f"there are {', '.join(known)}"
    return f"unknown key {key}{source}; {hint}"


def _keys_beside(place: Sequence[str]) -> list[str]:
    """Return the keys that the section of a key has."""
    section: type[BaseModel] = Config
    for part in place[:-1]:
        inner = section.model_fields[part].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        section = inner
    return list(section.model_fields)
