"""What the paper proves of the synthesized derivative: Definition 3, and agreement with long-range differences."""

import numpy as np
import pytest

from cmaxslam_fbp.fbp import Binning

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
CENTRE = 8  # the bin whose value is followed while a point passes
# (kernel, reconstruction): the highest degree for which the line integral holds.
PRECISION = {
    ("rect", "linear"): 2,
    ("linear", "linear"): 2,
    ("gauss", "linear"): 2,
    ("rect", "cubic"): 4,
    ("linear", "cubic"): 4,
    ("gauss", "cubic"): 4,
}


def line_integrals(kernel, reconstruction, degree, backend="reference"):
    """Both sides of `int phi hdot dt = - int phi' h dt`, `phi = (t - 7)^degree`, on a path over the support."""
    edges = np.arange(
        CENTRE - 5, CENTRE + 5.1, 0.5
    )  # all break points are among these: Gauss-Legendre is exact between
    t = ((edges[:-1] + edges[1:])[:, None] / 2 + 0.25 * NODES).ravel()
    dt = np.tile(0.25 * WEIGHTS, len(edges) - 1)
    binning = Binning((2 * CENTRE + 1,), kernel, reconstruction, backend=backend)
    one_bin = np.zeros(2 * CENTRE + 1)
    one_bin[CENTRE] = 1
    slope, value = binning.vjp(t[:, None], None, one_bin, with_weights=True)
    left = np.sum(dt * (t - 7) ** degree * slope[:, 0])
    return left, -np.sum(dt * degree * (t - 7) ** max(degree - 1, 0) * value)


@pytest.mark.parametrize("pair", PRECISION, ids=str)
def test_line_integral_holds_up_to_the_degree_of_precision_and_not_beyond(pair):
    for degree in range(PRECISION[pair] + 1):
        left, right = line_integrals(*pair, degree)
        assert left == pytest.approx(right, abs=1e-10)
        assert degree == 0 or abs(right) > 0.5
    left, right = line_integrals(*pair, PRECISION[pair] + 1)
    assert abs(left - right) > 0.05


def test_line_integral_holds_for_the_compiled_derivative():
    left, right = line_integrals("rect", "linear", 1, "numba")
    assert left == pytest.approx(right, abs=1e-12)


def test_lanczos_is_biased_by_its_mass():
    left, right = line_integrals("rect", "lanczos", 1)
    assert left / right == pytest.approx(1.00979, abs=1e-5)


def test_ste_is_unbiased_and_the_sigmoid_is_off_by_its_slope():
    """Both surrogates have the mass of a box, but the printed sigmoid lacks the factor of the chain rule."""
    t = np.linspace(3, 13, 20_001)[:, None]
    one_bin = np.eye(17)[CENTRE]
    for surrogate, mass in (("ste", 1.0), ("sigmoid", 0.1)):
        slope = Binning((17,), surrogate=surrogate, backend="reference").vjp(t, None, one_bin)[0][:, 0]
        assert -np.trapezoid(slope * t[:, 0], t[:, 0]) == pytest.approx(mass, abs=1e-3)


@pytest.fixture(scope="module")
def moving_scene():
    """Events of random edges that translate: (t, y, x), blurred unless they are warped by the true velocity."""
    rng = np.random.default_rng(0)
    count = 20_000
    time = rng.uniform(-0.5, 0.5, count)
    sources = rng.uniform((15, 20), (60, 80), (400, 2))[rng.integers(0, 400, count)]
    velocity = np.array([6.0, -9.0])
    return time, sources + time[:, None] * velocity + rng.normal(0, 1.0, (count, 2)), velocity


def variance(frame):
    return frame.var()


def variance_gradient(binning, points, along):
    """Return d(variance)/d(velocity): the score's cotangent pulled back through the binning to the warp."""
    frame = binning(points)
    frame_bar = 2 * (frame - frame.mean()) / frame.size
    return binning.vjp(points, None, frame_bar)[0].T @ along


def disagreement(kernel, reconstruction, step, moving_scene):
    """Return the median distance of central differences from the gradient, as a part of the gradient's mean length."""
    time, events, truth = moving_scene
    binning = Binning((76, 101), kernel, reconstruction)

    def score(velocity):
        return variance(binning(events - time[:, None] * velocity))

    distances, lengths = [], []
    for velocity in truth + np.random.default_rng(1).uniform(-4, 4, (12, 2)):
        gradient = variance_gradient(binning, events - time[:, None] * velocity, -time)
        difference = [(score(velocity + step * e) - score(velocity - step * e)) / (2 * step) for e in np.eye(2)]
        distances.append(np.linalg.norm(difference - gradient))
        lengths.append(np.linalg.norm(gradient))
    return np.median(distances) / np.mean(lengths)


LONG, SHORT = 2.0, 1e-4  # a step of 2 moves an event by up to one bin; one of 1e-4 moves almost none to another bin


@pytest.mark.parametrize("kernel", ["rect", "gauss"])
def test_long_differences_of_the_score_agree_with_the_gradient_and_short_ones_do_not(kernel, moving_scene):
    assert disagreement(kernel, "linear", LONG, moving_scene) < 0.1
    assert disagreement(kernel, "linear", SHORT, moving_scene) > 1


def test_the_synthesized_gradient_follows_long_differences_better_than_the_plain_one(moving_scene):
    for kernel, plain_at_least in (("linear", 0.1), ("gauss", 0.4)):
        assert disagreement(kernel, None, LONG, moving_scene) > plain_at_least
        assert disagreement(kernel, "linear", LONG, moving_scene) < 0.075


def test_gradient_ascent_on_the_rect_frame_finds_the_motion(moving_scene):
    time, events, truth = moving_scene
    binning = Binning((76, 101))
    velocity = truth + np.array([2.5, -2.0])
    for step in np.geomspace(1.0, 0.02, 60):
        gradient = variance_gradient(binning, events - time[:, None] * velocity, -time)
        velocity = velocity + step * gradient / np.linalg.norm(gradient)
    np.testing.assert_allclose(velocity, truth, atol=0.15)
