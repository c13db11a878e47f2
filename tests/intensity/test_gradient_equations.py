"""The sums over pairs of events are those of the linear binning kernel's own derivative."""

import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.sensor import SensorSize
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity.event_sample import EventSample, PixelChoice
from cmaxslam_fbp.intensity.gradient_equations import GradientEquations
from cmaxslam_fbp.intensity.gradient_kernels import BRIGHTER, DARKER, ENTRIES, WEIGHT

SIZE = Equirectangular(64, 32)
CAMERA = Camera(64, 48, SIZE.focal_px, SIZE.focal_px, 31.5, 23.5)  # its pixels are as large as the map's
TRIANGLE = np.array([[0, 1, 2, 3], [1, 4, 5, 6], [2, 5, 7, 8], [3, 6, 8, 9]])


def events_at(x, p):
    count = len(x)
    return Events(
        np.arange(count, dtype=np.int64), np.asarray(x, np.uint16), np.zeros(count, np.uint16), np.asarray(p, np.uint8)
    )


def dense(equations):
    """Return the matrix and both vectors of the whole map."""
    height, width = SIZE.height, SIZE.width
    matrix = np.zeros((height * width, height * width))
    vectors = np.zeros((2, height * width))
    for i, j in zip(*np.nonzero(equations.cells[..., WEIGHT]), strict=True):
        right = (j + 1) % width
        corners = [i * width + j, i * width + right, (i + 1) * width + j, (i + 1) * width + right]
        cell = equations.cells[i, j]
        matrix[np.ix_(corners, corners)] += cell[:ENTRIES][TRIANGLE]
        vectors[0, corners] += cell[DARKER:WEIGHT]
        vectors[1, corners] += cell[BRIGHTER:DARKER]
    return matrix, vectors


def test_the_sums_are_those_of_the_binning_s_derivative():
    random = np.random.default_rng(1)
    count = 30
    first = random.uniform([5, 3], [25, 60], (count, 2))
    step = random.uniform(-1.5, 1.5, (count, 2))
    p = random.integers(0, 2, count)
    equations = GradientEquations(CAMERA, SIZE)
    equations.add(events_at(np.arange(count), np.ones(count)), first.astype(np.float32))
    equations.add(events_at(np.arange(count), p), (first + step).astype(np.float32))
    matrix, vectors = dense(equations)

    binning = Binning((SIZE.height, SIZE.width), "linear", None, backend="reference")
    expected, expected_vectors = np.zeros_like(matrix), np.zeros_like(vectors)
    for n in range(count):
        g = binning.jvp((first + step / 2)[n : n + 1], None, step[n : n + 1], None).ravel()
        expected += np.outer(g, g)
        expected_vectors[p[n]] += g
    np.testing.assert_allclose(matrix, expected, atol=2e-4)
    np.testing.assert_allclose(vectors, expected_vectors, atol=2e-4)
    assert equations.events == [count - p.sum(), count + p.sum()]


def test_a_pair_over_the_seam_is_that_of_a_pair_elsewhere():
    def sums(shift):
        equations = GradientEquations(CAMERA, SIZE)
        for row, column in ((15.2, 63.7), (15.6, 64.2)):
            equations.add(events_at([3], [1]), np.array([[row, (column + shift) % 64]], np.float32))
        return np.roll(equations.cells, -shift, axis=1)

    assert sums(0).any()
    np.testing.assert_allclose(sums(0), sums(30), atol=1e-4)


@pytest.mark.parametrize("step", [(0.0, 5.0), (0.0, 0.05)])
def test_pairs_that_are_too_far_apart_or_too_close_say_nothing(step):
    equations = GradientEquations(CAMERA, SIZE)
    for place in (np.zeros(2), np.array(step)):
        equations.add(events_at([7], [1]), (np.array([16, 20]) + place).astype(np.float32)[None])
    assert not equations.cells.any()


def test_lengths_are_those_on_the_sphere():
    """Two columns are a long way at the equator, and a short one near a pole."""
    equations = GradientEquations(CAMERA, SIZE)
    for column in (20.0, 25.0):
        equations.add(events_at([7, 8], [1, 1]), np.array([[16, column], [29, column]], np.float32))
    rows = np.unique(np.nonzero(equations.cells[..., WEIGHT])[0])
    assert rows.tolist() == [29]
    assert equations.cells[..., WEIGHT].sum() == pytest.approx((5 * np.cos(13 / SIZE.focal_px)) ** 2, rel=1e-5)


def test_what_is_forgotten_makes_no_pair():
    equations = GradientEquations(CAMERA, SIZE)
    equations.add(events_at([7], [1]), np.array([[15, 20]], np.float32))
    equations.forget()
    equations.add(events_at([7], [1]), np.array([[15.5, 20]], np.float32))
    assert not equations.cells.any()


def test_the_thresholds_are_balanced_by_the_counts():
    equations = GradientEquations(CAMERA, SIZE)
    assert equations.threshold_ratio == 1
    equations.add(events_at([1, 2, 3, 4, 5], [1, 0, 0, 1, 0]), np.full((5, 2), 15, np.float32))
    assert equations.threshold_ratio == 1.5


def test_chosen_pixels_are_an_even_share_of_the_usable_ones(make_events, assert_same_events):
    usable = np.ones((180, 240), bool)
    usable[3, 5] = False
    events = make_events(20_000)
    choice = PixelChoice(usable, 0.25)
    assert not choice.chosen[3, 5]
    blocks = choice.chosen.reshape(9, 20, 12, 20).sum(axis=(1, 3))
    assert blocks.min() > 90
    assert blocks.max() < 110
    assert_same_events(choice(events), events[choice.chosen[events.y, events.x]])
    assert PixelChoice(np.ones((180, 240), bool), 2.0)(events) is events


@pytest.mark.parametrize("chunk", [700, 4000, 20_000])
def test_a_sample_keeps_all_events_of_fewer_pixels(make_events, assert_same_events, chunk):
    """Which they are does not depend on how the events are cut."""
    events, size = make_events(20_000), SensorSize(240, 180)
    pieces = [events[k : k + chunk] for k in range(0, len(events), chunk)]
    sample = EventSample(size, 3000)
    passed = list(sample.watch(pieces))
    assert all(one is other for one, other in zip(passed, pieces, strict=True))
    share = 1.0
    while (chosen := PixelChoice(np.ones((180, 240), bool), share).chosen[events.y, events.x]).sum() > 3000:
        share *= 0.7
    assert_same_events(Events.concatenate(sample.chunks()), events[chosen])
    assert 2000 < len(sample) <= 3000
    roomy = EventSample(size, 30_000)
    list(roomy.watch(pieces))
    assert_same_events(Events.concatenate(roomy.chunks()), events)
