from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf, sici

from cmaxslam_fbp.choices import KERNELS, RECONSTRUCTIONS
from cmaxslam_fbp.errors import BinningError
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.fbp.kappa import convolve, derivative_kernel, kappa_gauss_linear, kappa_rect_linear
from cmaxslam_fbp.fbp.kernels import Kernel, k_gauss, k_linear, k_rect
from cmaxslam_fbp.fbp.reconstructions import l_cubic, l_lanczos
from cmaxslam_fbp.fbp.surrogates import surrogate_sigmoid, surrogate_ste

BACKENDS = ("numba", "reference")
PAIRS = list(product(KERNELS.names(), RECONSTRUCTIONS.names()))


def kappa_of(k, r):
    return derivative_kernel(k, r).function


def radius_of(k, r):
    return KERNELS[k].radius + RECONSTRUCTIONS[r].radius


def integrate(function, low, high, breaks):
    """Integrate piece by piece between the break points, each piece to full precision."""
    if low >= high:
        return 0.0
    ends = sorted({low, high, *(b for b in breaks if low < b < high)})
    return sum(quad(function, a, b, epsabs=3e-14, epsrel=1e-13)[0] for a, b in pairwise(ends))


def convolve_numerically(k_name, l_name, x, l_order):
    k, reconstruction = KERNELS[k_name], RECONSTRUCTIONS[l_name]
    low, high = max(-reconstruction.radius, x - k.radius), min(reconstruction.radius, x + k.radius)
    breaks = (*reconstruction.break_points, *(x - k.break_points))
    return integrate(
        lambda y: float(reconstruction.function(y, l_order)) * float(k.function(x - y, 0)), low, high, breaks
    )


@pytest.mark.parametrize(("k", "r"), PAIRS)
def test_kappa_and_its_slope_are_the_numeric_convolution(k, r):
    radius = radius_of(k, r)
    for x in np.random.default_rng(1).uniform(-radius - 0.3, radius + 0.3, 30):
        for order in (0, 1):
            expected = convolve_numerically(k, r, x, order)
            assert float(kappa_of(k, r)(x, order)) == pytest.approx(expected, abs=2e-14, rel=0)


@pytest.mark.parametrize(("k", "r"), [(k, r) for k, r in PAIRS if r != "linear"])
def test_curvature_is_the_numeric_convolution_where_the_reconstruction_is_smooth(k, r):
    radius = radius_of(k, r)
    for x in np.random.default_rng(2).uniform(-radius - 0.3, radius + 0.3, 30):
        expected = convolve_numerically(k, r, x, 2)
        assert float(kappa_of(k, r)(x, 2)) == pytest.approx(expected, abs=1e-13, rel=0)


@pytest.mark.parametrize("k", KERNELS.names())
@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_general_convolution_gives_the_closed_forms_of_the_paper(k, order):
    x = np.concatenate([np.random.default_rng(5).uniform(-3, 3, 1000), np.arange(-6, 7) / 2])  # break points too
    general = convolve(RECONSTRUCTIONS["linear"], KERNELS[k], x, order)
    np.testing.assert_allclose(general, kappa_of(k, "linear")(x, order), atol=2e-15, rtol=0)


@pytest.mark.parametrize("order", [0, 1])
def test_cubic_kappa_of_rect_is_a_difference_of_integrals(order):
    """`L(x + 1/2) - L(x - 1/2)` with `L = 3/8 x^4 - 5/6 x^3 + x` on [0, 1), `-x^4/8 + 5/6 x^3 - 2 x^2 + 2 x - 1/6`."""

    def integral(x):
        a = np.abs(x)
        outer = -(a**4) / 8 + 5 / 6 * a**3 - 2 * a**2 + 2 * a - 1 / 6
        return np.sign(x) * np.select([a < 1, a < 2], [3 / 8 * a**4 - 5 / 6 * a**3 + a, outer], 0.5)

    x = np.random.default_rng(6).uniform(-3, 3, 1000)
    above = integral if order == 0 else l_cubic
    np.testing.assert_allclose(kappa_of("rect", "cubic")(x, order), above(x + 0.5) - above(x - 0.5), atol=5e-15)


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
        assert not values[x > radius_of(k, r)].any()
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
        assert float(kappa_gauss_linear(x)) == pytest.approx(printed_kappa_gauss(x), abs=1e-14)
        assert abs(float(kappa_gauss_linear(-x)) - printed_kappa_gauss(-x)) > 0.1


