import numpy as np
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend import orientation_covariance as module
from cmaxslam_fbp.backend.backend import Backend
from cmaxslam_fbp.backend.orientation_covariance import orientation_covariance
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.fbp import Binning


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
    found = orientation_covariance(QuadraticObjective(hessian, scatter), spline, 2, t_ns, 1024 / (2 * np.pi))
    # The body's turns for small turns of the control rotations, by differences.
    step, here = 1e-6, Rotation.from_matrix(spline.rotations_at(t_ns))
    J = np.empty((3, count))
    for n, turn in enumerate(np.eye(count)):
        there = spline.with_perturbation(2, step * turn.reshape(-1, 3))
        J[:, n] = (here.inv() * Rotation.from_matrix(there.rotations_at(t_ns))).as_rotvec() / step
    omega = spline.angular_velocities_at(t_ns)
    expected = J @ np.linalg.inv(hessian) @ scatter @ np.linalg.inv(hessian) @ J.T
    expected += (module._MAP_ERROR_PX * 2 * np.pi / 1024) ** 2 * np.eye(3) + module._TIME_ERROR_S**2 * np.outer(
        omega, omega
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_errors_are_as_large_as_their_standard_deviations_say(recording):
    """The normalised error squared is 3 in the mean; of a single short recording, whose errors are alike, near it."""
    backend = Backend(BackendConfig(), recording.simulation.camera)
    for window in recording.windows():
        backend.process(window, recording.velocities())
    reports = [report for report in backend.state.reports.values() if report.covariance is not None]
    assert len(reports) >= 14
    t_ns = np.array([(report.start_ns + report.end_ns) // 2 for report in reports])[:-1]
    found = Rotation.from_quat(backend.state.spline.quaternions_at(t_ns))
    exact = Rotation.from_matrix(recording.simulation.motion.rotations((t_ns - recording.simulation.start_ns) * 1e-9))
    world = (exact * found.inv()).mean()
    errors = ((world * found).inv() * exact).as_rotvec()
    squares = [e @ np.linalg.solve(report.covariance, e) for e, report in zip(errors, reports, strict=False)]
    assert 0.5 < np.mean(squares) < 6
    assert all(np.linalg.eigvalsh(report.covariance).min() > 0 for report in reports)
