"""How loops are compiled and cached: the one place that decides it for every kernel file of the package.

`nogil` lets two threads run them side by side. `error_model="numpy"` leaves out the check for division by zero.
Without `fastmath`, NaN and infinity keep their meaning and the order of additions is the one that is written.

Compiled code is cached on disk: beside the package where its folder can be written, else in the user's cache folder,
else where `NUMBA_CACHE_DIR` says. Where none of these can be written (a read-only container without a home) Numba
refuses to cache at all; then loops are compiled anew in each process, which costs half a minute and nothing else.

Numba looks only at the file of a loop itself to tell whether its cached code is out of date, not at the files that it
inlines. So the name that code is cached by carries a digest of all kernel files: after an edit of any, all are
compiled again.
"""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

import hashlib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from llvmlite.binding import get_host_cpu_name
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys
from numba.extending import register_jitable

# Sums may be taken in any order, and so in vector registers; the order is fixed when the code is compiled.
REASSOCIATED = frozenset({"contract", "reassoc", "nsz", "arcp"})
CONTRACTED = frozenset({"contract"})

_KERNEL_FILES = ("*_kernels.py", "*_numba.py", "motion_models.py")


class _QuickCache(FunctionCache):
    """Reads code back without first preparing Numba to compile: that takes longer than to read all kernels of a run.

    Where code has to be compiled, Numba prepares itself then.
    """

    def load_overload(self, sig, target_context):
        """Return the compiled code of a signature, or None."""
        rtsys.initialize(target_context)  # the memory that compiled code may ask for
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


@cache
def can_cache() -> bool:
    """Return whether Numba finds a folder for compiled code."""
    try:
        njit(cache=True)(_digest_of)
    except RuntimeError:  # "cannot cache function ...: no locator available for file ..."
        return False
    return True


def cache_folder() -> Path | None:
    """Return where compiled code is kept, or None where it is not."""
    return Path(njit(cache=True)(_digest_of).stats.cache_path) if can_cache() else None


def mark_of(settings: str) -> Path | None:
    """Return the file that tells, once it is there, that all code for some settings is compiled and kept on disk."""
    folder = cache_folder()
    name = _digest_of(_package_digest(), numba.__version__, get_host_cpu_name(), settings)
    return None if folder is None else folder / f"compiled-{name}"


def compiled(
    function: Callable | None = None,
    *,
    fastmath: frozenset[str] = frozenset(),
    inlined: bool = False,
    cached: bool = True,
) -> Any:
    """Compile a function at its first call; a decorator, with or without options.

    One that is `inlined` becomes a part of the loops that call it: it pays for small ones that return several values.
    """
    if function is None:
        return lambda given: compiled(given, fastmath=fastmath, inlined=inlined, cached=cached)
    function.__qualname__ += f"-{_digest_of(_package_digest(), _own_file(function))}"
    inline = "always" if inlined else "never"
    loop = njit(nogil=True, error_model="numpy", fastmath=set(fastmath), inline=inline)(function)
    if cached and can_cache():
        loop._cache = _QuickCache(function)  # what `cache=True` does, with Numba's own
    return loop


@cache
def inlinable(function: Callable, *, fastmath: frozenset[str] = frozenset()) -> Any:
    """Let compiled loops inline a function that stays a plain one for Python, and so for tensors; a decorator."""
    return register_jitable(error_model="numpy", fastmath=set(fastmath))(function)


def specialised(
    template: Callable, variant: str, names: Mapping[str, Any], *, fastmath: frozenset[str] = frozenset()
) -> Any:
    """Return a loop compiled with some of its global names bound: to a constant, or to a function to inline.

    The code is cached by the loop's name and that of the variant, with the files that the bound functions lie in; a
    closure over a compiled function would be compiled anew in each process.

    Parameters
    ----------
    template : a plain function of a module, which may use names that the module does not define
    variant : tells loops that are bound to different names apart
    names : the names and what they stand for
    """
    loop = FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
    bound = [getattr(value, "py_func", value) for value in names.values() if callable(value)]
    files = [_own_file(function) for function in bound]
    loop.__module__, loop.__doc__ = template.__module__, template.__doc__
    loop.__qualname__ = f"{template.__qualname__}-{variant}-{_digest_of(*files)}"
    # Code that inlines a function of no module cannot be read back: another process does not know where that one is.
    return compiled(loop, fastmath=fastmath, cached=all(inspect.getmodule(function) for function in bound))


def _own_file(function: Callable) -> str:
    """Return the digest of the file that a function is written in, as it was when the function was first seen."""
    return _source_digest(inspect.getfile(function))


@cache
def _source_digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if Path(file).is_file() else file


@cache
def _package_digest() -> str:
    """Return the digest of all kernel files of the package."""
    folder = Path(__file__).parent
    return _digest_of(*(_source_digest(str(file)) for glob in _KERNEL_FILES for file in sorted(folder.rglob(glob))))


def _digest_of(*parts: str) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:8]
