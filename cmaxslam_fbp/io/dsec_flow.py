"""The optical flow of DSEC: 16-bit PNG files, their times, and the events that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.hdf5.file import open_hdf5
from cmaxslam_fbp.io.hdf5.reference import read_array
from cmaxslam_fbp.io.opening import open_recording

TIMES = "forward_timestamps.txt"
_ZERO, _STEPS_PER_PX = 1 << 15, 128.0


@dataclass(frozen=True)
class DsecFlowSequence:
    """A sequence with flow: where its files are, and the stretches of time that flow is known for.

    Attributes
    ----------
    name : str
        As in DSEC, e.g. `zurich_city_01_a`.
    events : Path
        `events.h5` of the left event camera.
    pictures : tuple of Path
        The PNG files, in order of their names.
    stretches_ns : tuple of (int, int)
        From when to when each of them tells the flow.
    """

    name: str
    events: Path
    pictures: tuple[Path, ...]
    stretches_ns: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.pictures)

    def flow(self, number: int) -> tuple[SingleArray, npt.NDArray[np.bool_]]:
        """Return the flow (height, width, 2) in pixels, right and down, and where it is known, on rectified pixels."""
        return read_flow_picture(self.pictures[number])

    def rectified_events(self, number: int) -> Events:
        """Return the events of a stretch at the nearest rectified pixels; those that leave the image are dropped."""
        first_ns, last_ns = self.stretches_ns[number]
        recording = open_recording(self.events)
        start_s = max(first_ns - recording.start_ns, 0) / 1e9
        chunks = recording.chunks(start_s, (last_ns - first_ns) / 1e9)
        events = Events.concatenate(chunks).between(first_ns, last_ns)
        return rectify(events, self._rectify_map())

    def _rectify_map(self) -> npt.NDArray[np.floating] | None:
        path = self.events.parent / "rectify_map.h5"
        if not path.is_file():
            return None
        with open_hdf5(path) as file:
            return read_array(file, "rectify_map", path)


def read_flow_picture(path: Path) -> tuple[SingleArray, npt.NDArray[np.bool_]]:
    """Return `(value - 2^15) / 128` of the first two channels (height, width, 2), and whether the third is not zero."""
    import cv2

    picture = cv2.imread(str(path), cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR)
    if picture is None or picture.dtype != np.uint16 or picture.ndim != 3:
        raise RecordingError(f"{path} is not a flow of DSEC: expected a PNG of three channels of 16 bits")
    flow = (picture[..., :0:-1].astype(np.float32) - _ZERO) / _STEPS_PER_PX  # OpenCV's order: blue green red
    return flow, picture[..., 0] > 0


def rectify(events: Events, table: npt.NDArray[np.floating] | None) -> Events:
    """Move events to the nearest of the places (height, width, 2) that a table gives for their pixels."""
    if table is None or not len(events):
        return events
    height, width, _ = table.shape
    if events.x.max() >= width or events.y.max() >= height:
        raise RecordingError(f"events lie outside of a rectify_map of {width} x {height} pixels")
    x, y = np.rint(table[events.y, events.x]).astype(np.int64).T
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    kept = events[inside]
    return Events(kept.t_ns, x[inside].astype(np.uint16), y[inside].astype(np.uint16), kept.p)


def find_flow_sequences(folder: Path) -> list[DsecFlowSequence]:
    """Return the sequences with flow below a folder, by name: `NAME/flow/forward_timestamps.txt` and `forward/*.png`.

    Their events are `events_left/events.h5` or `events/left/events.h5` in the same folder, or in one of the same name
    elsewhere below (`train_events/NAME/` beside `train_optical_flow/NAME/`).
    """
    if not folder.is_dir():
        raise RecordingError(f"the folder {folder} with DSEC does not exist")
    sequences = [_sequence(path, folder) for path in sorted(folder.rglob(f"flow/{TIMES}"))]
    if not sequences:
        raise RecordingError(f"{folder} has no flow of DSEC: looked for NAME/flow/{TIMES}, NAME/flow/forward/*.png")
    return sequences


def _sequence(times: Path, folder: Path) -> DsecFlowSequence:
    home, pictures = times.parent.parent, tuple(sorted((times.parent / "forward").glob("*.png")))
    homes = [home, *(path for path in sorted(folder.glob(f"**/{home.name}")) if path.is_dir() and path != home)]
    places = [place / "events.h5" for one in homes for place in (one / "events_left", one / "events" / "left")]
    events = next((path for path in places if path.is_file()), None)
    if events is None:
        raise RecordingError(f"{home} has flow but no events: looked for events_left/events.h5, events/left/events.h5")
    stretches = _read_times(times)
    if len(stretches) != len(pictures):
        raise RecordingError(f"{times} has {len(stretches)} lines for {len(pictures)} files of forward/*.png")
    return DsecFlowSequence(home.name, events, pictures, stretches)


def _read_times(path: Path) -> tuple[tuple[int, int], ...]:
    """Read lines `from_us, to_us` below a comment."""
    stretches = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            first_us, last_us = map(int, words)
        except ValueError:
            raise RecordingError(f"{path}:{number}: expected two times in microseconds, not '{line[:40]}'") from None
        if not 0 <= first_us < last_us < 1 << 53:
            raise RecordingError(f"{path}:{number}: the times {first_us} and {last_us} are no stretch of time")
        stretches.append((1000 * first_us, 1000 * last_us))
    return tuple(stretches)
