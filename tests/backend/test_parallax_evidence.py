"""What is kept of a recording to tell its parallax, and where it tells nothing."""

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend import parallax_evidence
from cmaxslam_fbp.backend.hand_tracking import HandTracker
from cmaxslam_fbp.backend.parallax_evidence import ParallaxEvidence
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.trajectory.spline import RotationSpline


def turning(duration_ns):
    angles = np.linspace(0, 0.5, duration_ns // 20_000_000 + 3)
    return RotationSpline(4, 0, 20_000_000, Rotation.from_rotvec(np.outer(angles, [0, 1, 0])).as_quat())


def test_passages_are_kept_evenly_however_many_come(make_events, monkeypatch):
    monkeypatch.setattr(parallax_evidence, "_KEPT", 1000)
    evidence = ParallaxEvidence()
    for second in range(20):
        evidence.add(make_events(700, start_ns=second * 10**9, duration_ns=10**9))
    kept = Events.concatenate(evidence._fullest.parts)
    assert 1000 <= len(kept) <= 2000
    per_second = np.bincount(kept.t_ns // 10**9, minlength=20)
    assert per_second.min() >= 0.8 * per_second.max()


def test_what_is_kept_does_not_grow_with_the_recording(make_events, monkeypatch):
    monkeypatch.setattr(parallax_evidence, "_KEPT", 1000)
    evidence = ParallaxEvidence()
    held = []
    tracemalloc.start()
    for second in range(240):
        evidence.add(make_events(5000, start_ns=second * 10**9, duration_ns=10**9)[:4000])  # a view, as windows are
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(held) < 2 * 4 * 2000 * 13  # two minutes, in arrays that own little else


def test_the_minute_with_the_most_passages_counts(make_events):
    evidence = ParallaxEvidence()
    for second, count in [(0, 100), (30, 900), (70, 500), (110, 700), (140, 1100)]:
        evidence.add(make_events(count, start_ns=second * 10**9, duration_ns=10**9))
    kept = Events.concatenate(evidence._fullest.parts)
    assert len(kept) == 1200
    assert (kept.t_ns[0] // 10**9, kept.t_ns[-1] // 10**9) == (70, 110)


@pytest.mark.parametrize(("count", "duration_ns"), [(5000, 4 * 10**9), (20_000, 2 * 10**9)])
def test_few_events_or_a_short_time_tell_nothing(make_events, count, duration_ns):
    evidence = ParallaxEvidence()
    evidence.add(make_events(count, start_ns=0, duration_ns=duration_ns))
    assert evidence.parallax_deg(davis240c(), turning(duration_ns)) is None


def test_events_of_one_pixel_show_no_parallax():
    count = 20_000
    t_ns = np.linspace(0, 4 * 10**9 - 1, count).astype(np.int64)
    evidence = ParallaxEvidence()
    evidence.add(Events(t_ns, *(np.full(count, n, np.uint16) for n in (7, 9)), np.ones(count, np.uint8)))
    assert evidence.parallax_deg(davis240c(), turning(4 * 10**9)) == 0


def test_few_passages_are_not_followed(make_events):
    tracker = HandTracker(davis240c(), "scene", (1024, 512))
    tracker.add(make_events(1000, start_ns=0, duration_ns=3 * 10**9))
    tracker.follow(turning(3 * 10**9), 3 * 10**9)
    assert tracker.finish(turning(3 * 10**9)) is None
