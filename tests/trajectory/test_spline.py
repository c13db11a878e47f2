"""Splines on SO(3): values, angular velocity, smoothness, coverage, growth, samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.trajectory.spline import RotationSpline

EPOCH_NS = 1468939993067416019
STEP_NS = 50_000_000
AXIS = np.array([0.36, -0.48, 0.8])
both_orders = pytest.mark.parametrize("order", [2, 4])


def rotation_matrices(phi):
    return Rotation.from_rotvec(phi).as_matrix()


def rotation_vectors(matrices):
    return Rotation.from_matrix(matrices).as_rotvec()


def random_spline(order, count=9, *, seed=0, turn_rad=0.6, start_ns=EPOCH_NS):
    """A walk whose neighbouring control rotations are about `turn_rad` apart, and whose start is any rotation."""
    random = np.random.default_rng(seed)
    rotation, controls = Rotation.random(random_state=seed), []
    for _ in range(count):
        controls.append(rotation.as_quat())
        rotation = rotation * Rotation.from_rotvec(random.normal(size=3) * turn_rad / np.sqrt(3))
    return RotationSpline(order, start_ns, STEP_NS, np.array(controls))


def constant_rate(order, omega_rad_s, count=9, start=None, start_ns=EPOCH_NS):
    """Control rotations in their places on `R(t) = R(start) exp(omega (t - start))`."""
    start = start or Rotation.from_rotvec([0.2, 1.0, -0.7])
    after_s = (np.arange(count) - (0 if order == 2 else 1)) * STEP_NS / 1e9
    return RotationSpline(
        order, start_ns, STEP_NS, (start * Rotation.from_rotvec(np.outer(after_s, omega_rad_s))).as_quat()
    ), start


def random_times(spline, count=200, seed=1):
    """Times inside, the knots and both ends among them."""
    knots = np.arange(spline.start_ns, spline.end_ns + 1, STEP_NS)
    inside = np.random.default_rng(seed).integers(spline.start_ns, spline.end_ns, count)
    return np.concatenate([knots, inside])


def written_out(spline, t_ns):
    """The cumulative form as it stands in the books, for one time, with scipy and the matrix of the cubic basis."""
    segment = min((t_ns - spline.start_ns) // STEP_NS, len(spline) - spline.order)
    u = (t_ns - spline.start_ns - segment * STEP_NS) / STEP_NS
    if spline.order == 2:
        weights = [1, u]
    else:
        basis = np.array([[6, 0, 0, 0], [5, 3, -3, 1], [1, 3, 3, -2], [0, 0, 0, 1]]) / 6
        weights = basis @ [1, u, u**2, u**3]
    controls = Rotation.from_quat(spline.quaternions_xyzw[segment : segment + spline.order])
    value = controls[0]
    for j in range(1, spline.order):
        step = (controls[j - 1].inv() * controls[j]).as_rotvec()
        value = value * Rotation.from_rotvec(weights[j] * step)
    return value.as_matrix()


@both_orders
@pytest.mark.parametrize("turn_rad", [0.0, 1e-9, 1e-3, 0.6, 1.5])
def test_values_are_those_of_the_cumulative_form(order, turn_rad):
    spline = random_spline(order, turn_rad=turn_rad)
    times = random_times(spline)
    expected = np.array([written_out(spline, int(t)) for t in times])
    np.testing.assert_allclose(spline.rotations_at(times), expected, atol=5e-15)


def test_a_linear_spline_is_slerp():
    spline = random_spline(2, turn_rad=1.5)
    times = random_times(spline)
    slerp = Slerp(np.arange(len(spline)) * float(STEP_NS), Rotation.from_quat(spline.quaternions_xyzw))
    expected = slerp((times - spline.start_ns).astype(float)).as_matrix()
    np.testing.assert_allclose(spline.rotations_at(times), expected, atol=5e-15)


def test_a_linear_spline_passes_through_its_control_rotations():
    spline = random_spline(2)
    at_controls = spline.rotations_at(EPOCH_NS + STEP_NS * np.arange(len(spline)))
    np.testing.assert_allclose(
        at_controls, Rotation.from_quat(spline.quaternions_xyzw).as_matrix(), rtol=0, atol=1e-15
    )  # fmt: skip


@both_orders
@given(
    omega=st.tuples(*[st.floats(-30, 30)] * 3),
    after_ns=st.integers(0, 6 * STEP_NS),
    start_ns=st.sampled_from([0, EPOCH_NS, -(10**12)]),
)
def test_control_rotations_on_a_constant_rate_reproduce_it(order, omega, after_ns, start_ns):
    spline, start = constant_rate(order, omega, start_ns=start_ns)
    expected = start.as_matrix() @ rotation_matrices(np.array(omega) * after_ns / 1e9)
    np.testing.assert_allclose(spline.rotations_at(start_ns + after_ns), expected, atol=2e-14)
    np.testing.assert_allclose(spline.angular_velocities_at(start_ns + after_ns), omega, rtol=1e-13, atol=1e-11)


@both_orders
def test_a_camera_may_turn_on_and_on(order):
    rate = 55.0  # rad/s: 2.75 rad from control to control, 26 turns in 3 s
    spline, start = constant_rate(order, rate * AXIS, count=64)
    times = random_times(spline)
    expected = start.as_matrix() @ rotation_matrices(np.outer((times - EPOCH_NS) / 1e9, rate * AXIS))
    np.testing.assert_allclose(spline.rotations_at(times), expected, atol=1e-12)
    np.testing.assert_allclose(spline.angular_velocities_at(times), np.tile(rate * AXIS, (len(times), 1)), rtol=1e-11)


@both_orders
def test_the_sign_of_a_quaternion_does_not_matter(order):
    spline = random_spline(order)
    signs = np.where(np.arange(len(spline)) % 3 == 1, -1, 1)[:, None]
    flipped = RotationSpline(order, EPOCH_NS, STEP_NS, signs * spline.quaternions_xyzw)
    times = random_times(spline)
    np.testing.assert_allclose(flipped.rotations_at(times), spline.rotations_at(times), rtol=0, atol=1e-15)


@both_orders
@pytest.mark.parametrize("turn_rad", [0.0, 1e-7, 0.6, 1.5])
def test_the_angular_velocity_is_the_derivative_in_the_body_frame(order, turn_rad):
    spline = random_spline(order, turn_rad=turn_rad)
    h_ns = 5_000
    times = np.random.default_rng(2).integers(spline.start_ns + h_ns, spline.end_ns - h_ns, 200)
    apart = (times - spline.start_ns) % STEP_NS  # differences must not straddle the jumps of a linear spline
    times = times[(apart > h_ns) & (apart < STEP_NS - h_ns)]
    before, after = spline.rotations_at(times - h_ns), spline.rotations_at(times + h_ns)
    numeric = rotation_vectors(np.swapaxes(before, 1, 2) @ after) / (2e-9 * h_ns)
    np.testing.assert_allclose(spline.angular_velocities_at(times), numeric, atol=5e-7)


def test_the_rate_is_that_of_the_body_not_of_the_world():
    quarter = Rotation.from_rotvec([np.pi / 2, 0, 0])  # the body's z is minus the world's y
    spline, _ = constant_rate(4, [0, 0, 2.0], start=quarter)
    np.testing.assert_allclose(spline.angular_velocities_at(EPOCH_NS + 123), [0, 0, 2.0], atol=1e-12)
    world = np.swapaxes(spline.rotations_at(EPOCH_NS), 0, 1) @ [0, -2.0, 0]
    np.testing.assert_allclose(world, [0, 0, 2.0], atol=1e-12)


def test_a_cubic_spline_is_twice_continuously_differentiable_at_its_knots():
    spline = random_spline(4, turn_rad=0.8)
    knots = np.arange(spline.start_ns + STEP_NS, spline.end_ns, STEP_NS)
    gap = np.abs(spline.rotations_at(knots) - spline.rotations_at(knots - 1)).max()
    assert gap < 1e-7  # a nanosecond at some 10 rad/s
    rates = {k: spline.angular_velocities_at(knots + k * 1000) for k in (-3, -2, -1, 0, 1, 2, 3)}
    rate_jump = (3 * rates[-1] - 3 * rates[-2] + rates[-3]) - rates[0]
    assert np.abs(rate_jump).max() < 1e-9
    left = (3 * rates[0] - 4 * rates[-1] + rates[-2]) / 2e-6
    right = -(3 * rates[0] - 4 * rates[1] + rates[2]) / 2e-6
    assert np.abs(right).max() > 10  # rad/s^2
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-4)
    left_jerk = (2 * rates[0] - 5 * rates[-1] + 4 * rates[-2] - rates[-3]) / 1e-12
    right_jerk = (2 * rates[0] - 5 * rates[1] + 4 * rates[2] - rates[3]) / 1e-12
    assert np.abs(left_jerk - right_jerk).max() > 100  # the third derivative jumps: the measure can tell


def test_the_rate_of_a_linear_spline_is_that_of_the_segment_that_begins():
    spline = random_spline(2)
    knots = np.arange(spline.start_ns, spline.end_ns, STEP_NS)
    np.testing.assert_array_equal(spline.angular_velocities_at(knots), spline.angular_velocities_at(knots + 777))
    np.testing.assert_array_equal(
        spline.angular_velocities_at(spline.end_ns), spline.angular_velocities_at(spline.end_ns - 1)
    )


@both_orders
def test_a_control_rotation_acts_on_its_own_segments_only(order):
    spline = random_spline(order, 12)
    times = random_times(spline)
    segments = np.minimum((times - spline.start_ns) // STEP_NS, len(spline) - order)
    before = spline.rotations_at(times)
    for k in range(len(spline)):
        changed = (spline.with_perturbation(k, [[0.3, -0.2, 0.1]]).rotations_at(times) != before).any(axis=(1, 2))
        acts = (segments <= k) & (k < segments + order)
        assert not changed[~acts].any()
        inside = (times - spline.start_ns) % STEP_NS > STEP_NS // 100
        assert changed[acts & inside].all()


@both_orders
def test_as_many_controls_cover_as_many_segments(order):
    for count in range(order, order + 4):
        spline = random_spline(order, count)
        assert len(spline) == count
        assert spline.end_ns == EPOCH_NS + (count - order + 1) * STEP_NS
        assert spline.covers([EPOCH_NS - 1, EPOCH_NS, spline.end_ns, spline.end_ns + 1]).tolist() == [
            False, True, True, False,
        ]  # fmt: skip
        for ask in (spline.rotations_at, spline.quaternions_at, spline.angular_velocities_at, spline.jacobians_at):
            for outside in (EPOCH_NS - 1, spline.end_ns + 1):
                with pytest.raises(TrajectoryError, match=rf"outside the spline.*{EPOCH_NS} to {spline.end_ns} ns"):
                    ask([EPOCH_NS, outside])


@both_orders
def test_growing_keeps_every_bit_of_what_was_covered(order):
    spline = random_spline(order, 7, turn_rad=1.2)
    more = Rotation.random(5, random_state=3).as_quat()
    grown = RotationSpline(order, EPOCH_NS, STEP_NS, np.concatenate([spline.quaternions_xyzw, more]))
    times = random_times(spline)
    before = times < spline.end_ns  # the rate of a linear spline is another one from its former end on
    np.testing.assert_array_equal(grown.quaternions_xyzw[:7], spline.quaternions_xyzw)
    np.testing.assert_array_equal(grown.rotations_at(times), spline.rotations_at(times))
    for ask in ("angular_velocities_at", "quaternions_at"):
        np.testing.assert_array_equal(getattr(grown, ask)(times[before]), getattr(spline, ask)(times[before]))
    for a, b in zip(grown.jacobians_at(times[before]), spline.jacobians_at(times[before]), strict=True):
        np.testing.assert_array_equal(a, b)


@both_orders
def test_a_part_has_the_same_bits(order):
    spline = random_spline(order, 12)
    part = spline.part(3, 6)
    assert len(part) == 6
    assert part.start_ns == EPOCH_NS + 3 * STEP_NS
    times = random_times(part)
    np.testing.assert_array_equal(part.rotations_at(times), spline.rotations_at(times))
    before = times < part.end_ns
    np.testing.assert_array_equal(part.jacobians_at(times[before]).first + 3, spline.jacobians_at(times[before]).first)
    for first, count in ((-1, 5), (8, 5), (0, order - 1)):
        with pytest.raises(TrajectoryError, match="no part of 12"):
            spline.part(first, count)


def test_perturbations_turn_control_rotations_on_the_left():
    spline = random_spline(4)
    deltas = np.array([[0.3, -0.2, 0.1], [1.0, 2.0, -0.5]])
    turned = spline.with_perturbation(3, deltas)
    before, after = (Rotation.from_quat(s.quaternions_xyzw).as_matrix() for s in (spline, turned))
    np.testing.assert_allclose(after[3:5], rotation_matrices(deltas) @ before[3:5], atol=1e-15)
    np.testing.assert_array_equal(
        turned.quaternions_xyzw[[0, 1, 2, 5, 6, 7, 8]], spline.quaternions_xyzw[[0, 1, 2, 5, 6, 7, 8]]
    )
    for first in (-1, 8):
        with pytest.raises(TrajectoryError, match="no part of 9"):
            spline.with_perturbation(first, deltas)


def test_epoch_stamps_keep_their_nanoseconds():
    controls = Rotation.from_rotvec([[0, 0, 0], [0, 0, 0.4], [0, 0, 0.8]]).as_quat()
    spline = RotationSpline(2, EPOCH_NS, 4, controls)
    angles = rotation_vectors(spline.rotations_at(EPOCH_NS + np.arange(9)))[:, 2]
    np.testing.assert_allclose(angles, np.arange(9) / 10, atol=1e-15)


def test_the_same_motion_at_the_epoch_and_at_zero_has_the_same_bits():
    late = random_spline(4)
    early = random_spline(4, start_ns=0)
    times = random_times(early)
    np.testing.assert_array_equal(early.rotations_at(times), late.rotations_at(times + EPOCH_NS))
    np.testing.assert_array_equal(early.angular_velocities_at(times), late.angular_velocities_at(times + EPOCH_NS))


@both_orders
def test_times_need_no_order(order):
    spline = random_spline(order)
    times = random_times(spline)
    sort = np.argsort(times)
    np.testing.assert_array_equal(spline.rotations_at(times)[sort], spline.rotations_at(times[sort]))


@both_orders
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_results_have_the_shape_of_the_times(order, shape):
    spline = random_spline(order)
    times = np.full(shape, EPOCH_NS + 33, np.int64)
    assert spline.rotations_at(times).shape == (*shape, 3, 3)
    assert spline.quaternions_at(times).shape == (*shape, 4)
    assert spline.angular_velocities_at(times).shape == (*shape, 3)
    assert spline.jacobians_at(times).first.shape == shape
    assert spline.jacobians_at(times).jacobians.shape == (*shape, order, 3, 3)


@both_orders
def test_quaternions_and_matrices_agree(order):
    spline = random_spline(order)
    times = random_times(spline)
    quaternions = spline.quaternions_at(times)
    np.testing.assert_allclose(np.linalg.norm(quaternions, axis=1), 1, atol=2e-15)
    np.testing.assert_allclose(Rotation.from_quat(quaternions).as_matrix(), spline.rotations_at(times), atol=2e-15)


def test_times_in_seconds_are_refused():
    with pytest.raises(TypeError, match="nanoseconds"):
        random_spline(4, start_ns=0).rotations_at(0.05)


IDENTITY = [0, 0, 0, 1.0]


@pytest.mark.parametrize(
    ("order", "step_ns", "quaternions", "error", "words"),
    [
        (3, 1, [IDENTITY] * 5, TrajectoryError, r"2 \(linear\) or 4 \(cubic\), not 3"),
        (2, 0, [IDENTITY] * 5, TrajectoryError, "positive, not 0 ns"),
        (2, 1, [IDENTITY], TrajectoryError, "linear spline needs at least 2 control rotations, not 1"),
        (4, 1, [IDENTITY] * 3, TrajectoryError, "cubic spline needs at least 4 control rotations, not 3"),
        (2, 1, [IDENTITY, [0, 0, 0, 0]], TrajectoryError, "control rotation 1 .*not of unit length"),
        (2, 1, [IDENTITY, [0, 0, np.nan, 1]], TrajectoryError, "control rotation 1 .*not of unit length"),
        (2, 1, [[0, 0, 1]] * 3, TypeError, r"quaternions \(K, 4\)"),
    ],
)
def test_what_is_no_spline_is_refused(order, step_ns, quaternions, error, words):
    with pytest.raises(error, match=words):
        RotationSpline(order, 0, step_ns, np.array(quaternions))
