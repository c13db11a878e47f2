"""The score of a map against its surroundings: gradient, and what must not change it."""

import numpy as np
import pytest

from cmaxslam_fbp.calibration.relief import Relief


@pytest.mark.parametrize("columns", ["zero", "wrap"])
def test_the_gradient_is_that_of_the_value(random, columns):
    image = random.poisson(0.5, (40, 64)).astype(np.float32)
    direction = random.normal(size=image.shape).astype(np.float32) * (image > 0)
    relief = Relief(image.shape, 1.0, columns)
    relief.value(image)
    gradient = relief.gradient().copy()
    there, back = (relief.value(image + np.float32(sign * 0.01) * direction) for sign in (1, -1))
    assert (there - back) / 0.02 == pytest.approx(float(np.vdot(gradient, direction)), rel=1e-3)


def test_shares_add_up_to_the_value(random):
    image = random.poisson(0.5, (40, 64)).astype(np.float32)
    relief = Relief(image.shape, 1.0, "zero")
    assert relief.value(image) == pytest.approx(float(np.vdot(image, relief.shares())), rel=1e-5)


@pytest.mark.parametrize("density", [0.1, 0.5, 5.0])
def test_votes_at_random_score_one_each_however_dense_they_lie(random, density):
    image = random.poisson(density, (256, 256)).astype(np.float32)
    assert Relief(image.shape, 1.0, "wrap").value(image) / image.sum() == pytest.approx(1, abs=0.12)


def test_views_that_lie_on_each_other_do_not_pay(random):
    """The sum of squares of two views on one place is twice that of two views apart: here it is nearly the same."""
    lines = np.zeros((128, 128), np.float32)
    lines[:, ::16] = 30
    relief = Relief(lines.shape, 1.0, "wrap")
    assert relief.value(2 * lines) / relief.value(lines) == pytest.approx(2, rel=0.02)
    assert relief.value(lines) > 1.8 * lines.sum()
