"""The folder of a run: made before the work starts."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path

from cmaxslam_fbp.errors import OutputError

_NEEDED_BYTES = 64 << 20  # a run writes a few megabytes; less space than this is a disk about to be full


def create_run_folder(path: Path, *, overwrite: bool = False) -> Path:
    """Make a folder that can be written, and return it: a full or read-only disk is an error now, not later."""
    try:
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path} is a file; choose another folder with --out")
        if path.is_dir() and any(path.iterdir()) and not overwrite:
            raise OutputError(f"{path} is not empty; choose another folder with --out, or give --overwrite")
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise OutputError(f"the folder {path} cannot be written: {error.strerror or error}") from error
    if free < _NEEDED_BYTES:
        raise OutputError(f"only {free >> 20} MB are free for {path}; a run needs {_NEEDED_BYTES >> 20} MB")
    return path


def default_run_folder(recording: Path) -> Path:
    """Return `runs/NAME-DATE-TIME`, a name for a run of a recording."""
    return Path("runs") / f"{recording.stem}-{datetime.now():%Y%m%d-%H%M%S}"
