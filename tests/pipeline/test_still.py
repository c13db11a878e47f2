"""A camera at rest whose pixels are noisy: its orientation stays, and its map is empty."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp import Slam, load_config, open_recording
from cmaxslam_fbp.backend.tracking import BY_CHANCE, Tracking
from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.pipeline.run_warnings import warnings_of
from cmaxslam_fbp.simulation import SensorSettings, Simulation, SimulationSettings
from cmaxslam_fbp.simulation.sensor_settings import SENSORS
from cmaxslam_fbp.trajectory import RotationTrajectory

NOISY = SensorSettings(noise_rate_hz=2.0)


def write(path, **settings):
    simulation = Simulation(SimulationSettings(**settings))
    write_recording(simulation, simulation.chunks(), path)
    return path


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    path = tmp_path_factory.mktemp("still") / "still.npz"
    return write(path, scene="shapes", duration_s=2.0, peak_speed_deg_s=0.0, sensor=NOISY, seed=9)


def test_a_still_noisy_camera_does_not_turn_and_says_why(still):
    result = Slam().run(open_recording(still))
    assert result.evaluation.absolute_first_pose_max_deg < 0.2
    assert result.panorama.sum() == 0
    assert {(window.tracking, window.reason) for window in result.windows} == {(Tracking.STILL, BY_CHANCE)}
    assert result.trust == (Tracking.STILL, f"no window shows a motion: {BY_CHANCE}")
    assert any(BY_CHANCE in line for line in result.warnings)


def test_noise_at_the_rate_below_which_a_camera_counts_as_still_is_no_motion_either(tmp_path):
    """The realistic sensor at rest: its packets are too few events to measure, but the backend would follow them."""
    path = write(tmp_path / "davis.npz", scene="shapes", duration_s=1.0, peak_speed_deg_s=0.0, sensor=SENSORS["davis"])
    result = Slam().run(open_recording(path))
    assert result.events > 10_000
    assert result.panorama.sum() == 0
    assert result.evaluation.absolute_first_pose_max_deg < 0.01


def test_the_rule_of_cmax_slam_is_the_rate_of_events(still):
    """So its preset follows the noise."""
    config = load_config(["cmax_slam"])
    assert config.frontend.min_evidence == 0
    result = Slam(config).run(open_recording(still), duration_s=0.3)
    assert any(window.tracking is not Tracking.STILL for window in result.windows)


def test_a_camera_that_moves_rests_and_moves_again_is_followed(tmp_path):
    """At rest the velocities are zero, and nothing of the noise comes into the map."""
    t_s = np.arange(0, 3.3, 0.005)
    moving_s = np.minimum(t_s, 1.2) + np.maximum(t_s - 2.0, 0)
    yaw = np.radians(15) * (1 - np.cos(np.pi * moving_s / 1.2))  # at rest from 1.2 to 2 s
    motion = RotationTrajectory.from_rotations(
        (t_s * 1e9).astype(np.int64), Rotation.from_rotvec(np.outer(yaw, [0.0, 1.0, 0.3]))
    )
    path = write(tmp_path / "rest.npz", scene="shapes", trajectory=motion, duration_s=3.2, sensor=NOISY)
    result = Slam().run(open_recording(path))
    slowing = [w for w in result.windows if 1.0e9 <= w.start_ns - result.start_ns < 1.2e9]  # then most events are noise
    assert result.lost_windows == sum(w.tracking is Tracking.LOST for w in slowing)
    assert result.evaluation.absolute_best_fit_max_deg < 0.45
    for start_s, end_s in ((0.2, 1.1), (2.3, 3.1)):
        errors = evaluate(
            result.trajectory(), open_recording(path).ground_truth, start_s=start_s, duration_s=end_s - start_s
        )
        assert errors.absolute_best_fit_rms_deg < 0.1
    start_s = np.array([1e-9 * (window.start_ns - result.start_ns) for window in result.windows])
    is_still = np.array([window.tracking is Tracking.STILL for window in result.windows])
    assert is_still[(start_s > 1.25) & (start_s < 1.75)].all()
    assert not is_still[(start_s > 0.2) & (start_s < 0.9)].any()
    assert not is_still[(start_s > 2.2) & (start_s < 2.9)].any()


def test_hot_pixels_are_in_run_json_and_reach_neither_pass(run, tmp_path):
    """All of their events together are more than the others: in the map there would be more than are used."""
    sensor = SensorSettings(hot_pixels=4, hot_pixel_rate_hz=50_000.0, refractory_s=0.0)
    path = write(tmp_path / "hot.npz", scene="shapes", duration_s=1.0, peak_speed_deg_s=100.0, sensor=sensor, seed=4)
    settings = ("--set", "backend.passage_s=0", "--set", "backend.bootstrap_s=0")
    run("run", path, "--out", "hot", "--refine", *settings)
    figures = json.loads((tmp_path / "hot" / "run.json").read_text())
    places = set(map(int, Simulation(SimulationSettings(sensor=sensor, seed=4)).sensor().traits.hot_pixels))
    assert figures["hot_pixels"]["count"] == 4
    assert {x + 240 * y for x, y, _ in figures["hot_pixels"]["x_y_events"]} == places
    assert figures["hot_pixels"]["events"] > figures["events"]
    panorama = np.load(tmp_path / "hot" / "panorama.npy")
    assert 0.3 * figures["events"] < panorama.sum(dtype=float) <= figures["events"]


@pytest.mark.parametrize(
    ("still_windows", "noise", "is_reported"), [(4, 45_000, True), (4, 2000, False), (2, 45_000, False)]
)
def test_a_camera_that_may_move_unseen_in_noise_is_reported(still, still_windows, noise, is_reported):
    """Windows without evidence whose events are nearly as many as those of windows that move."""
    result = Slam().run(open_recording(still), duration_s=0.2)
    window = result.windows[0]
    rest = [replace(window, events=noise)] * still_windows
    moving = [replace(window, tracking=Tracking.TRACKED, reason="", events=55_000)] * 40
    lines = warnings_of(replace(result, windows=rest + moving), SensorSize(240, 180))
    assert any("its events drown in noise" in line for line in lines) == is_reported
