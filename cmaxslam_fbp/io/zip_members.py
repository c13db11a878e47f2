"""Members of a zip archive, for the formats that are one."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO

from cmaxslam_fbp.io.bad_input import largest_plausible_size


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
