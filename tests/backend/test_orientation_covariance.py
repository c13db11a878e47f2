import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend import orientation_covariance as module
from cmaxslam_fbp.backend.backend import Backend
from cmaxslam_fbp.backend.orientation_covariance import orientation_covariance
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.evaluation.normalised_errors import normalised_errors_squared
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.simulation import SENSORS, SimulationSettings
from cmaxslam_fbp.trajectory.spline import RotationSpline


def test_the_scatter_of_the_gradient_is_the_sum_over_events_written_out(make_window, delta):
    window = make_window()
    binning = Binning((128, 768), "rect", "linear", backend="reference")
    bar, _ = binning.vjp(window.points(delta), None, np.tile(window.adjoint_image(delta), 3))
    by_event = np.einsum("nca,nc->na", window.turn_jacobians(delta), bar)
    slot, s = window.slots()
    controls = window.to_controls(delta)
    expected = 0.0
    for m in np.unique(slot):  # lumped at the edges of the slots, as the curvature is
        share, outer = s[slot == m].mean(), np.einsum("ni,nj->ij", by_event[slot == m], by_event[slot == m])
        expected += (1 - share) * controls[m].T @ outer @ controls[m]
        expected += share * controls[m + 1].T @ outer @ controls[m + 1]
    found = window.objective().gradient_scatter(delta)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


class QuadraticObjective:
    """Stands for a window whose score and noise are known."""

    def __init__(self, hessian, scatter):
        self.hessian, self.gradient_scatter = (lambda _: hessian), (lambda _: scatter)


def test_the_covariance_is_carried_to_the_body_frame_of_a_time(make_window, monkeypatch):
    spline = make_window().spline
    count = 3 * (len(spline) - 2)
    random = np.random.default_rng(1)
    half = random.normal(size=(count, count))
    hessian, scatter = -(half @ half.T + 3 * np.eye(count)), 1e-4 * np.diag(random.uniform(1, 3, count))
    t_ns = spline.start_ns + 117_000_000
    monkeypatch.setattr(module, "_NOISE_SCALE", 1.0)
    monkeypatch.setattr(module, "_TURNING_PX", 0.0)
    objective = QuadraticObjective(hessian, scatter)
    found = orientation_covariance(objective, spline, 2, t_ns, 1024 / (2 * np.pi), seen_s=0.25)
    # The body's turns for small turns of the control rotations, by differences.
    step, here = 1e-6, Rotation.from_matrix(spline.rotations_at(t_ns))
    J = np.empty((3, count))
    for n, turn in enumerate(np.eye(count)):
        there = spline.with_perturbation(2, step * turn.reshape(-1, 3))
        J[:, n] = (here.inv() * Rotation.from_matrix(there.rotations_at(t_ns))).as_rotvec() / step
    omega = spline.angular_velocities_at(t_ns)
    expected = J @ np.linalg.inv(hessian) @ scatter @ np.linalg.inv(hessian) @ J.T
    beginning = module._BEGINNING_PX * module._BEGINNING_S / 0.25 * 2 * np.pi / 1024
    expected += beginning**2 * np.eye(3) + module._TIME_ERROR_S**2 * np.outer(omega, omega)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def variance_px2(spline, t_ns, seen_s):
    """The variance in pixels of a window that all but the events' noise makes uncertain."""
    count = 3 * (len(spline) - 2)
    objective = QuadraticObjective(-np.eye(count), np.zeros((count, count)))
    found = orientation_covariance(objective, spline, 2, t_ns, 100.0, seen_s) * 100.0**2
    omega = spline.angular_velocities_at(t_ns)
    found -= module._TIME_ERROR_S**2 * np.outer(omega, omega) * 100.0**2
    np.testing.assert_allclose(found, found[0, 0] * np.eye(3), atol=1e-9)
    return found[0, 0]


def test_the_mean_of_many_windows_is_better_than_the_first(make_window):
    spline = make_window().spline
    first, tenth = (variance_px2(spline, spline.start_ns + 100_000_000, seen_s) for seen_s in (0.1, 1.0))
    assert first - tenth == pytest.approx(0.99 * module._BEGINNING_PX**2, rel=1e-6)
    assert variance_px2(spline, spline.start_ns + 100_000_000, 0.0) == first


def test_edges_stop_inside_pixels_where_the_motion_turns_round():
    step_ns, turns = 20_000_000, 4e-4 * (np.arange(20) - 9.0) ** 2
    quaternions = Rotation.from_rotvec(np.outer(turns, [0, 1, 0])).as_quat()
    spline = RotationSpline(4, 0, step_ns, quaternions)
    # A parabola: the rate is `2 rad/s^2` times the time since the turn, which is in the middle.
    turn_ns = round(8 * step_ns)
    np.testing.assert_allclose(spline.angular_velocities_at(turn_ns), 0, atol=1e-9)
    beginning, turning = (module._BEGINNING_PX * 0.1) ** 2, module._TURNING_PX**2
    assert variance_px2(spline, turn_ns, 1.0) == pytest.approx(beginning + turning, rel=1e-3)
    later_ns = turn_ns + round(3e9 * module._TURNING_S)
    assert variance_px2(spline, later_ns, 1.0) == pytest.approx(beginning + turning / (1 + 3**2), rel=1e-3)


def reports_with_squares(recording):
    """The reports of the windows in the map, and their normalised errors squared, but for the last one."""
    backend = Backend(BackendConfig(), recording.simulation.camera)
    for window in recording.windows():
        backend.process(window, recording.velocities())
    reports = [report for report in backend.state.reports.values() if report.covariance is not None]
    t_ns = np.array([(report.start_ns + report.end_ns) // 2 for report in reports])[:-1]
    found = Rotation.from_quat(backend.state.spline.quaternions_at(t_ns))
    exact = Rotation.from_matrix(recording.simulation.motion.rotations((t_ns - recording.simulation.start_ns) * 1e-9))
    covariances = np.array([report.covariance for report in reports[:-1]])
    return reports, normalised_errors_squared(exact, found, covariances)


def test_errors_are_as_large_as_their_standard_deviations_say(recording):
    """The normalised error squared is 3 in the mean; of a single short recording, whose errors are alike, near it."""
    reports, squares = reports_with_squares(recording)
    assert len(reports) >= 14
    assert 0.5 < np.mean(squares) < 6
    assert all(np.linalg.eigvalsh(report.covariance).min() > 0 for report in reports)


def test_over_sensors_and_motions_the_deviations_are_right(simulate):
    """Deviations that are 1.5 times too large or too small would change the normalised error squared by 2.25."""
    means = []
    for sensor, (speed_deg_s, seed) in itertools.product(("ideal", "davis"), ((250.0, 1), (100.0, 2))):
        settings = SimulationSettings(duration_s=2.5, peak_speed_deg_s=speed_deg_s, sensor=SENSORS[sensor], seed=seed)
        means.append(reports_with_squares(simulate(settings))[1].mean())
    assert 1.5 < np.mean(means) < 4.5
