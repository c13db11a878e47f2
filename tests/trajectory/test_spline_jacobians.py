"""How a spline follows its control rotations, against finite differences and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.trajectory.spline import RotationSpline

EPOCH_NS = 1468939993067416019
STEP_NS = 50_000_000
AXIS = np.array([0.36, -0.48, 0.8])
both_orders = pytest.mark.parametrize("order", [2, 4])


def walk(order, steps, start_seed=0):
    """A spline whose neighbouring control rotations differ by the given rotation vectors (K - 1, 3)."""
    rotation = Rotation.random(random_state=start_seed)
    controls = [rotation.as_quat()]
    for step in steps:
        rotation = rotation * Rotation.from_rotvec(step)
        controls.append(rotation.as_quat())
    return RotationSpline(order, EPOCH_NS, STEP_NS, np.array(controls))


def differences(spline, times, h):
    """`d log(R(t; exp(delta_k) R_k) R(t)^T) / d delta_k` (N, K, 3, 3) by central differences of fourth order."""
    inverse = np.swapaxes(spline.rotations_at(times), 1, 2)
    result = np.empty((len(times), len(spline), 3, 3))

    def turned(k, delta):
        return Rotation.from_matrix(spline.with_perturbation(k, delta[None]).rotations_at(times) @ inverse).as_rotvec()

    for k in range(len(spline)):
        for axis, e in enumerate(np.eye(3)):
            near = turned(k, h * e) - turned(k, -h * e)
            far = turned(k, 2 * h * e) - turned(k, -2 * h * e)
            result[:, k, :, axis] = (8 * near - far) / (12 * h)
    return result


def scattered(spline, times):
    """The Jacobians at the places of their control rotations: (N, K, 3, 3)."""
    first, jacobians = spline.jacobians_at(times)
    result = np.zeros((len(times), len(spline), 3, 3))
    for n in range(len(times)):
        result[n, first[n] : first[n] + spline.order] = jacobians[n]
    return result


def times_of(spline, count=24):
    knots = np.arange(spline.start_ns, spline.end_ns + 1, STEP_NS)
    return np.concatenate([knots, np.random.default_rng(4).integers(spline.start_ns, spline.end_ns, count)])


@both_orders
@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.9e-6, 1.1e-6, 1e-3, 0.05, 0.6, 2.0, 3.0])
def test_jacobians_are_the_derivatives(order, angle):
    random = np.random.default_rng(1)
    steps = random.normal(size=(order + 2, 3))
    steps *= angle / np.linalg.norm(steps, axis=1, keepdims=True)
    spline = walk(order, steps)
    times = times_of(spline)
    np.testing.assert_allclose(scattered(spline, times), differences(spline, times, 2e-3), rtol=0, atol=1e-10)


@both_orders
def test_jacobians_close_to_half_a_turn(order):
    """The logarithm jumps at half a turn: the steps of the differences stay below it."""
    steps = (np.pi - 1e-3) * np.array([AXIS, -AXIS, [0, 1, 0], [0.6, 0, -0.8], AXIS])
    spline = walk(order, steps)
    times = times_of(spline)
    np.testing.assert_allclose(scattered(spline, times), differences(spline, times, 2e-4), rtol=0, atol=1e-10)


@both_orders
def test_jacobians_after_more_than_a_full_turn(order):
    spline = walk(order, np.tile(1.3 * AXIS, (11, 1)))  # 14 rad about one axis
    times = times_of(spline)
    np.testing.assert_allclose(scattered(spline, times), differences(spline, times, 2e-3), rtol=0, atol=1e-10)


@both_orders
@given(steps=st.lists(st.tuples(*[st.floats(-1.7, 1.7)] * 3), min_size=5, max_size=5), after_ns=st.integers(0, STEP_NS))
def test_a_turn_of_all_control_rotations_turns_the_value(order, steps, after_ns):
    """`exp(delta) R(t)` for a common `delta`: the Jacobians of a time sum to the identity."""
    spline = walk(order, steps)
    _, jacobians = spline.jacobians_at(EPOCH_NS + after_ns)
    np.testing.assert_allclose(jacobians.sum(axis=0), np.eye(3), atol=1e-13)


@both_orders
@given(
    steps=st.lists(st.tuples(*[st.floats(-1.0, 1.0)] * 3), min_size=4, max_size=4),
    deltas=st.lists(st.tuples(*[st.floats(-1, 1)] * 3), min_size=5, max_size=5),
    after_ns=st.integers(0, STEP_NS),
)
def test_a_joint_perturbation_moves_the_value_as_predicted(order, steps, deltas, after_ns):
    spline = walk(order, steps)
    size = 1e-5
    t_ns = EPOCH_NS + after_ns
    first, jacobians = spline.jacobians_at(t_ns)
    predicted = size * np.einsum("kij,kj->i", jacobians, np.array(deltas)[first : first + order])
    moved = spline.with_perturbation(0, size * np.array(deltas))
    found = Rotation.from_matrix(moved.rotations_at(t_ns) @ spline.rotations_at(t_ns).T).as_rotvec()
    np.testing.assert_allclose(found, predicted, atol=1e-9)


def test_jacobians_of_a_still_linear_spline_are_its_weights():
    spline = walk(2, np.zeros((3, 3)))
    first, jacobians = spline.jacobians_at(EPOCH_NS + STEP_NS + STEP_NS // 4)
    assert first == 1
    np.testing.assert_allclose(jacobians, [0.75 * np.eye(3), 0.25 * np.eye(3)], rtol=0, atol=1e-15)


def test_jacobians_of_a_still_cubic_spline_are_its_weights():
    spline = walk(4, np.zeros((5, 3)))
    first, jacobians = spline.jacobians_at(EPOCH_NS + STEP_NS + STEP_NS // 2)
    assert first == 1
    weights = np.array([1, 23, 23, 1]) / 48
    np.testing.assert_allclose(jacobians, weights[:, None, None] * np.eye(3), rtol=0, atol=1e-15)


@both_orders
def test_the_first_control_rotation_is_that_of_the_segment(order):
    spline = walk(order, np.zeros((order + 2, 3)))  # K = order + 3: four segments
    after = np.array([0, 1, STEP_NS - 1, STEP_NS, 4 * STEP_NS - 1, 4 * STEP_NS])
    assert spline.jacobians_at(EPOCH_NS + after).first.tolist() == [0, 0, 0, 1, 3, 3]
