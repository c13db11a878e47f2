import numpy as np
import pytest

from cmaxslam_fbp.errors import BinningError
from cmaxslam_fbp.fbp.pairs import KERNELS, RECONSTRUCTIONS, SURROGATES, binning_kernel, derivative_kernel
from cmaxslam_fbp.fbp.tables import kernel_table

ALL = [
    *(binning_kernel(k) for k in KERNELS),
    *(derivative_kernel(k, r) for k in KERNELS for r in RECONSTRUCTIONS),
    *(derivative_kernel("rect", None, s) for s in SURROGATES),
]


def errors(kernel, table):
    u = np.random.default_rng(0).uniform(-0.5, 0.5, 400)
    x = u[:, None] + (0 if table.is_centred else 0.5) - (np.arange(table.support) - table.reach)
    for order in range(3):
        values = np.stack([np.polyval(column, u) for column in table.derivative(order).T], 1)
        exact = kernel.scale * kernel.function(x, order)
        yield np.abs(values - exact).max() / max(1, np.abs(exact).max())


@pytest.mark.parametrize("kernel", ALL, ids=lambda k: k.name)
def test_double_tables_are_the_closed_forms_to_the_last_digits(kernel):
    for error, bound in zip(errors(kernel, kernel_table(kernel)), (1e-14, 1e-12, 3e-10), strict=True):
        assert error < bound


@pytest.mark.parametrize("kernel", ALL, ids=lambda k: k.name)
def test_single_tables_are_as_good_as_the_numbers_and_shorter(kernel):
    table = kernel_table(kernel, is_single_precision=True)
    for error, bound in zip(errors(kernel, table), (1e-8, 3e-7, 3e-5), strict=True):
        assert error < bound
    assert table.degree <= kernel_table(kernel).degree


def test_spline_tables_hold_the_exact_fractions():
    quadratic = kernel_table(derivative_kernel("rect", "linear"))
    assert quadratic.coefficients.tolist() == [[0.5, -1.0, 0.5], [-0.5, 0.0, 0.5], [0.125, 0.75, 0.125]]
    assert kernel_table(binning_kernel("rect")).coefficients.tolist() == [[1.0]]
    assert kernel_table(binning_kernel("linear")).coefficients.tolist() == [[-1.0, 1.0], [0.5, 0.5]]


def test_scale_enters_a_product_once():
    sigmoid = derivative_kernel("rect", None, "sigmoid")
    one, three = kernel_table(sigmoid, 1), kernel_table(sigmoid, 3)
    np.testing.assert_allclose(three.coefficients * 0.1 ** (2 / 3), one.coefficients, rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rect", None), "zero everywhere except at the bin edges"),
        (("box", "linear"), "rect, linear, gauss"),
        (("rect", "quintic"), "linear, cubic, lanczos"),
        (("rect", "linear", "tanh"), "ste, sigmoid"),
    ],
)
def test_what_does_not_exist_is_explained(arguments, words):
    with pytest.raises(BinningError, match=words):
        derivative_kernel(*arguments)
