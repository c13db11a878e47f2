"""Find out what a path holds, and open it as a recording."""

from __future__ import annotations

import os
from pathlib import Path

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.io.recording import Recording, RecordingOptions
from cmaxslam_fbp.io.ros_bag import is_ros1_bag, is_ros2_bag

FORMATS = (
    "a ROS 1 bag, a ROS 2 bag (its folder, .db3 or .mcap), a folder or .zip with the ECD's events.txt, "
    "or an .npz archive"
)


def open_recording(
    path: str | os.PathLike[str],
    *,
    events_topic: str | None = None,
    poses_topic: str | None = None,
    imu_topic: str | None = None,
    calibration: str | os.PathLike[str] | None = None,
    sensor_size: tuple[int, int] | None = None,
) -> Recording:
    """Open a recording of any of the known formats, recognised by its content.

    The topics are needed only for a bag with several candidates; `calibration` (a file) comes before the recording's
    own; `sensor_size` (width, height) is for recordings that do not tell it.
    """
    path = Path(path)
    options = RecordingOptions(
        events_topic=events_topic,
        poses_topic=poses_topic,
        imu_topic=imu_topic,
        calibration=None if calibration is None else Path(calibration),
        sensor_size=None if sensor_size is None else SensorSize(*sensor_size),
    )
    try:
        return _open(path, options)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}") from None


def _open(path: Path, options: RecordingOptions) -> Recording:
    if not path.exists():
        raise RecordingError(f"{path} does not exist; give {FORMATS}")
    if path.is_dir():
        if (path / "events.txt").is_file():
            from cmaxslam_fbp.io.text_recording import TextRecording

            return TextRecording(path, options)
        if not is_ros2_bag(path):
            raise RecordingError(f"the folder {path} is not a recording: it has no events.txt and no metadata.yaml")
    elif path.suffix == ".zip":
        from cmaxslam_fbp.io.text_recording import TextRecording

        return TextRecording(path, options)
    elif path.suffix == ".npz":
        from cmaxslam_fbp.io.npz_recording import NpzRecording

        return NpzRecording(path, options)
    elif not is_ros2_bag(path) and not is_ros1_bag(path):
        what = "is empty" if path.stat().st_size == 0 else "is not a recording"
        raise RecordingError(f"{path} {what}; give {FORMATS}")
    from cmaxslam_fbp.io.bag_recording import BagRecording

    return BagRecording(path, options)
