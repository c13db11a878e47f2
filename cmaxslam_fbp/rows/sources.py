"""A fingerprint of the sources that a piece of work uses: its own file, and all of the package that it imports."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_PLACE = re.compile(r"""["']([\w.]+):\w+["']""")  # `module:name` of a registry


@cache
def source_digest(start: Path, package: Path = PACKAGE) -> str:
    """Return the SHA-256 of a source file and of all files of the package that it imports, as hexadecimal text."""
    total = hashlib.sha256()
    for file in used_files(start, package):
        name = file.relative_to(package).as_posix() if file.is_relative_to(package) else file.name
        total.update(name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def used_files(start: Path, package: Path = PACKAGE) -> list[Path]:
    """Return a source file and all files of the package that it imports, directly or not, sorted.

    Imports within functions count, and so do the places `module:name` of the registries; those for type checkers do
    not. Packages count with their `__init__.py`; that of the whole package, which only names things, does not.
    """
    found: set[Path] = set()
    waiting = {start}
    while waiting:
        file = waiting.pop()
        found.add(file)
        waiting |= {used for name in _imported_names(file) for used in _executed(name, package)} - found
    return sorted(found)


@cache
def _imported_names(file: Path) -> frozenset[str]:
    """Return the full names of what a file imports: modules, and what is taken out of them."""
    text = file.read_text(encoding="utf-8")
    return frozenset((*_imported(ast.parse(text).body), *_PLACE.findall(text)))


def _imported(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Yield what statements import, and those within them; expressions import nothing."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            for block in ("body", "orelse", "handlers", "finalbody", "cases"):
                yield from _imported(getattr(node, block, ()))


def _executed(full_name: str, package: Path) -> Iterator[Path]:
    """Yield the files of the package that the import of a full name executes."""
    root, *parts = full_name.split(".")
    place = package
    for part in parts if root == package.name else ():
        place = place / part
        yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())
