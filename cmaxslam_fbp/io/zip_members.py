"""What lies in a zip archive, to recognise formats that are one."""

from __future__ import annotations

import zipfile
from pathlib import Path


def zip_members(path: Path) -> list[str]:
    """Return the names of the members, without their folders; none where the path is not a zip archive."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return []
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.rsplit("/", 1)[-1] for name in archive.namelist()]
    except zipfile.BadZipFile:
        return []
