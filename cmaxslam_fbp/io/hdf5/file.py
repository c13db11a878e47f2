"""HDF5, an optional library: the one module that imports h5py, and the compression filters of hdf5plugin with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from cmaxslam_fbp.errors import MissingExtraError, RecordingError
from cmaxslam_fbp.io.bad_input import largest_plausible_size

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_PLACES = (0, 512, 1024, 2048)  # MATLAB puts 512 bytes of its own before it
_CACHE_BYTES = 8 << 20  # per column: the chunks that two slabs share are unpacked once

_ECF_FILTER = 0x8ECF

Hdf5Dataset = Any
Hdf5Group = Any


def is_hdf5(path: Path) -> bool:
    """Tell an HDF5 file by its signature, without the library."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        for place in _PLACES:
            file.seek(place)
            if file.read(len(SIGNATURE)) == SIGNATURE:
                return True
    return False


@contextmanager
def open_hdf5(file: Path | FileIO, mode: str = "r") -> Iterator[Any]:
    """Open a file to read or write, with all filters of hdf5plugin."""
    h5py, _ = _libraries()
    with h5py.File(file, mode, rdcc_nbytes=_CACHE_BYTES) as opened:
        yield opened


def is_group(thing: object) -> bool:
    """Tell a group from a data set."""
    return isinstance(thing, _libraries()[0].Group)


def is_variable_text(kind: Any) -> bool:
    """Tell the type of a text of variable length."""
    return isinstance(kind, _libraries()[0].h5t.TypeStringID) and bool(kind.is_variable_str())


def members(group: Hdf5Group) -> Iterator[tuple[str, Any]]:
    """Yield the data sets and groups that lie in a group itself: links to other places are not followed."""
    h5py, _ = _libraries()
    for name in group:
        if isinstance(group.get(name, getlink=True), h5py.HardLink):
            yield name, group[name]


def require_plausible(path: Path, *datasets: Hdf5Dataset) -> None:
    """Refuse data sets that together claim more than a file can hold, or whose compression cannot be undone here.

    Together, since one column of events may well be the same number all the way.
    """
    for dataset in datasets:
        if dataset.dtype.hasobject:  # libhdf5 does not come back from damaged ones
            raise RecordingError(f"{path}{dataset.name} is of variable length: it must be of numbers")
        _require_filters(dataset, path)
    stored = sum(dataset.id.get_storage_size() for dataset in datasets)
    claimed = sum(math.prod(dataset.shape) * dataset.dtype.itemsize for dataset in datasets)
    chunk = max(math.prod(dataset.chunks or (0,)) * dataset.dtype.itemsize for dataset in datasets)
    file_bytes = path.stat().st_size
    limit = largest_plausible_size(min(stored, file_bytes))
    if stored > file_bytes or claimed > limit or chunk > limit:
        raise RecordingError(
            f"{path}{datasets[0].name} claims {claimed:,} bytes in {stored:,}; "
            "the file is damaged or made to fill memory"
        )


def _require_filters(dataset: Hdf5Dataset, path: Path) -> None:
    h5py, _ = _libraries()
    where, plist = f"{path}{dataset.name}", dataset.id.get_create_plist()
    for place in range(plist.get_nfilters()):
        number = plist.get_filter(place)[0]
        if h5py.h5z.filter_avail(number):
            continue
        if number == _ECF_FILTER:
            raise RecordingError(
                f"{where} is compressed by Prophesee's ECF, which h5py lacks: install its plugin (hdf5-plugin-ecf, or "
                "github.com/prophesee-ai/hdf5_ecf) and set HDF5_PLUGIN_PATH, or give the RAW file"
            )
        raise RecordingError(f"{where} is compressed by the HDF5 filter {number}, which is not installed")


def compression() -> dict[str, Any]:
    """Return what `create_dataset` needs to compress as DSEC does: Blosc with zstd."""
    return dict(_libraries()[1].Blosc(cname="zstd", clevel=1, shuffle=1))


def _libraries() -> tuple[Any, Any]:
    try:
        import h5py
        import hdf5plugin
    except ModuleNotFoundError as error:
        raise MissingExtraError("HDF5 files need h5py and hdf5plugin: pip install 'cmaxslam-fbp[formats]'") from error
    return h5py, hdf5plugin
