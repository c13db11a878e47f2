import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording

EPOCH_NS = 1_468_941_032_229_417_000


@pytest.fixture
def archive(tmp_path):
    def make(compressed=False, **arrays):
        base = {"x": [1, 2, 3], "y": [4, 5, 6], "p": [1, 0, 1], "width": 240, "height": 180}
        (np.savez_compressed if compressed else np.savez)(tmp_path / "a.npz", **{**base, **arrays})
        return tmp_path / "a.npz"

    return make


def times(path):
    return Events.concatenate(open_recording(path).chunks()).t_ns.tolist()


@pytest.mark.parametrize("compressed", [False, True])
def test_nanoseconds_are_taken_as_they_are(archive, compressed):
    path = archive(compressed, t_ns=np.array([EPOCH_NS, EPOCH_NS + 1, EPOCH_NS + 2]))
    assert times(path) == [EPOCH_NS, EPOCH_NS + 1, EPOCH_NS + 2]
    recording = open_recording(path)
    events = Events.concatenate(recording.chunks())
    assert (events.x.tolist(), events.y.tolist(), events.p.tolist()) == ([1, 2, 3], [4, 5, 6], [1, 0, 1])
    assert recording.sensor_size == (240, 180)


def test_floats_are_seconds_and_keep_microseconds_at_unix_time(archive):
    path = archive(t=np.array([1468941032.229417, 1468941032.229418, 1468941032.999999]))
    assert times(path) == [EPOCH_NS, EPOCH_NS + 1000, 1_468_941_032_999_999_000]


def test_floats_near_zero_keep_nanoseconds(archive):
    assert times(archive(t=np.array([0.003811001, 0.003811002, 12.000000003]))) == [3811001, 3811002, 12_000_000_003]


