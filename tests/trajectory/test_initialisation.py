"""Integration of angular velocities, and least-squares fits of splines."""

import numpy as np
import pytest
from curved_motion import curved
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory
from cmaxslam_fbp.trajectory.initialisation import continue_spline, fit_spline, integrate_angular_velocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

EPOCH_NS = 1468939993067416019
MS = 1_000_000
STEP_NS = 50 * MS
START = Rotation.from_rotvec([0.2, 1.0, -0.7])
both_orders = pytest.mark.parametrize("order", [2, 4])


def angle_between(a, b):
    return (a.inv() * b).magnitude()


def sampled_velocities(step_ns, count, origin_ns=EPOCH_NS):
    t_ns = np.arange(count, dtype=np.int64) * step_ns
    return AngularVelocities(origin_ns + t_ns, curved(t_ns)[1])


def random_spline(order, count, turn_rad=0.3, seed=0):
    random = np.random.default_rng(seed)
    rotation, controls = START, []
    for _ in range(count):
        controls.append(rotation.as_quat())
        rotation = rotation * Rotation.from_rotvec(random.normal(size=3) * turn_rad)
    return RotationSpline(order, EPOCH_NS, STEP_NS, np.array(controls))


def sampled(spline, rate_hz):
    times = np.arange(spline.start_ns, spline.end_ns + 1, 1_000_000_000 // rate_hz)
    return RotationTrajectory(times, spline.quaternions_at(times))


def fitted(samples, order, count, **options):
    return fit_spline(samples, order=order, start_ns=EPOCH_NS, step_ns=STEP_NS, count=count, **options)


def misfit(spline, samples):
    return angle_between(Rotation.from_quat(spline.quaternions_at(samples.t_ns)), samples.rotations)


# --- integration


@pytest.mark.parametrize("origin_ns", [0, EPOCH_NS])
def test_a_constant_rate_is_integrated_exactly(origin_ns):
    omega = np.array([4.0, -7.0, 2.0])
    velocities = AngularVelocities(origin_ns + np.array([0, 7, 11, 40, 90]) * MS, np.tile(omega, (5, 1)))
    motion = integrate_angular_velocities(velocities, START, origin_ns + 5 * MS, origin_ns + 77 * MS)
    expected = START * Rotation.from_rotvec(np.outer((motion.t_ns - origin_ns - 5 * MS) / 1e9, omega))
    assert angle_between(motion.rotations, expected).max() < 1e-14


def test_every_sample_counts_and_both_ends_are_met():
    velocities = sampled_velocities(10 * MS, 12)
    start_ns, end_ns = EPOCH_NS + 13 * MS, EPOCH_NS + 71 * MS
    motion = integrate_angular_velocities(velocities, START, start_ns, end_ns)
    assert (motion.t_ns - EPOCH_NS).tolist() == [t * MS for t in (13, 20, 30, 40, 50, 60, 70, 71)]
    assert angle_between(motion.rotations[0], START) < 1e-15
    for k in range(2, 7):
        changed = velocities.omega_rad_s.copy()
        changed[k] += [0.1, 0, 0]
        other = integrate_angular_velocities(AngularVelocities(velocities.t_ns, changed), START, start_ns, end_ns)
        assert angle_between(other.rotations[-1], motion.rotations[-1]) == pytest.approx(0.1 * 0.01, rel=0.15)


def test_ends_on_samples_are_not_doubled():
    velocities = sampled_velocities(10 * MS, 5)
    motion = integrate_angular_velocities(velocities, START, EPOCH_NS + 10 * MS, EPOCH_NS + 40 * MS)
    np.testing.assert_array_equal(motion.t_ns, velocities.t_ns[1:])


def test_the_rate_is_applied_in_the_body_frame():
    velocities = AngularVelocities(np.array([0, 1000 * MS]), np.array([[0, 0, np.pi / 2]] * 2))
    start = Rotation.from_rotvec([np.pi / 2, 0, 0])  # the body's z is minus the world's y
    end = integrate_angular_velocities(velocities, start, 0, 1000 * MS).rotations[-1]
    expected = Rotation.from_rotvec([0, -np.pi / 2, 0]) * start
    assert angle_between(end, expected) < 1e-15


def test_halving_the_step_quarters_the_error():
    start_ns, end_ns = EPOCH_NS + 3_141_593, EPOCH_NS + 992_653_589  # ends between samples
    errors = []
    for n in (50, 100, 200, 400):
        velocities = sampled_velocities(1000 * MS // n, n + 1)
        motion = integrate_angular_velocities(velocities, curved(start_ns - EPOCH_NS)[0], start_ns, end_ns)
        errors.append(angle_between(motion.rotations, curved(motion.t_ns - EPOCH_NS)[0]).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    np.testing.assert_allclose(ratios, 4, rtol=0.1)
    assert errors[1] < 5e-4


def test_outside_the_samples_the_rate_stays():
    velocities = AngularVelocities(EPOCH_NS + np.array([0, 10]) * MS, np.array([[1.0, 0, 0], [3.0, 0, 0]]))
    motion = integrate_angular_velocities(velocities, Rotation.identity(), EPOCH_NS - 20 * MS, EPOCH_NS + 40 * MS)
    np.testing.assert_allclose(motion.rotations.as_rotvec()[:, 0], [0, 0.02, 0.04, 0.13], atol=1e-14)
    after = integrate_angular_velocities(velocities, Rotation.identity(), EPOCH_NS + 20 * MS, EPOCH_NS + 30 * MS)
    np.testing.assert_allclose(after.rotations.as_rotvec()[:, 0], [0, 0.03], atol=1e-15)


def test_one_sample_is_a_constant_rate():
    velocities = AngularVelocities(np.array([EPOCH_NS]), np.array([[0, 2.0, 0]]))
    motion = integrate_angular_velocities(velocities, Rotation.identity(), EPOCH_NS - 5 * MS, EPOCH_NS + 5 * MS)
    np.testing.assert_allclose(motion.rotations.as_rotvec()[-1], [0, 0.02, 0], atol=1e-15)


def test_a_long_integration_stays_on_the_sphere():
    velocities = AngularVelocities(np.arange(20_000) * MS, np.random.default_rng(0).normal(size=(20_000, 3)) * 20)
    motion = integrate_angular_velocities(velocities, START, 0, 20_000 * MS)
    assert len(motion) == 20_001
    np.testing.assert_allclose(np.linalg.norm(motion.quaternions_xyzw, axis=1), 1, atol=1e-15)


def test_nothing_to_integrate_is_refused():
    with pytest.raises(TrajectoryError, match="no angular velocities"):
        integrate_angular_velocities(AngularVelocities(np.empty(0, np.int64), np.empty((0, 3))), START, 0, 1)
    with pytest.raises(TrajectoryError, match="ends at 5 ns, which is not after its start at 5 ns"):
        integrate_angular_velocities(sampled_velocities(10, 3), START, 5, 5)


# --- fits


@both_orders
@pytest.mark.parametrize("turn_rad", [0.0, 1e-3, 0.3, 0.8])
def test_a_fit_recovers_the_spline_that_was_sampled(order, turn_rad):
    truth = random_spline(order, 9, turn_rad)
    samples = sampled(truth, 200)
    found = fitted(samples, order, 9, smoothness=1e-14)
    assert misfit(found, samples).max() < 1e-10
    controls = (Rotation.from_quat(s.quaternions_xyzw) for s in (found, truth))
    assert angle_between(*controls).max() < 1e-9


@both_orders
def test_the_regulariser_is_too_weak_to_be_seen(order):
    truth = random_spline(order, 9, 0.1)
    samples = sampled(truth, 100)
    assert misfit(fitted(samples, order, 9), samples).max() < 1e-6


@both_orders
def test_a_fit_is_the_minimum_that_a_general_optimiser_finds(order):
    """Noisy samples, so that the residual is not zero, against scipy with its own finite differences."""
    truth = random_spline(order, 7)
    clean = sampled(truth, 100)
    noise = Rotation.from_rotvec(np.random.default_rng(1).normal(size=(len(clean), 3)) * 0.05)
    samples = RotationTrajectory.from_rotations(clean.t_ns, clean.rotations * noise)
    found = fitted(samples, order, 7)

    def residuals(deltas):
        moved = truth.with_perturbation(0, deltas)
        controls = Rotation.from_quat(moved.quaternions_xyzw)
        steps = (controls[:-1].inv() * controls[1:]).as_rotvec()
        value = Rotation.from_quat(moved.quaternions_at(samples.t_ns))
        stiffness = 1e-8 * len(samples) / 7
        data = (value.inv() * samples.rotations).as_rotvec().ravel()
        return np.concatenate([data, np.sqrt(stiffness) * np.diff(steps, axis=0).ravel()])

    best = least_squares(residuals, np.zeros(21), jac="3-point", xtol=1e-15, ftol=1e-15, gtol=1e-15)
    expected = truth.with_perturbation(0, best.x)
    controls = (Rotation.from_quat(s.quaternions_xyzw) for s in (found, expected))
    assert angle_between(*controls).max() < 1e-7
    assert misfit(found, samples).mean() > 0.03


@pytest.mark.parametrize(("motion", "power"), [("one axis", 4), ("changing axis", 3)])
def test_a_cubic_fit_of_a_smooth_motion_converges_with_the_step(motion, power):
    """The fourth power about one axis; where the axis changes, factors of the product that do not commute cost one."""
    t_ns = np.arange(0, 1001) * MS
    if motion == "one axis":
        rotations = START * Rotation.from_rotvec(np.outer(np.sin(5e-9 * t_ns), [0.36, -0.48, 0.8]))
    else:
        rotations = curved(t_ns)[0]
    samples = RotationTrajectory.from_rotations(t_ns, rotations)
    errors = [
        misfit(fit_spline(samples, order=4, start_ns=0, step_ns=1000 * MS // n, count=n + 3), samples).max()
        for n in (20, 40, 80)
    ]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), power, atol=0.35)


@both_orders
def test_fixed_control_rotations_do_not_move(order):
    truth = random_spline(order, 8)
    samples = sampled(truth, 100)
    fixed = truth.with_perturbation(0, [[0.05, -0.02, 0.01]]).quaternions_xyzw[: order - 1]
    found = fitted(samples, order, 8, fixed_xyzw=fixed)
    np.testing.assert_array_equal(found.quaternions_xyzw[: order - 1], fixed)
    free = fitted(samples, order, 8)
    assert misfit(found, samples)[:3].max() > 10 * misfit(free, samples)[:3].max()
    late = samples.t_ns > EPOCH_NS + 3 * STEP_NS
    assert misfit(found, samples)[late].max() < 0.01
    exact = fitted(samples, order, 8, fixed_xyzw=truth.quaternions_xyzw[: order - 1], smoothness=1e-14)
    assert misfit(exact, samples).max() < 1e-9


@both_orders
def test_all_control_rotations_may_be_fixed(order):
    truth = random_spline(order, 6)
    found = fitted(sampled(truth, 100), order, 6, fixed_xyzw=truth.quaternions_xyzw)
    np.testing.assert_array_equal(found.quaternions_xyzw, truth.quaternions_xyzw)


@both_orders
@pytest.mark.parametrize("fixed", [0, 1])
def test_what_no_sample_constrains_goes_on_at_a_constant_rate(order, fixed):
    omega = np.array([2.0, -1.0, 4.0])
    t_ns = EPOCH_NS + np.concatenate([np.arange(0, 200, 10), np.arange(400, 500, 10)]) * MS  # a gap, and no end
    motion = RotationTrajectory.from_rotations(
        t_ns, START * Rotation.from_rotvec(np.outer((t_ns - EPOCH_NS) / 1e9, omega))
    )
    places_s = (np.arange(20) - (order // 2 - 1)) * STEP_NS / 1e9
    expected = START * Rotation.from_rotvec(np.outer(places_s, omega))
    found = fitted(motion, order, 20, fixed_xyzw=expected.as_quat()[:fixed])
    assert angle_between(Rotation.from_quat(found.quaternions_xyzw), expected).max() < 1e-7


@both_orders
def test_two_samples_are_enough(order):
    t_ns = EPOCH_NS + np.array([10, 20]) * MS
    samples = RotationTrajectory.from_rotations(t_ns, Rotation.from_rotvec([[0, 0, 0], [0, 0, 0.1]]))
    found = fitted(samples, order, 8)
    np.testing.assert_allclose(found.angular_velocities_at(t_ns), [[0, 0, 10.0]] * 2, atol=1e-6)
    np.testing.assert_allclose(found.angular_velocities_at(found.end_ns), [0, 0, 10.0], atol=1e-6)


@both_orders
def test_a_camera_that_turns_on_and_on_is_fitted(order):
    omega = np.array([10.0, -20.0, 25.0])  # 1.7 rad from control to control
    t_ns = EPOCH_NS + np.arange(0, 2001, 10) * MS
    samples = RotationTrajectory.from_rotations(
        t_ns, START * Rotation.from_rotvec(np.outer((t_ns - EPOCH_NS) / 1e9, omega))
    )
    found = fitted(samples, order, 40 + order - 1)
    assert misfit(found, samples).max() < 1e-10


@both_orders
def test_integrated_velocities_continue_a_refined_spline(order):
    """One step of a sliding window: integration from the last refined pose, and a fit that keeps what is refined."""
    velocities = sampled_velocities(10 * MS, 101)
    t_ns = np.arange(0, 501, 5) * MS
    refined = fitted(RotationTrajectory.from_rotations(EPOCH_NS + t_ns, curved(t_ns)[0]), order, 10 + order - 1)
    start_ns, end_ns = EPOCH_NS + 450 * MS, EPOCH_NS + 600 * MS
    motion = integrate_angular_velocities(
        velocities, Rotation.from_quat(refined.quaternions_at(start_ns)), start_ns, end_ns
    )
    grown = continue_spline(refined, 6, order - 1, motion)
    assert (grown.start_ns, grown.end_ns) == (EPOCH_NS, end_ns)
    np.testing.assert_array_equal(grown.quaternions_xyzw[: 6 + order - 1], refined.quaternions_xyzw[: 6 + order - 1])
    times = np.arange(0, 601) * MS
    error = angle_between(Rotation.from_quat(grown.quaternions_at(EPOCH_NS + times)), curved(times)[0])
    assert np.degrees(error.max()) < (0.3 if order == 2 else 0.02)


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_an_error_of_the_last_control_rotations_does_not_grow_while_a_spline_is_continued(stride):
    """The camera stands still; a wrong control rotation at the end of the spline fades out in those that follow."""
    still = AngularVelocities(EPOCH_NS + np.arange(0, 10_000, 10) * MS, np.zeros((1000, 3)))
    controls = Rotation.from_rotvec(np.outer([0] * 10 + [1e-3], [1, 0, 0])).as_quat()
    spline = RotationSpline(4, EPOCH_NS, STEP_NS, controls)
    for _ in range(20):
        known_ns = spline.end_ns - STEP_NS
        turn = Rotation.from_quat(spline.quaternions_at(known_ns))
        motion = integrate_angular_velocities(still, turn, known_ns, spline.end_ns + stride * STEP_NS)
        spline = continue_spline(spline, len(spline) - 7 + stride, 2, motion)
    steps = Rotation.from_quat(spline.quaternions_xyzw)
    rates = (steps[:-1].inv() * steps[1:]).magnitude()
    assert rates[9:].max() < 1e-3
    assert rates[-10:].max() < 1e-6


def test_fits_that_cannot_be_are_refused():
    samples = sampled(random_spline(2, 9), 100)
    with pytest.raises(TrajectoryError, match="reach outside the spline"):
        fitted(samples, 2, 8)
    with pytest.raises(TrajectoryError, match="10 control rotations are fixed, but the spline has only 9"):
        fitted(samples, 2, 9, fixed_xyzw=np.tile([0, 0, 0, 1.0], (10, 1)))
    with pytest.raises(TrajectoryError, match="at least 4 control rotations"):
        fitted(samples, 4, 3)
