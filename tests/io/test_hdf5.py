"""HDF5 files of the public data sets: each field, the reference beside them, a whole run, and damaged files."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp import Camera, Recording, Slam, load_config, open_recording
from cmaxslam_fbp.errors import MissingExtraError, RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.simulation import Simulation, SimulationSettings
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

h5py = pytest.importorskip("h5py")
pytest.importorskip("hdf5plugin")

made = runpy.run_path(str(Path(__file__).parent / "hdf5_layouts.py"))
LAYOUTS, R_LEFT_RIGHT = made["LAYOUTS"], made["R_LEFT_RIGHT"]
LEFT = {"m3ed": {"events_dataset": "left"}, "mvsec": {"events_dataset": "/davis/left/events"}}
CAMERA = Camera(240, 180, 150.0, 151.0, 121.0, 88.0, (-0.02, 0.004, -0.003, 0.0005), "equidistant")


@pytest.fixture
def recording(make_events):
    events = make_events(30_000)
    random = np.random.default_rng(1)
    t_ns = events.t_ns[0] + np.arange(40) * 1_500_000
    rotations = Rotation.from_rotvec(np.cumsum(random.normal(0, 0.02, (40, 3)), axis=0))
    imu = ImuSamples(t_ns, random.normal(size=(40, 3)), random.normal(size=(40, 3)))
    poses = RotationTrajectory(t_ns, rotations.as_quat(), np.zeros((40, 3)))
    return Recording.from_events(events, camera=CAMERA, ground_truth=poses, imu=imu)


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return request.param


def events_of(recording, *arguments):
    return Events.concatenate(recording.chunks(*arguments))


def open_layout(layout, recording, folder, **options):
    return open_recording(LAYOUTS[layout](recording, folder), **{**LEFT.get(layout, {}), **options})


def test_every_event_and_the_size_are_read(tmp_path, recording, layout, assert_same_events):
    opened = open_layout(layout, recording, tmp_path)
    assert_same_events(events_of(opened), events_of(recording))
    assert opened.sensor_size == (240, 180)
    assert opened.topics()
    assert opened.check_reference() == []


def test_a_file_is_known_by_its_content(tmp_path, recording, layout, assert_same_events):
    path = LAYOUTS[layout](recording, tmp_path)
    path = path.rename(path.with_name("download"))
    assert_same_events(
        events_of(open_recording(path, sensor_size=(240, 180), **LEFT.get(layout, {}))), events_of(recording)
    )


@pytest.mark.parametrize("name", ["dsec", "m3ed", "tum-vie"])
def test_the_calibration_is_found(tmp_path, recording, name):
    assert open_layout(name, recording, tmp_path).camera == CAMERA


@pytest.mark.parametrize("name", ["m3ed", "tum-vie", "mvsec"])
def test_poses_and_imu_are_those_of_the_camera(tmp_path, recording, name):
    opened = open_layout(name, recording, tmp_path)
    truth, imu = recording.ground_truth, recording.imu
    np.testing.assert_array_equal(opened.ground_truth.t_ns, truth.t_ns)
    # M3ED's world is the camera's first frame.
    gauge = truth.rotations[0].inv() if name == "m3ed" else Rotation.identity()
    off = (gauge * truth.rotations).inv() * opened.ground_truth.rotations
    assert off.magnitude().max() < 1e-7
    np.testing.assert_array_equal(opened.imu.t_ns, imu.t_ns)
    np.testing.assert_allclose(opened.imu.angular_velocity_rad_s, imu.angular_velocity_rad_s, atol=1e-12)
    np.testing.assert_allclose(opened.imu.linear_acceleration_m_s2, imu.linear_acceleration_m_s2, atol=1e-12)


def test_the_right_camera_of_m3ed_has_poses_and_imu_in_its_own_frame(tmp_path, recording):
    left = open_layout("m3ed", recording, tmp_path)
    right = open_recording(left.path, events_dataset="/prophesee/right")
    turned = left.ground_truth.rotations * R_LEFT_RIGHT
    assert (turned.inv() * right.ground_truth.rotations).magnitude().max() < 1e-7
    at_left = left.ground_truth.rotations.apply([0.1, 0, 0]) + left.ground_truth.positions_m
    np.testing.assert_allclose(right.ground_truth.positions_m, at_left, atol=1e-12)
    np.testing.assert_allclose(
        R_LEFT_RIGHT.apply(right.imu.angular_velocity_rad_s), left.imu.angular_velocity_rad_s, atol=1e-12
    )


def test_the_right_camera_of_mvsec_has_no_poses_and_says_so(tmp_path, recording):
    path = LAYOUTS["mvsec"](recording, tmp_path)
    (line,) = open_recording(path, events_dataset="right").check_reference()
    assert "has the poses of the left camera alone" in line


@pytest.mark.parametrize(
    ("layout", "file", "name", "value", "words"),
    [
        ("m3ed", "_data.h5", "prophesee/left/calib/T_to_prophesee_left", 1e300, "a pose or transform"),
        ("m3ed", "_data.h5", "ovc/imu/calib/T_to_prophesee_left", np.nan, "a pose or transform"),
        ("m3ed", "_data.h5", "ovc/imu/omega", 1e308, "is no measurement"),
        ("m3ed", "_data.h5", "ovc/imu/ts", 2**62, "more than 64 bits"),
        ("m3ed", "_pose_gt.h5", "Cn_T_C0", 1e300, "a pose or transform"),
        ("m3ed", "_pose_gt.h5", "Cn_T_C0", 1e-300, "a pose or transform"),
        ("m3ed", "_pose_gt.h5", "ts", 2**62, "more than 64 bits"),
        ("mvsec", "_gt.hdf5", "davis/left/pose", 1e200, "a pose or transform"),
        ("mvsec", "_gt.hdf5", "davis/left/pose_ts", 1e14, "more than 64 bits"),
    ],
)
def test_numbers_of_a_reference_that_none_has_are_one_line_and_no_warning(
    tmp_path, recording, layout, file, name, value, words
):
    import h5py

    path = LAYOUTS[layout](recording, tmp_path)
    with h5py.File(next(one for one in tmp_path.iterdir() if one.name.endswith(file)), "r+") as opened:
        opened[name][...] = np.full(opened[name].shape, value).astype(opened[name].dtype)
    lines = open_recording(path, **LEFT[layout]).check_reference()
    assert lines
    assert all(words in line and len(line) < 300 for line in lines)


def test_several_data_sets_are_listed_and_chosen_by_the_end_of_their_names(tmp_path, recording, run):
    path = LAYOUTS["m3ed"](recording, tmp_path)
    with pytest.raises(RecordingError, match="choose one with --events-dataset: /prophesee/left, /prophesee/right"):
        open_recording(path)
    with pytest.raises(RecordingError, match="no data set of events middle; there are /prophesee/left, "):
        open_recording(path, events_dataset="middle")
    for name in ("right", "prophesee/right", "/prophesee/right"):
        assert open_recording(path, events_dataset=name).camera_number == 1
    assert "30,000" in run("info", path, "--events-dataset", "left", "--quiet").stdout


@pytest.mark.parametrize(("missing", "words"), [("camera-", "camera-calibration"), ("mocap-imu-", "mocap-imu-calib")])
def test_poses_of_markers_need_the_calibrations_of_tum_vie(tmp_path, recording, missing, words):
    path = LAYOUTS["tum-vie"](recording, tmp_path)
    (tmp_path / f"{missing}calibrationB.json").unlink()
    lines = open_recording(path, sensor_size=(240, 180)).check_reference()
    assert any(f"put TUM-VIE's {words}" in line for line in lines)


def test_a_range_is_found_without_reading_what_lies_before(tmp_path, make_events, monkeypatch):
    from cmaxslam_fbp.io.hdf5 import event_columns

    monkeypatch.setattr(event_columns, "_EVENTS_PER_SLAB", 4096)
    source = Recording.from_events(make_events(200_000, duration_ns=100_000_000_000), camera=CAMERA)
    opened = open_layout("dsec", source, tmp_path)
    read, first_ones = event_columns.EventsReader.read, []

    def watched(reader, first):
        first_ones.append(first)
        return read(reader, first)

    monkeypatch.setattr(event_columns.EventsReader, "read", watched)
    assert opened.start_ns == source.start_ns
    first_ones.clear()
    np.testing.assert_array_equal(events_of(opened, 80.0, 5.0).t_ns, events_of(source, 80.0, 5.0).t_ns)
    assert min(first_ones) > 140_000
    assert max(first_ones) < 190_000


@pytest.mark.parametrize("name", ["a.h5", "a.hdf5"])
def test_what_is_written_is_read_back_bit_for_bit(tmp_path, recording, name, assert_same_events):
    assert recording.convert(tmp_path / name) == 30_000
    opened = open_recording(tmp_path / name)
    assert_same_events(events_of(opened), events_of(recording))
    assert opened.camera == CAMERA
    np.testing.assert_array_equal(opened.ground_truth.quaternions_xyzw, recording.ground_truth.quaternions_xyzw)
    np.testing.assert_array_equal(opened.ground_truth.t_ns, recording.ground_truth.t_ns)
    for name in ("t_ns", "angular_velocity_rad_s", "linear_acceleration_m_s2"):
        np.testing.assert_array_equal(getattr(opened.imu, name), getattr(recording.imu, name))


def test_nanoseconds_and_a_size_without_a_camera_are_kept(tmp_path, make_events, assert_same_events):
    events = make_events(1000)
    odd = Events(events.t_ns + np.arange(1000) % 7, events.x, events.y, events.p)
    odd = odd[np.argsort(odd.t_ns, kind="stable")]
    Recording.from_events(odd, sensor_size=(240, 180)).convert(tmp_path / "a.h5")
    opened = open_recording(tmp_path / "a.h5")
    assert_same_events(events_of(opened), odd)
    assert (opened.sensor_size, opened.camera, opened.ground_truth) == ((240, 180), None, None)


def test_what_is_written_has_the_layout_of_dsec(tmp_path, recording):
    recording.convert(tmp_path / "a.h5")
    events = events_of(recording)
    with h5py.File(tmp_path / "a.h5") as file:
        t = file["events/t"][:]
        assert set(file["events"]) == {"x", "y", "t", "p", "calib"}
        np.testing.assert_array_equal((t + file["t_offset"][()]) * 1000, events.t_ns)
        index = file["ms_to_idx"][:]
        for ms in range(len(index)):
            assert t[index[ms]] >= ms * 1000
            assert index[ms] == 0 or t[index[ms] - 1] < ms * 1000
        assert len(index) == t[-1] // 1000 + 1
        assert file["events/t"].id.get_create_plist().get_filter(0)[0] == 32001  # Blosc


@pytest.fixture(scope="module")
def simulation():
    return Simulation(SimulationSettings(scene="shapes", camera=CAMERA, duration_s=1.05, peak_speed_deg_s=150, seed=5))


@pytest.fixture(scope="module")
def direct(simulation, tmp_path_factory):
    path = tmp_path_factory.mktemp("direct") / "a.npz"
    write_recording(simulation, simulation.chunks(), path)
    return open_recording(path), Slam(load_config([])).run(open_recording(path))


@pytest.mark.parametrize("name", ["dsec", "m3ed", "tum-vie"])
def test_a_run_on_a_simulated_recording_is_the_same_in_each_layout(tmp_path, direct, name):
    source, wanted = direct
    opened = open_layout(name, source, tmp_path)
    result = Slam(load_config([])).run(opened)
    np.testing.assert_array_equal(result.trajectory().quaternions_xyzw, wanted.trajectory().quaternions_xyzw)
    assert wanted.evaluation.absolute_best_fit_rms_deg < 0.2
    if name != "dsec":
        assert result.evaluation.absolute_best_fit_rms_deg == pytest.approx(
            wanted.evaluation.absolute_best_fit_rms_deg, abs=1e-5
        )


@pytest.fixture
def hdf5_file(tmp_path):
    def make(fill, **options):
        with h5py.File(tmp_path / "bad.h5", "w", **options) as file:
            fill(file)
        return tmp_path / "bad.h5"

    return make


def dsec_columns(file, **changes):
    columns = {"x": [1, 2, 3], "y": [1, 2, 3], "t": [1, 2, 3], "p": [1, 0, 1], **changes}
    for name, column in columns.items():
        file[f"events/{name}"] = np.asarray(column)
    file["ms_to_idx"] = [0]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"x": [1, 2]}, "the columns differ in length"),
        ({"x": [1, 2, 70_000]}, r"bad\.h5/events: x of event 2 is 70000, not a pixel"),
        ({"p": [1, 2, 3]}, "the polarity of event 1 is 2"),
        ({"t": [0, 10**17, 0]}, "more than 64 bits"),
        ({"t": [10**9, 0, 0]}, "time jumps back by 1000.000 s"),
        ({"x": ["a", "b", "c"]}, "has no events"),
        ({"x": np.eye(3)}, "has no events"),
    ],
)
def test_columns_that_cannot_be_right_are_named(hdf5_file, changes, complaint):
    changes = {name: np.array(c, h5py.string_dtype()) if isinstance(c[0], str) else c for name, c in changes.items()}
    path = hdf5_file(lambda file: dsec_columns(file, **changes))
    with pytest.raises(RecordingError, match=complaint):
        events_of(open_recording(path, sensor_size=(9, 9)))


def test_a_file_without_events_and_one_without_a_size_say_what_is_missing(hdf5_file):
    with pytest.raises(RecordingError, match="has no events: no group of x, y, t and p"):
        open_recording(hdf5_file(lambda file: file.create_group("images")))
    with pytest.raises(RecordingError, match="does not tell the sensor's size: give it with --sensor-size"):
        events_of(open_recording(hdf5_file(dsec_columns)))


def test_ecf_compression_says_what_to_install(hdf5_file):
    def fill(file):
        space = h5py.h5s.create_simple((1000,), (1000,))
        kind = h5py.h5t.py_create(np.dtype([("x", "<u2"), ("y", "<u2"), ("p", "<i2"), ("t", "<i8")]), logical=True)
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((100,))
        properties.set_filter(0x8ECF, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(file.create_group("CD").id, b"events", kind, space, dcpl=properties)

    with pytest.raises(RecordingError, match=r"compressed by Prophesee's ECF.*HDF5_PLUGIN_PATH.*RAW"):
        events_of(open_recording(hdf5_file(fill), sensor_size=(9, 9)))


def test_a_small_file_that_claims_to_be_huge_is_refused(hdf5_file):
    def fill(file):
        for name in "xytp":
            file.create_dataset(f"events/{name}", (10**12,), np.uint16, chunks=(1000,))
        file["ms_to_idx"] = [0]

    with pytest.raises(RecordingError, match=r"claims 8,000,000,000,000 bytes in 0; the file is damaged or made"):
        events_of(open_recording(hdf5_file(fill), sensor_size=(9, 9)))


@pytest.mark.parametrize("part", [0.02, 0.3, 0.9])
def test_a_cut_file_is_one_line(tmp_path, recording, part):
    path = LAYOUTS["dsec"](recording, tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    with pytest.raises(RecordingError, match=r"events\.h5 cannot be read: .*; it may be cut or damaged"):
        events_of(open_recording(path))


def test_links_out_of_a_file_are_not_followed(tmp_path, hdf5_file):
    def fill(file):
        dsec_columns(file)
        file["other"] = h5py.ExternalLink(str(tmp_path / "nothing.h5"), "/events")
        file["again"] = h5py.SoftLink("/events")

    assert len(events_of(open_recording(hdf5_file(fill), sensor_size=(9, 9)))) == 3


def test_without_the_libraries_the_extra_is_named(tmp_path, recording, monkeypatch):
    path = LAYOUTS["dsec"](recording, tmp_path)
    monkeypatch.setitem(sys.modules, "hdf5plugin", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cmaxslam-fbp\[formats\]'"):
        open_recording(path)
