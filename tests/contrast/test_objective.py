import tracemalloc

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from cmaxslam_fbp.choices import SCORES
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.contrast.objective import ContrastObjective
from cmaxslam_fbp.contrast.scores import Variance, hessian_product
from cmaxslam_fbp.errors import ConfigError
from cmaxslam_fbp.fbp import Binning

SHAPE = (24, 30)
PAIRS = [
    ("rect", "linear"),
    ("rect", "cubic"),
    ("linear", "linear"),
    ("gauss", "linear"),
    ("linear", None),
    ("gauss", None),
]


class Shear:
    """A warp that is quadratic in two parameters: `x(theta) = x + theta_0 u + theta_1 v + theta_0 theta_1 s`."""

    parameter_count = 2

    def __init__(self, count, seed=0, scale=0.4):
        random = np.random.default_rng(seed)
        centres = random.uniform([3, 3], np.array(SHAPE) - 4, (12, 2))
        self.x = (centres[random.integers(0, 12, count)] + random.normal(0, 0.7, (count, 2))).astype(np.float32)
        self.u, self.v, self.s = (random.normal(0, scale, (count, 2)).astype(np.float32) for _ in range(3))

    def __len__(self):
        return len(self.x)

    def jacobian(self, theta):
        return np.stack([self.u + theta[1] * self.s, self.v + theta[0] * self.s], axis=-1)

    def points(self, theta, out):
        a, b = np.asarray(theta, np.float32)
        out[...] = self.x + a * self.u + b * self.v + a * b * self.s

    def pullback(self, theta, points_bar):
        return np.einsum("nd,ndp->p", points_bar.astype(float), self.jacobian(theta))

    def tangent(self, theta, axis, out):
        out[...] = self.jacobian(theta)[..., axis]

    def pullback_curvature(self, theta, points_bar, curvatures):
        matrices = curvatures.astype(float)[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
        jacobian = self.jacobian(theta)
        turned = float((points_bar * self.s).sum())
        return np.einsum("ndp,nde,neq->pq", jacobian, matrices, jacobian) + turned * np.array([[0, 1], [1, 0]])

    def pullback_outer(self, theta, points_bar):
        parts = np.einsum("nd,ndp->np", points_bar.astype(float), self.jacobian(theta))
        return parts.T @ parts

    def arrays(self):
        return [np.ascontiguousarray(part[:, d]) for part in (self.x, self.u, self.v, self.s) for d in (0, 1)]

    def tensor_points(self, theta, x0, x1, u0, u1, v0, v1, s0, s1):
        a, b = theta
        columns = x0 + a * u0 + b * v0 + a * b * s0, x1 + a * u1 + b * v1 + a * b * s1
        return pytest.importorskip("torch").stack(columns, dim=-1)


THETA = np.array([0.31, -0.22])


@pytest.fixture(params=[None, "signed"], ids=["counts", "signed"])
def weights(request):
    if request.param is None:
        return None
    return np.random.default_rng(5).choice(np.array([-1, 1], np.float32), 1500)


class Oracle:
    """The same objective from the reference binning, in float64."""

    def __init__(self, warp, weights, kernel, reconstruction, score, sigma, surrogate=None):
        self.warp, self.weights = warp, weights
        self.binning = Binning(SHAPE, kernel, reconstruction, surrogate=surrogate, backend="reference")
        self.score = SCORES[score]()
        self.blur = GaussianBlur(SHAPE, sigma, np.float64)

    def image(self, theta):
        points = np.empty((len(self.warp), 2))
        self.warp.points(theta, points)
        return points, self.blur.forward(np.ascontiguousarray(self.binning(points, self.weights)))

    def gradient(self, theta):
        points, image = self.image(theta)
        adjoint = self.blur.adjoint(self.score.gradient(image))
        points_bar = self.binning.vjp(points, self.weights, adjoint, with_weights=False)[0]
        return self.score.value(image), self.warp.pullback(theta, points_bar), points_bar

    def hessian(self, theta):
        """Differentiate the synthesized gradient along each parameter, the image's derivative synthesized too."""
        points, image = self.image(theta)
        adjoint = self.blur.adjoint(self.score.gradient(image))
        points_bar = self.binning.vjp(points, self.weights, adjoint, with_weights=False)[0]
        jacobian = self.warp.jacobian(theta).astype(float)
        rows = []
        for axis in range(2):
            derivative = self.blur.forward(
                np.ascontiguousarray(self.binning.jvp(points, self.weights, jacobian[..., axis]))
            )
            adjoint_dot = self.blur.adjoint(hessian_product(self.score, image, derivative))
            bar_dot = self.binning.vjp(points, self.weights, adjoint_dot, with_weights=False)[0]
            bar_dot = bar_dot + self.binning.hvp(points, self.weights, adjoint, jacobian[..., axis])
            turned = np.zeros(2)
            turned[1 - axis] = (points_bar * self.warp.s).sum()
            rows.append(self.warp.pullback(theta, bar_dot) + turned)
        return np.array(rows)


def make(kernel, reconstruction, score, sigma, weights, surrogate=None):
    warp = Shear(1500)
    objective = ContrastObjective(
        SHAPE,
        SCORES[score](),
        kernel=kernel,
        reconstruction=reconstruction,
        surrogate=surrogate,
        blur_sigma_px=sigma,
    )
    objective.use(warp, weights)
    return objective, Oracle(warp, weights, kernel, reconstruction, score, sigma, surrogate)


@pytest.mark.parametrize("sigma", [0.0, 1.0])
@pytest.mark.parametrize("score", SCORES.names())
@pytest.mark.parametrize(("kernel", "reconstruction"), PAIRS)
def test_value_gradient_and_hessian_are_those_of_the_reference(kernel, reconstruction, score, sigma, weights):
    if score == "negative_binomial" and weights is not None:
        pytest.skip("a likelihood of counts has no signed weights")
    objective, oracle = make(kernel, reconstruction, score, sigma, weights)
    value, gradient = objective.value_and_gradient(THETA)
    expected_value, expected_gradient, points_bar = oracle.gradient(THETA)
    np.testing.assert_allclose(value, expected_value, rtol=2e-6)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-5 * np.abs(expected_gradient).max())
    scatter = oracle.warp.pullback_outer(THETA, points_bar)
    np.testing.assert_allclose(objective.gradient_scatter(THETA), scatter, rtol=1e-4, atol=1e-5 * scatter.max())
    if oracle.binning.highest_derivative == 2:
        expected = oracle.hessian(THETA)
        np.testing.assert_allclose(objective.hessian(THETA), expected, atol=2e-5 * np.abs(expected).max())


