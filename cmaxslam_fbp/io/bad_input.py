"""The border between files and the program: what libraries raise on bad bytes, and what files claim to hold."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from cmaxslam_fbp.errors import CmaxSlamError, RecordingError

# Events and texts of real recordings are compressed to a sixth or so; runs of zeros to a thousandth.
_LARGEST_RATIO = 200
_ALWAYS_FINE_BYTES = 16 << 20


@contextmanager
def one_line_errors(
    source: object, advice: str = "it may be cut or damaged", kind: type[CmaxSlamError] = RecordingError
) -> Iterator[None]:
    """Turn whatever a library raises while `source` is read into an error of one line that names it."""
    try:
        yield
    except CmaxSlamError:
        raise
    except MemoryError as error:
        raise kind(f"{source} cannot be read: it claims to hold more than fits the memory; {advice}") from error
    except RecursionError as error:
        raise kind(f"{source} cannot be read: it is nested too deeply; {advice}") from error
    # zipfile, zlib, bz2, lz4, zstd, sqlite, struct, NumPy, YAML and rosbags raise dozens of types, asserts among them.
    except Exception as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = (words.strip().splitlines() or [type(error).__name__])[0][:120].rstrip(". ")
        raise kind(f"{source} cannot be read: {reason}; {advice}") from error


def largest_plausible_size(compressed_bytes: int) -> int:
    """Return how many bytes a compressed part of a recording can hold: more is a mistake, or meant to fill memory."""
    return max(_LARGEST_RATIO * compressed_bytes, _ALWAYS_FINE_BYTES)


def unpack(decompressor: Any, data: bytes) -> bytes:
    """Unpack the bytes of a compressed chunk, but not without end."""
    limit = largest_plausible_size(len(data))
    unpacked: bytes = decompressor.decompress(data, limit)
    if not decompressor.eof:
        what = f"holds more than {limit:,}: no real recording does" if len(unpacked) == limit else "is cut"
        raise ValueError(f"a compressed chunk of {len(data):,} bytes {what}")
    return unpacked


def zip_members(path: Path) -> list[str]:
    """Return the names of the members, without their folders; none where the path is not a zip archive."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        return [name.rsplit("/", 1)[-1] for name in archive.namelist()]


def open_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """Open a member, if it does not claim more than it can hold; a longer one cannot follow."""
    member = archive.getinfo(name)
    if member.file_size > largest_plausible_size(member.compress_size):
        raise ValueError(f"{name} claims to unpack {member.compress_size:,} bytes to {member.file_size:,}")
    return archive.open(member)
