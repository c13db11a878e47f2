"""A camera that turns and moves in a room: how a run notices, and what --hand-held makes of it."""

import json

import numpy as np
import pytest

from cmaxslam_fbp import Slam, load_config
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.pipeline.painting import paint
from cmaxslam_fbp.simulation import SENSORS, RoomSettings, RoomSimulation, Simulation, SimulationSettings
from cmaxslam_fbp.trajectory import RotationTrajectory

MOTION = {"scene": "shapes", "duration_s": 4.0, "peak_speed_deg_s": 200.0, "seed": 3}


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    simulation = RoomSimulation(RoomSettings(scene_distance_m=0.5, **MOTION))
    path = tmp_path_factory.mktemp("room") / "room.bag"
    write_recording(simulation, simulation.chunks(), path)
    return path


@pytest.fixture(scope="module")
def alone(bag):
    return Slam(load_config()).run(open_recording(bag))


def test_parallax_is_noticed_and_said(alone):
    assert alone.hand_held is None
    assert alone.trajectory().positions_m is None
    assert 1 < alone.parallax_deg < 12
    line = f"this recording has parallax of about {alone.parallax_deg:.1f} degrees; --hand-held would model it"
    assert line in alone.warnings


@pytest.mark.parametrize("sensor", ["ideal", "davis"])
def test_a_camera_that_only_turns_has_no_parallax(sensor):
    simulation = Simulation(SimulationSettings(sensor=SENSORS[sensor], **MOTION))
    recording = Recording.from_events(list(simulation.chunks()), camera=simulation.camera)
    result = Slam(load_config([], ["backend.translation=auto"])).run(recording)
    assert result.parallax_deg == 0
    assert result.hand_held is None
    assert not any("parallax" in line for line in result.warnings)


def test_translation_is_followed_in_one_pass(run, bag, alone, tmp_path):
    run("run", bag, "--hand-held", "--no-intensity", "--out", tmp_path / "out", "--quiet")
    figures, metrics = (json.loads((tmp_path / "out" / f"{name}.json").read_text()) for name in ("run", "metrics"))
    assert figures["stages"]["refinement"]["seconds"] == 0
    assert metrics["absolute_best_fit_rms_deg"] < 0.4 * alone.evaluation.absolute_best_fit_rms_deg
    assert metrics["position_rms_m"] < 0.5 * metrics["position_path_rms_m"]
    panorama = np.load(tmp_path / "out" / "panorama.npy")
    assert panorama.sum() == pytest.approx(alone.panorama.sum(), rel=0.05)
    assert figures["event_area"] < 0.8 * alone.event_area
    poses = read_trajectory(tmp_path / "out" / "trajectory.txt")
    assert len(poses) == len(alone.trajectory())
    assert np.linalg.norm(poses.positions_m, axis=1).min() > 0
    np.testing.assert_allclose(np.abs(poses.quaternions_xyzw[0]), [0, 0, 0, 1], atol=1e-6)


def test_parallax_is_told_from_rotation(run, bag, alone, tmp_path):
    run("run", bag, "--hand-held", "--refine", "--scale", "0.6", "--out", tmp_path / "out", "--quiet")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["absolute_best_fit_rms_deg"] < 0.2 * alone.evaluation.absolute_best_fit_rms_deg
    assert metrics["position_rms_m"] < 0.35 * metrics["position_path_rms_m"]
    assert "positions in metres" in (tmp_path / "out" / "trajectory.txt").read_text().splitlines()[0]
    distances = np.load(tmp_path / "out" / "distance.npy")
    assert distances.shape == (256, 512)
    assert 0.5 < np.nanmean(distances) < 0.8
    assert (tmp_path / "out" / "distance.png").exists()
    assert "Hand-held motion" in (tmp_path / "out" / "report.html").read_text()
    assert 1 < json.loads((tmp_path / "out" / "run.json").read_text())["parallax_deg"] < 12


def with_a_slow_part(motion):
    """Return a motion that is fifty times slower from its second second to the fourth, and then goes on."""
    t_s = np.arange(0, 5.8, 0.005)
    speeds = np.where((t_s >= 2) & (t_s < 4), 0.02, 1.0)
    speeds = np.convolve(np.pad(speeds, 20, mode="edge"), np.ones(41) / 41, mode="valid")
    source_ns = motion.start_ns + np.rint(5e6 * np.cumsum(speeds)).astype(np.int64)
    positions = None
    if motion.positions_m is not None:
        positions = np.stack([np.interp(source_ns, motion.t_ns, axis) for axis in motion.positions_m.T], axis=1)
    t_ns = np.rint(1e9 * t_s).astype(np.int64)
    return RotationTrajectory(t_ns, motion.rotation_at(source_ns).as_quat(), positions)


def run_s(result):
    """Return how long a recording is on the clock of its run."""
    (stretch,) = result.stretches
    return 1e-9 * int(np.diff(stretch.lapse.to_run([stretch.start_ns, stretch.end_ns]))[0])


def test_a_camera_that_only_turns_keeps_its_orientations_where_time_lapses():
    trajectory = with_a_slow_part(Simulation(SimulationSettings(**MOTION)).ground_truth)
    simulation = Simulation(SimulationSettings("shapes", trajectory=trajectory, duration_s=5.5, seed=3))
    recording = Recording.from_events(list(simulation.chunks()), camera=simulation.camera)
    alone, asked = (
        Slam(load_config([], [f"backend.translation={model}"])).run(recording) for model in ("none", "scene")
    )
    assert run_s(asked) < 4.5
    assert "there is no parallax that a rotation would not explain: the result is one alone" in asked.warnings
    poses, expected = asked.trajectory(), alone.trajectory()
    np.testing.assert_array_equal(poses.t_ns, expected.t_ns)
    np.testing.assert_array_equal(poses.quaternions_xyzw, expected.quaternions_xyzw)
    np.testing.assert_array_equal(asked.panorama, alone.panorama)


def test_positions_are_on_the_clock_of_the_recording_where_time_lapses():
    trajectory = with_a_slow_part(RoomSimulation(RoomSettings(scene_distance_m=0.5, **MOTION)).ground_truth)
    settings = RoomSettings("shapes", scene_distance_m=0.5, trajectory=trajectory, duration_s=5.5, seed=3)
    simulation = RoomSimulation(settings)
    truth = simulation.ground_truth
    recording = Recording.from_events(list(simulation.chunks()), camera=simulation.camera, ground_truth=truth)
    config = load_config([], ["backend.translation=scene"])
    result = Slam(config).run(recording)
    assert run_s(result) < 4.5
    errors = result.evaluation
    assert errors.absolute_best_fit_rms_deg < 1
    assert errors.position_rms_m < 0.25 * errors.position_path_rms_m
    assert paint(result, simulation.camera, config).brightness is not None


def test_auto_models_the_parallax_that_it_finds(bag, alone):
    result = Slam(load_config([], ["backend.translation=auto"])).run(open_recording(bag))
    assert result.hand_held is not None
    assert result.evaluation.absolute_best_fit_rms_deg < 0.2 * alone.evaluation.absolute_best_fit_rms_deg


def test_a_second_tells_nothing_of_parallax(simulated_bag):
    result = Slam(load_config()).run(open_recording(simulated_bag), duration_s=0.5)
    assert result.parallax_deg is None
    assert result.hand_held is None
