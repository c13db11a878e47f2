"""The blur against SciPy and OpenCV, and its adjoint against the definition."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from cmaxslam_fbp.contrast.blur import GaussianBlur, gaussian_taps

# The names of the same continuations in scipy.ndimage.
SCIPY_MODES = {"reflect": "mirror", "zero": "constant", "wrap": "wrap"}
BOUNDARIES = list(SCIPY_MODES)

shapes = st.tuples(st.integers(1, 14), st.integers(1, 14))


def picture(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def test_taps_are_the_normalised_gaussian():
    taps = gaussian_taps(1.0)
    assert len(taps) == 5
    assert taps[0] + 2 * taps[1:].sum() == pytest.approx(1, abs=1e-15)
    assert taps[2] / taps[0] == pytest.approx(np.exp(-2.0), rel=1e-14)


@pytest.mark.parametrize("sigma_px", [0.5, 0.8, 1.0, 1.5, 2.2])
def test_the_blur_is_opencvs(sigma_px):
    image = picture((40, 53))
    found = GaussianBlur(image.shape, sigma_px, np.float64).forward(image)
    np.testing.assert_allclose(found, cv2.GaussianBlur(image, (0, 0), sigma_px), atol=1e-14)
    single = GaussianBlur(image.shape, sigma_px, np.float32).forward(image.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, cv2.GaussianBlur(image.astype(np.float32), (0, 0), sigma_px), atol=2e-6)


@pytest.mark.parametrize("rows", BOUNDARIES)
@pytest.mark.parametrize("columns", BOUNDARIES)
@pytest.mark.parametrize("shape", [(40, 53), (3, 30), (30, 2), (1, 12), (7, 1)])
def test_the_blur_is_scipys_for_every_continuation(rows, columns, shape):
    """Images smaller than the filter are reflected or wrapped as often as needed."""
    image = picture(shape)
    expected = ndimage.gaussian_filter1d(image, 1.0, axis=0, mode=SCIPY_MODES[rows])
    expected = ndimage.gaussian_filter1d(expected, 1.0, axis=1, mode=SCIPY_MODES[columns])
    found = GaussianBlur(shape, 1.0, np.float64, rows=rows, columns=columns).forward(image)
    np.testing.assert_allclose(found, expected, atol=1e-14)


@settings(deadline=None)
@given(shapes, st.sampled_from([0.0, 0.3, 1.0, 2.0]), st.sampled_from(BOUNDARIES), st.sampled_from(BOUNDARIES))
def test_the_adjoint_satisfies_its_definition(shape, sigma_px, rows, columns):
    """`<B h, g> = <h, B^T g>`."""
    blur = GaussianBlur(shape, sigma_px, np.float64, rows=rows, columns=columns)
    h, g = picture(shape, seed=1), picture(shape, seed=2)
    scale = np.linalg.norm(h) * np.linalg.norm(g)
    assert abs((blur.forward(h) * g).sum() - (h * blur.adjoint(g)).sum()) < 1e-14 * max(scale, 1)


@pytest.mark.parametrize("rows", BOUNDARIES)
@pytest.mark.parametrize("columns", BOUNDARIES)
def test_the_adjoint_is_the_transposed_matrix(rows, columns):
    shape = (6, 7)
    blur = GaussianBlur(shape, 1.0, np.float64, rows=rows, columns=columns)
    units = np.eye(42).reshape(42, *shape)
    matrix = np.array([blur.forward(unit).ravel() for unit in units]).T
    transposed = np.array([blur.adjoint(unit).ravel() for unit in units]).T
    np.testing.assert_allclose(transposed, matrix.T, atol=1e-16)
    if rows == "reflect":
        assert np.abs(matrix - matrix.T).max() > 1e-3  # the adjoint is not the blur itself


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_adjoint_pulls_a_gradient_back_through_the_blur(dtype):
    """The gradient of `sum (B h)^2 / 2` is `B^T B h`."""
    h, direction = picture((12, 15), seed=3), picture((12, 15), seed=4)
    double = GaussianBlur((12, 15), 1.3, np.float64)
    blur = GaussianBlur((12, 15), 1.3, dtype)
    gradient = blur.adjoint(blur.forward(h.astype(dtype)))
    assert gradient.dtype == dtype
    step = 1e-4
    up, down = (0.5 * (double.forward(h + sign * step * direction) ** 2).sum() for sign in (1, -1))
    numeric = (up - down) / (2 * step)
    assert (gradient * direction).sum() == pytest.approx(numeric, rel=1e-9 if dtype == np.float64 else 1e-5)


def test_a_constant_image_stays_constant_except_towards_zeros():
    ones = np.ones((9, 20))
    for boundary in ("reflect", "wrap"):
        blur = GaussianBlur(ones.shape, 1.0, np.float64, rows=boundary, columns=boundary)
        np.testing.assert_allclose(blur.forward(ones), 1, atol=1e-15)
    faded = GaussianBlur(ones.shape, 1.0, np.float64, rows="zero", columns="zero").forward(ones)
    assert faded[4, 10] == pytest.approx(1, abs=1e-15)
    assert faded[0, 10] == pytest.approx(0.5 + gaussian_taps(1.0)[0] / 2, abs=1e-15)


def test_a_single_event_is_spread_symmetrically_about_its_pixel():
    image = np.zeros((15, 17))
    image[6, 9] = 1.0
    found = GaussianBlur(image.shape, 1.0, np.float64).forward(image)
    taps = gaussian_taps(1.0)
    for dy, dx in [(0, 0), (1, 0), (0, -1), (-2, 3), (4, 4)]:
        assert found[6 + dy, 9 + dx] == pytest.approx(taps[abs(dy)] * taps[abs(dx)], rel=1e-13)
    assert found[1, 9] == 0


def test_columns_wrap_around_a_panorama():
    image = np.zeros((9, 30))
    image[4, 0] = 1.0
    found = GaussianBlur(image.shape, 1.0, np.float64, columns="wrap").forward(image)
    assert found[4, 29] == found[4, 1] > 0
    shifted = GaussianBlur(image.shape, 1.0, np.float64, columns="wrap").forward(np.roll(image, 11, axis=1))
    np.testing.assert_allclose(np.roll(found, 11, axis=1), shifted, atol=1e-16)


def test_no_sigma_changes_nothing():
    image = picture((5, 8))
    blur = GaussianBlur(image.shape, 0.0, np.float64)
    assert (blur.forward(image) == image).all()
    assert (blur.adjoint(image) == image).all()


@pytest.mark.parametrize("method", ["forward", "adjoint"])
def test_results_are_written_into_out_which_may_be_the_image(method):
    image = picture((11, 13))
    blur = GaussianBlur(image.shape, 1.0, np.float64)
    expected = getattr(blur, method)(image)
    out = np.full_like(image, np.nan)
    assert getattr(blur, method)(image, out) is out
    assert (out == expected).all()
    again = image.copy()
    getattr(blur, method)(again, again)
    assert (again == expected).all()
    assert (getattr(blur, method)(image) == expected).all()  # what was left in the workspace plays no part


def test_images_that_do_not_fit_are_refused():
    blur = GaussianBlur((5, 8), 1.0, np.float32)
    with pytest.raises(ValueError, match=r"float64 \(5, 8\) does not fit a blur of float32 \(5, 8\)"):
        blur.forward(np.zeros((5, 8)))
    with pytest.raises(ValueError, match=r"\(8, 5\) does not fit"):
        blur.adjoint(np.zeros((8, 5), np.float32))
    with pytest.raises(ValueError, match=r"\(4, 8\) does not fit"):
        blur.forward(np.zeros((5, 8), np.float32), np.zeros((4, 8), np.float32))


def test_blurs_that_do_not_exist_are_refused():
    for shape, sigma_px in [((0, 5), 1.0), ((5, 5), -1.0), ((5, 5), float("nan")), ((5, 5), float("inf"))]:
        with pytest.raises(ValueError, match="cannot blur"):
            GaussianBlur(shape, sigma_px, np.float64)
    with pytest.raises(ValueError, match="choose reflect, zero or wrap"):
        GaussianBlur((5, 5), 1.0, np.float64, rows="mirror")


@pytest.mark.parametrize("rows", BOUNDARIES)
@pytest.mark.parametrize("columns", BOUNDARIES)
@pytest.mark.parametrize("shape", [(12, 15), (3, 30), (30, 2), (1, 12), (7, 1), (1, 1)])
def test_tensors_are_blurred_like_arrays_and_autograd_gives_the_adjoint(rows, columns, shape):
    torch = pytest.importorskip("torch")
    blur = GaussianBlur(shape, 1.3, np.float64, rows=rows, columns=columns)
    h, g = picture(shape, seed=1), picture(shape, seed=2)
    tensor = torch.from_numpy(h).requires_grad_()
    blurred = blur.forward(tensor)
    np.testing.assert_allclose(blurred.detach(), blur.forward(h), atol=1e-15)
    (adjoint,) = torch.autograd.grad(blurred, tensor, torch.from_numpy(g))
    np.testing.assert_allclose(adjoint, blur.adjoint(g), atol=2e-15)
    single = blur.forward(tensor.detach().float())
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, blur.forward(h), atol=1e-6)


def test_tensors_stay_on_their_device_and_must_fit():
    """On the meta device a copy to the host raises."""
    torch = pytest.importorskip("torch")
    blur = GaussianBlur((5, 8), 1.0, np.float32, rows="zero", columns="wrap")
    image = torch.zeros((5, 8), device="meta", requires_grad=True)
    for _ in range(2):  # what is kept for the device is there the second time
        (gradient,) = torch.autograd.grad(blur.forward(image).square().sum(), image)
        assert gradient.device.type == "meta"
    assert blur.forward(torch.ones(5, 8)).device.type == "cpu"
    with pytest.raises(ValueError, match=r"\(8, 5\) does not fit"):
        blur.forward(torch.ones(8, 5))
    unchanged = torch.ones(5, 8)
    assert GaussianBlur((5, 8), 0.0, np.float32).forward(unchanged) is unchanged
