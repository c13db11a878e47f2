"""Folders of EVIMO2, written with NumPy as its tools do."""

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import open_recording


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    np.save(tmp_path / "dataset_events_t.npy", np.sort(random.uniform(0, 20, 5000)).astype(np.float32))
    np.save(tmp_path / "dataset_events_xy.npy", random.integers(0, 480, (5000, 2)).astype(np.uint16))
    np.save(tmp_path / "dataset_events_p.npy", random.integers(0, 2, 5000).astype(np.uint8))
    poses = [
        {
            "ts": 0.1 * i,
            "id": i,
            "cam": {
                "ts": 0.1 * i,
                "pos": {
                    "t": {"x": 0.01 * i, "y": 0.0, "z": 1.0},
                    "q": {"w": np.cos(0.05 * i), "x": 0.0, "y": np.sin(0.05 * i), "z": 0.0},
                },
            },
        }
        for i in range(5)
    ]
    meta = {"full_trajectory": poses, "frames": [], "meta": {"res_x": 640, "res_y": 480, "dist_model": "radtan"}}
    K = np.array([[519.6, 0, 321.7], [0, 519.4, 236.9], [0, 0, 1]])
    np.savez(tmp_path / "dataset_info.npz", K=K, D=np.array([0.1, -0.15, 0.0, 0.001]), meta=np.array(meta, object))
    return tmp_path


def test_events_calibration_and_poses_are_read(folder):
    recording = open_recording(folder)
    events = Events.concatenate(recording.chunks())
    t = np.load(folder / "dataset_events_t.npy")
    np.testing.assert_array_equal(events.t_ns, np.rint(t.astype(float) * 1e9).astype(np.int64))
    np.testing.assert_array_equal(np.column_stack([events.x, events.y]), np.load(folder / "dataset_events_xy.npy"))
    np.testing.assert_array_equal(events.p, np.load(folder / "dataset_events_p.npy"))
    assert recording.camera == Camera(640, 480, 519.6, 519.4, 321.7, 236.9, (0.1, -0.15, 0.0, 0.001))
    truth = recording.ground_truth
    np.testing.assert_array_equal(truth.t_ns, np.arange(5) * 100_000_000)
    np.testing.assert_allclose(truth.rotations.as_rotvec(), np.outer(np.arange(5) * 0.1, [0, 1, 0]), atol=1e-12)
    np.testing.assert_allclose(truth.positions_m[:, 0], 0.01 * np.arange(5))
    assert recording.topics()
    late = Events.concatenate(recording.chunks(15.0, 1.0))
    first_ns = events.t_ns[0] + 15 * 10**9
    np.testing.assert_array_equal(late.t_ns, events.between(first_ns, first_ns + 10**9).t_ns)


def test_columns_of_rows_are_read_and_without_the_other_file_the_size_is_asked_for(folder, assert_same_events):
    wanted = Events.concatenate(open_recording(folder).chunks())
    for name in ("t", "p"):
        file = folder / f"dataset_events_{name}.npy"
        np.save(file, np.load(file)[:, None])
    (folder / "dataset_info.npz").unlink()
    recording = open_recording(folder, sensor_size=(640, 480))
    assert_same_events(Events.concatenate(recording.chunks()), wanted)
    assert recording.camera is recording.ground_truth is None
    with pytest.raises(RecordingError, match="--sensor-size"):
        _ = open_recording(folder).sensor_size


class Trap:
    def __reduce__(self):
        return print, ("it ran",)


def test_a_pickle_that_would_run_something_is_not_read(folder, capsys):
    np.savez(folder / "dataset_info.npz", K=np.eye(3), meta=np.array({"meta": Trap()}, object))
    with pytest.raises(RecordingError, match=r"dataset_info\.npz cannot be read: it has a builtins\.print"):
        _ = open_recording(folder).camera
    assert "it ran" not in capsys.readouterr().out


def test_parts_that_do_not_fit_or_are_cut_are_one_line(folder):
    np.save(folder / "dataset_events_p.npy", np.zeros(7, np.uint8))
    with pytest.raises(RecordingError, match="do not fit together"):
        open_recording(folder)
    data = (folder / "dataset_events_xy.npy").read_bytes()
    (folder / "dataset_events_xy.npy").write_bytes(data[:1000])
    with pytest.raises(RecordingError, match=r"claims uint16 of shape \(5000, 2\) in 872 bytes: it is cut"):
        open_recording(folder)
    (folder / "dataset_events_xy.npy").unlink()
    with pytest.raises(RecordingError, match="cannot be read: No such file"):
        open_recording(folder)


def test_a_complex_calibration_is_one_line(folder):
    np.savez(folder / "dataset_info.npz", K=np.eye(3) * (200 + 1j), D=np.zeros(4))
    with pytest.raises(RecordingError, match="K and D are complex numbers"):
        _ = open_recording(folder, sensor_size=(240, 180)).camera
