"""AEDAT 4 files: ours are read by iniVation's and others' libraries, and theirs by us, field by field."""

import struct

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.aedat.aedat4_sink import MAGIC
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples


@pytest.fixture
def recording(make_events):
    draw = np.random.default_rng(2)
    events = make_events(40_000, duration_ns=3_000_000_000)
    t_ns = int(events.t_ns[0]) // 1000 * 1000 + np.arange(2600) * 1_000_000 - 5_000_000
    imu = ImuSamples(t_ns, draw.normal(size=(2600, 3)), 10 * draw.normal(size=(2600, 3)))
    return Recording.from_events(events, camera=davis240c(), imu=imu)


@pytest.fixture
def path(tmp_path, recording):
    recording.convert(tmp_path / "a.aedat4")
    return tmp_path / "a.aedat4"


def all_events(recording, **options):
    return Events.concatenate(recording.chunks(**options))


def test_what_is_written_is_read_back(path, recording, assert_same_events):
    back = open_recording(path)
    assert back.sensor_size == (240, 180)
    assert_same_events(all_events(back), all_events(recording))
    np.testing.assert_array_equal(back.imu.t_ns, recording.imu.t_ns)
    for name in ("angular_velocity_rad_s", "linear_acceleration_m_s2"):  # of 32 bits in the file
        np.testing.assert_allclose(getattr(back.imu, name), getattr(recording.imu, name), rtol=2e-7, atol=1e-9)


