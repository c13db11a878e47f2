import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend.control_turns import ControlTurns
from cmaxslam_fbp.trajectory.spline import RotationSpline

STEP_NS = 50_000_000
TIMES = np.linspace(0, 3 * STEP_NS, 13).astype(np.int64)


def spline(order):
    random = np.random.default_rng(0)
    controls = [Rotation.from_rotvec([0.5, -0.2, 1.0])]
    for _ in range(order + 1):
        controls.append(controls[-1] * Rotation.from_rotvec(random.normal(0, 0.2, 3)))
    return RotationSpline(order, 0, STEP_NS, Rotation.concatenate(controls).as_quat())


def differences(function, delta, h=1e-6):
    steps = h * np.eye(len(delta))
    return np.array([(function(delta + step) - function(delta - step)) / (2 * h) for step in steps])


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize(("first_free", "held"), [(0, 0), (1, 0), (3, 0), (0, 1), (1, 2)])
def test_the_gradient_is_the_derivative_far_from_zero_too(order, first_free, held):
    """Of the made-up function `sum_n <G_n, R(t_n)>` of the trajectory, less the cost."""
    turns = ControlTurns(spline(order), first_free, 3.0, held)
    assert turns.parameter_count == 3 * (order + 2 - first_free - held)
    random = np.random.default_rng(1)
    G = random.normal(size=(len(TIMES), 3, 3))
    delta = random.normal(0, 0.4, turns.parameter_count)

    def function(delta):
        return (G * turns.spline_at(delta).rotations_at(TIMES)).sum() - turns.cost(delta)

    # d/dphi <G, [phi]x R> is the vector of the antisymmetric part of G R^T.
    product = G @ turns.spline_at(delta).rotations_at(TIMES).transpose(0, 2, 1)
    skew = product - product.transpose(0, 2, 1)
    by_time = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=-1)
    gradient = turns.gradient(delta, turns.spline_at(delta), TIMES, by_time)
    np.testing.assert_allclose(gradient, differences(function, delta), atol=1e-7)


@pytest.mark.parametrize(("first_free", "held"), [(0, 0), (2, 0), (1, 2)])
def test_the_hessian_is_that_of_a_quadratic_function_of_the_turns(first_free, held):
    """`-sum_n phi_n^T C_n phi_n / 2` with `exp(phi_n) = R(t_n; delta) R(t_n)^T`, less the cost, at zero."""
    turns = ControlTurns(spline(4), first_free, 3.0, held)
    C = np.random.default_rng(2).normal(size=(len(TIMES), 3, 3))
    C = C + C.transpose(0, 2, 1)
    zero = np.zeros(turns.parameter_count)
    start = Rotation.from_quat(turns.spline_at(zero).quaternions_at(TIMES)).inv()

    def function(delta):
        phi = (Rotation.from_quat(turns.spline_at(delta).quaternions_at(TIMES)) * start).as_rotvec()
        return 0.5 * np.einsum("ni,nij,nj->", phi, C, phi) - turns.cost(delta)

    expected = differences(lambda delta: differences(function, delta, 1e-4), zero, 1e-4)
    np.testing.assert_allclose(turns.hessian(turns.spline_at(zero), TIMES, C), expected, atol=1e-6)


def test_the_cost_is_that_of_changes_from_one_turn_to_the_next():
    steps = np.random.default_rng(3).normal(size=(6, 3))
    anchored, loose = ControlTurns(spline(4), 2, 0.7), ControlTurns(spline(4), 0, 0.7)
    assert (anchored.parameter_count, loose.parameter_count) == (12, 18)
    turns = np.cumsum(steps, axis=0)
    assert anchored.cost(turns[:4].ravel()) == pytest.approx(0.35 * (steps[:4] ** 2).sum())
    between = ControlTurns(spline(4), 2, 0.7, held=1)
    assert between.parameter_count == 9
    expected = 0.35 * ((steps[:3] ** 2).sum() + (turns[2] ** 2).sum())
    assert between.cost(turns[:3].ravel()) == pytest.approx(expected)
    # A turn of all free rotations alike costs nothing where none is fixed.
    assert loose.cost(turns.ravel()) == pytest.approx(0.35 * (steps[1:] ** 2).sum())
    assert loose.cost(np.tile([1.0, 2.0, 3.0], 6)) == pytest.approx(0, abs=1e-12)


def test_only_free_control_rotations_turn():
    turns = ControlTurns(spline(4), 2, 0.0, held=1)
    turned = turns.spline_at(np.full(9, 0.1)).quaternions_xyzw
    before = spline(4).quaternions_xyzw
    np.testing.assert_array_equal(turned[[0, 1, 5]], before[[0, 1, 5]])
    change = Rotation.from_quat(turned[2:5]) * Rotation.from_quat(before[2:5]).inv()
    np.testing.assert_allclose(change.as_rotvec(), 0.1, atol=1e-12)
