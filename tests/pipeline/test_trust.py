import pytest

from cmaxslam_fbp.backend.tracking import Tracking, WindowReport
from cmaxslam_fbp.frontend.rotation_check import RotationResidual
from cmaxslam_fbp.pipeline.trust import mark_windows, overall, unexplained_motion

STRIDE_NS = 100_000_000


def windows(*words):
    return [WindowReport(n * STRIDE_NS, (n + 2) * STRIDE_NS, 1000, Tracking(word)) for n, word in enumerate(words)]


def residuals(*shares, every_ns=250_000_000):
    return [RotationResidual(n * every_ns, share**2 * 100.0, 100.0) for n, share in enumerate(shares)]


def test_the_unexplained_motion_is_what_packets_agree_on():
    assert unexplained_motion([]) is None
    assert unexplained_motion(residuals(0.2)) == pytest.approx(0.2)
    assert unexplained_motion(residuals(*[0.2] * 8, 0.9, 0.9, 0.0)) == pytest.approx(0.2)
    assert unexplained_motion([RotationResidual(0, -3.0, 100.0)]) == 0.0
    noise = [RotationResidual(0, value, 1000.0) for value in (3, 21, -7, -9, 7, -3, 21, -13, 14, 13, 20, -3, 26)]
    assert unexplained_motion(noise) == 0.0
    # Of ten that deviate by one about three, the median has the standard error 1.85 / sqrt(10).
    apart = [RotationResidual(0, value, 100.0) for value in (2, 4) * 5]
    assert unexplained_motion(apart) == pytest.approx(((3 - 2 * 1.25 * 1.48 / 10**0.5) / 100) ** 0.5)


def test_a_recording_that_is_no_rotation_is_marked_in_every_window_that_is_in_the_map():
    marked = mark_windows(windows("tracked", "lost", "still", "found again"), residuals(0.2, 0.2, 0.2))
    assert [one.tracking.value for one in marked] == ["not a rotation", "lost", "still", "not a rotation"]
    assert marked[0].reason == "a rotation leaves 20% of the image's motion unexplained"


def test_a_part_of_a_recording_that_is_no_rotation_is_marked_alone():
    marked = mark_windows(windows(*["tracked"] * 60), residuals(*[0.0] * 16, *[0.3] * 8))
    places = [n for n, one in enumerate(marked) if one.tracking is Tracking.NOT_A_ROTATION]
    assert 35 <= places[0] <= 42
    assert places[-1] >= 55  # behind it nothing is known but of the whole
    assert {one.tracking for one in mark_windows(windows("tracked"), [])} == {Tracking.TRACKED}


@pytest.mark.parametrize(
    ("words", "unexplained", "expected", "reason"),
    [
        (["tracked"] * 9, 0.01, "tracked", "all 9 windows agree with the map"),
        (["tracked"] * 8 + ["still"], None, "tracked", "all 9 windows agree with the map or are still (1)"),
        (["still"] * 3, None, "still", "no window shows a motion"),
        (["tracked", "lost", "found again", "tracked"], 0.0, "found again", "1 of 4 windows are lost"),
        (["tracked", "lost", "tracked", "tracked"], 0.0, "tracked", "but 1 of 4 windows are lost"),
        (["tracked", "tracked", "tracked", "lost"], 0.0, "lost", "1 of 4 windows do not match the map"),
        (["tracked", "lost", "lost", "lost", "tracked"], 0.0, "lost", "3 of 5 windows do not match the map"),
        (["not a rotation"] * 4, 0.3, "not a rotation", "a rotation leaves 30% of the image's motion unexplained"),
        (["tracked", "not a rotation"], 0.03, "not a rotation", "in 1 of 2 windows"),
        (["tracked"] * 7 + ["not a rotation"], 0.03, "tracked", "but in 1 of 8 windows no rotation explains"),
    ],
)
def test_a_run_as_a_whole_has_one_word_and_a_reason(words, unexplained, expected, reason):
    word, found = overall(windows(*words), unexplained)
    assert word.value == expected
    assert reason in found
