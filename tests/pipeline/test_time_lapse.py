"""Slow motion passes faster on the clock of a run, and its results are on the recording's."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp import Slam, open_recording
from cmaxslam_fbp.backend.tracking import Tracking
from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.frontend.estimate import EstimateStatus, VelocityEstimate
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.pipeline.gaps import RunClock, Stretch
from cmaxslam_fbp.pipeline.time_lapse import LapseControl, TimeLapse
from cmaxslam_fbp.simulation import SENSORS, Simulation, SimulationSettings
from cmaxslam_fbp.trajectory.position_spline import PositionSpline
from cmaxslam_fbp.trajectory.spline import RotationSpline

EPOCH_NS = 1_468_941_032_229_417_000
CAMERA = davis240c()


def lapse_of(*pieces):
    lapse = TimeLapse()
    for t_ns, times in pieces:
        lapse.add(t_ns, times)
    return lapse


def noise(rate_ev_s, start_s, end_s):
    t_ns = EPOCH_NS + np.arange(round(start_s * 1e9), round(end_s * 1e9), round(1e9 / rate_ev_s))
    zeros = np.zeros(len(t_ns), np.uint16)
    return Events(t_ns.astype(np.int64), zeros, zeros, zeros.astype(np.uint8))


def estimate(t_ns, speed_px_s, status=EstimateStatus.CONVERGED):
    velocity = np.array([0.0, speed_px_s / CAMERA.fx, 0.0])
    return VelocityEstimate(t_ns, velocity, np.eye(3), 0.0, 1.0, 0, 0, status, 1000, 0.0)


def drive(chunks, speed_px_s, status=EstimateStatus.CONVERGED):
    """Run a control on events, with a frontend that measures a speed of the recording every 10 ms of the run."""
    control = LapseControl(CAMERA, Config())
    due_ns, out = EPOCH_NS, []
    for events in control.run(chunks):
        out.append(events)
        while due_ns <= events.t_ns[-1]:
            control.see(estimate(due_ns, speed_px_s * control.lapse.lapse_at(due_ns), status))
            due_ns += 10_000_000
    return control, Events.concatenate(out)


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.floats(1, 64)), min_size=1, max_size=8),
    st.lists(st.integers(-(10**8), 10**10), min_size=1, max_size=20),
)
def test_the_clocks_go_together_both_ways(steps, times):
    starts = EPOCH_NS + np.cumsum([step for step, _ in steps])
    lapse = lapse_of(*zip(starts.tolist(), (times for _, times in steps), strict=True))
    tau = EPOCH_NS + np.array(times)
    np.testing.assert_array_equal(lapse.to_run(lapse.to_recording(tau)), tau)
    t = np.sort(EPOCH_NS + np.array(times))
    assert (np.diff(lapse.to_run(t)) >= 0).all()
    np.testing.assert_array_equal(lapse.lapses_at(tau), [lapse.lapse_at(int(one)) for one in tau])
    before = t[t < starts[0]]
    np.testing.assert_array_equal(lapse.to_run(before), before)


def test_a_piece_lasts_as_many_times_as_long_in_the_recording():
    lapse = lapse_of((1000, 4.0), (5000, 1.0))
    np.testing.assert_array_equal(lapse.to_run([0, 1000, 3000, 5000, 6000]), [0, 1000, 1500, 2000, 3000])


def test_angular_velocities_are_the_derivative_in_the_time_of_the_recording():
    controls = Rotation.from_rotvec(np.random.default_rng(3).normal(0, 0.05, (60, 3)).cumsum(axis=0))
    spline = RotationSpline(4, 0, 20_000_000, controls.as_quat())
    lapse = lapse_of((100_000_000, 8.0), (2_000_000_000, 3.0))
    trajectory = Stretch(0, 10**12, spline, None, lapse, removed_ns=7_000_000)
    t_ns = np.array([50_000_000, 900_000_000, 2_500_000_000])  # one in each piece
    step_ns = 50_000
    before, after = (Rotation.from_quat(trajectory.quaternions_at(t_ns + side * step_ns)) for side in (-1, 1))
    expected = (before.inv() * after).as_rotvec() / (2e-9 * step_ns)
    np.testing.assert_allclose(trajectory.angular_velocities_at(t_ns), expected, rtol=1e-4, atol=1e-6)
    assert trajectory.covers(trajectory.known_ns)
    assert not trajectory.covers(trajectory.known_ns + 10)


def test_a_trajectory_is_cut_at_gaps_also_where_time_lapses():
    lapse = TimeLapse()
    clock = RunClock(100_000_000, lapse)
    day_ns = 86_400 * 10**9
    t_ns = np.array([0, 900_000_000, day_ns, day_ns + 50_000_000])
    zeros = np.zeros(4, np.uint16)
    ((a, _, c, d),) = (e.t_ns for e in clock.shorten([Events(t_ns, zeros, zeros, zeros.astype(np.uint8))]))
    lapse.add(100_000_000, 4.0)
    start_ns, end_ns = lapse.to_run([a, d]).tolist()
    spline = RotationSpline(4, 0, 25_000_000, np.tile([0.0, 0.0, 0.0, 1.0], (200, 1)))
    places = np.arange(100)[:, None] * [0.05, 0.0, 0.0]  # of a path whose x is the time of the run, in seconds
    path = PositionSpline(2, 0, 50_000_000, places)
    first, second = clock.stretches(spline, start_ns, end_ns, path)
    np.testing.assert_allclose([first.start_ns, first.end_ns, second.start_ns, second.end_ns], t_ns, atol=4)
    assert second.covers([second.start_ns, second.end_ns]).all()
    assert clock.to_recording(end_ns) == pytest.approx(t_ns[3], abs=4)
    early, late = (stretch.positions_at(times) for stretch, times in ((first, t_ns[:2]), (second, t_ns[2:])))
    run_s = 1e-9 * lapse.to_run([0, 900_000_000, c, d])
    assert run_s[1] == pytest.approx(0.3)
    np.testing.assert_allclose(np.concatenate([early, late])[:, 0], run_s, atol=1e-8)


def test_fast_motion_keeps_the_recordings_clock():
    events = noise(20_000, 0, 3)
    control, out = drive([events], 45.0)
    assert control.lapse.is_plain
    np.testing.assert_array_equal(out.t_ns, events.t_ns)


@pytest.mark.parametrize(("speed_px_s", "expected"), [(20.0, 2**1.5), (4.0, 10**1.5), (0.1, 64.0)])
def test_the_lapse_follows_the_speed(speed_px_s, expected):
    control, out = drive([noise(2000, 0, 40)], speed_px_s)
    assert control.lapse.lapses_at(out.t_ns[-1]) == pytest.approx(expected, rel=0.02)


def test_without_evidence_time_lapses_until_packets_are_full():
    control, out = drive([noise(20_000, 0, 20)], 0.0, EstimateStatus.NO_EVIDENCE)
    full = 20_000 / (0.03 * 20_000)
    assert control.lapse.lapses_at(out.t_ns[-1]) == pytest.approx(full, rel=0.02)


def test_many_events_set_the_clock_back_at_once():
    """A camera that was still begins to move: the frontend has not measured anything by then."""
    control, _ = drive([noise(5000, 0, 10), noise(700_000, 10, 10.2)], 0.0, EstimateStatus.NO_EVIDENCE)
    lapse = control.lapse
    assert lapse.lapses_at(lapse.to_run(EPOCH_NS + 9_900_000_000)) > 30
    assert lapse.lapses_at(lapse.to_run(EPOCH_NS + 10_050_000_000)) == 1


def test_very_many_events_are_passed_on_at_once():
    """As soon as they are too many for time to lapse, the rest of their slice is not waited for."""
    events, taken = noise(5_000_000, 0.0, 0.1), []
    chunks = (taken.append(5000) or events[first : first + 5000] for first in range(0, len(events), 5000))
    given = 0
    for part in LapseControl(CAMERA, Config()).run(chunks):
        assert sum(taken) - given <= 20_000 / 0.03 * 0.02 + 2 * 5000
        given += len(part)
    assert given == len(events)


def test_a_silence_passes_as_it_is():
    control, _ = drive([noise(5000, 0, 10), noise(5000, 12, 12.1)], 0.0, EstimateStatus.NO_EVIDENCE)
    start_ns, end_ns = control.lapse.to_run(EPOCH_NS + np.array([10_050_000_000, 11_950_000_000])).tolist()
    assert end_ns - start_ns == 1_900_000_000


@given(st.lists(st.integers(0, 6000), max_size=6))
def test_the_clock_does_not_depend_on_how_events_come(places):
    events = noise(3000, 0, 2)
    bounds = [0, *sorted(places), len(events)]
    _, whole = drive([events], 3.0)
    _, parts = drive([events[a:b] for a, b in pairwise(bounds)], 3.0)
    np.testing.assert_array_equal(whole.t_ns, parts.t_ns)


def test_what_came_before_an_error_is_passed_on():
    events, passed = noise(3000, 0, 0.05), []

    def broken():
        yield events
        raise OSError("cut")

    with pytest.raises(OSError, match="cut"):
        passed.extend(LapseControl(CAMERA, Config()).run(broken()))
    assert sum(map(len, passed)) == len(events)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """The realistic sensor, on a camera whose image moves by 1.7 pixels per second."""
    path = tmp_path_factory.mktemp("slow") / "slow.npz"
    settings = SimulationSettings("shapes", duration_s=8.0, sensor=SENSORS["davis"], peak_speed_deg_s=0.5, seed=83)
    simulation = Simulation(settings)
    write_recording(simulation, simulation.chunks(), path)
    return path


def test_a_slow_camera_is_followed(slow):
    recording = open_recording(slow)
    result = Slam().run(recording)
    assert result.evaluation.absolute_best_fit_rms_deg < 0.25  # it turns by 4 degrees, some unseen at the beginning
    later = evaluate(result.trajectory(), recording.ground_truth, start_s=3.0, duration_s=4.5)
    assert later.absolute_best_fit_rms_deg < 0.1
    windows = [window for window in result.windows if window.start_ns > result.start_ns + 3 * 10**9]
    assert all(window.tracking is Tracking.TRACKED for window in windows)
    assert 8 <= 1e-9 * (result.windows[-1].end_ns - result.start_ns) < 8 + 64 * 0.2  # a window more at the most
    t_ns = np.arange(result.start_ns + 3 * 10**9, result.end_ns - 10**9, 10**8)
    omega = np.degrees(result.angular_velocities_at(t_ns))
    truth = recording.ground_truth
    steps = truth.rotation_at(t_ns - 5 * 10**7).inv() * truth.rotation_at(t_ns + 5 * 10**7)
    assert np.sqrt(((omega - np.degrees(steps.as_rotvec()) / 0.1) ** 2).mean()) < 0.2
    rows = result.velocities[result.velocities["t_ns"] > result.start_ns + 3 * 10**9]
    assert np.degrees(np.linalg.norm(np.median(rows["omega_rad_s"], axis=0))) == pytest.approx(0.5, abs=0.08)


def test_a_slow_camera_that_only_turns_keeps_its_orientations_with_hand_held(slow):
    alone, asked = (
        Slam(load_config([], [f"backend.translation={model}"])).run(open_recording(slow)) for model in ("none", "scene")
    )
    assert asked.parallax_deg == 0
    np.testing.assert_array_equal(asked.trajectory().quaternions_xyzw, alone.trajectory().quaternions_xyzw)


def test_without_the_lapse_a_slow_camera_counts_as_still(slow):
    result = Slam(load_config([], ["events.time_lapse=1"])).run(open_recording(slow))
    assert result.evaluation.absolute_best_fit_rms_deg > 1


def test_refinement_works_on_the_same_clock(slow):
    first = Slam().run(open_recording(slow))
    refined = Slam().run(open_recording(slow), refine=True)
    assert refined.evaluation.absolute_best_fit_rms_deg < first.evaluation.absolute_best_fit_rms_deg + 0.03
    assert [w.start_ns for w in refined.windows] == [w.start_ns for w in first.windows]


def test_slow_is_where_the_lapse_is_long():
    lapse = lapse_of(
        (EPOCH_NS, 2.0), (EPOCH_NS + 10**9, 8.0), (EPOCH_NS + 2 * 10**9, 30.0), (EPOCH_NS + 3 * 10**9, 7.9)
    )
    tau_ns = lapse.to_run(EPOCH_NS + np.arange(-5, 40) * 10**8)
    np.testing.assert_array_equal(lapse.is_slow(tau_ns), lapse.lapses_at(tau_ns) >= 8)
    np.testing.assert_array_equal(lapse.is_slow(tau_ns[:7]), False)
    assert not TimeLapse().is_slow(tau_ns).any()


def test_a_slow_camera_is_followed_though_most_events_are_noise():
    settings = SimulationSettings("boxes", duration_s=12.0, sensor=SENSORS["davis"], peak_speed_deg_s=1.0, seed=404)
    simulation = Simulation(settings)
    events = Events.concatenate(list(simulation.chunks()))
    recording = Recording.from_events(events, camera=simulation.camera, ground_truth=simulation.ground_truth)
    result = Slam().run(recording)
    assert result.evaluation.absolute_best_fit_rms_deg < 0.12
    assert 0.2 * len(events) < result.lone_events < 0.9 * len(events)
    assert result.events + result.hot_pixels.events == len(events)
