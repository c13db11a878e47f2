import numpy as np
import pytest

from cmaxslam_fbp.choices import KERNELS, RECONSTRUCTIONS, SURROGATES
from cmaxslam_fbp.errors import ChoiceError
from cmaxslam_fbp.fbp.kappa import derivative_kernel
from cmaxslam_fbp.fbp.tables import kernel_table

ALL = {
    **{k: KERNELS[k] for k in KERNELS.names()},
    **{f"{k} * {r}": derivative_kernel(k, r) for k in KERNELS.names() for r in RECONSTRUCTIONS.names()},
    **{s: SURROGATES[s] for s in SURROGATES.names()},
}


def errors(kernel, table):
    u = np.random.default_rng(0).uniform(-0.5, 0.5, 400)
    x = u[:, None] + (0 if table.is_centred else 0.5) - (np.arange(table.support) - table.reach)
    for order in range(3):
        values = np.stack([np.polyval(column, u) for column in table.derivative(order).T], 1)
        exact = kernel.scale * kernel.function(x, order)
        yield np.abs(values - exact).max() / max(1, np.abs(exact).max())


@pytest.mark.parametrize("kernel", ALL.values(), ids=ALL.keys())
def test_double_tables_are_the_closed_forms_to_the_last_digits(kernel):
    for error, bound in zip(errors(kernel, kernel_table(kernel)), (1e-14, 1e-12, 3e-10), strict=True):
        assert error < bound


@pytest.mark.parametrize("kernel", ALL.values(), ids=ALL.keys())
def test_single_tables_are_as_good_as_the_numbers_and_shorter(kernel):
    table = kernel_table(kernel, is_single_precision=True)
    for error, bound in zip(errors(kernel, table), (1e-8, 3e-7, 3e-5), strict=True):
        assert error < bound
    assert table.degree <= kernel_table(kernel).degree


def test_spline_tables_hold_the_exact_fractions():
    quadratic = kernel_table(derivative_kernel("rect", "linear"))
    assert quadratic.coefficients.tolist() == [[0.5, -1.0, 0.5], [-0.5, 0.0, 0.5], [0.125, 0.75, 0.125]]
    assert kernel_table(KERNELS["rect"]).coefficients.tolist() == [[1.0]]
    assert kernel_table(KERNELS["linear"]).coefficients.tolist() == [[-1.0, 1.0], [0.5, 0.5]]


def test_scale_enters_a_product_once():
    sigmoid = SURROGATES["sigmoid"]
    one, three = kernel_table(sigmoid, 1), kernel_table(sigmoid, 3)
    np.testing.assert_allclose(three.coefficients * 0.1 ** (2 / 3), one.coefficients, rtol=1e-13)


def test_splines_from_the_general_convolution_hold_the_exact_fractions_too():
    """With `L` the integral of Keys' kernel, `L(u + 1/2) - L(u - 1/2)` for the bin at the centre, and so on."""
    quartic, quintic = (kernel_table(derivative_kernel(k, "cubic")).coefficients for k in ("rect", "linear"))
    assert quartic[:, 2].tolist() == [3 / 4, 0, -11 / 8, 0, 161 / 192]
    assert quartic[:, 0].tolist() == [1 / 8, -1 / 12, -1 / 16, 1 / 16, -5 / 384]
    assert quintic[:, 2].tolist() == [-1 / 4, 1 / 24, 17 / 24, -5 / 16, -143 / 192, 331 / 640]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("box", "linear"), "no binning kernel 'box'; choose one of rect, linear, gauss"),
        (("rect", "quintic"), "no reconstruction kernel 'quintic'; choose one of linear, cubic, lanczos"),
        (("rect", "linear", "sigmoyd"), "no surrogate 'sigmoyd'; did you mean sigmoid?"),
    ],
)
def test_what_does_not_exist_is_explained(arguments, words):
    with pytest.raises(ChoiceError, match=words):
        derivative_kernel(*arguments)