def test_every_edge_belongs_to_the_bin_on_its_right():
    assert k_rect([-0.5, 0.5]).tolist() == [1.0, 0.0]
    assert k_gauss([-1.5, 1.5])[1] == 0 < k_gauss([-1.5, 1.5])[0]
    assert k_linear([-1.0, 0.0, 1.0], 1).tolist() == [1.0, -1.0, 0.0]
    assert kappa_rect_linear([-1.5, -0.5, 0.5, 1.5], 2).tolist() == [1.0, -2.0, 1.0, 0.0]


def test_surrogates_are_those_of_the_paper():
    x = np.random.default_rng(4).uniform(-2.4, 2.4, 100)
    np.testing.assert_array_equal(surrogate_ste(x, 1), -np.sign(x) * (np.abs(x) < 1))
    sigma = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    slope = lambda z: sigma(z) * (1 - sigma(z))  # noqa: E731
    printed = slope(10 * (x + 0.5)) - slope(10 * (x - 0.5))
    np.testing.assert_allclose(surrogate_sigmoid(x, 1) / 10, printed, atol=1e-14)


@pytest.mark.parametrize("order", [1, 2])
def test_sigmoid_derivatives_integrate_to_differences(order):
    for low, high in ((-2.0, -0.3), (-0.4, 0.6), (0.1, 2.3)):
        area = integrate(lambda x: float(surrogate_sigmoid(x, order)), low, high, np.arange(-2, 2.1, 0.5))
        ends = surrogate_sigmoid([low, high], order - 1)
        assert area == pytest.approx(float(ends[1] - ends[0]), abs=1e-10)


@pytest.mark.parametrize("kernel", [k_gauss, l_cubic, l_lanczos])
@pytest.mark.parametrize("order", [1, 2])
def test_kernel_derivatives_integrate_to_differences(kernel, order):
    for low, high in ((-1.4, -0.7), (-0.04, 0.03), (0.02, 0.9)):  # around and through the series of sinc
        area = integrate(lambda x: float(kernel(x, order)), low, high, (-1, 0))
        assert area == pytest.approx(float(kernel(high, order - 1) - kernel(low, order - 1)), abs=1e-11)


def test_the_highest_derivative_follows_from_the_function():
    cases = {("rect", None): 0, ("linear", None): 1, ("gauss", None): 2, ("rect", "linear"): 2, ("linear", "linear"): 2}
    for (k, r), highest in cases.items():
        assert derivative_kernel(k, r).highest_derivative == highest
    assert derivative_kernel("rect", None, "ste").highest_derivative == 1
    assert derivative_kernel("rect", None, "sigmoid").highest_derivative == 2


def test_a_kernel_covers_whole_bins():
    for radius in (0.0, 0.7, -1.0):
        with pytest.raises(BinningError, match="whole number of bins"):
            Kernel(k_rect, radius)


@pytest.fixture
def hat():
    """A binning kernel and a reconstruction from outside: the parabola `max(1 - x^2, 0)`, whose slope jumps."""

    def parabola(x, order=0):
        x = np.asarray(x, float)
        return (1 - x * x, -2 * x, np.full_like(x, -2.0))[order] * ((x >= -1) & (x < 1))

    KERNELS.add("hat", Kernel(parabola, 1.0))
    RECONSTRUCTIONS.add("hat", Kernel(parabola, 1.0))
    yield "hat"
    KERNELS.remove("hat")
    RECONSTRUCTIONS.remove("hat")


def test_a_kernel_from_outside_needs_its_function_alone(hat, cloud):
    """Its `kappa` with every other, both derivatives, and tables as good as those of the package."""
    for k, r in [(hat, "linear"), (hat, "cubic"), (hat, hat), ("rect", hat), ("gauss", hat)]:
        radius = radius_of(k, r)
        kappa = kappa_of(k, r)
        for x in np.random.default_rng(7).uniform(-radius, radius, 10):
            assert float(kappa(x, 0)) == pytest.approx(convolve_numerically(k, r, x, 0), abs=2e-14)
            assert float(kappa(x, 1)) == pytest.approx(convolve_numerically(k, r, x, 1), abs=2e-14)
        for low, high in ((-1.4, -0.3), (-0.1, 0.9)):
            area = integrate(lambda x: float(kappa(x, 2)), low, high, np.arange(-4, 4.1, 0.5))  # noqa: B023
            assert area == pytest.approx(float(kappa(high, 1) - kappa(low, 1)), abs=1e-12)
    c = cloud((11, 14))
    ours, oracle = (Binning((11, 14), hat, hat, backend=b).vjp(c.points, None, c.frame_bar)[0] for b in BACKENDS)
    np.testing.assert_allclose(ours, oracle, atol=1e-11)
