"""The folder of a run: made before the work starts, and held by one run at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path

from cmaxslam_fbp.errors import OutputError

LOCK = "run.lock"

_NEEDED_BYTES = 64 << 20  # a run writes a few megabytes; less space than this is a disk about to be full
_MOST_NAMES = 3  # that a message lists


@contextmanager
def run_folder(path: Path, *, overwrite: bool = False, files: Collection[str]) -> Iterator[Path]:
    """Make the folder of a run as `create_run_folder` does, and hold it: no other run writes there meanwhile.

    Where nothing was written into a new folder, it is removed at the end.
    """
    is_new = not path.exists()
    make_folder(path)
    try:
        with _held(path):
            yield create_run_folder(path, overwrite=overwrite, files=files)
    finally:
        if is_new:
            with suppress(OSError):
                path.rmdir()


def create_run_folder(path: Path, *, overwrite: bool = False, files: Collection[str]) -> Path:
    """Make a folder that can be written, and return it: a full or read-only disk is an error now, not later.

    Parameters
    ----------
    path : the folder
    overwrite : remove the files of an earlier time from it
    files : names that belong there; a folder with others is not touched
    """
    make_folder(path)
    try:
        there = sorted(item.name for item in path.iterdir() if item.name != LOCK)
        left = [name for name in there if name.startswith(".") and name.endswith(".part")]  # of a run that was killed
        results = [name for name in there if name in files]
        others = [name for name in there if name not in (*left, *results)]
        if others:
            names = ", ".join(name[:40] for name in others[:_MOST_NAMES])
            more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
            raise OutputError(f"{path} is not empty: {names}{more} in it; choose another folder with --out")
        if results and not overwrite:
            raise OutputError(f"{path} is not empty; choose another folder with --out, or give --overwrite")
        for name in (*left, *results):
            (path / name).unlink()
        probe = path / f".probe{os.getpid()}.part"
        probe.write_bytes(b"")
        probe.unlink()
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise _unwritable(path, error) from error
    if free < _NEEDED_BYTES:
        raise OutputError(f"only {free >> 20} MB are free for {path}; a run needs {_NEEDED_BYTES >> 20} MB")
    return path


def default_run_folder(recording: Path) -> Path:
    """Return `runs/NAME-DATE-TIME`, the name of a folder that is not there yet; runs of one second are numbered."""
    name = f"{recording.stem}-{datetime.now():%Y%m%d-%H%M%S}"
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(path for path in map(Path("runs").joinpath, numbered) if not path.exists())


def make_folder(path: Path) -> None:
    """Make a folder where there is none."""
    try:
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path} is a file; choose another folder with --out")
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"the folder {path} cannot be written: {error.strerror or error}")


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; the system lets go of it when a process ends, however it ends."""
    path = folder / LOCK
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _unwritable(folder, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 200).decode(errors="replace").strip()
            os.close(handle)
            raise OutputError(
                f"another run ({holder}) writes into {folder}; choose another folder with --out"
            ) from None
        except OSError:
            pass  # a file system without locks
        with suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(handle).st_ino:
                break
        os.close(handle)  # the run that held it has just ended, and removed it
    try:
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