def test_iniVations_own_library_reads_what_we_write(path, recording):  # noqa: N802
    dv = pytest.importorskip("dv_processing")
    reader = dv.io.MonoCameraRecording(str(path))
    assert reader.getEventResolution() == (240, 180)
    batches = []
    while (batch := reader.getNextEventBatch()) is not None:
        batches.append(batch.numpy())
    theirs, ours = np.concatenate(batches), all_events(recording)
    np.testing.assert_array_equal(1000 * theirs["timestamp"], ours.t_ns)
    for name, column in (("x", "x"), ("y", "y"), ("p", "polarity")):
        np.testing.assert_array_equal(theirs[column], getattr(ours, name))
    samples = []
    while (batch := reader.getNextImuBatch()) is not None:
        samples += [(s.timestamp, *s.getAngularVelocities(), *s.getAccelerations()) for s in batch]
    table = np.array(samples, float)
    np.testing.assert_array_equal(1000 * table[:, 0].astype(np.int64), recording.imu.t_ns)
    np.testing.assert_allclose(table[:, 1:4], recording.imu.angular_velocity_rad_s, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(table[:, 4:], recording.imu.linear_acceleration_m_s2, rtol=2e-3, atol=1e-5)


def test_other_libraries_read_what_we_write(path, recording):
    aedat, faery = pytest.importorskip("aedat"), pytest.importorskip("faery")
    packets = list(aedat.Decoder(str(path)))
    ours = all_events(recording)
    events = np.concatenate([packet["events"] for packet in packets if "events" in packet])
    theirs = np.concatenate(list(faery.events_stream_from_file(path)))
    for found in (events, theirs):
        np.testing.assert_array_equal(1000 * found["t"].astype(np.int64), ours.t_ns)
        for name, column in (("x", "x"), ("y", "y"), ("p", "on")):
            np.testing.assert_array_equal(found[column], getattr(ours, name))
    samples = np.concatenate([packet["imus"] for packet in packets if "imus" in packet])
    np.testing.assert_array_equal(1000 * samples["t"].astype(np.int64), recording.imu.t_ns)
    for axis, name in enumerate("xyz"):
        theirs_deg_s, theirs_g = samples[f"gyroscope_{name}"], samples[f"accelerometer_{name}"]
        np.testing.assert_allclose(np.deg2rad(theirs_deg_s), recording.imu.angular_velocity_rad_s[:, axis], rtol=1e-5)
        np.testing.assert_allclose(9.81 * theirs_g, recording.imu.linear_acceleration_m_s2[:, axis], rtol=1e-5)


@pytest.mark.parametrize("compression", [None, ("lz4", 1), ("zstd", 1)])
def test_what_faery_writes_is_read_in_every_compression(tmp_path, recording, compression, assert_same_events):
    faery = pytest.importorskip("faery")
    ours = all_events(recording)
    array = np.zeros(len(ours), faery.EVENTS_DTYPE)
    array["t"], array["x"], array["y"], array["on"] = ours.t_ns // 1000, ours.x, ours.y, ours.p
    stream = faery.events_stream_from_array(array, (240, 180))
    stream.to_file(tmp_path / "b.aedat4", compression=compression)
    assert_same_events(all_events(open_recording(tmp_path / "b.aedat4")), ours)


def test_what_iniVations_library_writes_is_read(tmp_path, recording, assert_same_events):  # noqa: N802
    dv = pytest.importorskip("dv_processing")
    ours, imu = all_events(recording)[:3000], recording.imu
    config = dv.io.MonoCameraWriter.Config("DVXplorer_sample")
    config.addEventStream((640, 480))
    config.addImuStream()
    writer = dv.io.MonoCameraWriter(str(tmp_path / "b.aedat4"), config)
    store = dv.EventStore()
    for t, x, y, p in zip(ours.t_ns.tolist(), ours.x.tolist(), ours.y.tolist(), ours.p.tolist(), strict=True):
        store.push_back(t // 1000, x, y, bool(p))
    writer.writeEvents(store)
    for i in range(20):
        acceleration, rate = imu.linear_acceleration_m_s2[i] / 9.81, np.rad2deg(imu.angular_velocity_rad_s[i])
        unknown = [0.0, 0.0, 0.0]
        writer.writeImu(dv.IMU(int(imu.t_ns[i]) // 1000, 20.0, *acceleration, *rate, *unknown))
    del writer
    back = open_recording(tmp_path / "b.aedat4")
    assert back.sensor_size == (640, 480)
    assert_same_events(all_events(back), ours)
    np.testing.assert_array_equal(back.imu.t_ns, imu.t_ns[:20])
    np.testing.assert_allclose(back.imu.angular_velocity_rad_s, imu.angular_velocity_rad_s[:20], rtol=1e-5)
    np.testing.assert_allclose(back.imu.linear_acceleration_m_s2, imu.linear_acceleration_m_s2[:20], rtol=1e-5)


def test_a_recording_without_imu_has_none(tmp_path, make_events):
    Recording.from_events(make_events(10), sensor_size=(240, 180)).convert(tmp_path / "b.aedat4")
    assert open_recording(tmp_path / "b.aedat4").imu is None


def stereo(path):
    """Make the header of a recording name its IMU stream as a second one of events, by letters of the same length."""
    data = path.read_bytes()
    path.write_bytes(data.replace(b">IMUS<", b">EVTS<", 1))


def test_several_streams_are_listed_and_one_is_chosen(path, recording, assert_same_events):
    stereo(path)
    with pytest.raises(
        RecordingError, match=r"several event streams; choose one with --events-topic: 0 \(cmaxslam_fbp\), 1"
    ):
        open_recording(path)
    with pytest.raises(RecordingError, match="has no event stream 7; its event streams: 0"):
        open_recording(path, events_topic="7")
    assert_same_events(all_events(open_recording(path, events_topic="0")), all_events(recording))
    with pytest.raises(
        RecordingError,
        match=r"the packet at byte \d+ of .* cannot be read: it has the name b'IMUS' where b'EVTS' is expected",
    ):
        all_events(open_recording(path, events_topic="1", sensor_size=(240, 180)))


def test_an_interrupted_recording_is_read_up_to_its_end(path, recording, assert_same_events):
    """Such a file has no table of packets, and no place of it in the header."""
    data = path.read_bytes()
    (table_at,) = struct.unpack_from("<q", data, len(MAGIC) + 32)
    whole = data[: len(MAGIC) + 32] + struct.pack("<q", -1) + data[len(MAGIC) + 40 : table_at]
    path.write_bytes(whole)
    assert_same_events(all_events(open_recording(path)), all_events(recording))
    path.write_bytes(whole[:-5])
    with pytest.raises(RecordingError, match=r"a\.aedat4 ends within a packet, at byte \d+: the file is cut"):
        all_events(open_recording(path))


def test_a_cut_or_damaged_file_is_one_line(path):
    data = path.read_bytes()
    for length in (0, 3, 14, 17, 18, 40, 200, len(data) // 2):
        path.write_bytes(data[:length])
        with pytest.raises(RecordingError) as caught:
            all_events(open_recording(path))
        assert "a.aedat4" in str(caught.value)
        assert "\n" not in str(caught.value)
    (header_bytes,) = struct.unpack_from("<I", data, len(MAGIC))
    first = len(MAGIC) + 4 + header_bytes
    path.write_bytes(data[: first + 20] + b"\0" * 30 + data[first + 50 :])
    with pytest.raises(RecordingError, match=rf"the packet at byte {first} of .* cannot be unpacked|cannot be read"):
        all_events(open_recording(path))


def test_stamps_that_no_clock_shows_are_named(tmp_path, monkeypatch, make_events):
    events = make_events(10)
    Recording.from_events(events, sensor_size=(240, 180)).convert(tmp_path / "a.aedat4")
    recording = open_recording(tmp_path / "a.aedat4")
    packets = recording._packets
    huge = struct.pack("<q", 2**62)
    monkeypatch.setattr(
        recording, "_packets", lambda number: ((d[:32] + huge + d[40:], place) for d, place in packets(number))
    )
    with pytest.raises(RecordingError, match="which no clock shows"):
        all_events(recording)
