import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend.adjustment import Adjuster, make_solver
from cmaxslam_fbp.backend.window_objective import View
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.contrast.solvers import FletcherReeves, Lbfgsb, QuasiNewton
from cmaxslam_fbp.contrast.solvers.solver import Status
from cmaxslam_fbp.trajectory.spline import RotationSpline

FOCAL_PX = 1024 / (2 * np.pi)


def test_the_configuration_chooses_the_solver():
    quasi_newton = make_solver(BackendConfig(tolerance_deg=0.02, max_step_deg=3, max_evaluations=7), FOCAL_PX)
    assert isinstance(quasi_newton, QuasiNewton)
    assert quasi_newton.tolerance_bins == pytest.approx(0.02 * 1024 / 360)
    assert quasi_newton.max_step_bins == pytest.approx(3 * 1024 / 360)
    assert quasi_newton.max_evaluations == 7
    assert isinstance(make_solver(BackendConfig(solver="lbfgsb"), FOCAL_PX), Lbfgsb)
    baseline = make_solver(BackendConfig(solver="fletcher_reeves"), FOCAL_PX)
    assert baseline == FletcherReeves(0.1, 0.1, 1e-4, 1e-4, 50)


@pytest.mark.parametrize("solver", ["quasi_newton", "lbfgsb", "fletcher_reeves"])
def test_every_solver_climbs_on_a_window(recording, solver):
    """From the true motion turned by up to a degree, on a linear spline, without a map."""
    window = recording.windows(end_s=1.0)[7]
    config = BackendConfig(spline="linear", solver=solver, knot_s=0.05, prior_events=0)
    adjuster = Adjuster(config, recording.simulation.camera)
    t_s = (window.start_ns + 50_000_000 * np.arange(5) - recording.simulation.start_ns) * 1e-9
    exact = Rotation.from_matrix(recording.simulation.motion.rotations(t_s))
    turned = Rotation.from_rotvec(np.radians(np.linspace(0, 1, 5))[:, None] * np.array([0.5, 0.7, 0.5])) * exact
    true, start = (RotationSpline(2, window.start_ns, 50_000_000, turn.as_quat()) for turn in (exact, turned))
    warp = adjuster.warp(window)
    region = adjuster.region(warp, start)
    empty = np.zeros(region.shape, np.float32)
    adjusted = adjuster.adjust(View(warp, region, empty, empty), start, 1)
    assert adjusted.solution.status in (Status.CONVERGED, Status.STALLED)
    sharpness = [adjuster.image(warp, spline, region).var() for spline in (start, true, adjusted.spline)]
    assert sharpness[2] > sharpness[0]
    assert sharpness[2] > (0.93 if solver == "fletcher_reeves" else 0.95) * sharpness[1]
    np.testing.assert_array_equal(adjusted.spline.quaternions_xyzw[0], start.quaternions_xyzw[0])
    assert adjusted.image.sum() == len(window.events)


class Hill:
    """`10 exp(-q / 20)` with `q = (x - top)^T A (x - top)`; its model of the Hessian is that of the top."""

    A = np.array([[3.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 0.7]])
    TOP = np.array([0.4, -0.7, 0.2])

    def __init__(self):
        self.evaluations = self.hessians = 0
        self.places = []

    def value(self, x):
        return self.value_and_gradient(x)[0]

    def value_and_gradient(self, x):
        self.evaluations += 1
        self.places.append(np.array(x))
        d = x - self.TOP
        value = 10 * np.exp(-(d @ self.A @ d) / 20)
        return value, -value * (self.A @ d) / 10

    def hessian(self, x):
        self.hessians += 1
        return -self.A


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_the_quasi_newton_method_finds_the_top_with_a_rough_model(scale):
    hill = Hill()
    solution = QuasiNewton(tolerance_bins=1e-4, model_scale=scale).maximise(hill, Hill.TOP + np.array([0.9, -0.5, 0.7]))
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.parameters, Hill.TOP, atol=1e-4)
    assert solution.score == pytest.approx(Hill().value(solution.evaluated))
    assert (solution.evaluations, solution.hessians) == (hill.evaluations, 1)
    given = QuasiNewton().maximise(Hill(), Hill.TOP + 0.1, hessian=-Hill.A)
    assert given.hessians == 0


def test_the_first_step_of_the_quasi_newton_method_is_newton_s_cut_to_the_longest():
    start = Hill.TOP + 0.05
    hill = Hill()
    QuasiNewton(model_scale=2.0).maximise(hill, start)
    step = np.linalg.solve(2 * Hill.A, Hill().value_and_gradient(start)[1])
    np.testing.assert_allclose(hill.places[1] - start, step, rtol=1e-9)
    hill = Hill()
    QuasiNewton(model_scale=2.0, tolerance_bins=1e-3, max_step_bins=0.1).maximise(hill, start, unit=0.1)
    assert np.abs(hill.places[1] - start).max() == pytest.approx(0.01)


def test_the_quasi_newton_method_ends_at_its_limit_and_where_nothing_can_be_told():
    limited = QuasiNewton(max_evaluations=3, max_step_bins=0.1).maximise(Hill(), Hill.TOP + 3.0)
    assert (limited.status, limited.evaluations) == (Status.ITERATION_LIMIT, 3)

    class Silent(Hill):
        factor = np.nan

        def value_and_gradient(self, x):
            value, gradient = super().value_and_gradient(x)
            return value * self.factor, gradient * self.factor

        def hessian(self, x):
            return super().hessian(x) * self.factor

    class Flat(Silent):
        factor = 0.0

    for objective in (Silent(), Flat()):
        solution = QuasiNewton().maximise(objective, np.ones(3))
        assert solution.status is Status.DEGENERATE
        np.testing.assert_array_equal(solution.parameters, np.ones(3))


def test_the_quasi_newton_method_takes_a_step_that_flattens_the_slope_of_a_staircase():
    class Staircase(Hill):
        def value_and_gradient(self, x):
            value, gradient = super().value_and_gradient(x)
            return np.round(value, 1), gradient

    solution = QuasiNewton().maximise(Staircase(), Hill.TOP + np.array([0.3, 0.2, -0.3]))
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.parameters, Hill.TOP, atol=0.02)
