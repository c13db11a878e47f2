"""Texts of variable length as h5py writes them, and damaged ones, from which libhdf5 does not return."""

import struct

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.hdf5.texts import read_attribute, read_text

h5py = pytest.importorskip("h5py")
pytest.importorskip("hdf5plugin")

TEXTS = ["", "pinhole", "µs", "x" * 5000]


@pytest.mark.parametrize(
    "options", [{}, {"libver": "latest"}, {"userblock_size": 512}, {"libver": ("v108", "v108"), "track_order": True}]
)
def test_texts_are_those_that_h5py_wrote(tmp_path, options):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", **options) as file:
        for number, text in enumerate(TEXTS):  # so many attributes lie in several blocks, or in an index of their own
            for copy in range(4):
                file[f"group/d{number}_{copy}"] = text
                file["group"].attrs[f"a{number}_{copy}"] = text
        file["fixed"] = np.bytes_("radtan")
        file.attrs["fixed"], file.attrs["number"] = np.bytes_("640x480"), 3
    with h5py.File(path) as file:
        for number, text in enumerate(TEXTS):
            for copy in range(4):
                assert file[f"group/d{number}_{copy}"].asstr()[()] == text == file["group"].attrs[f"a{number}_{copy}"]
                assert read_text(file[f"group/d{number}_{copy}"], path) == text
                assert read_attribute(file["group"], f"a{number}_{copy}", path) == text
        assert read_text(file["fixed"], path) == "radtan"
        assert read_attribute(file, "fixed", path) == "640x480"
        assert read_attribute(file, "number", path) is None
        assert read_attribute(file, "missing", path) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"GCOL", b"HEAP"),
        # Object 1 of the heap, which is as long as its text, and the free rest.
        (struct.pack("<HHIQ", 1, 0, 0, 7), struct.pack("<HHIQ", 1, 0, 0, 0)),
        (struct.pack("<HHIQ", 1, 0, 0, 7), struct.pack("<HHIQ", 1, 0, 0, 2**64 - 16)),
        (struct.pack("<HHIQ", 1, 0, 0, 7), struct.pack("<HHIQ", 9, 0, 0, 0)),
        # The length of the text in the attribute and in the data set: two gigabytes.
        (struct.pack("<I", 7), struct.pack("<I", 0x7FFFFFFF)),
    ],
)
def test_damaged_texts_are_one_line_at_once(tmp_path, old, new):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["geometry"] = "240x180"
        for name in ("x", "y", "t", "p"):
            file[f"events/{name}"] = [0, 1]
        file["events/time_unit"] = "seconds"
    data = path.read_bytes()
    heap = data.index(b"GCOL")
    if len(old) == 4 and old != b"GCOL":
        old, new = (length + struct.pack("<Q", heap) for length in (old, new))
    assert old in data
    path.write_bytes(data.replace(old, new))
    for size in (None, (240, 180)):  # the attribute, and the data set
        with pytest.raises(RecordingError, match=r"a\.h5 cannot be read: a text of it is damaged"):
            list(open_recording(path, sensor_size=size).chunks())
