"""Samples of angular velocity and their interpolation."""

import numpy as np
import pytest

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.trajectory import AngularVelocities

EPOCH_NS = 1468939993067416019
MS = 1_000_000


def cubic(t_ns):
    t = (np.asarray(t_ns) / 1e8)[..., None]
    return np.array([1.0, -2.0, 3.0]) + np.array([0.5, 1.0, 0]) * t + np.array([1.0, 0, -0.2]) * t**3


@pytest.mark.parametrize("origin_ns", [0, EPOCH_NS])
def test_a_cubic_is_interpolated_exactly(origin_ns):
    t_ns = np.array([0, 20, 50, 70, 110, 130]) * MS
    velocities = AngularVelocities(origin_ns + t_ns, cubic(t_ns))
    times = np.arange(0, 131, 3) * MS
    np.testing.assert_allclose(velocities.at(origin_ns + times), cubic(times), atol=1e-12)


def test_the_error_of_a_smooth_rate_falls_with_the_fourth_power():
    times = np.arange(200, 800) * MS
    errors = []
    for n in (25, 50):
        t_ns = np.linspace(0, 1000 * MS, n + 1).astype(np.int64)
        velocities = AngularVelocities(t_ns, np.sin(8e-9 * t_ns[:, None] + [0, 1, 2]))
        errors.append(np.abs(velocities.at(times) - np.sin(8e-9 * times[:, None] + [0, 1, 2])).max())
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.2)


def test_two_samples_are_joined_by_a_line():
    velocities = AngularVelocities(np.array([0, 10]), np.array([[0.0, 1, 2], [10, 21, 32]]))
    assert velocities.at(5).tolist() == [5, 11, 17]
    assert velocities.at([0, 10]).tolist() == [[0, 1, 2], [10, 21, 32]]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_results_have_the_shape_of_the_times(shape):
    velocities = AngularVelocities(np.arange(6) * MS, np.zeros((6, 3)))
    assert velocities.at(np.full(shape, 3 * MS, np.int64)).shape == (*shape, 3)


def test_times_outside_the_samples_are_refused():
    velocities = AngularVelocities(np.arange(6) * MS, np.zeros((6, 3)))
    for outside in (-1, 5 * MS + 1):
        with pytest.raises(TrajectoryError, match="outside the 6 angular velocities"):
            velocities.at([2 * MS, outside])
    with pytest.raises(TrajectoryError, match="outside the 1 angular velocities"):
        AngularVelocities(np.array([0]), np.zeros((1, 3))).at(0)


def test_times_in_seconds_are_refused():
    with pytest.raises(TypeError, match="nanoseconds"):
        AngularVelocities(np.arange(6) * MS, np.zeros((6, 3))).at(0.002)


@pytest.mark.parametrize("t_ns", [[0, 5, 5], [0, 5, 4]])
def test_times_must_increase(t_ns):
    with pytest.raises(TrajectoryError, match="must increase"):
        AngularVelocities(np.array(t_ns), np.zeros((3, 3)))


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="do not fit together"):
        AngularVelocities(np.arange(3), np.zeros((2, 3)))
    with pytest.raises(TypeError, match="do not fit together"):
        AngularVelocities(np.arange(3.0), np.zeros((3, 3)))


def test_a_single_velocity_that_errs_does_not_count():
    t_ns = np.arange(6, dtype=np.int64)
    steady = np.outer(np.arange(6.0), [1.0, -2.0, 0.5])
    wrong = steady.copy()
    wrong[3] += [40.0, 0.0, -3.0]
    mended = AngularVelocities(t_ns, wrong).without_outliers().omega_rad_s
    np.testing.assert_array_equal(AngularVelocities(t_ns, steady).without_outliers().omega_rad_s, steady)
    assert np.abs(mended - steady).max() <= 2.0
    few = AngularVelocities(t_ns[:2], wrong[:2])
    np.testing.assert_array_equal(few.without_outliers().omega_rad_s, wrong[:2])
