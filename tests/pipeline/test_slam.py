import threading

import numpy as np
import pytest

from cmaxslam_fbp import Recording, Slam, load_config, open_recording
from cmaxslam_fbp.errors import CalibrationError, ConfigError, RecordingError
from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.frontend.estimator import VelocityEstimator
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.pipeline.feed import Feed
from cmaxslam_fbp.pipeline.warm_up import turning_dots, warm_up


@pytest.fixture(scope="module")
def result(simulated_bag):
    return Slam().run(open_recording(simulated_bag))


def test_the_trajectory_is_that_of_the_camera(result, simulated_bag):
    truth = open_recording(simulated_bag).ground_truth
    figures = evaluate(result.trajectory(), truth)
    assert figures.absolute_best_fit_rms_deg < 0.1
    assert figures.relative_rms_deg_s["0.1"] < 1.0
    assert figures.overlap_of_ground_truth > 0.98
    assert result.evaluation.absolute_best_fit_rms_deg == pytest.approx(figures.absolute_best_fit_rms_deg)
    assert result.lost_windows == 0


def test_the_first_orientation_is_the_identity(result):
    assert np.degrees(result.trajectory().rotations[0].magnitude()) < 0.5


def test_every_event_counts_up_to_the_last_incomplete_window(result, simulated_bag):
    recording = open_recording(simulated_bag)
    count = sum(len(events) for events in recording.chunks())
    last_ns = max(int(events.t_ns[-1]) for events in recording.chunks())
    assert result.events + result.hot_pixels.events == count  # of the simulated sensor's hot pixels
    assert result.end_ns == last_ns
    assert result.windows[-1].end_ns > last_ns  # the last window is longer than its events
    assert result.trajectory().end_ns > last_ns - 5_000_001


