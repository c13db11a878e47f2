"""Orientation over time: interpolation, angular velocity, times, errors."""

import numpy as np
import pytest
from curved_motion import curved
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.trajectory import RotationTrajectory

EPOCH_NS = 1468939993067416019
MS = 1_000_000


def constant_rate(omega_rad_s, t_ns, start=None):
    """`R(t) = R(0) exp(omega t)`: a constant body rate."""
    start = start or Rotation.identity()
    turned = Rotation.from_rotvec(np.outer((t_ns - t_ns[0]) / 1e9, omega_rad_s))
    return RotationTrajectory.from_rotations(t_ns, start * turned)


def sampled(step_ns, count):
    t_ns = np.arange(count, dtype=np.int64) * step_ns
    return RotationTrajectory.from_rotations(t_ns, curved(t_ns)[0])


@settings(deadline=None)
@given(
    st.tuples(*[st.floats(-4, 4)] * 3),
    st.integers(0, 1_000_000_000),
    st.sampled_from([0, EPOCH_NS, -5_000_000_000]),
)
def test_a_constant_rate_is_exact_everywhere(omega, after_ns, origin_ns):
    t_ns = origin_ns + np.array([0, 130 * MS, 310 * MS, 555 * MS, 1000 * MS])
    start = Rotation.from_rotvec([0.2, 1.0, -0.7])
    trajectory = constant_rate(omega, t_ns, start)
    expected = start * Rotation.from_rotvec(np.array(omega) * (after_ns / 1e9))
    found = trajectory.rotation_at(origin_ns + after_ns)
    assert (expected.inv() * found).magnitude() < 1e-12
    np.testing.assert_allclose(trajectory.angular_velocity_at(origin_ns + after_ns), omega, atol=1e-11)


def test_the_rate_is_that_of_the_body_not_of_the_world():
    quarter = Rotation.from_rotvec([np.pi / 2, 0, 0])  # the body's z is minus the world's y
    trajectory = constant_rate([0, 0, 2.0], np.array([0, 500 * MS, 1000 * MS]), quarter)
    np.testing.assert_allclose(trajectory.angular_velocity_at(300 * MS), [0, 0, 2.0], atol=1e-12)
    world = RotationTrajectory.from_rotations(
        trajectory.t_ns, Rotation.from_rotvec(np.outer([0, 1.0, 2.0], [0, 0, 1])) * quarter
    )
    np.testing.assert_allclose(world.angular_velocity_at(300 * MS), quarter.inv().apply([0, 0, 2.0]), atol=1e-12)


def test_poses_are_returned_at_their_own_times():
    trajectory = sampled(10 * MS, 50)
    found = trajectory.rotation_at(trajectory.t_ns)
    assert (trajectory.rotations.inv() * found).magnitude().max() < 1e-14


