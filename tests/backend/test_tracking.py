import numpy as np
import pytest

from cmaxslam_fbp.backend.tracking import TrackingMonitor, correlation

random = np.random.default_rng(0)
WINDOW = random.poisson(1.0, (20, 30)).astype(np.float32)
MAP = (WINDOW + random.poisson(1.0, (20, 30))).astype(np.float32)
ALL = np.ones((20, 30), np.uint16)


def test_the_correlation_is_that_of_roots_per_visit_over_the_pixels_that_were_seen():
    visits = random.integers(0, 4, (20, 30)).astype(np.uint16)
    seen = visits > 0
    expected = np.corrcoef(np.sqrt(WINDOW[seen]), np.sqrt(MAP[seen] / visits[seen]))[0, 1]
    assert correlation(WINDOW, MAP, visits) == pytest.approx(expected)
    assert correlation(WINDOW, 3 * WINDOW, ALL) == pytest.approx(1)


def test_how_often_a_place_was_seen_does_not_matter():
    visits = random.integers(1, 200, (20, 30)).astype(np.uint16)
    assert correlation(WINDOW, WINDOW * visits, visits) == pytest.approx(1)


def test_most_of_a_window_without_a_map_means_no_answer():
    left = np.zeros_like(ALL)
    left[:, :6] = 1
    assert correlation(WINDOW, MAP, left) is None
    left[:, :15] = 1
    assert correlation(WINDOW, MAP, left) is not None
    assert correlation(WINDOW, MAP, 0 * ALL) is None


def test_images_that_say_nothing_have_no_correlation():
    assert correlation(np.zeros_like(WINDOW), MAP, ALL) is None
    assert correlation(WINDOW, np.ones_like(MAP), ALL) is None


@pytest.fixture
def monitor():
    monitor = TrackingMonitor(0.5, 0.2)
    for match in (0.70, 0.80, 0.75, 0.85, 0.80):
        monitor.accept(match)
    return monitor


def test_nothing_is_lost_before_there_is_a_usual_match():
    monitor = TrackingMonitor(0.5, 0.2)
    for _ in range(5):
        assert not monitor.is_lost(-1.0, 3.0)
        monitor.accept(0.8)
    assert monitor.is_lost(0.39, 0.0)


def test_without_a_rule_of_loss_nothing_is_ever_lost_or_tried_again():
    monitor = TrackingMonitor(0.0, 0.2)
    for _ in range(10):
        monitor.accept(0.8)
    assert not monitor.is_lost(-1.0, 3.0)
    assert monitor.least_match is None
    assert not monitor.is_doubtful(-1.0)


def test_a_match_below_its_part_of_the_usual_one_is_lost(monitor):
    assert monitor.is_lost(0.399, 0.0)
    assert not monitor.is_lost(0.401, 0.0)


def test_a_match_well_below_the_usual_one_is_doubtful(monitor):
    assert monitor.is_doubtful(0.599)
    assert not monitor.is_doubtful(0.601)
    assert not monitor.is_doubtful(None)
    assert not TrackingMonitor(0.5, 0.2).is_doubtful(0.0)


def test_a_turn_that_is_too_large_is_lost_however_well_it_matches(monitor):
    assert monitor.is_lost(0.9, 0.201)
    assert monitor.is_lost(None, 0.201)
    assert not monitor.is_lost(0.9, 0.199)


def test_where_there_is_no_map_there_is_no_verdict(monitor):
    assert not monitor.is_lost(None, 0.0)
    monitor.accept(None)
    assert monitor.is_lost(0.399, 0.0)


def test_the_usual_match_follows_the_latest_windows(monitor):
    for match in [0.8] * 100 + [0.3] * 30:
        monitor.accept(match)
    assert not monitor.is_lost(0.2, 0.0)
    assert monitor.is_lost(0.1, 0.0)
