from itertools import product

import numpy as np
import pytest

from cmaxslam_fbp.choices import KERNELS
from cmaxslam_fbp.errors import BinningError, ChoiceError
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.fbp.kappa import derivative_kernel

SHAPES = [(9,), (6, 7), (4, 5, 3), (3, 4, 3, 2)]


def bin_by_definition(points, weights, shape, kernel):
    """`h_j = sum_i w_i prod_d k(x_id - j_d)`, over all bins and all points."""
    frame = np.zeros(shape)
    for x, w in zip(points, weights, strict=True):
        if np.isfinite(x).all():
            factors = [kernel.function(x[d] - np.arange(n), 0) for d, n in enumerate(shape)]
            for j in product(*map(range, shape)):
                frame[j] += w * np.prod([factors[d][j[d]] for d in range(len(shape))])
    return frame


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", ["rect", "linear", "gauss"])
def test_forward_is_the_definition_in_any_dimension(shape, kernel, cloud):
    c = cloud(shape, count=40)
    frame = Binning(shape, kernel, backend="reference")(c.points, c.weights)
    np.testing.assert_allclose(frame, bin_by_definition(c.points, c.weights, shape, KERNELS[kernel]), atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_jvp_is_the_derivative_of_the_frame_binned_with_kappa(shape, cloud):
    c, step = cloud(shape, count=20), 1e-6
    c.points[11:19] += 0.2  # away from break points
    binning = Binning(shape, "linear", "cubic", backend="reference")
    ends = [
        bin_by_definition(c.points + s * step * c.points_dot, c.weights, shape, derivative_kernel("linear", "cubic"))
        for s in (1, -1)
    ]
    expected = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(binning.jvp(c.points, c.weights, c.points_dot), expected, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", ["rect", "linear", "gauss"])
def test_vjp_is_the_transpose_of_jvp(shape, kernel, cloud):
    c = cloud(shape)
    binning = Binning(shape, kernel, backend="reference")
    frame_dot = binning.jvp(c.points, c.weights, c.points_dot, c.weights_dot)
    points_bar, weights_bar = binning.vjp(c.points, c.weights, c.frame_bar)
    there, back = np.sum(frame_dot * c.frame_bar), np.sum(points_bar * c.points_dot) + weights_bar @ c.weights_dot
    assert there == pytest.approx(back, rel=1e-12)
    assert abs(there) > 1e-3


@pytest.mark.parametrize(("shape", "kernel"), [*product(SHAPES[:2], ("rect", "linear", "gauss")), (SHAPES[2], "rect")])
def test_hvp_is_the_derivative_of_vjp(shape, kernel, cloud):
    c, step = cloud(shape, seed=2), 1e-6
    c.points[11:19] += 0.2
    binning = Binning(shape, kernel, "cubic", backend="reference")
    ends = [binning.vjp(c.points + s * step * c.points_dot, c.weights, c.frame_bar)[0] for s in (1, -1)]
    hvp = binning.hvp(c.points, c.weights, c.frame_bar, c.points_dot)
    np.testing.assert_allclose(hvp, (ends[0] - ends[1]) / (2 * step), atol=1e-7)
    assert np.abs(hvp).max() > 0.1


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_curvatures_are_the_derivatives_of_vjp_along_each_axis(shape, cloud):
    c, step = cloud(shape, seed=2), 1e-6
    c.points[11:19] += 0.2
    binning = Binning(shape, "rect", "cubic", backend="reference")
    expected = []
    for d, axis in enumerate(np.eye(len(shape))):
        ends = [binning.vjp(c.points + s * step * axis, c.weights, c.frame_bar)[0] for s in (1, -1)]
        expected.append(((ends[0] - ends[1]) / (2 * step))[:, d:])
    curvatures = binning.curvatures(c.points, c.weights, c.frame_bar)
    np.testing.assert_allclose(curvatures, np.concatenate(expected, axis=1), atol=1e-7)
    assert np.abs(curvatures).max() > 0.1


def test_weights_derivative_is_exact_and_uses_the_binning_kernel(cloud):
    c = cloud((6, 7))
    for kernel in ("rect", "linear", "gauss"):
        binning = Binning((6, 7), kernel, backend="reference")
        frame = binning(c.points, c.weights)
        np.testing.assert_array_equal(
            binning.jvp(c.points, c.weights, None, c.weights_dot), binning(c.points, c.weights_dot)
        )
        # The frame is linear in the weights: <hbar, h> = <wbar, w>.
        weights_bar = binning.vjp(c.points, c.weights, c.frame_bar)[1]
        assert np.sum(frame * c.frame_bar) == pytest.approx(weights_bar @ c.weights, rel=1e-12)


def test_points_that_are_not_finite_are_ignored_and_counted(cloud):
    c = cloud((6, 7))
    binning = Binning((6, 7), backend="reference")
    assert binning.count_ignored(c.points) == c.ignored
    keep = np.isfinite(c.points).all(1)
    np.testing.assert_array_equal(binning(c.points), binning(c.points[keep]))
    points_bar, _ = binning.vjp(c.points, None, c.frame_bar)
    assert not points_bar[~keep].any()
    assert points_bar[keep].any()


def test_nothing_wraps_around_the_grid():
    binning = Binning((4, 4), "linear", backend="reference")
    frame = binning(np.array([[-0.25, 1.0], [3.5, 2.0], [7.0, 7.0], [-1.0, -1.0]]))
    expected = np.zeros((4, 4))
    expected[0, 1], expected[3, 2] = 0.75, 0.5
    np.testing.assert_array_equal(frame, expected)


def test_a_surrogate_replaces_the_reconstruction(cloud):
    c = cloud((6, 7))
    ste = Binning((6, 7), "rect", surrogate="ste", backend="reference")
    plain = Binning((6, 7), "linear", None, backend="reference")
    assert ste.reconstruction is None
    for method, arguments in (("jvp", (c.points_dot,)), ("hvp", (c.frame_bar, c.points_dot))):
        ours, same = (getattr(b, method)(c.points, c.weights, *arguments) for b in (ste, plain))
        np.testing.assert_array_equal(ours, same)
        assert ours.any()


def test_sigmoid_follows_the_printed_slope_in_one_dimension():
    x = np.array([[2.3]])
    slope = Binning((6,), surrogate="sigmoid", backend="reference").jvp(x, None, np.ones((1, 1)))
    e = [1 / (1 + np.exp(-10 * (2.3 - 2 + side))) for side in (0.5, -0.5)]
    assert slope[2] == pytest.approx(e[0] * (1 - e[0]) - e[1] * (1 - e[1]), abs=1e-15)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b(np.zeros((3, 3))), r"\(N, 2\)"),
        (lambda b: b(np.zeros((3, 2)), np.zeros(2)), r"\(3,\)"),
        (lambda b: b.jvp(np.zeros((3, 2)), None, np.zeros((2, 2))), "points_dot"),
        (lambda b: b.vjp(np.zeros((3, 2)), None, np.zeros((4, 5))), r"\(6, 7\)"),
        (lambda b: b(np.zeros((3, 2)), out=np.zeros((7, 6))), "C-contiguous"),
    ],
)
@pytest.mark.parametrize("backend", ["reference", "numba"])
def test_arrays_that_do_not_fit_are_refused(backend, call, words):
    with pytest.raises(BinningError, match=words):
        call(Binning((6, 7), backend=backend))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": ()}, "positive"),
        ({"shape": (3, 0)}, "positive"),
        ({"shape": (3,), "threads": 0}, "threads"),
        ({"shape": (3,), "threads": 2, "backend": "reference"}, "threads"),
        ({"shape": (3, 3, 3, 3)}, "1 to 3 dimensions"),
        ({"shape": (50_000, 50_000)}, "at most"),
        ({"shape": (3,), "reconstruction": None}, "bin edges"),
    ],
)
def test_binnings_that_do_not_exist_are_refused(options, words):
    with pytest.raises(BinningError, match=words):
        Binning(**options)


def test_a_backend_that_does_not_exist_is_refused():
    with pytest.raises(ChoiceError, match=r"no backend of a binning 'jax'; choose one of numba, torch, reference"):
        Binning((3,), backend="jax")