def test_halving_the_step_quarters_the_error_of_the_rate():
    times = np.concatenate([[0], np.arange(3, 1000, 7), [1000]]) * MS  # the ends included
    exact = curved(times)[1]
    errors = [np.abs(sampled(1000 * MS // n, n + 1).angular_velocity_at(times) - exact).max() for n in (100, 200, 400)]
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.15)


def test_halving_the_step_quarters_the_error_of_the_rotation():
    times = np.arange(3, 1000, 7) * MS
    exact = curved(times)[0]
    errors = [
        (exact.inv() * sampled(1000 * MS // n, n + 1).rotation_at(times)).magnitude().max() for n in (50, 100, 200)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.15)


def test_uneven_steps_keep_the_rate_accurate():
    random = np.random.default_rng(0)
    t_ns = np.cumsum(random.integers(2 * MS, 8 * MS, 200)).astype(np.int64)
    trajectory = RotationTrajectory.from_rotations(t_ns, curved(t_ns)[0])
    times = np.linspace(t_ns[0], t_ns[-1], 777).astype(np.int64)
    assert np.abs(trajectory.angular_velocity_at(times) - curved(times)[1]).max() < 1e-3


def test_epoch_stamps_keep_their_nanoseconds():
    t_ns = EPOCH_NS + np.array([0, 4], np.int64)
    trajectory = RotationTrajectory.from_rotations(t_ns, Rotation.from_rotvec([[0, 0, 0], [0, 0, 0.4]]))
    assert (trajectory.start_ns, trajectory.end_ns) == (EPOCH_NS, EPOCH_NS + 4)
    angles = trajectory.rotation_at(EPOCH_NS + np.arange(5)).as_rotvec()[:, 2]
    np.testing.assert_allclose(angles, [0, 0.1, 0.2, 0.3, 0.4], atol=1e-14)
    assert trajectory.angular_velocity_at(EPOCH_NS + 1)[2] == pytest.approx(1e8, rel=1e-12)


def test_a_quaternion_and_its_negative_are_the_same_pose():
    q = Rotation.from_rotvec([[0, 0, 0.1], [0, 0, 0.3]]).as_quat()
    trajectory = RotationTrajectory(np.array([0, 100 * MS]), q * [[1], [-1]])
    assert trajectory.rotation_at(50 * MS).as_rotvec() == pytest.approx([0, 0, 0.2])
    assert trajectory.angular_velocity_at(50 * MS) == pytest.approx([0, 0, 2.0])


def test_quaternions_are_in_the_order_xyzw():
    half = np.sqrt(0.5)
    trajectory = RotationTrajectory(np.array([0, 10]), np.array([[half, 0, 0, half], [half, 0, 0, half]]))
    np.testing.assert_allclose(trajectory.rotation_at(5).apply([0, 1, 0]), [0, 0, 1], atol=1e-15)


def test_quaternions_are_normalised():
    trajectory = RotationTrajectory(np.array([0, 10]), np.array([[0, 0, 0, 1.004], [0, 0, 0.6, 0.8]]))
    np.testing.assert_allclose(np.linalg.norm(trajectory.quaternions_xyzw, axis=1), 1, atol=1e-15)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (4,)])
def test_results_have_the_shape_of_the_times(shape):
    trajectory = sampled(10 * MS, 20)
    times = np.full(shape, 33 * MS, np.int64)
    assert trajectory.angular_velocity_at(times).shape == (*shape, 3)
    assert trajectory.rotation_at(times).as_quat().shape == (*shape, 4)
    assert trajectory.covers(times).shape == shape


def test_the_ends_are_covered_and_nothing_beyond():
    trajectory = sampled(10 * MS, 3)
    assert trajectory.covers([-1, 0, 20 * MS, 20 * MS + 1]).tolist() == [False, True, True, False]
    for ask in (trajectory.rotation_at, trajectory.angular_velocity_at):
        for outside in (-1, 20 * MS + 1):
            with pytest.raises(TrajectoryError, match=r"reach outside the trajectory.*0 to 20000000 ns"):
                ask(outside)


def test_between_is_half_open_and_keeps_positions():
    t_ns = np.arange(5, dtype=np.int64)
    trajectory = RotationTrajectory(t_ns, np.tile([0, 0, 0, 1.0], (5, 1)), np.arange(15.0).reshape(5, 3))
    part = trajectory.between(1, 4)
    assert part.t_ns.tolist() == [1, 2, 3]
    assert part.positions_m.tolist() == [[3, 4, 5], [6, 7, 8], [9, 10, 11]]
    with pytest.raises(TrajectoryError, match="fewer than two poses between 4 and 9 ns"):
        trajectory.between(4, 9)


@pytest.mark.parametrize("ask", ["rotation_at", "angular_velocity_at", "covers"])
def test_times_in_seconds_are_refused(ask):
    """A float is a time in seconds by mistake: as nanoseconds it would silently be the first pose."""
    with pytest.raises(TypeError, match="nanoseconds"):
        getattr(sampled(10 * MS, 20), ask)(0.05)


IDENTITY = [0, 0, 0, 1.0]


@pytest.mark.parametrize(
    ("t_ns", "quaternions", "error", "words"),
    [
        (np.array([0.0, 1.0]), [IDENTITY] * 2, TypeError, "int64 nanoseconds, not float64"),
        (np.array([0, 1], np.int32), [IDENTITY] * 2, TypeError, "int64 nanoseconds, not int32"),
        (np.array([0, 1, 2]), [IDENTITY] * 2, TypeError, "do not fit together"),
        (np.array([[0, 1]]), [IDENTITY], TypeError, "do not fit together"),
        (np.array([0]), [IDENTITY], TrajectoryError, "at least two poses, not 1"),
        (np.array([0, 5, 5]), [IDENTITY] * 3, TrajectoryError, "pose 2 at 5 ns follows one at 5 ns"),
        (np.array([0, 5, 4]), [IDENTITY] * 3, TrajectoryError, "pose 2 at 4 ns follows one at 5 ns"),
        (np.array([0, 1]), [IDENTITY, [0, 0, 0, 0]], TrajectoryError, "pose 1 .*not of unit length"),
        (np.array([0, 1]), [[0, 0, 0, 1.02], IDENTITY], TrajectoryError, "pose 0 .*not of unit length"),
        (np.array([0, 1]), [IDENTITY, [0, 0, np.nan, 1]], TrajectoryError, "pose 1 .*not of unit length"),
    ],
)
def test_what_is_no_trajectory_is_refused(t_ns, quaternions, error, words):
    with pytest.raises(error, match=words):
        RotationTrajectory(t_ns, np.array(quaternions))
