"""Long gaps of the clock cost nothing, and nothing is claimed of them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp import Slam, open_recording
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import LONGEST_SILENCE_NS
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.pipeline.gaps import RunClock
from cmaxslam_fbp.trajectory.spline import RotationSpline

DAY_NS = 86_400 * 10**9
STRIDE_NS = 100_000_000
CONTROLS = Rotation.from_rotvec(np.random.default_rng(1).normal(0, 0.1, (200, 3)).cumsum(axis=0)).as_quat()


def stream(t_ns):
    t_ns = np.asarray(t_ns, np.int64)
    return Events(t_ns, np.zeros(len(t_ns), "u2"), np.zeros(len(t_ns), "u2"), np.zeros(len(t_ns), "u1"))


@given(
    st.lists(st.sampled_from([0, 1, 10**9, 3 * 10**9, 3 * 10**9 + 1, 4 * 10**9 + 7, DAY_NS]), max_size=30),
    st.lists(st.integers(0, 31), max_size=5),
)
def test_the_clock_of_a_run_has_no_long_gap_and_can_be_turned_back(steps, places):
    t_ns = 1_468_941_032_229_417_000 + np.cumsum([0, *steps]).astype(np.int64)
    bounds = [0, *sorted(min(place, len(t_ns)) for place in places), len(t_ns)]
    clock = RunClock(STRIDE_NS)
    chunks = list(clock.shorten(stream(t_ns[a:b]) for a, b in pairwise(bounds)))
    short = np.concatenate([chunk.t_ns for chunk in chunks])
    assert short[0] == t_ns[0]
    np.testing.assert_array_equal(clock.to_recording(short), t_ns)
    kept = np.diff(short) == np.diff(t_ns)
    assert (np.diff(short)[kept] <= LONGEST_SILENCE_NS + STRIDE_NS).all()
    after = short[1:][~kept]
    assert ((after - short[0]) % STRIDE_NS == 0).all()
    waits = np.diff(short)[~kept]
    assert ((waits >= LONGEST_SILENCE_NS) & (waits < LONGEST_SILENCE_NS + STRIDE_NS)).all()


def test_a_trajectory_is_cut_where_the_events_end_and_go_on():
    clock = RunClock(STRIDE_NS)
    t_ns = np.array([0, 90_000_000, DAY_NS, DAY_NS + 50_000_000])
    ((a, b, c, d),) = (chunk.t_ns for chunk in clock.shorten([stream(t_ns)]))
    spline = RotationSpline(4, 0, 25_000_000, CONTROLS)
    first, second = clock.stretches(spline, int(a), int(d))
    assert (first.start_ns, first.end_ns, second.start_ns, second.end_ns) == tuple(t_ns)
    one, other = first.own_spline(), second.own_spline()
    assert (one.start_ns, one.end_ns) == (0, 100_000_000)
    assert (other.start_ns, other.end_ns) == (DAY_NS, DAY_NS + 50_000_000)
    for stretch, spline in ((first, one), (second, other)):
        times = [stretch.start_ns, stretch.end_ns]
        np.testing.assert_array_equal(stretch.quaternions_at(times), spline.quaternions_at(times))
    (alone,) = clock.stretches(spline, int(a), int(b))  # of a run that is not there yet
    assert alone.end_ns == b
    assert c == 3_100_000_000


@pytest.fixture(scope="module")
def source(simulated_bag):
    return open_recording(simulated_bag)


def run_with_gap(source, skipped_s, gap_ns, at_s=1.4):
    """Run a recording of which some time is cut out, with a gap there."""
    start_ns = source.start_ns
    cut_ns, next_ns = (start_ns + round(1e9 * t_s) for t_s in (at_s, at_s + skipped_s))
    events = Events.concatenate(source.chunks())
    before, after = events.between(start_ns, cut_ns), events.between(next_ns, int(events.t_ns[-1]) + 1)
    after = replace(after, t_ns=after.t_ns + gap_ns)
    return Slam().run(Recording.from_events([before, after], camera=source.require_camera()))


def errors_deg(result, truth, gap_ns):
    """Errors before and after a gap, in the world that fits best before it."""
    trajectory = result.trajectory()
    is_after = trajectory.t_ns >= result.stretches[1].start_ns
    t_ns = trajectory.t_ns - np.where(is_after, gap_ns, 0)
    inside = truth.covers(t_ns)
    turned = truth.rotation_at(t_ns[inside]) * trajectory.rotations[np.flatnonzero(inside)].inv()
    is_after = is_after[inside]
    errors = np.degrees((turned[~is_after].mean().inv() * turned).magnitude())
    return errors[~is_after], errors[is_after]


@pytest.mark.parametrize("skipped_s", [0.0, 0.03])
def test_a_day_without_events_is_passed_over_and_the_map_tells_where_the_camera_is(source, skipped_s):
    result = run_with_gap(source, skipped_s, DAY_NS)
    ((start_ns, end_ns),) = result.gaps_ns
    assert end_ns - start_ns == pytest.approx(DAY_NS + skipped_s * 1e9, abs=1e7)
    t_ns = result.trajectory().t_ns
    assert not ((t_ns > start_ns) & (t_ns < end_ns)).any()
    assert np.isnan(result.angular_velocities_at(np.array([start_ns + 10**9, (start_ns + end_ns) // 2]))).all()
    assert len(result.windows) < 70
    assert len(result.velocities) < 700
    assert result.real_time_factor < 100
    assert any(line.startswith("1 gap(s) without events, the longest of 86400.") for line in result.warnings)
    before, after = errors_deg(result, source.ground_truth, DAY_NS)
    assert before.max() < 0.3
    assert after.max() < 0.5
    assert result.lost_windows == 0


def test_a_camera_that_was_turned_away_during_a_gap_is_lost_and_not_in_the_map(source):
    """The last part looks at another side: no window of it may match by chance."""
    events = Events.concatenate(source.chunks())
    cut_ns = source.start_ns + 1_400_000_000
    mirrored = replace(events, x=(239 - events.x).astype(np.uint16), t_ns=events.t_ns + DAY_NS)
    recording = Recording.from_events(
        [events.between(source.start_ns, cut_ns), mirrored.between(cut_ns + DAY_NS, int(mirrored.t_ns[-1]) + 1)],
        camera=source.require_camera(),
    )
    result = Slam().run(recording)
    after = [window for window in result.windows if window.start_ns >= result.stretches[1].start_ns]
    assert len(after) >= 4
    assert {window.tracking.value for window in after} == {"lost"}
