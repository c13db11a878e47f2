from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf, sici

from cmaxslam_fbp.fbp import kernels

K_RADIUS = {"rect": 0.5, "linear": 1.0, "gauss": 1.5}
L_RADIUS = {"linear": 1.0, "cubic": 2.0, "lanczos": 2.0}
PAIRS = list(product(K_RADIUS, L_RADIUS))


def kappa_of(k, r):
    return getattr(kernels, f"kappa_{k}_{r}")


def integrate(function, low, high, breaks):
    """Integrate piece by piece between the break points, each piece to full precision."""
    if low >= high:
        return 0.0
    ends = sorted({low, high, *(b for b in breaks if low < b < high)})
    return sum(quad(function, a, b, epsabs=1e-14, epsrel=1e-13)[0] for a, b in pairwise(ends))


def convolve(k_name, l_name, x, l_order):
    k, reconstruction = getattr(kernels, f"k_{k_name}"), getattr(kernels, f"l_{l_name}")
    low = max(-L_RADIUS[l_name], x - K_RADIUS[k_name])
    high = min(L_RADIUS[l_name], x + K_RADIUS[k_name])
    return integrate(lambda y: float(reconstruction(y, l_order)) * float(k(x - y)), low, high, (-2, -1, 0, 1, 2, x))


@pytest.mark.parametrize(("k", "r"), PAIRS)
def test_kappa_and_its_slope_are_the_numeric_convolution(k, r):
    radius = K_RADIUS[k] + L_RADIUS[r]
    for x in np.random.default_rng(1).uniform(-radius - 0.3, radius + 0.3, 30):
        assert float(kappa_of(k, r)(x, 0)) == pytest.approx(convolve(k, r, x, 0), abs=1e-10, rel=0)
        assert float(kappa_of(k, r)(x, 1)) == pytest.approx(convolve(k, r, x, 1), abs=1e-10, rel=0)


@pytest.mark.parametrize(("k", "r"), [(k, r) for k, r in PAIRS if r != "linear"])
def test_curvature_is_the_numeric_convolution_where_the_reconstruction_is_smooth(k, r):
    radius = K_RADIUS[k] + L_RADIUS[r]
    for x in np.random.default_rng(2).uniform(-radius - 0.3, radius + 0.3, 30):
        assert float(kappa_of(k, r)(x, 2)) == pytest.approx(convolve(k, r, x, 2), abs=1e-10, rel=0)


@pytest.mark.parametrize(("k", "r"), PAIRS)
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_integrate_to_differences(k, r, order):
    kappa, breaks = kappa_of(k, r), np.arange(-4, 4.1, 0.5)
    for low, high in np.sort(np.random.default_rng(order).uniform(-4, 4, (8, 2)), 1):
        area = integrate(lambda x: float(kappa(x, order)), low, high, breaks)
        assert area == pytest.approx(float(kappa(high, order - 1) - kappa(low, order - 1)), abs=1e-10, rel=0)


@pytest.mark.parametrize(("k", "r"), PAIRS)
def test_kappa_is_even_and_ends_with_its_support(k, r):
    x = np.random.default_rng(3).uniform(0, 5, 200)
    for order in range(3):
        values = kappa_of(k, r)(x, order)
        np.testing.assert_allclose(values, (-1) ** order * kappa_of(k, r)(-x, order), atol=1e-14)
        assert not values[x > K_RADIUS[k] + L_RADIUS[r]].any()
        assert values[x < 0.4].any()


def test_integrals_tell_which_pairs_keep_the_mass_of_the_kernel():
    mass = {"rect": 1.0, "linear": 1.0, "gauss": erf(1.5 / np.sqrt(2))}
    lanczos = (3 * sici(3 * np.pi)[0] - sici(np.pi)[0]) / np.pi  # 1.0098: it does not keep the mass
    gain = {"linear": 1.0, "cubic": 1.0, "lanczos": lanczos}
    for k, r in PAIRS:
        total = integrate(kappa_of(k, r), -3.5, 3.5, np.arange(-3.5, 3.6, 0.5).tolist())
        assert total == pytest.approx(mass[k] * gain[r], abs=1e-10)


def printed_kappa_gauss(x):
    """The last branch of the paper's kappa_gauss, letter by letter."""
    a, c = abs(x), erf(3 / (2 * np.sqrt(2)))
    tail = np.exp(-((a - 1) ** 2) / 2) / np.sqrt(2 * np.pi) - np.exp(-9 / 8) / np.sqrt(2 * np.pi)
    return (a - 1) / 2 * erf((x - 1) / np.sqrt(2)) - c / 2 * (a - 1) + tail


def test_printed_kappa_gauss_is_right_for_positive_arguments_only():
    for x in (1.6, 2.0, 2.4):
        assert float(kernels.kappa_gauss_linear(x)) == pytest.approx(printed_kappa_gauss(x), abs=1e-14)
        assert abs(float(kernels.kappa_gauss_linear(-x)) - printed_kappa_gauss(-x)) > 0.1


def test_every_edge_belongs_to_the_bin_on_its_right():
    assert kernels.k_rect([-0.5, 0.5]).tolist() == [1.0, 0.0]
    assert kernels.k_gauss([-1.5, 1.5])[1] == 0 < kernels.k_gauss([-1.5, 1.5])[0]
    assert kernels.k_linear([-1.0, 0.0, 1.0], 1).tolist() == [1.0, -1.0, 0.0]
    assert kernels.kappa_rect_linear([-1.5, -0.5, 0.5, 1.5], 2).tolist() == [1.0, -2.0, 1.0, 0.0]


def test_surrogates_are_those_of_the_paper():
    x = np.random.default_rng(4).uniform(-2.4, 2.4, 100)
    np.testing.assert_array_equal(kernels.surrogate_ste(x, 1), -np.sign(x) * (np.abs(x) < 1))
    sigma = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    slope = lambda z: sigma(z) * (1 - sigma(z))  # noqa: E731
    printed = slope(10 * (x + 0.5)) - slope(10 * (x - 0.5))
    np.testing.assert_allclose(kernels.surrogate_sigmoid(x, 1) / 10, printed, atol=1e-14)


@pytest.mark.parametrize("order", [1, 2])
def test_sigmoid_derivatives_integrate_to_differences(order):
    for low, high in ((-2.0, -0.3), (-0.4, 0.6), (0.1, 2.3)):
        area = integrate(lambda x: float(kernels.surrogate_sigmoid(x, order)), low, high, np.arange(-2, 2.1, 0.5))
        ends = kernels.surrogate_sigmoid([low, high], order - 1)
        assert area == pytest.approx(float(ends[1] - ends[0]), abs=1e-10)


@pytest.mark.parametrize("name", ["k_gauss", "l_cubic", "l_lanczos"])
@pytest.mark.parametrize("order", [1, 2])
def test_kernel_derivatives_integrate_to_differences(name, order):
    kernel = getattr(kernels, name)
    for low, high in ((-1.4, -0.7), (-0.04, 0.03), (0.02, 0.9)):  # around and through the series of sinc
        area = integrate(lambda x: float(kernel(x, order)), low, high, (-1, 0))
        assert area == pytest.approx(float(kernel(high, order - 1) - kernel(low, order - 1)), abs=1e-11)