@pytest.mark.parametrize(("unit", "factor"), [("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)])
def test_integers_count_in_the_unit_that_is_named(archive, unit, factor):
    assert times(archive(t=np.array([1, 2, 4]), time_unit=unit)) == [factor, 2 * factor, 4 * factor]


def test_a_few_integers_without_a_unit_are_nanoseconds(archive):
    assert times(archive(t=np.array([5, 6, 7]))) == [5, 6, 7]


@pytest.mark.parametrize(
    ("rate_ev_s", "clock_ns", "stored", "unit_ns", "word"),
    [
        (1e6, 1000, "us", 1000, "us"),  # as nanoseconds, a thousand million events a second
        (7e4, 1000, "us", 1000, "us"),
        (1e6, 1000, "ns", 1, "ns"),  # 1e3 events a second as microseconds, but the clock ticks microseconds
        (2e5, 1, "ns", 1, "ns"),  # 200 events a second as microseconds
    ],
)
def test_the_unit_of_integers_is_judged_by_their_rate_and_said(archive, rate_ev_s, clock_ns, stored, unit_ns, word):
    n = 20_000
    t_ns = (np.arange(n) * (1e9 / rate_ev_s)).astype(np.int64) // clock_ns * clock_ns
    column = np.ones(n, np.uint16)
    stream = open_recording(archive(t=t_ns // unit_ns, x=column, y=column, p=column)).chunks()
    np.testing.assert_array_equal(Events.concatenate(stream).t_ns, t_ns)
    (line,) = stream.defects.describe()
    assert f"the times have no unit: they were taken as {word}, {rate_ev_s:.2g} events a second" in line


@pytest.mark.parametrize("rate_ns", [5e6, 4e7, 1e2, 1e11])
def test_a_unit_that_cannot_be_told_is_asked_for(archive, rate_ns):
    n = 20_000
    column = np.ones(n, np.uint16)
    t = np.arange(n) * int(1e9 / rate_ns) if rate_ns < 1e9 else np.arange(n) // int(rate_ns / 1e9)
    arrays = {"t": t, "x": column, "y": column, "p": column}
    with pytest.raises(RecordingError, match=r"without a unit: .* add the string 'time_unit' \(s, ms, us or ns\)"):
        times(archive(**arrays))
    assert times(archive(**arrays, time_unit="us"))[:2] == [int(t[0]) * 1000, int(t[1]) * 1000]


def test_named_nanoseconds_that_no_sensor_gives_are_found_out(archive):
    column = np.ones(5000, np.uint16)
    with pytest.raises(RecordingError, match="its times are not in nanoseconds; add the string 'time_unit'"):
        times(archive(t_ns=np.arange(5000) // 2, x=column, y=column, p=column))


@pytest.mark.parametrize(
    ("t", "unit", "event"),
    [
        (np.array([1, 2**63 + 1, 3], np.uint64), "ns", 1),
        (np.array([1, 2, 2**63 - 1]), "ns", 2),
        (np.array([-(2**63), 2, 3]), "ns", 0),
        (np.array([1, 2, 10**10]), "s", 2),  # seconds beyond int64
        (np.array([1, 2**60, 3]), "us", 1),
        (np.array([0.0, 1.0, 1e300]), "s", 2),
        (np.array([0.0, -1e12, 1.0]), "s", 1),
    ],
)
def test_times_that_64_bits_do_not_hold_are_errors(archive, t, unit, event):
    with pytest.raises(RecordingError, match=f"the time of event {event}, .* is more than 64 bits of nanoseconds hold"):
        times(archive(t=t, time_unit=unit))


@pytest.mark.parametrize("p", [[True, False, True], [1, 0, 1], [1, -1, 1], [1.0, -1.0, 1.0]])
def test_polarities_of_every_coding(archive, p):
    path = archive(t_ns=[1, 2, 3], p=p)
    assert Events.concatenate(open_recording(path).chunks()).p.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"t": [0.0, np.nan, 1.0]}, "the time of event 1 is not a finite number"),
        ({"t": np.array([1.4e9, 1.4e9, 1.4e9], np.float32)}, "cannot hold microseconds"),
        ({"t_ns": [1, 2, 3], "x": [1, -2, 3]}, "x of event 1 is -2"),
        ({"t_ns": [1, 2, 3], "y": [1.0, 2.0, 3.5]}, "y of event 2 is 3.5"),
        ({"t_ns": [1, 2, 3], "x": [1, 2, 70000]}, "x of event 2 is 70000"),
        ({"t_ns": [1, 2, 3], "p": [1, 2, 0]}, "polarity of event 1 is 2"),
        ({"t_ns": [1, 2]}, "differ in length"),
        ({"t_ns": [[1, 2, 3]]}, "it must be a list of numbers"),
        ({"t": [1, 2, 3], "time_unit": "minutes"}, "time_unit 'minutes'"),
        ({}, "lacks the arrays t;"),
    ],
)
def test_faulty_arrays_are_named(archive, arrays, complaint):
    with pytest.raises(RecordingError, match=complaint):
        times(archive(**arrays))


def test_a_missing_sensor_size_is_asked_for(tmp_path):
    np.savez(tmp_path / "a.npz", t_ns=[1], x=[1], y=[1], p=[1])
    with pytest.raises(RecordingError, match=r"add the numbers 'width' and 'height'.*--sensor-size"):
        times(tmp_path / "a.npz")
    assert open_recording(tmp_path / "a.npz", sensor_size=(9, 8)).sensor_size == (9, 8)


def test_long_archives_are_read_in_blocks(archive, monkeypatch):
    monkeypatch.setattr("cmaxslam_fbp.io.npz_recording._EVENTS_PER_CHUNK", 7)
    n = 100
    column = np.arange(n, dtype=np.uint16)
    path = archive(t_ns=np.arange(n) * 10, x=column, y=column, p=column % 2)
    chunks = list(open_recording(path).chunks())
    assert max(map(len, chunks)) == 7
    events = Events.concatenate(chunks)
    np.testing.assert_array_equal(events.t_ns, np.arange(n) * 10)
    np.testing.assert_array_equal(events.x, column)


def test_a_cut_archive_is_one_line(archive, tmp_path):
    path = archive(t_ns=[1, 2, 3])
    (tmp_path / "b.npz").write_bytes(path.read_bytes()[:300])
    with pytest.raises(RecordingError, match=r"b\.npz cannot be read: File is not a zip file"):
        open_recording(tmp_path / "b.npz")


def test_a_header_that_claims_hundreds_of_megabytes_is_refused_before_it_is_read(tmp_path):
    import io
    import tracemalloc
    import zipfile

    array = io.BytesIO()
    np.lib.format.write_array(array, np.arange(5), version=(2, 0))
    data = bytearray(array.getvalue())
    data[8:12] = (300_000_000).to_bytes(4, "little")
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("x", "y", "p", "t_ns"):
            archive.writestr(f"{name}.npy", bytes(data) + bytes(30_000_000))
    tracemalloc.start()
    with pytest.raises(RecordingError, match="the header of an array claims more than it can hold"):
        list(open_recording(tmp_path / "a.npz", sensor_size=(240, 180)).chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("end_s", [1e-1, 60_000])
def test_times_in_half_precision_are_refused_without_a_warning(end_s, tmp_path):
    columns = {"x": np.arange(5), "y": np.arange(5), "p": np.ones(5), "width": 64, "height": 64}
    np.savez(tmp_path / "a.npz", **columns, t=np.linspace(0, end_s, 5).astype(np.float16))
    with pytest.raises(RecordingError, match="has times in float16, which cannot hold microseconds"):
        list(open_recording(tmp_path / "a.npz").chunks())


@pytest.mark.parametrize("kind", ["imu_angular_velocity_rad_s", "groundtruth_xyzw", "groundtruth_positions_m"])
def test_references_of_numbers_that_are_not_real_are_a_fault(archive, kind):
    names = {"imu_angular_velocity_rad_s": 3, "imu_linear_acceleration_m_s2": 3}
    names |= {"groundtruth_xyzw": 4, "groundtruth_positions_m": 3}
    arrays = {name: np.full((3, width), 0.5) for name, width in names.items()}
    arrays |= {name: np.arange(3) for name in ("t_ns", "imu_t_ns", "groundtruth_t_ns")}
    assert open_recording(archive(**arrays)).check_reference() == []
    (fault,) = open_recording(archive(**{**arrays, kind: arrays[kind].astype(complex)})).check_reference()
    assert f"{kind} has complex128, which is no kind of real numbers" in fault


def test_an_imu_in_half_precision_is_read(archive):
    imu = {"imu_angular_velocity_rad_s": np.full((3, 3), 0.5), "imu_linear_acceleration_m_s2": np.full((3, 3), 9.75)}
    halves = {name: values.astype(np.float16) for name, values in imu.items()}
    recording = open_recording(archive(t_ns=np.arange(3), imu_t_ns=np.arange(3), **halves))
    assert recording.check_reference() == []
    np.testing.assert_array_equal(recording.imu.linear_acceleration_m_s2, imu["imu_linear_acceleration_m_s2"])
