import numpy as np
import pytest
from moving_dots import moving_dots

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.experiments.flow.batches import voxel_grid
from cmaxslam_fbp.experiments.flow.samples import make_sample, pack_samples, unpack_samples

COLUMNS = ("t", "x", "y", "p", "flow_px", "is_valid")


def at_start(sample):
    """Where the true flow takes the events at the start of the stretch: columns and rows (N, 2)."""
    flow = sample.flow_px[:, sample.y, sample.x].T
    return np.stack([sample.x, sample.y], 1) - sample.t[:, None] * flow


@pytest.mark.parametrize("change", ["left_right", "up_down", "both", "transposed", "crop"])
def test_flow_and_events_change_together(change):
    """What the true flow makes sharp stays sharp: the places at the start are the changed ones of before."""
    sample = moving_dots((6, -2), size=40)
    x, y = at_start(sample).T
    if change == "crop":
        after = sample.crop(8, 4, 24, 32)
        assert after.shape == (24, 32)
        kept = (sample.y >= 8) & (sample.y < 32) & (sample.x >= 4) & (sample.x < 36)
        expected = np.stack([x - 4, y - 8], 1)[kept]
    else:
        after = (
            sample.transposed()
            if change == "transposed"
            else sample.mirrored(change != "up_down", change != "left_right")
        )
        places = {"left_right": (39 - x, y), "up_down": (x, 39 - y), "both": (39 - x, 39 - y), "transposed": (y, x)}
        expected = np.stack(places[change], 1)
    np.testing.assert_allclose(at_start(after), expected, atol=1e-4)
    assert len(after) > 1000


def test_a_sample_has_the_events_of_its_stretch_and_times_from_zero_to_one():
    events = Events.from_arrays(
        np.arange(10) * 1000, np.arange(10), np.arange(10) + 1, np.arange(10) % 2, time_unit="ns"
    )
    flow = np.dstack([np.full((12, 16), 3.0), np.full((12, 16), -1.0)])
    sample = make_sample(events, 2000, 7000, flow, np.ones((12, 16), bool))
    np.testing.assert_allclose(sample.t, [0, 0.2, 0.4, 0.6, 0.8], atol=1e-6)
    assert sample.x.tolist() == [2, 3, 4, 5, 6]
    assert sample.y.tolist() == [3, 4, 5, 6, 7]
    assert sample.flow_px[:, 0, 0].tolist() == [3.0, -1.0]


def test_packed_samples_are_unpacked_as_they_were():
    samples = [moving_dots((5, 2), dots=7), moving_dots((1, -2), dots=3, seed=1)]
    for before, after in zip(samples, unpack_samples(pack_samples(samples)), strict=True):
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_thinned_samples_keep_their_order():
    sample = moving_dots((5, 2)).thinned(100, np.random.default_rng(0))
    assert len(sample) == 100
    assert (np.diff(sample.t) >= 0).all()
    assert sample.thinned(200, np.random.default_rng(0)) is sample


def test_voxels_are_the_signed_events_shared_between_bins_of_time():
    sample = moving_dots((4, 3), size=16, dots=10)
    slow = np.zeros((15, 16, 16))
    for t, x, y, p in zip(sample.t, sample.x, sample.y, sample.p, strict=True):
        for b in range(15):
            slow[b, y, x] += (1 if p else -1) * max(0.0, 1 - abs(b - 14 * float(t)))
    slow[np.abs(slow) < 1e-5] = 0
    slow /= np.sqrt((slow**2).sum() / np.count_nonzero(slow))
    np.testing.assert_allclose(voxel_grid(sample), slow, atol=1e-3)
    nothing = moving_dots((4, 3), size=16, dots=0)
    assert not voxel_grid(nothing).any()
