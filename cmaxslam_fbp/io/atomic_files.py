"""Files that appear whole or not at all: made beside their place, and moved there when they are done."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cmaxslam_fbp.errors import OutputError

Contents = str | bytes | Sequence[bytes | memoryview]


@contextmanager
def in_the_making(path: Path, *, make_folder: bool = False, ending: str = "") -> Iterator[Path]:
    """Yield the path `.NAME.PID.part` beside `path`, at which a file or folder is to be made.

    At the end it is moved to its place. After an error nothing is left of it, and what was there before stays.

    Parameters
    ----------
    path : where the file or folder belongs
    make_folder : make the folder that it belongs in, where that is missing
    ending : of the temporary name, for libraries that look at it
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part{ending}")
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}; choose a folder that exists and can be written"
        ) from error
    finally:
        with suppress(OSError):
            if temporary.is_dir():
                shutil.rmtree(temporary)
            else:
                temporary.unlink(missing_ok=True)


def write_file(path: Path, data: Contents, *, make_folder: bool = False) -> Path:
    """Write text or bytes, in one piece or in several, to a file; return its path."""
    if isinstance(data, str):
        data = data.encode(errors="backslashreplace")
    with in_the_making(path, make_folder=make_folder) as temporary, temporary.open("wb") as file:
        file.writelines([data] if isinstance(data, bytes) else data)
    return path
