import numpy as np
import pytest

from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import Packet, mean_time_ns
from cmaxslam_fbp.frontend import EstimateStatus, VelocityEstimator
from cmaxslam_fbp.geometry.camera import davis240c

SOLVERS = ["newton", "lbfgsb", "trust_ncg", "fletcher_reeves"]


def make(count, duration_s=0.01, x=None, y=None, same_stamp=False):
    random = np.random.default_rng(0)
    t_ns = np.sort(random.integers(0, round(duration_s * 1e6), count)) * 1000
    if same_stamp:
        t_ns = np.full(count, 12_345_000)
    columns = random.integers(0, 240, count) if x is None else np.full(count, x)
    rows = random.integers(0, 180, count) if y is None else np.full(count, y)
    return Events(
        t_ns.astype(np.int64),
        columns.astype(np.uint16),
        rows.astype(np.uint16),
        random.integers(0, 2, count).astype(np.uint8),
    )


CASES = {
    "one event": (make(1), EstimateStatus.TOO_FEW_EVENTS),
    "few events": (make(99), EstimateStatus.TOO_FEW_EVENTS),
    "one pixel": (make(20_000, x=100, y=80), EstimateStatus.DEGENERATE),
    "a corner": (make(20_000, x=239, y=179), EstimateStatus.DEGENERATE),
    "equal stamps": (make(20_000, same_stamp=True), EstimateStatus.DEGENERATE),
    "two microseconds": (make(20_000, duration_s=2e-6), EstimateStatus.DEGENERATE),
    "little happens": (make(20_000, duration_s=2.5), EstimateStatus.NO_EVIDENCE),
}


def assert_defined(estimate):
    numbers = [*estimate.velocity, *estimate.covariance.ravel(), estimate.score, estimate.quality]
    assert np.isfinite(numbers).all()
    assert (np.linalg.eigvalsh(estimate.covariance) > 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("score", ["variance", "negative_binomial"])
@pytest.mark.parametrize("name", CASES)
def test_hopeless_packets_have_zero_velocity_and_say_why(name, score, solver):
    events, status = CASES[name]
    estimator = VelocityEstimator(davis240c(), FrontendConfig(solver=solver, score=score, packets="count"))
    for _ in range(2):
        estimate = estimator.estimate(Packet(events, mean_time_ns(events)))
        assert estimate.status is status
        assert not estimate.status.is_measured
        np.testing.assert_array_equal(estimate.velocity, 0)
        assert_defined(estimate)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("duration_s", [0.01, 0.2, 1.5])
def test_noise_of_a_still_camera_gives_hardly_any_velocity(solver, duration_s):
    events = make(20_000, duration_s)
    estimate = VelocityEstimator(davis240c(), FrontendConfig(solver=solver, packets="count")).estimate(
        Packet(events, mean_time_ns(events))
    )
    assert_defined(estimate)
    assert np.linalg.norm(estimate.velocity) * duration_s < 0.01  # less than a bin
    assert estimate.quality < 1.1


def test_a_still_camera_is_known_to_be_still_and_the_next_packet_starts_there():
    estimator = VelocityEstimator(davis240c(), FrontendConfig(packets="count"))
    events = CASES["little happens"][0]
    estimate = estimator.estimate(Packet(events, mean_time_ns(events)))
    assert estimate.standard_deviations[0] == pytest.approx(0.01 / 1.25, rel=0.01)
    unknown = estimator.estimate(Packet(make(5), 0))
    assert unknown.standard_deviations[0] == FrontendConfig().max_speed


def test_a_packet_at_a_fixed_rate_that_lasts_ten_intervals_is_still():
    events = make(30_000, duration_s=0.12)
    packet = Packet(events, 60_000_000)
    by_rate = VelocityEstimator(davis240c(), FrontendConfig(packets="rate", interval_s=0.01, min_evidence=0))
    assert by_rate.estimate(packet).status is EstimateStatus.STILL
    by_count = VelocityEstimator(davis240c(), FrontendConfig(packets="count"))
    assert by_count.estimate(packet).status is not EstimateStatus.STILL


def test_no_events_give_no_estimates():
    assert list(VelocityEstimator(davis240c()).run([])) == []
    assert list(VelocityEstimator(davis240c()).run([Events.empty()])) == []