def test_the_map_is_sharper_along_the_estimate_than_along_a_wrong_trajectory(result):
    """The map of a good trajectory has its events on few pixels."""
    panorama = result.panorama
    assert panorama.shape == (512, 1024)
    assert panorama.min() >= 0
    assert (panorama > 0).sum() < 0.25 * panorama.size
    strongest = np.sort(panorama.ravel())[::-1]
    assert strongest[: panorama.size // 50].sum() > 0.5 * strongest.sum()


def test_the_same_input_gives_the_same_bits(result, simulated_bag):
    again = Slam().run(open_recording(simulated_bag))
    (one,), (other,) = again.stretches, result.stretches
    np.testing.assert_array_equal(one.spline.quaternions_xyzw, other.spline.quaternions_xyzw)
    np.testing.assert_array_equal(again.panorama, result.panorama)
    np.testing.assert_array_equal(again.velocities, result.velocities)


def test_a_stream_that_is_cut_otherwise_gives_the_same_bits(simulated_bag):
    """With so few passages wanted that only some pixels are looked at."""
    source = open_recording(simulated_bag)
    config = load_config([], ["backend.most_passages_s=20000", "intensity.enabled=false"])
    whole = Events.concatenate(source.chunks(0.0, 1.0))
    one, other = (
        Slam(config).run(
            Recording.from_events(
                [whole[k : k + length] for k in range(0, len(whole), length)], camera=source.require_camera()
            )
        )
        for length in (len(whole), 3333)
    )
    np.testing.assert_array_equal(one.trajectory().quaternions_xyzw, other.trajectory().quaternions_xyzw)
    np.testing.assert_array_equal(one.panorama, other.panorama)


def test_a_range_of_the_recording_is_processed_alone(simulated_bag):
    recording = open_recording(simulated_bag)
    part = Slam().run(recording, start_s=0.5, duration_s=0.6)
    assert part.start_ns >= recording.start_ns + 500_000_000
    assert part.end_ns < recording.start_ns + 1_100_000_000
    assert part.evaluation.duration_s == pytest.approx(0.6, abs=0.02)


def test_refinement_settles_and_does_not_make_it_worse(result, simulated_bag):
    """Compared after the start, where events of a camera that sets off from rest lag most and say least."""
    recording = open_recording(simulated_bag)
    refined = Slam().run(recording, refine=True)
    assert 1 <= len(refined.refinements) <= 4
    assert refined.refinements[-1] < 0.05
    first, second = (evaluate(r.trajectory(), recording.ground_truth, start_s=0.3) for r in (result, refined))
    assert second.absolute_best_fit_rms_deg < 1.05 * first.absolute_best_fit_rms_deg


def test_the_baseline_preset_runs_on_the_same_recording_and_ours_is_better(result, simulated_bag):
    baseline = Slam(load_config(["cmax_slam", "ecd/shapes_rotation"])).run(open_recording(simulated_bag))
    assert baseline.evaluation.absolute_best_fit_rms_deg < 3.0
    assert result.evaluation.absolute_best_fit_rms_deg < baseline.evaluation.absolute_best_fit_rms_deg
    assert result.evaluation.relative_rms_deg_s["0.1"] < baseline.evaluation.relative_rms_deg_s["0.1"]


def test_an_interruption_keeps_what_there_is(simulated_bag):
    def stop(step):
        if step.recording_s > 0.5:
            raise KeyboardInterrupt

    result = Slam().run(open_recording(simulated_bag), on_step=stop)
    assert result.interrupted
    assert 0.5 < result.duration_s < 1.5
    assert any("interrupted" in warning for warning in result.warnings)
    assert result.evaluation.absolute_best_fit_rms_deg < 0.5
    assert not [thread for thread in threading.enumerate() if thread.name == "frontend"]


def test_a_recording_without_calibration_or_motion_is_refused(tmp_path):
    n = 50
    np.savez(tmp_path / "a.npz", t_ns=np.arange(n) * 1000, x=np.arange(n), y=np.ones(n, int), p=np.ones(n, int),
             width=240, height=180)  # fmt: skip
    with pytest.raises(CalibrationError, match="no calibration"):
        Slam().run(open_recording(tmp_path / "a.npz"))
    (tmp_path / "calib.txt").write_text("199 198 132 110 0 0 0 0 0\n")
    with pytest.raises(RecordingError, match="no packet of events gave a velocity"):
        Slam().run(open_recording(tmp_path / "a.npz", calibration=tmp_path / "calib.txt"))


def test_a_model_without_an_angular_velocity_is_refused():
    with pytest.raises(ConfigError, match=r"translation has no angular velocity.*choose rotation, exact_rotation"):
        Slam(load_config([], ["frontend.model=translation"]))


def test_an_error_while_reading_reaches_the_caller_and_ends_the_thread(make_events):
    def chunks():
        yield make_events(3000)
        raise RecordingError("the file ends here")

    with (
        pytest.raises(RecordingError, match="the file ends here"),
        Feed(chunks(), VelocityEstimator(davis240c())) as feed,
    ):
        list(feed.chunks())
    assert not [thread for thread in threading.enumerate() if thread.name == "frontend"]


def test_a_feed_that_is_left_early_stops_its_thread(make_events):
    def endless():
        k = 0
        while True:
            yield make_events(20_000, seed=k, start_ns=k * 50_000_000)
            k += 1

    with Feed(endless(), VelocityEstimator(davis240c())) as feed:
        first = next(feed.chunks())
    assert isinstance(first, Events)
    assert not [thread for thread in threading.enumerate() if thread.name == "frontend"]


@pytest.mark.parametrize("names", [[], ["cmax_slam"]])
def test_the_warm_up_runs_with_every_preset(names):
    assert warm_up(load_config(names), davis240c()) > 0


@pytest.mark.parametrize(
    "settings",
    [
        ["events.subsample=1000000"],
        ["frontend.still_rate_ev_s=10000000"],
        ["frontend.packets=count", "frontend.events_per_packet=10000000"],
        ["backend={window_s: 60, stride_s: 30, knot_s: 30, still_rate_ev_s: 10000000}"],
    ],
)
def test_the_warm_up_fails_under_no_settings_and_takes_no_memory(settings):
    config = load_config([], settings)
    assert len(turning_dots(config, davis240c())._chunks[0]) <= 1_000_000
    warm_up(config, davis240c())


def simulated_run(path, **settings):
    from cmaxslam_fbp.io.writing import write_recording
    from cmaxslam_fbp.simulation import Simulation, SimulationSettings

    simulation = Simulation(SimulationSettings(**settings))
    write_recording(simulation, simulation.chunks(), path)
    return Slam().run(open_recording(path))


def test_a_slow_camera(tmp_path):
    """Its edges take long to pass a pixel: most passages are single events."""
    result = simulated_run(tmp_path / "slow.bag", scene="boxes", duration_s=4.0, peak_speed_deg_s=20.0, seed=41)
    assert result.lost_windows == 0
    assert result.evaluation.absolute_best_fit_rms_deg < 0.2


@pytest.fixture(scope="module")
def hardly_moving(tmp_path_factory):
    """Three seconds of a camera that turns at up to 6 degrees per second."""
    path = tmp_path_factory.mktemp("slow") / "slow.npz"
    simulated_run(path, scene="shapes", duration_s=3.0, peak_speed_deg_s=6.0, seed=7)
    return path


@pytest.mark.parametrize("knot_s", [0.01, 0.02, 0.05, 0.1])
def test_a_slow_camera_with_any_time_between_knots(hardly_moving, knot_s):
    result = Slam(load_config([], [f"backend.knot_s={knot_s}"])).run(open_recording(hardly_moving))
    assert result.lost_windows == 0
    assert result.evaluation.absolute_best_fit_rms_deg < 0.09
    assert result.evaluation.relative_rms_deg_s["0.01"] < 2.5


@pytest.mark.parametrize("knot_s", [0.01, 0.05])
def test_any_time_between_knots(simulated_bag, result, knot_s):
    other = Slam(load_config([], [f"backend.knot_s={knot_s}"])).run(open_recording(simulated_bag))
    assert other.lost_windows == 0
    assert other.evaluation.absolute_best_fit_rms_deg < 1.5 * result.evaluation.absolute_best_fit_rms_deg


def test_events_that_are_filtered_out_reach_no_stage(result, simulated_bag):
    """Every 3rd event, in both passes: what the map holds is what is left, and nothing else."""
    settings = ["events.subsample=3", "backend.passage_s=0", "backend.bootstrap_s=0"]
    few = Slam(load_config([], settings)).run(open_recording(simulated_bag), refine=True)
    assert few.events == -(-result.events // 3)
    tracked = [window for window in few.windows if window.tracking.value == "tracked"]
    assert len(tracked) > 0.8 * len(few.windows)
    assert 0.5 * few.events < few.panorama.sum(dtype=float) <= few.events
    # A third of the events; a packet lasts up to three times as long where the image moves slowly.
    assert few.velocities["events"].max() < 0.7 * result.velocities["events"].max()


def test_a_fast_camera(tmp_path):
    result = simulated_run(tmp_path / "fast.bag", scene="poster", duration_s=3.0, peak_speed_deg_s=350.0, seed=5)
    assert result.lost_windows == 0
    assert result.evaluation.absolute_best_fit_rms_deg < 0.1
    assert result.evaluation.relative_rms_deg_s["0.1"] < 1.0
    assert abs(result.evaluation.time_offset_s) < 2e-4  # neither late nor early


def test_edges_that_a_new_direction_of_motion_shows_are_no_loss(tmp_path):
    """First the camera turns to the sides and sees upright edges, then up and down and sees level ones."""
    from scipy.spatial.transform import Rotation

    from cmaxslam_fbp.trajectory import RotationTrajectory

    t_s = np.arange(0, 3.2, 0.005)
    yaw = np.radians(6) * np.sin(7 * np.minimum(t_s, 4 * np.pi / 7)) ** 3
    pitch = np.radians(6) * np.sin(7 * np.maximum(t_s - 4 * np.pi / 7, 0)) ** 3
    turn = Rotation.from_rotvec(np.outer(yaw, [0, 1, 0])) * Rotation.from_rotvec(np.outer(pitch, [1, 0, 0]))
    motion = RotationTrajectory.from_rotations((t_s * 1e9).astype(np.int64), turn)
    result = simulated_run(tmp_path / "turned.bag", scene="poster", trajectory=motion, duration_s=3.0)
    matches = [window.match for window in result.windows if window.match is not None]
    assert min(matches) < 0.4 * np.median(matches[:10])  # by its match alone a window would be lost
    assert result.lost_windows == 0
    assert result.evaluation.absolute_best_fit_rms_deg < 0.2


def test_a_turn_of_more_than_360_degrees_closes_over_the_seam(tmp_path):
    """The camera comes back to where it started: the map meets itself there, and the error has not grown."""
    from scipy.spatial.transform import Rotation

    from cmaxslam_fbp.trajectory import RotationTrajectory

    t_s = np.arange(0, 2.6, 0.005)
    yaw, pitch = np.radians(400) * t_s / 2.5, np.radians(10) * np.sin(3 * t_s)
    turn = Rotation.from_rotvec(np.outer(yaw, [0, 1, 0])) * Rotation.from_rotvec(np.outer(pitch, [1, 0, 0]))
    motion = RotationTrajectory.from_rotations((t_s * 1e9).astype(np.int64), turn)
    result = simulated_run(tmp_path / "turn.bag", scene="boxes", trajectory=motion, duration_s=2.5)
    assert result.lost_windows == 0
    assert result.evaluation.absolute_best_fit_rms_deg < 0.08
    assert result.evaluation.absolute_best_fit_max_deg < 0.2
    touched = (result.panorama > 0).any(axis=0)
    assert touched.all()  # every column, those at the seam too


@pytest.mark.parametrize(("name", "least_rad_s"), [("shapes", 0.5), ("dynamic", 0.5), ("boxes", 4.0), ("poster", 7.0)])
def test_a_moment_of_real_events_is_enough(real_data, name, least_rad_s):
    """30,000 real events of 5 to 106 ms: the motion is found, the two very fast ones too."""
    result = Slam().run(open_recording(real_data / "slices" / f"{name}_rotation"))
    assert result.events == 30_000
    assert np.isfinite(result.stretches[0].spline.quaternions_xyzw).all()
    middle_ns = (result.start_ns + result.end_ns) // 2
    speed = np.linalg.norm(result.angular_velocities_at(np.array([middle_ns])))
    assert least_rad_s < speed < 15


def test_a_recording_that_starts_at_time_zero_keeps_its_start(simulated_bag, tmp_path, monkeypatch):
    recording = open_recording(simulated_bag)
    events = Events.concatenate(recording.chunks(0.5, 0.6))
    camera = recording.require_camera()
    np.savez(
        tmp_path / "zero.npz",
        t_ns=events.t_ns - events.t_ns[0],
        x=events.x,
        y=events.y,
        p=events.p,
        width=240,
        height=180,
        intrinsics=[camera.fx, camera.fy, camera.cx, camera.cy],
        distortion=camera.distortion,
    )
    monkeypatch.setattr("cmaxslam_fbp.io.npz_recording._EVENTS_PER_CHUNK", 5000)  # several chunks
    result = Slam().run(open_recording(tmp_path / "zero.npz"))
    assert result.start_ns == 0
    assert result.end_ns == events.t_ns[-1] - events.t_ns[0]