def test_surrogates_replace_the_gradient_and_keep_the_value():
    for surrogate in ("ste", "sigmoid"):
        objective, oracle = make("rect", None, "variance", 0.0, None, surrogate)
        value, gradient = objective.value_and_gradient(THETA)
        expected_value, expected_gradient, _ = oracle.gradient(THETA)
        np.testing.assert_allclose(value, expected_value, rtol=2e-6)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4)


@pytest.mark.parametrize("surrogate", [None, "ste"])
def test_without_second_derivatives_the_hessian_is_that_of_the_linear_reconstruction(surrogate):
    kernel = "rect" if surrogate else "linear"
    plain, _ = make(kernel, None, "variance", 0.0, None, surrogate)
    smooth, _ = make(kernel, "linear", "variance", 0.0, None)
    np.testing.assert_array_equal(plain.hessian(THETA), smooth.hessian(THETA))
    assert plain.hessians == 1


@pytest.mark.parametrize("score", SCORES.names())
def test_the_gradient_of_rect_binning_approximates_long_range_differences(score):
    """Differences over a bin or so at many places. For the likelihood the paper, too, finds a larger bias."""
    objective, _ = make("rect", "linear", score, 0.0, None)
    random = np.random.default_rng(1)
    synthesized, differences = [], []
    for theta in random.uniform(-2, 2, (40, 2)):
        synthesized.append(objective.value_and_gradient(theta)[1])
        steps = 1.0 * np.eye(2)
        differences.append([(objective.value(theta + s) - objective.value(theta - s)) / 2 for s in steps])
    synthesized, differences = np.ravel(synthesized), np.ravel(differences)
    assert np.corrcoef(synthesized, differences)[0, 1] > 0.9
    slope = (synthesized @ differences) / (differences @ differences)
    assert 0.8 < slope < (3.0 if score == "negative_binomial" else 1.5)


