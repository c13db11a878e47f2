"""Scores against NumPy and SciPy, and their derivatives against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from cmaxslam_fbp import choices
from cmaxslam_fbp.contrast import score_kernels
from cmaxslam_fbp.contrast.scores import MeanSquare, NegativeBinomial, Variance, hessian_product

SCORES = {
    "variance": Variance(),
    "mean_square": MeanSquare(),
    "negative_binomial": NegativeBinomial(),
    "negative_binomial_steep": NegativeBinomial(r=2.5, p=0.3),
    "variance_of_a_part": Variance(pixels=100),
    "mean_square_of_a_part": MeanSquare(pixels=100),
    "negative_binomial_of_a_part": NegativeBinomial(pixels=100),
}


@pytest.fixture(params=list(SCORES))
def score(request):
    return SCORES[request.param]


def counts(seed=0, shape=(6, 9)):
    return np.random.default_rng(seed).poisson(1.5, shape).astype(float)


def smooth(seed=0, shape=(6, 9)):
    return np.random.default_rng(seed).gamma(0.7, 2.0, shape)


@pytest.mark.parametrize("image", [counts(), smooth()])
def test_values_are_those_of_numpy_and_scipy(image):
    assert Variance().value(image) == pytest.approx(image.var(), rel=1e-14)
    assert MeanSquare().value(image) == pytest.approx((image**2).mean(), rel=1e-14)


@pytest.mark.parametrize(("r", "p"), [(0.3, 0.8), (0.1, 0.386), (2.5, 0.3)])
def test_the_likelihood_is_that_of_scipy_with_p_for_the_counts(r, p):
    image = counts()
    expected = stats.nbinom(r, 1 - p).logpmf(image).sum()
    assert NegativeBinomial(r, p).value(image) == pytest.approx(expected, rel=1e-13)


def test_the_likelihood_of_single_counts_by_hand():
    """`NB(0) = (1 - p)^r`, `NB(1) = r p (1 - p)^r`, `NB(2) = r (r + 1) / 2 p^2 (1 - p)^r`."""
    score = NegativeBinomial(0.3, 0.8)
    zero = 0.2**0.3
    for count, probability in [(0, zero), (1, 0.3 * 0.8 * zero), (2, 0.3 * 1.3 / 2 * 0.64 * zero)]:
        assert score.value(np.array([[float(count)]])) == pytest.approx(np.log(probability), rel=1e-13)


def test_the_likelihood_of_non_integer_images_has_the_gamma_function():
    h, r, p = smooth(), 0.3, 0.8
    terms = special.gammaln(h + r) - special.gammaln(h + 1) - special.gammaln(r) + r * np.log(1 - p) + h * np.log(p)
    assert NegativeBinomial(r, p).value(h) == pytest.approx(terms.sum(), rel=1e-13)


@pytest.mark.parametrize("r", [0.05, 0.3, 1.0, 2.5])
def test_the_gamma_functions_are_those_of_scipy(r):
    h = np.concatenate([[0.0, 1e-12, 1e-3], np.linspace(0.01, 12, 200), [30.5, 1e3 + 0.25, 1e5 + 0.5]])
    # SciPy's difference of two logarithms of Gamma cancels: its error grows with the logarithms themselves.
    cancelled = 1e-15 * np.abs(special.gammaln(h + 1))
    cases = [
        (score_kernels.log_gamma_ratio, special.gammaln(h + r) - special.gammaln(h + 1), cancelled),
        (score_kernels.log_gamma_ratio_slope, special.digamma(h + r) - special.digamma(h + 1), 0),
        (score_kernels.log_gamma_ratio_curvature, special.polygamma(1, h + r) - special.polygamma(1, h + 1), 0),
    ]
    for function, expected, uncertain in cases:
        found = np.array([function(value, r) for value in h])
        assert (np.abs(found - expected) <= 5e-14 + 1e-15 * np.abs(expected) + uncertain).all()


def test_large_counts_lose_no_digits_of_the_slope():
    """`psi(h + r) - psi(h + 1) = (r - 1)/h + O(1/h^2)`: a difference of two logarithms would lose ten digits."""
    h, r = 1e7, 0.3
    second_order = (r - 1) / h - (r * (r - 1) / 2) / h**2
    assert score_kernels.log_gamma_ratio_slope(h, r) == pytest.approx(second_order, rel=1e-12)
    assert score_kernels.log_gamma_ratio_curvature(h, r) == pytest.approx((1 - r) / h**2, rel=1e-6)


@pytest.mark.parametrize("make", [counts, smooth])
def test_the_gradient_is_the_derivative_of_the_value(score, make):
    image = make() + 0.5  # away from zero, so that differences to both sides exist
    step = 1e-5
    numeric = np.empty_like(image)
    for place in np.ndindex(image.shape):
        up, down = image.copy(), image.copy()
        up[place] += step
        down[place] -= step
        numeric[place] = (score.value(up) - score.value(down)) / (2 * step)
    np.testing.assert_allclose(score.gradient(image), numeric, atol=2e-9)


def test_the_hessian_is_the_derivative_of_the_gradient(score):
    image = smooth() + 0.5
    step = 1e-5
    hessian = np.diag(score.curvature(image).ravel()) + score.mean_curvature(image)
    numeric = np.empty_like(hessian)
    for row, place in enumerate(np.ndindex(image.shape)):
        up, down = image.copy(), image.copy()
        up[place] += step
        down[place] -= step
        numeric[row] = (score.gradient(up) - score.gradient(down)).ravel() / (2 * step)
    np.testing.assert_allclose(hessian, numeric, atol=2e-9)
    direction = np.random.default_rng(1).normal(size=image.shape)
    product = hessian_product(score, image, direction)
    np.testing.assert_allclose(product.ravel(), hessian @ direction.ravel(), atol=1e-13)


def test_counts_are_looked_up_as_they_are_computed():
    """Counts within the table, beyond it, and next to an integer give one smooth curve."""
    score = NegativeBinomial()
    for image in (np.array([[0.0, 1, 7, 1023, 1024, 5000]]), np.array([[3.0, 3 + 1e-13]])):
        h = image.ravel()
        slopes = special.digamma(h + 0.3) - special.digamma(h + 1) + np.log(0.8)
        curvatures = special.polygamma(1, h + 0.3) - special.polygamma(1, h + 1)
        np.testing.assert_allclose(score.gradient(image).ravel(), slopes, rtol=1e-11)
        np.testing.assert_allclose(score.curvature(image).ravel(), curvatures, rtol=1e-8)


def test_the_part_with_all_events_scores_as_the_whole(score):
    """With `pixels` of the whole, the zeros around the part need not be given."""
    whole = np.zeros((10, 10))
    whole[2:8, 1:10] = counts()
    part = np.ascontiguousarray(whole[2:8, 1:10])
    of_part = type(score)(**{**vars(score), "pixels": 100})
    of_whole = type(score)(**{**vars(score), "pixels": None})
    assert of_part.value(part) == pytest.approx(of_whole.value(whole), rel=1e-13)
    np.testing.assert_allclose(of_part.gradient(part), of_whole.gradient(whole)[2:8, 1:10], atol=1e-15)
    assert of_part.mean_curvature(part) == of_whole.mean_curvature(whole)


@pytest.mark.parametrize("score", [Variance(), MeanSquare(), NegativeBinomial(0.3, 0.8), NegativeBinomial(0.3, 0.2)])
def test_a_sharper_image_scores_higher(score):
    """The same number of events in fewer pixels; for the likelihood in either reading of p."""
    blurred, sharp = np.full((10, 10), 2.0), np.zeros((10, 10))
    sharp[:, ::5] = 10.0
    between = 0.5 * (blurred + sharp)
    assert score.value(blurred) < score.value(between) < score.value(sharp)
    assert (score.gradient(between) * (sharp - blurred)).sum() > 0


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_moving_one_event_from_a_weak_to_a_strong_pixel_never_lowers_a_score(seed):
    random = np.random.default_rng(seed)
    image = random.poisson(1.0, (4, 5)).astype(float)
    weak, strong = sorted(random.choice(np.flatnonzero(image), 2, replace=False), key=lambda i: image.flat[i])
    moved = image.copy()
    moved.flat[weak] -= 1
    moved.flat[strong] += 1
    for score in (Variance(), MeanSquare(), NegativeBinomial()):
        assert score.value(moved) > score.value(image)


def test_single_precision_is_kept_and_sums_are_double(score):
    image = smooth(shape=(300, 400)).astype(np.float32)
    double = image.astype(np.float64)
    assert score.value(image) == pytest.approx(score.value(double), rel=1e-12)
    for method in (score.gradient, score.curvature):
        found = method(image)
        assert found.dtype == np.float32
        expected = method(double)
        np.testing.assert_allclose(found, expected, atol=3e-7 * np.abs(expected).max())
    direction = np.random.default_rng(2).normal(size=image.shape).astype(np.float32)
    assert hessian_product(score, image, direction).dtype == np.float32


def test_results_are_written_into_out(score):
    image, out = smooth(), np.full((6, 9), np.nan)
    for method in (score.gradient, score.curvature):
        assert method(image, out) is out
        assert (out == method(image)).all()
    direction = np.ones_like(image)
    assert hessian_product(score, image, direction, out) is out
    assert (out == hessian_product(score, image, direction)).all()


def test_a_part_that_is_no_contiguous_array_is_refused(score):
    with pytest.raises(ValueError, match="C-contiguous"):
        score.value(smooth()[:, ::2])
    with pytest.raises(ValueError, match="C-contiguous"):
        score.gradient(smooth(), np.empty((9, 6)).T)


@pytest.mark.parametrize("make", [counts, smooth])
def test_a_tensor_has_the_same_score_and_derivatives(score, make):
    torch = pytest.importorskip("torch")
    image = make()
    tensor = torch.from_numpy(image).requires_grad_()
    value = score.of_tensor(tensor)
    assert float(value.detach()) == pytest.approx(score.value(image), rel=1e-13)
    (gradient,) = torch.autograd.grad(value, tensor, create_graph=True)
    np.testing.assert_allclose(gradient.detach(), score.gradient(image), rtol=1e-12, atol=1e-14)
    direction = np.random.default_rng(3).normal(size=image.shape)
    (product,) = torch.autograd.grad((gradient * torch.from_numpy(direction)).sum(), tensor)
    # Torch's own trigamma function has nine digits.
    np.testing.assert_allclose(product, hessian_product(score, image, direction), rtol=2e-9, atol=1e-14)


@pytest.mark.parametrize("score", [Variance(), Variance(pixels=100_000), MeanSquare()], ids=str)
def test_the_same_counts_in_other_places_score_the_same_to_the_last_bit(score):
    """A solver that asks whether the score has grown must not hear of the order of a sum; nor on another device."""
    image = np.random.default_rng(0).poisson(0.1, (150, 200)).astype(np.float32)
    values = {score.value(np.random.default_rng(seed).permuted(image.ravel())) for seed in range(20)}
    assert len(values) == 1
    torch = pytest.importorskip("torch")
    assert float(score.of_tensor(torch.from_numpy(image))) in values


def test_a_variance_far_below_the_mean_keeps_its_digits():
    image = 1000.3 + 1e-3 * np.random.default_rng(0).normal(size=(50, 60))
    assert Variance().value(image) == pytest.approx(image.var(), rel=1e-7)


def test_a_single_precision_tensor_is_summed_in_double(score):
    torch = pytest.importorskip("torch")
    image = smooth(shape=(300, 400)).astype(np.float32)
    value = score.of_tensor(torch.from_numpy(image))
    assert value.dtype == torch.float64
    assert float(value) == pytest.approx(score.value(image), rel=1e-12)


def test_the_score_of_a_tensor_stays_on_its_device(score):
    """On the meta device a copy to the host raises."""
    torch = pytest.importorskip("torch")
    image = torch.zeros((6, 9), device="meta", requires_grad=True)
    (gradient,) = torch.autograd.grad(score.of_tensor(image), image, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), image, allow_unused=True)
    assert second.device.type == "meta"


def test_scores_have_names():
    assert choices.SCORES["variance"]() == Variance()
    assert choices.SCORES["mean_square"](pixels=7) == MeanSquare(pixels=7)
    assert choices.SCORES["negative_binomial"]() == NegativeBinomial(r=0.3, p=0.8)
    with pytest.raises(ValueError, match="no score 'contrast'; choose one of variance, mean_square"):
        choices.SCORES["contrast"]


@pytest.mark.parametrize(("r", "p"), [(0.0, 0.8), (-1.0, 0.8), (0.3, 0.0), (0.3, 1.0), (float("nan"), 0.8)])
def test_parameters_that_are_no_distribution_are_refused(r, p):
    with pytest.raises(ValueError, match="needs r > 0"):
        NegativeBinomial(r, p)
