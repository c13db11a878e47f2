"""A fingerprint of a recording's files."""

from __future__ import annotations

import hashlib
from pathlib import Path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a folder with their names, as hexadecimal text."""
    total = hashlib.sha256()
    for file in _files(path):
        if path.is_dir():
            total.update(file.relative_to(path).as_posix().encode() + b"\0")
        _add(total, file)
    return total.hexdigest()


def stamps(path: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of each file of a recording: what tells quickly whether its digest is still known."""
    return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in _files(path)]


def _files(path: Path) -> list[Path]:
    return sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]


def _add(total: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            total.update(block)