def test_the_hessian_approximates_long_range_differences_of_the_gradient():
    objective, _ = make("rect", "linear", "variance", 0.0, None)
    hessian = objective.hessian(np.zeros(2))
    h = 0.2
    rows = [
        (objective.value_and_gradient(h * e)[1] - objective.value_and_gradient(-h * e)[1]) / (2 * h) for e in np.eye(2)
    ]
    np.testing.assert_allclose(hessian, rows, atol=0.25 * np.abs(hessian).max())
    assert (np.linalg.eigvalsh(hessian) < 0).all()


def test_the_plain_gradient_of_smooth_binning_is_that_of_small_differences():
    objective, _ = make("linear", None, "variance", 1.0, None)
    gradient = objective.value_and_gradient(THETA)[1]
    h = 2e-3
    expected = [(objective.value(THETA + h * e) - objective.value(THETA - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(gradient, expected, atol=0.02 * np.abs(expected).max())


def test_the_image_is_the_blurred_histogram():
    objective, oracle = make("rect", "linear", "variance", 1.0, None)
    objective.value(THETA)
    points, _ = oracle.image(THETA)
    counts, *_ = np.histogram2d(*points.T, bins=SHAPE, range=[(-0.5, SHAPE[0] - 0.5), (-0.5, SHAPE[1] - 0.5)])
    np.testing.assert_allclose(objective.image, gaussian_filter(counts, 1.0, mode="mirror", truncate=4), atol=2e-3)


def test_events_can_be_exchanged_and_results_do_not_depend_on_what_was_before():
    objective, _ = make("rect", "linear", "variance", 0.0, None)
    first = objective.value_and_gradient(THETA), objective.hessian(THETA)
    objective.use(Shear(3000, seed=9))
    second = objective.value_and_gradient(THETA), objective.hessian(THETA)
    objective.use(Shear(1500))
    again = objective.value_and_gradient(THETA), objective.hessian(THETA)
    assert first[0][0] == again[0][0] != second[0][0]
    np.testing.assert_array_equal(first[0][1], again[0][1])
    np.testing.assert_array_equal(first[1], again[1])
    assert (objective.evaluations, objective.hessians) == (3, 3)


def test_an_evaluation_allocates_nothing_of_the_size_of_events_or_images():
    objective = ContrastObjective((150, 200), Variance())

    class Still(Shear):  # its own arrays are of no interest here
        def points(self, theta, out):
            np.copyto(out, self.x)

        def pullback(self, theta, points_bar):
            return np.zeros(2)

    objective.use(Still(20_000))
    objective.value_and_gradient(THETA)
    tracemalloc.start()
    objective.value_and_gradient(2 * THETA)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000


def test_rect_without_reconstruction_has_values_and_no_gradient():
    objective = ContrastObjective(SHAPE, Variance(), kernel="rect", reconstruction=None)
    objective.use(Shear(1500))
    same, _ = make("rect", "linear", "variance", 0.0, None)
    assert objective.value(THETA) == same.value(THETA)
    with pytest.raises(ValueError, match="FiniteDifferences"):
        objective.value_and_gradient(THETA)


def test_an_objective_without_events_says_so():
    with pytest.raises(RuntimeError, match="use"):
        ContrastObjective(SHAPE, Variance()).value(THETA)


@pytest.fixture
def on_tensors():
    """The objective of the compiled one's settings, on tensors."""
    pytest.importorskip("torch")
    from cmaxslam_fbp.contrast.torch_objective import TorchObjective

    def make_tensors(kernel, reconstruction, score, sigma, weights, surrogate=None, device="cpu"):
        settings = {"kernel": kernel, "reconstruction": reconstruction, "surrogate": surrogate, "blur_sigma_px": sigma}
        objective = TorchObjective(SHAPE, SCORES[score](), device=device, **settings)
        objective.use(Shear(1500), weights)
        return objective

    return make_tensors


TENSOR_CASES = [
    ("rect", "linear", "variance", 0.0),
    ("rect", "linear", "mean_square", 1.0),
    ("rect", "cubic", "negative_binomial", 0.0),
    ("linear", "linear", "variance", 1.0),
    ("linear", None, "variance", 0.0),
    ("gauss", "cubic", "negative_binomial", 1.5),
]


@pytest.mark.parametrize("case", TENSOR_CASES, ids=str)
def test_tensors_give_the_same_values_gradients_and_hessians(case, weights, on_tensors):
    if case[2] == "negative_binomial" and weights is not None:
        pytest.skip("a likelihood of counts has no signed weights")
    (compiled, _), tensors = make(*case, weights), on_tensors(*case, weights)
    value, gradient = compiled.value_and_gradient(THETA)
    other, other_gradient = tensors.value_and_gradient(THETA)
    assert tensors.value(THETA) == other == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(other_gradient, gradient, atol=1e-5 * np.abs(gradient).max())
    hessian, scatter = compiled.hessian(THETA), compiled.gradient_scatter(THETA)
    np.testing.assert_allclose(tensors.hessian(THETA), hessian, atol=3e-5 * np.abs(hessian).max())
    np.testing.assert_allclose(tensors.gradient_scatter(THETA), scatter, atol=1e-5 * np.abs(scatter).max())
    np.testing.assert_allclose(tensors.image, compiled.image, atol=1e-5 * np.abs(compiled.image).max())
    assert (tensors.evaluations, tensors.hessians) == (2, 1)


def test_a_score_from_outside_works_with_arrays_and_tensors(on_tensors):
    """One class: the sum of cubes."""

    class Cubes:
        def value(self, image):
            return float((image.astype(float) ** 3).sum())

        def gradient(self, image, out=None):
            return np.multiply(3 * image, image, out=out)

        def curvature(self, image, out=None):
            return np.multiply(6, image, out=out)

        def mean_curvature(self, image):
            return 0.0

        def of_tensor(self, image):
            return (image.double() ** 3).sum()

    SCORES.add("cubes", Cubes)
    try:
        (compiled, oracle), tensors = (f("rect", "linear", "cubes", 1.0, None) for f in (make, on_tensors))
    finally:
        SCORES.remove("cubes")
    value, gradient, _ = oracle.gradient(THETA)
    for objective in (compiled, tensors):
        found, slope = objective.value_and_gradient(THETA)
        assert found == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(slope, gradient, atol=1e-5 * np.abs(gradient).max())
        np.testing.assert_allclose(
            objective.hessian(THETA), oracle.hessian(THETA), atol=3e-5 * np.abs(compiled.hessian(THETA)).max()
        )


@pytest.mark.parametrize("case", [*TENSOR_CASES, ("rect", None, "variance", 0.0, None, "ste")], ids=str)
def test_results_leave_the_device_in_one_place(case, on_tensors, monkeypatch):
    """On the meta device any other copy to the host raises, and so does a mixture of devices."""
    from cmaxslam_fbp.contrast import torch_objective

    kinds = []

    def watch(tensor):
        kinds.append(tensor.device.type)
        return np.zeros(tensor.shape)

    monkeypatch.setattr(torch_objective, "to_host", watch)
    weights = None if case[2] == "negative_binomial" else np.ones(1500, np.float32)
    objective = on_tensors(*case[:4], weights, *case[5:], device="meta")
    objective.make_image(THETA)
    assert not kinds
    for count, call in enumerate(
        (objective.value, objective.value_and_gradient, objective.hessian, objective.gradient_scatter), start=1
    ):
        call(THETA)
        assert kinds == ["meta"] * count
    assert objective.image.shape == SHAPE


def test_a_device_that_is_not_there_is_one_line(on_tensors):
    with pytest.raises(ConfigError, match=r"device 'warp-drive' cannot be used"):
        on_tensors("rect", "linear", "variance", 0.0, None, device="warp-drive")
