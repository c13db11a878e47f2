"""AEDAT 2 files of bytes that are packed here by hand, after jAER's own description, and a real one."""

import struct

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording


def address(x, y, p, *, width=240, height=180):
    """Return the address of an event at column x from the left and row y from the top."""
    return (height - 1 - y) << 22 | (width - 1 - x) << 12 | p << 11


def imu_addresses(values):
    return [1 << 31 | code << 28 | (value & 0xFFFF) << 12 | 3 << 10 for code, value in enumerate(values)]


@pytest.fixture
def write_aedat2(tmp_path):
    def write(words, *, chip="eu.seebetter.ini.chips.davis.DAVIS240C", more="", tail=b""):
        text = "#!AER-DAT2.0\r\n# Timestamps tick is 1 us\r\n"
        text += f"# AEChip: {chip}\r\n" if chip else ""
        text += more
        path = tmp_path / "a.aedat"
        path.write_bytes(text.encode() + b"".join(struct.pack(">II", a, t % 2**32) for a, t in words) + tail)
        return path

    return write


def event_words(events, **size):
    stamps = (events.t_ns // 1000).tolist()
    places = zip(events.x.tolist(), events.y.tolist(), events.p.tolist(), strict=True)
    return [(address(*place, **size), t) for place, t in zip(places, stamps, strict=True)]


def whole_microseconds(events):
    return Events(events.t_ns // 1000 % 10**9 * 1000, events.x, events.y, events.p)


@pytest.mark.parametrize(
    ("chip", "width", "height"),
    [
        ("eu.seebetter.ini.chips.davis.DAVIS240B", 240, 180),
        ("eu.seebetter.ini.chips.davis.Davis346blue", 346, 260),
        ("DAVIS346", 346, 260),
    ],
)
def test_columns_and_rows_count_from_the_lower_right(
    write_aedat2, make_events, chip, width, height, assert_same_events
):
    events = whole_microseconds(make_events(500, width=width, height=height))
    recording = open_recording(write_aedat2(event_words(events, width=width, height=height), chip=chip))
    assert recording.sensor_size == (width, height)
    assert_same_events(Events.concatenate(recording.chunks()), events)


def test_a_file_that_names_no_camera_needs_the_size(write_aedat2, make_events, assert_same_events):
    events = whole_microseconds(make_events(50))
    path = write_aedat2(event_words(events), chip="")
    with pytest.raises(RecordingError, match="--sensor-size"):
        Events.concatenate(open_recording(path).chunks())
    assert_same_events(Events.concatenate(open_recording(path, sensor_size=(240, 180)).chunks()), events)


def test_frames_and_external_inputs_are_passed_over(write_aedat2):
    reset, signal, external = 1 << 31, 1 << 31 | 1 << 10 | 77, 1 << 10 | 3
    words = [(reset, 5), (address(1, 2, 1), 6), (signal, 7), (external, 8), (address(3, 4, 0), 9)]
    events = Events.concatenate(open_recording(write_aedat2(words)).chunks())
    assert [column.tolist() for column in (events.t_ns, events.x, events.y, events.p)] == [
        [6000, 9000],
        [1, 3],
        [2, 4],
        [1, 0],
    ]


def test_stamps_go_on_over_the_end_of_32_bits_and_small_steps_back_are_sorted(write_aedat2):
    stamps = [2**32 - 3, 2**32 - 1, 2**32 - 2, 2**32 + 4, 2**32 + 1, 2**32 + 500]
    stream = open_recording(write_aedat2([(address(i, i, 1), t) for i, t in enumerate(stamps)])).chunks()
    events = Events.concatenate(stream)
    assert (events.t_ns // 1000).tolist() == sorted(stamps)
    assert events.x.tolist() == [0, 2, 1, 4, 3, 5]
    assert stream.defects.reordered == 2


@pytest.mark.parametrize(
    ("preferences", "per_deg_s", "per_g"),
    [
        ({}, 32.8, 4096),
        ({"DAVIS240C.IMU.GyroScale": "GyroFullScaleDegPerSec500"}, 65.5, 4096),
        ({"ImuGyroScale": "GyroFullScaleDegPerSec2000", "ImuAccelScale": "ImuAccelScaleG16"}, 16.4, 2048),
        ({"CPLDByte.imu3_GYRO_CONFIG": "0", "CPLDByte.imu4_ACCEL_CONFIG": "8"}, 131, 8192),
        ({"CPLDByte.imu3_GYRO_CONFIG": "what", "ImuAccelScale": "ImuAccelScaleG7"}, 32.8, 4096),
    ],
)
def test_the_imu_has_the_scale_of_the_preferences_and_the_cameras_axes(write_aedat2, preferences, per_deg_s, per_g):
    more = "".join(f'#  <entry key="{key}" value="{value}"/>\r\n' for key, value in preferences.items())
    samples = [(100, -200, 300, 999, 1, -2, 3), (-32768, 32767, 0, -1, 5, 6, 7)]
    words = [(address(0, 0, 1), 10)]
    for number, sample in enumerate(samples):
        words += [(a, 20 + number) for a in imu_addresses(sample)]
        words.insert(-3, (address(9, 9, 0), 20 + number))  # an event between the parts of a sample
    words += [(a, 30) for a in imu_addresses(range(7))[2:6]]  # a sample that is not whole
    recording = open_recording(write_aedat2(words, more=more))
    assert recording.imu.t_ns.tolist() == [20_000, 21_000]
    raw = np.array(samples, float)
    camera = np.array([-1, 1, -1])
    np.testing.assert_allclose(
        np.rad2deg(recording.imu.angular_velocity_rad_s), camera * raw[:, 4:] / per_deg_s, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        recording.imu.linear_acceleration_m_s2, camera * raw[:, :3] / per_g * 9.80665, rtol=1e-12, atol=1e-12
    )


def test_a_file_without_imu_has_none(write_aedat2):
    assert open_recording(write_aedat2([(address(1, 1, 1), 5)])).imu is None


def test_data_that_start_like_a_line_of_the_header_are_data(write_aedat2):
    word = 0x23 << 24  # '#'
    events = Events.concatenate(open_recording(write_aedat2([(word, 0x0D0A), (word, 0x0D0A23)])).chunks())
    assert events.y.tolist() == [179 - 140] * 2


def test_what_is_wrong_is_one_line_with_its_place(write_aedat2, tmp_path):
    good = [(address(1, 1, 1), 5)]
    path = write_aedat2(good, tail=b"\0\0\0")
    start = path.stat().st_size - 3
    with pytest.raises(RecordingError, match=rf"a\.aedat ends within a word of 8 bytes, at byte {start}: .* cut"):
        Events.concatenate(open_recording(path).chunks())
    with pytest.raises(RecordingError, match="is of a camera DVS128; only DAVIS240 and DAVIS346 are read"):
        open_recording(write_aedat2(good, chip="ch.unizh.ini.jaer.chip.retina.DVS128"))
    with pytest.raises(RecordingError, match="has no events"):
        Events.concatenate(open_recording(write_aedat2([])).chunks())
    with pytest.raises(
        RecordingError, match=r"time jumps back by 5\.000 s at event 1 of bytes \d+ to \d+ of .*a\.aedat"
    ):
        Events.concatenate(open_recording(write_aedat2([(0, 9_000_000), (0, 4_000_000)])).chunks())
    (tmp_path / "bare.aedat").write_bytes(b"#!AER-DAT2.0")
    with pytest.raises(RecordingError, match="a line has no end"):
        open_recording(tmp_path / "bare.aedat")


def test_a_real_recording_turns_as_its_gyroscope_says(real_data):
    recording = open_recording(real_data / "real" / "IMU_rotDisk.aedat")
    events = Events.concatenate(recording.chunks())
    assert len(events) == 374_296
    assert recording.sensor_size == (240, 180)
    imu = recording.imu
    assert len(imu) == 7384
    # The camera rolls: gravity turns against it, and is about 9.8 m/s^2.
    assert np.rad2deg(imu.angular_velocity_rad_s.mean(axis=0)) == pytest.approx([3.04, 1.13, -29.48], abs=0.01)
    gravity = imu.linear_acceleration_m_s2
    assert np.linalg.norm(gravity, axis=1).mean() == pytest.approx(9.8, abs=0.2)
    change = (gravity[-100:].mean(axis=0) - gravity[:100].mean(axis=0)) / 3.1
    turned = -np.cross(imu.angular_velocity_rad_s, gravity).mean(axis=0)
    assert change[:2] == pytest.approx(turned[:2], rel=0.1)
