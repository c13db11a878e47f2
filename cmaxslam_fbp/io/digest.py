"""A fingerprint of a recording's files."""

from __future__ import annotations

import hashlib
from pathlib import Path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a folder with their names, as hexadecimal text."""
    total = hashlib.sha256()
    if not path.is_dir():
        _add(total, path)
    else:
        for file in sorted(item for item in path.rglob("*") if item.is_file()):
            total.update(file.relative_to(path).as_posix().encode() + b"\0")
            _add(total, file)
    return total.hexdigest()


def _add(total: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            total.update(block)
