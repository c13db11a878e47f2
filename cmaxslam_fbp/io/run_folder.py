"""The folder of a run: made before the work starts, each file in it written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import OutputError

_NEEDED_BYTES = 64 << 20  # a run writes a few megabytes; less room than this is a disk about to be full


class RunFolder:
    """A folder for the results of one run.

    Parameters
    ----------
    path : where; it must not hold anything yet
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def create(path: Path, *, overwrite: bool = False) -> RunFolder:
        """Make the folder and make sure that it can be written: a full or read-only disk is an error now, not later."""
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
        return RunFolder(path)

    @staticmethod
    def default_path(recording: Path) -> Path:
        """Return `runs/NAME-DATE-TIME`, a name for a run of a recording."""
        return Path("runs") / f"{recording.stem}-{datetime.now():%Y%m%d-%H%M%S}"

    def write_bytes(self, name: str, data: bytes) -> Path:
        """Write a file: beside its place first, then moved there."""
        target = self.path / name
        temporary = target.with_name(f".{name}.{os.getpid()}.part")
        try:
            temporary.write_bytes(data)
            os.replace(temporary, target)
        except OSError as error:
            raise OutputError(f"cannot write {target}: {error.strerror or error}") from error
        finally:
            temporary.unlink(missing_ok=True)
        return target

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file."""
        return self.write_bytes(name, text.encode())

    def write_json(self, name: str, values: dict[str, Any]) -> Path:
        """Write a JSON file; NaN is refused."""
        return self.write_text(name, json.dumps(values, indent=2, allow_nan=False) + "\n")

    def write_array(self, name: str, array: npt.NDArray[Any]) -> Path:
        """Write a `.npy` file."""
        import io

        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        return self.write_bytes(name, buffer.getvalue())

    def write_image(self, name: str, image: npt.NDArray[np.uint8]) -> Path:
        """Write a picture, grey (height, width) or blue-green-red (height, width, 3), in the format of its ending."""
        import cv2

        done, data = cv2.imencode(Path(name).suffix, image)
        if not done:
            raise OutputError(f"cannot encode {self.path / name}")
        return self.write_bytes(name, data.tobytes())
