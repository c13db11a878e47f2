"""AEDAT 3 files of bytes that are packed here by hand, after iniVation's description."""

import struct

import event_words
import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording

HEADER = (
    "#!AER-DAT3.1\r\n#Format: {}\r\n#Source 1: {}\r\n#Start-Time: 2016-01-01 00:00:00 (TZ+0000)\r\n#!END-HEADER\r\n"
)


def packet(kind, item_bytes, items, overflows=0):
    count = len(items) // item_bytes
    return struct.pack("<HHIIIIII", kind, 1, item_bytes, 4, overflows, count, count, count) + items


@pytest.fixture
def write(tmp_path):
    def write_file(data, source="DAVIS240C", form="RAW", header=HEADER):
        (tmp_path / "a.aedat").write_bytes(header.format(form, source).encode() + data)
        return tmp_path / "a.aedat"

    return write_file


def read(path, **options):
    return Events.concatenate(open_recording(path, **options).chunks())


@pytest.mark.parametrize(("source", "size"), [("DVS128", (128, 128)), ("DAVIS346bluePCBv3", (346, 260))])
def test_events_of_all_packets_are_read(write, source, size):
    start = (1 << 31) - 9000
    rows = event_words.neighbours(np.random.default_rng(0), 900, width=128, height=128, start_us=start)
    frame = packet(2, 10, b"x" * 40)
    before = [row for row in rows if row[0] < 1 << 31]
    after = rows[len(before) :]
    data = packet(1, 8, event_words.libcaer(before)) + frame + packet(1, 8, event_words.libcaer(after), 1)
    recording = open_recording(write(data, source))
    assert recording.sensor_size == size
    events = Events.concatenate(recording.chunks())
    found = np.column_stack([events.t_ns // 1000, events.x, events.y, events.p])
    np.testing.assert_array_equal(found, rows)


def test_invalid_events_are_passed_over(write):
    good, bad = (event_words.libcaer([(t, 5, 6, 1)]) for t in (7, 8))
    bad = bytes([bad[0] & ~1]) + bad[1:]
    assert read(write(packet(1, 8, good + bad + good))).t_ns.tolist() == [7000, 7000]


def test_imu_samples_that_are_no_numbers_are_a_fault(write):
    signalling = struct.pack("<I", 0x7F800001) * 7  # a NaN that the processor complains of
    recording = open_recording(write(packet(3, 36, struct.pack("<Ii", 1, 100) + signalling)))
    assert any("IMU sample 0 is no measurement" in fault for fault in recording.check_reference())


def test_imu_samples_are_read(write):
    values = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    items = b"".join(struct.pack("<Ii7f", i != 3, 100 * i, *row) for i, row in enumerate(values.tolist()))
    imu = open_recording(write(packet(3, 36, items, 2))).imu
    kept = [0, 1, 2, 4]
    np.testing.assert_array_equal(imu.t_ns, [1000 * ((2 << 31) + 100 * i) for i in kept])
    np.testing.assert_allclose(imu.linear_acceleration_m_s2, 9.81 * values[kept, :3], rtol=1e-6)
    np.testing.assert_allclose(np.rad2deg(imu.angular_velocity_rad_s), values[kept, 3:6], rtol=1e-6)


def test_what_is_wrong_is_one_line_with_its_place(write):
    good = packet(1, 8, event_words.libcaer([(7, 5, 6, 1)]))
    start = len(HEADER.format("RAW", "DAVIS240C"))
    with pytest.raises(RecordingError, match=rf"ends within a packet, at byte {start + len(good)}: the file is cut"):
        read(write(good + good[:-1]))
    with pytest.raises(RecordingError, match="has events of 4 bytes, not 8"):
        read(write(packet(1, 4, b"\0" * 8)))
    with pytest.raises(RecordingError, match=r"is compressed \(PNGFrames\)"):
        open_recording(write(good, form="PNGFrames"))
    with pytest.raises(RecordingError, match="without the end of its header"):
        open_recording(write(good, header="#!AER-DAT3.1\r\n#Format: {}{}\r\n"))
    with pytest.raises(RecordingError, match=r"several cameras: 1 \(DVS128\), 2 \(DAVIS240C\)"):
        open_recording(write(good, source="DVS128\r\n#Source 2: DAVIS240C"))
    with pytest.raises(RecordingError, match="--sensor-size"):
        read(write(good, source="Other"))
    with pytest.raises(RecordingError, match="has no events"):
        read(write(b""))


def test_the_bytes_of_inivation_s_description_are_read(write):
    """Written out by hand: x 7, y 5, brighter, 1000 us; one that is not valid; x 345, y 259, darker, 1002 us."""
    head = "0100 0100 08000000 04000000 00000000 03000000 03000000 02000000"
    items = "17000E00 E8030000  00000200 E9030000  0D04B202 EA030000"
    events = read(write(bytes.fromhex(head + items), source="DAVIS346bluePCBv3"))
    assert (events.t_ns // 1000).tolist() == [1000, 1002]
    assert [column.tolist() for column in (events.x, events.y, events.p)] == [[7, 345], [5, 259], [1, 0]]
