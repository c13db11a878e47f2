"""Which recordings a batch is of: paths, patterns, and YAML lists that say more about each; and what is in them."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from cmaxslam_fbp.config import RecordingConfig, Section, read_yaml
from cmaxslam_fbp.errors import ConfigError, RecordingError
from cmaxslam_fbp.experiments.simulated_sequences import make_recording
from cmaxslam_fbp.io.digest import digest, stamps
from cmaxslam_fbp.rows.row import Row, Values
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

FILES = ("calibration", "reference")
FOLDER = "sequences"


class Simulated(Section):
    """A recording that is made for the batch: what `cmaxslam-fbp simulate` would be told."""

    scene: str = "shapes"
    duration_s: Annotated[float, Field(ge=0.01, le=3600)] = 10.0
    peak_speed_deg_s: Annotated[float, Field(gt=0, le=10_000)] = 350.0
    seed: Annotated[int, Field(ge=0)] = 0


class Entry(RecordingConfig):
    """An entry of a YAML list: a recording or a pattern, or what to simulate, with what else is to be said of it."""

    recording: str | None = None
    simulate: Simulated | None = None
    name: str | None = None
    start_s: Annotated[float | None, Field(ge=0, le=1e9)] = None
    duration_s: Annotated[float | None, Field(gt=0, le=1e9)] = None

    @model_validator(mode="after")
    def _one_source(self) -> Entry:
        if (self.recording is None) == (self.simulate is None):
            raise ValueError("give either recording or simulate")
        if self.simulate is not None and self.name is None:
            raise ValueError("what is simulated needs a name")
        return self


@dataclass(frozen=True)
class Item:
    """A recording of a batch.

    Attributes
    ----------
    name : str
        For people and folders, the same for no other recording of the batch.
    path : Path, optional
        Where it lies, in full; None for one that is to be simulated.
    simulate : dict
        What to simulate.
    start_s, duration_s : float, optional
        The range of it to take.
    options : dict
        Settings of the section `recording` that are its own; files in full.
    """

    name: str
    path: Path | None = None
    simulate: Mapping[str, Any] = field(default_factory=dict)
    start_s: float | None = None
    duration_s: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def read_items(
    arguments: Sequence[str],
    *,
    start_s: float | None = None,
    duration_s: float | None = None,
    seeds: Sequence[int] = (),
) -> list[Item]:
    """Return the recordings that the arguments name, in their order and under names of their own.

    Parameters
    ----------
    arguments : paths and patterns of recordings, and YAML files with lists of entries
    start_s, duration_s : the range for all that have none of their own
    seeds : simulate once with each of these, instead of an entry's own seed
    """
    here = Path()
    items: list[Item] = []
    for argument in arguments:
        if Path(argument).suffix in (".yaml", ".yml") and not Path(argument).is_dir():
            items += _listed(Path(argument), seeds)
        else:
            items += [Item(_stem(path), path) for path in _matching(argument, here)]
    ranged = [
        replace(
            item,
            start_s=start_s if item.start_s is None else item.start_s,
            duration_s=duration_s if item.duration_s is None else item.duration_s,
        )
        for item in items
    ]
    return list(_told_apart(ranged))


def _listed(manifest: Path, seeds: Sequence[int]) -> Iterator[Item]:
    """Yield the recordings of a YAML list; paths in it are relative to it."""
    document = read_yaml(manifest)
    if not isinstance(document, list):
        raise ConfigError(f"{manifest} is no list of recordings: expected lines like `- recording: boxes.bag`")
    for number, values in enumerate(document, 1):
        try:
            entry = Entry.model_validate({"recording": values} if isinstance(values, str) else values)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise ConfigError(f"{manifest}, entry {number}: {key + ': ' if key else ''}{first['msg']}") from None
        options = entry.model_dump(include=set(RecordingConfig.model_fields), exclude_none=True, mode="json")
        options |= {name: str((manifest.parent / options[name]).resolve()) for name in FILES if name in options}
        common: dict[str, Any] = {"start_s": entry.start_s, "duration_s": entry.duration_s, "options": options}
        if entry.simulate is not None:
            made = entry.simulate.model_dump()
            for seed in seeds or (made["seed"],):
                yield Item(f"{entry.name}-{seed}" if seeds else str(entry.name), None, {**made, "seed": seed}, **common)
            continue
        paths = _matching(str(entry.recording), manifest.parent)
        for path in paths:
            yield Item(entry.name if entry.name and len(paths) == 1 else _stem(path), path, **common)


def _matching(text: str, folder: Path) -> list[Path]:
    """Return the path, or those that match a pattern; a recording that is missing is the affair of its own run."""
    path = folder / text
    if path.exists() or not glob.has_magic(text):
        return [path.resolve()]
    found = sorted(Path(name).resolve() for name in glob.glob(str(path), recursive=True))
    if not found:
        raise ConfigError(f"no file matches {path}; check the pattern")
    return found


def _stem(path: Path) -> str:
    return path.name if path.is_dir() else path.stem


def _told_apart(items: Sequence[Item]) -> Iterator[Item]:
    """Give equal names the folders that they lie in, and a number where that is not enough."""
    names = [item.name for item in items]
    used: set[str] = set()
    for item in items:
        name = item.name
        if names.count(name) > 1 and item.path is not None:
            name = f"{item.path.parent.name}-{name}"
        unique, number = name, 2
        while plain(unique) in used:
            unique, number = f"{name}-{number}", number + 1
        used.add(plain(unique))
        yield replace(item, name=unique)


def plain(name: str) -> str:
    """Return a name with nothing in it that a folder's name should not have."""
    return re.sub(r"[^\w.+=,-]+", "_", name).strip("._")[:80] or "_"


def input_row(item: Item) -> Row:
    """Return the row that takes the digest of a recording, or makes it.

    Sizes and times of its files tell whether the digest is still known.
    """
    if item.path is None:
        return Row(f"simulating {item.name}", simulate, item.simulate, {"file": f"{plain(item.name)}.bag"})
    try:
        found = stamps(item.path)
    except OSError as error:
        raise RecordingError(f"{item.path} cannot be read: {error.strerror or error}") from None
    return Row(f"reading {item.name}", identify, {"path": str(item.path), "stamps": found})


def identify(settings: Mapping[str, Any], out: Path) -> Values:
    """Return where a recording lies, the digest of its content, and its size."""
    path = Path(settings["path"])
    return {"path": str(path), "sha256": digest(path), "bytes": sum(size for _, size, _ in settings["stamps"])}


def simulate(settings: Mapping[str, Any], out: Path) -> Values:
    """Make a recording below the batch's folder; return where it lies, the digest of its content, and its size."""
    wanted = {name: settings[name] for name in ("scene", "duration_s", "peak_speed_deg_s", "seed")}
    name = f"{FOLDER}/{settings['file']}"
    make_recording(Simulation(SimulationSettings(**wanted)), out / name)
    path = (out / name).resolve()
    return {"files": [name], "path": str(path), "sha256": digest(path), "bytes": path.stat().st_size}
