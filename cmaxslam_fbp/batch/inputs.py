"""What a batch must know of a recording before its runs: that it is there, and the digest of its content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cmaxslam_fbp.batch.manifest import Item, plain
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.io.digest import digest, stamps
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.rows.row import Row, Values
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

FOLDER = "sequences"


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
    source = Simulation(SimulationSettings(**wanted))
    name = f"{FOLDER}/{settings['file']}"
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    written = write_recording(source, source.chunks(), out / name, overwrite=True)
    if written.interrupted:
        (out / name).unlink(missing_ok=True)
        raise KeyboardInterrupt
    path = (out / name).resolve()
    return {"files": [name], "path": str(path), "sha256": digest(path), "bytes": path.stat().st_size}
