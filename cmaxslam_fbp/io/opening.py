"""Find out what a path holds, and open it as a recording."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cmaxslam_fbp.choices import FORMATS
from cmaxslam_fbp.config import load_config
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.io.bad_input import one_line_errors
from cmaxslam_fbp.io.recording import Recording

_ADVICE = "'cmaxslam-fbp formats' lists what is read"


def open_recording(path: str | os.PathLike[str], **options: Any) -> Recording:
    """Open a recording of any of the known formats, recognised by its content or its ending.

    Options are those of `config.RecordingConfig`: `events_topic`, `poses_topic` and `imu_topic` for a bag with several
    candidates, `events_dataset` for an HDF5 file with several; `calibration` (a file) comes before the recording's own,
    `calibration_scale` is for one of another resolution; `sensor_size` (width, height) is for recordings that do not
    tell it.
    """
    path = Path(path)
    settings = load_config(flags={f"recording.{name}": value for name, value in options.items()}).recording
    with one_line_errors(path):
        if str(path) == "-":
            raise RecordingError("the standard input is read by 'cmaxslam-fbp run -' alone: it can be read only once")
        if not path.exists():
            raise RecordingError(f"{path} does not exist; {_ADVICE}")
        if not path.is_dir() and not path.is_file():
            raise RecordingError(
                f"{path} is a device or a pipe; give a file or folder, or 'cmaxslam-fbp run - < {path}'"
            )
        # The newest first: a format from outside may be a special case of one that is known.
        for form in reversed(_formats()):
            if form.recognises(path):
                with one_line_errors(path, form.damage_advice):
                    return form(path, settings)
        if path.is_dir():
            files = ", ".join(form.folder_file for form in _formats() if form.folder_file)
            raise RecordingError(f"the folder {path} is not a recording: it has none of {files}")
        what = "is empty" if path.stat().st_size == 0 else "is not a recording"
        raise RecordingError(f"{path} {what}; {_ADVICE}")


def readable_formats() -> str:
    """Return what can be opened, as part of a sentence."""
    *others, last = (form.description for form in _formats())
    return ", ".join([*others, f"or {last}"])


def _formats() -> list[type[Recording]]:
    return [FORMATS[name] for name in FORMATS.names()]
