"""EVT 2.1, AEDAT 3 and AEDAT 2 against evutils, whose C and NumPy codecs share nothing with ours."""

import importlib.util
import struct
import subprocess
import sys

import event_words
import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording

pytestmark = pytest.mark.skipif(importlib.util.find_spec("evutils") is None, reason="evutils is not installed")

# Its licence is the GPL: it is called as a program of its own.
READ = """
import sys, numpy as np
from evutils.io import EventReader
with EventReader(sys.argv[1]) as reader:
    events = reader.read_all()
np.save(sys.argv[2], np.column_stack([np.asarray(events[name], np.int64) for name in "txyp"]))
"""
WRITE = """
import sys, numpy as np
from evutils.io import EventWriter
from evutils.types import EventArray
t, x, y, p = np.load(sys.argv[1]).T
with EventWriter(sys.argv[2], width=1280, height=720) as writer:
    writer.write(EventArray(t=t, x=x, y=y, p=p))
"""


def columns(path, **options):
    """What our reader finds: microseconds, column, row, polarity."""
    events = Events.concatenate(open_recording(path, **options).chunks())
    return np.column_stack([events.t_ns // 1000, events.x, events.y, events.p])


def their_columns(path, out):
    subprocess.run([sys.executable, "-c", READ, path, out / "theirs.npy"], check=True)
    return np.load(out / "theirs.npy")


@pytest.mark.parametrize("says_order", [True, False])
def test_evt21_that_evutils_writes_is_read(tmp_path, says_order):
    rows = np.array(event_words.neighbours(np.random.default_rng(5), 20_000, duration_us=3_000_000))
    np.save(tmp_path / "rows.npy", rows)
    subprocess.run([sys.executable, "-c", WRITE, tmp_path / "rows.npy", tmp_path / "a.evt21"], check=True)
    data = (tmp_path / "a.evt21").read_bytes()
    order = b"% endianness legacy\n"  # the halves of a word are swapped
    assert order in data
    (tmp_path / "a.raw").write_bytes(data if says_order else data.replace(order, b""))
    np.testing.assert_array_equal(columns(tmp_path / "a.raw"), rows)


def test_our_words_of_evt21_are_read_alike(tmp_path):
    rows = event_words.neighbours(np.random.default_rng(6), 20_000, duration_us=500_000)
    header = "% evt 2.1\n% format EVT21;endianness=legacy;height=720;width=1280\n% end\n"
    (tmp_path / "a.raw").write_bytes(header.encode() + event_words.evt21(rows, legacy=True))
    np.testing.assert_array_equal(columns(tmp_path / "a.raw"), their_columns(tmp_path / "a.raw", tmp_path))


def test_aedat3_is_read_alike(tmp_path):
    draw = np.random.default_rng(7)
    header = b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DAVIS346\r\n#!END-HEADER\r\n"
    start_us = (1 << 31) - 9000  # the packets behind an overflow count it
    rows = event_words.neighbours(draw, 5000, width=346, height=260, start_us=start_us)
    before = [row for row in rows if row[0] < 1 << 31]
    packets = []
    for part, overflows in ((before, 0), (rows[len(before) :], 1)):
        items = np.frombuffer(event_words.libcaer(part), "<u4").reshape(-1, 2).copy()
        items[:, 0] &= ~(draw.random(len(items)) < 0.1).astype(np.uint32)  # some are not valid
        count, valid = len(items), int((items[:, 0] & 1).sum())
        packets += [struct.pack("<HHIIIIII", 1, 1, 8, 4, overflows, count, count, valid) + items.tobytes()]
        packets += [struct.pack("<HHIIIIII", 2, 1, 10, 4, overflows, 4, 4, 4) + bytes(40)]  # a frame
    (tmp_path / "a.aedat").write_bytes(header + b"".join(packets))
    found = columns(tmp_path / "a.aedat")
    assert 4000 < len(found) < 4900
    np.testing.assert_array_equal(found, their_columns(tmp_path / "a.aedat", tmp_path))


@pytest.mark.real_data
def test_a_real_aedat2_file_is_read_alike(real_data, tmp_path):
    path = real_data / "real" / "IMU_rotDisk.aedat"
    recording = open_recording(path)
    width, height = recording.sensor_size
    found, theirs = columns(path), their_columns(path, tmp_path)
    theirs[:, 1], theirs[:, 2] = width - 1 - theirs[:, 1], height - 1 - theirs[:, 2]  # from the lower right
    np.testing.assert_array_equal(found, theirs)
