"""How the loops are compiled and cached: once, in one place.

`nogil` lets two threads run them side by side. `error_model="numpy"` leaves out the check for division by zero.
No `fastmath`: NaN and infinity keep their meaning, and the order of additions is the one that is written.

Compiled code is cached on disk: beside the package where its folder can be written, else in the user's cache folder,
else where `NUMBA_CACHE_DIR` says. Where none of these can be written (a read-only container without a home) Numba
refuses to cache at all; then the loops are compiled anew in each process, which costs some seconds and nothing else.

Numba looks only at the file of the loop itself to tell whether a cached version is out of date. `SOURCES` stands for
the files that the loops inline. A loop that names it, as one of the variables of its enclosing function, is compiled
again when they change.
"""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

import zlib
from pathlib import Path

from numba import njit


def can_cache() -> bool:
    """Return whether Numba finds a folder for compiled code."""
    try:
        njit(cache=True)(can_cache)
    except RuntimeError:  # "cannot cache function ...: no locator available for file ..."
        return False
    return True


OPTIONS = {"nogil": True, "cache": can_cache(), "error_model": "numpy"}
_INLINED = ("vectors_numba.py", "points_numba.py", "bins_numba.py", "nearest_numba.py", "patch_numba.py")
SOURCES = zlib.crc32(b"".join(Path(__file__).with_name(name).read_bytes() for name in _INLINED))
