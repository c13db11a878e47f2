"""What happens when the prediction is wrong: long packets of a sparse scene, whose maximum is narrow."""

import numpy as np
import pytest

from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.frontend import EstimateStatus, VelocityEstimator

COUNT = 10_000
DIRECTIONS = np.concatenate([np.eye(3), -np.eye(3)])


def unit_of(packet):
    """The velocity that moves the packet's last event by one bin of 0.01."""
    return 1 / (100 * 0.5e-9 * (packet.events.t_ns[-1] - packet.events.t_ns[0]))


def estimate_after(shapes, index, error, *, recovery=True, surprise_bins=None):
    """Run up to a packet, spoil the prediction of it by so many bins, and return its estimate."""
    config = FrontendConfig(packets="count", events_per_packet=COUNT, recovery=recovery)
    estimator = VelocityEstimator(shapes.camera, config)
    packets = list(estimator.packets([shapes.events]))
    for packet in packets[:index]:
        estimator.estimate(packet)
    spoilt = estimator._prediction.at(packets[index].t_ns) + error * unit_of(packets[index])
    estimator._prediction.add(packets[index].t_ns - 1_000_000, spoilt, continues=False)
    if surprise_bins is not None:
        estimator._maximiser._surprise_bins = surprise_bins
    return estimator.estimate(packets[index])


@pytest.mark.parametrize("index", [5, 12])
def test_a_search_finds_the_way_back_from_where_the_optimiser_alone_does_not(shapes, index):
    errors = {}
    for recovery in (True, False):
        found = [estimate_after(shapes, index, 25 * direction, recovery=recovery) for direction in DIRECTIONS]
        errors[recovery] = np.abs(shapes.errors_deg_s(found)).max(axis=1)
    assert (errors[True] < 12).all()
    assert (errors[False] > 50).sum() >= 2


def test_a_recovered_packet_says_so(shapes):
    found = [estimate_after(shapes, 12, 25 * direction) for direction in DIRECTIONS]
    assert EstimateStatus.RECOVERED in {estimate.status for estimate in found}
    assert all(estimate.evaluations > 10 for estimate in found if estimate.status is EstimateStatus.RECOVERED)


def test_after_surprises_a_coarser_grid_saves_evaluations(shapes):
    """Predictions off by five bins: with the coarse grid first, and without it."""
    counts = {}
    for surprise_bins in (0.0, 2.0):
        found = [estimate_after(shapes, 12, 5 * direction, surprise_bins=surprise_bins) for direction in DIRECTIONS]
        assert np.abs(shapes.errors_deg_s(found)).max() < 12
        counts[surprise_bins] = sum(estimate.evaluations for estimate in found)
    assert counts[2.0] < 0.95 * counts[0.0]
