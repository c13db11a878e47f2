"""Which data a study runs on: sequences of the ECD where a folder of them is given, simulated ones otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cmaxslam_fbp.experiments.paper_figures import SCENES
from cmaxslam_fbp.experiments.settings import StudyError, StudySettings
from cmaxslam_fbp.experiments.simulated_sequences import simulation_row
from cmaxslam_fbp.io.digest import digest, stamps
from cmaxslam_fbp.io.opening import open_recording
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.rows.row import Row, Values

ROTATIONS = tuple(f"{scene}_rotation" for scene in SCENES)
TRANSLATIONS = tuple(f"{scene}_translation" for scene in SCENES)
HAND_HELD = tuple(f"{scene}_handheld" for scene in SCENES)  # simulated only: the rotations with what a hand adds


@dataclass(frozen=True)
class StudySequence:
    """A recording that a study runs on.

    Attributes
    ----------
    name : str
        As in the ECD, e.g. `boxes_rotation`.
    path : str
        Where it lies; a relative path starts at the study's folder.
    identity : str
        Digest of its content, or of all that it was simulated from.
    provenance : str
        One line on what it is.
    options : dict
        What the recording does not tell, for `open_recording`.
    """

    name: str
    path: str
    identity: str
    provenance: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def scene(self) -> str:
        """The first part of the name."""
        return self.name.partition("_")[0]

    @property
    def kind(self) -> str:
        """What it is in a word: "ECD", "ECRot", "real" or "simulated"."""
        return self.provenance.split()[0].rstrip(":")

    @property
    def described(self) -> dict[str, str]:
        """What a row knows of it: its name and its content."""
        return {"sequence": self.name, "identity": self.identity}

    @property
    def places(self) -> dict[str, Any]:
        """Where a row finds it, and how it is opened."""
        return {"recording": self.path, "options": self.options}


def open_sequence(settings: Mapping[str, Any], out: Path) -> Recording:
    """Open the recording among the places of a row."""
    return open_recording(out / settings["recording"], **settings.get("options", {}))


def sequence_rows(names: Iterable[str], settings: StudySettings) -> list[Row]:
    """Return the rows that find or make the sequences of these names."""
    names = list(names)
    if settings.ecd is None:
        return [simulation_row(name, settings) for name in names]
    found = {name: find_in_ecd(name, settings.ecd) for name in names}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        looked_for = ", ".join(f"{name}.bag, {name}.zip or {name}/" for name in missing)
        raise StudyError(
            f"{settings.ecd} lacks {len(missing)} of {len(names)} sequences: looked for {looked_for}; "
            "fetch them with tools/fetch_ecd.py, or leave out --ecd to run on simulated ones"
        )
    return [digest_row(name, path, "ECD") for name, path in found.items() if path is not None]


def as_sequence(name: str, values: Values) -> StudySequence:
    """Return the sequence that a row of `sequence_rows` found or made."""
    return StudySequence(name, values["path"], values["identity"], values["provenance"])


def find_in_ecd(name: str, folder: Path) -> Path | None:
    """Return the bag, archive or folder of a sequence, if it is there."""
    for path in (folder / f"{name}.bag", folder / f"{name}.zip"):
        if path.is_file():
            return path
    inside = folder / name
    return inside if (inside / "events.txt").is_file() else None


def digest_row(name: str, path: Path, dataset: str) -> Row:
    """Return the row that takes the digest of a recording; size and time of the file tell whether it is still known."""
    described = {"name": name, "dataset": dataset, "stamps": stamps(path)}
    return Row(f"reading {name}", take_digest, described, {"path": str(path.resolve())})


def take_digest(described: Mapping[str, Any], out: Path) -> Values:
    """Return where a recording of a dataset lies, and its digest."""
    path = Path(described["path"])
    identity = digest(path)
    return {
        "path": str(path),
        "identity": identity,
        "provenance": f"{described['dataset']} {described['name']} ({path.name}, SHA-256 {identity[:12]}...)",
    }
