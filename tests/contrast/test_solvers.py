import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cmaxslam_fbp.choices import SOLVERS
from cmaxslam_fbp.contrast.finite_differences import FiniteDifferences
from cmaxslam_fbp.contrast.solvers import FletcherReeves, Lbfgsb, Newton, QuasiNewton, TrustNcg, newton_kernels
from cmaxslam_fbp.contrast.solvers.solver import Status

NAMES = SOLVERS.names()
TOP = np.array([0.4, -0.7, 0.2])


class Hill:
    """`10 exp(-q / 20)` with `q = (x - top)^T A (x - top)`: concave near the top, convex far away, one maximum."""

    A = np.array([[3.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 0.7]])

    def __init__(self):
        self.evaluations = self.hessians = 0

    def value(self, x):
        self.evaluations += 1
        d = x - TOP
        return 10 * np.exp(-(d @ self.A @ d) / 20)

    def value_and_gradient(self, x):
        value = self.value(x)
        return value, -value * (self.A @ (x - TOP)) / 10

    def hessian(self, x):
        self.hessians += 1
        self.evaluations += 1
        value, gradient = self.value_and_gradient(x)
        self.evaluations -= 2
        return np.outer(gradient, gradient) / value - value * self.A / 10


class Staircase(Hill):
    """The same hill as a histogram sees it: values in steps, gradients with noise that depends on the place only."""

    def value(self, x):
        return np.round(super().value(x), 1)

    def value_and_gradient(self, x):
        _, gradient = super().value_and_gradient(x)
        self.evaluations -= 1
        noise = np.sin(1e4 * x) * 1e-3
        return self.value(x), gradient + noise


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("start", [np.zeros(3), TOP + np.array([1.5, -1.0, 2.0])], ids=["near", "far"])
def test_every_solver_finds_the_top(name, start):
    hill = Hill()
    solver = FletcherReeves(relative_change=1e-8) if name == "fletcher_reeves" else SOLVERS[name]()
    solution = solver.maximise(hill, start)
    assert solution.status is Status.CONVERGED
    tolerance = {"fletcher_reeves": 0.01, "newton": 0.01, "quasi_newton": 0.01}.get(name, 1e-3)
    np.testing.assert_allclose(solution.parameters, TOP, atol=tolerance)
    assert solution.score == pytest.approx(hill.value(solution.evaluated))
    assert 0 < solution.evaluations == hill.evaluations - 1
    assert solution.hessians == hill.hessians


class Rounded(Staircase):
    """The staircase on another device: sums that differ in their last digits."""

    def value_and_gradient(self, x):
        value, gradient = super().value_and_gradient(x)
        return value, gradient * (1 + 1e-9)

    def hessian(self, x):
        return super().hessian(x) * (1 - 1e-9)


@pytest.mark.parametrize("unit", [1.0, 0.3])
def test_on_a_lattice_the_last_digits_of_sums_do_not_matter(unit):
    lattice = 2.0**-11
    random = np.random.default_rng(0)
    starts = TOP + random.uniform(-1, 1, (40, 3))
    pairs = [
        [Newton(lattice_bins=lattice).maximise(hill(), start, unit=unit) for hill in (Staircase, Rounded)]
        for start in starts
    ]
    assert all((one.parameters == other.parameters).all() for one, other in pairs)
    for one, _ in pairs:
        steps = one.parameters / (lattice * unit)
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
        np.testing.assert_allclose(one.parameters, TOP, atol=0.02)
    without = [
        [Newton().maximise(hill(), start, unit=unit).parameters for hill in (Staircase, Rounded)] for start in starts
    ]
    assert any((one != other).any() for one, other in without)


def test_newton_climbs_a_staircase_by_its_gradient():
    solution = Newton().maximise(Staircase(), TOP + np.array([0.9, 0.4, -0.8]))
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.parameters, TOP, atol=0.03)


def test_newton_uses_a_given_hessian_and_returns_its_own():
    hill = Hill()
    solution = Newton().maximise(hill, TOP + 0.05, hessian=-hill.A)
    assert (solution.hessians, hill.hessians) == (0, 0)
    assert (np.linalg.eigvalsh(solution.hessian) < 0).all()
    there = Newton().maximise(hill, TOP, hessian=-hill.A)
    assert (there.evaluations, there.status) == (1, Status.CONVERGED)
    np.testing.assert_array_equal(there.hessian, -hill.A)


def test_newton_corrects_a_wrong_hessian_along_its_steps():
    """The secant condition: the model explains the change of the gradient over the last step."""
    points = []

    class Watched(Hill):
        def value_and_gradient(self, x):
            points.append((np.array(x), super().value_and_gradient(x)[1]))
            return super().value_and_gradient(x)

    solution = Newton().maximise(Watched(), TOP + 0.1, hessian=-3 * Hill.A)
    (before, gradient_before), (after, gradient_after) = points[-2:]
    np.testing.assert_allclose(solution.hessian @ (after - before), gradient_after - gradient_before, rtol=1e-9)


def test_newton_adds_its_last_step_without_an_evaluation():
    start = TOP + 0.005
    solution = Newton(tolerance_bins=0.01).maximise(Hill(), start, hessian=-Hill.A)
    assert solution.evaluations == 1
    np.testing.assert_array_equal(solution.evaluated, start)
    np.testing.assert_allclose(solution.parameters, TOP, atol=1e-5)


def test_newton_leaves_a_place_where_the_score_is_convex():
    start = TOP + np.array([0, 0, 8.0])
    assert np.linalg.eigvalsh(Hill().hessian(start)).max() > 0
    solution = Newton().maximise(Hill(), start)
    np.testing.assert_allclose(solution.parameters, TOP, atol=0.01)


def test_newton_takes_no_step_longer_than_its_radius():
    steps = []

    class Watched(Hill):
        def value_and_gradient(self, x):
            steps.append(np.array(x))
            return super().value_and_gradient(x)

    Newton(max_step_bins=0.5).maximise(Watched(), TOP + 1.0, unit=0.2, hessian=-0.01 * Hill.A)
    first = np.linalg.norm(steps[1] - steps[0])
    assert first == pytest.approx(0.1)


@pytest.mark.parametrize(
    "solver",
    [Newton(max_evaluations=2, max_step_bins=0.1), Lbfgsb(max_iterations=1), TrustNcg(max_iterations=1)],
    ids=lambda solver: type(solver).__name__,
)
def test_running_out_of_iterations_is_a_status(solver):
    assert solver.maximise(Hill(), TOP + 3.0).status is Status.ITERATION_LIMIT


def test_fletcher_reeves_ends_at_its_limit_and_at_a_small_change():
    assert FletcherReeves(max_iterations=1).maximise(Hill(), TOP + 3.0).status is Status.ITERATION_LIMIT
    loose = FletcherReeves(relative_change=0.5).maximise(Hill(), TOP + 3.0)
    assert loose.status is Status.CONVERGED
    assert loose.evaluations < FletcherReeves().maximise(Hill(), TOP + 3.0).evaluations


class Broken:
    evaluations = hessians = 0

    def __init__(self, value):
        self.result = value

    def value(self, x):
        self.evaluations += 1
        return self.result

    def value_and_gradient(self, x):
        return self.value(x), np.full(3, 0.0 if np.isfinite(self.result) else np.nan)

    def hessian(self, x):
        self.hessians += 1
        return np.full((3, 3), 0.0 if np.isfinite(self.result) else np.nan)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [np.nan, np.inf, 1.0], ids=["nan", "infinite", "constant"])
def test_a_score_that_says_nothing_is_a_status_not_an_error(name, value):
    start = np.array([0.1, 0.2, 0.3])
    solution = SOLVERS[name]().maximise(Broken(value), start)
    np.testing.assert_array_equal(solution.parameters, start)
    if name in ("newton", "quasi_newton", "fletcher_reeves") or not np.isfinite(value):
        assert solution.status is not Status.CONVERGED


def test_unknown_solvers_are_refused():
    with pytest.raises(ValueError, match="newton, lbfgsb, trust_ncg, fletcher_reeves, quasi_newton"):
        SOLVERS["adam"]


@pytest.mark.parametrize("solver", [Newton(), QuasiNewton()], ids=["newton", "quasi_newton"])
def test_a_model_without_curvature_is_a_status(solver):
    assert solver.maximise(Hill(), np.zeros(3), hessian=np.zeros((3, 3))).status is Status.DEGENERATE


def test_a_model_is_made_positive_by_turning_signs_and_raising_what_is_flat():
    random = np.random.default_rng(0)
    axes = np.linalg.qr(random.normal(size=(5, 5)))[0]
    model, inverse, is_usable = newton_kernels.make_positive((axes * [4.0, -2.0, 1.0, 1e-9, -1e-9]) @ axes.T, 1e-3)
    assert is_usable
    np.testing.assert_allclose(model, (axes * [4.0, 2.0, 1.0, 4e-3, 4e-3]) @ axes.T, atol=1e-14)
    np.testing.assert_allclose(inverse @ model, np.eye(5), atol=1e-11)
    for useless in (np.zeros((3, 3)), np.full((3, 3), np.nan)):
        assert not newton_kernels.make_positive(useless, 1e-3)[2]


@pytest.mark.parametrize("size", [3, 30])
def test_the_update_explains_the_last_step_and_stays_positive(size):
    random = np.random.default_rng(1)
    factor = random.normal(size=(size, size))
    model, step = factor @ factor.T + np.eye(size), random.normal(size=size)
    change = 0.7 * model @ step + 0.01 * random.normal(size=size)
    updated = newton_kernels.updated(model, step, change, 0.2)
    np.testing.assert_allclose(updated @ step, change, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(updated, updated.T, atol=1e-11)
    damped = newton_kernels.updated(model, step, -change, 0.2)
    assert step @ damped @ step == pytest.approx(0.2 * step @ model @ step, rel=1e-9)
    assert np.linalg.eigvalsh(damped).min() > 0


def test_two_threads_leave_the_filters_of_warnings_as_they_were():
    """The second search begins within the first, and ends after it."""
    first_is_inside, second_is_inside, first_has_ended = (threading.Event() for _ in range(3))

    class First(Hill):
        def value_and_gradient(self, x):
            first_is_inside.set()
            assert second_is_inside.wait(10)
            return super().value_and_gradient(x)

    class Second(Hill):
        def value_and_gradient(self, x):
            second_is_inside.set()
            assert first_has_ended.wait(10)
            return super().value_and_gradient(x)

    def run_first():
        solution = Lbfgsb().maximise(First(), np.zeros(3))
        first_has_ended.set()
        return solution

    def run_second():
        assert first_is_inside.wait(10)
        return TrustNcg().maximise(Second(), np.zeros(3))

    before = list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        solutions = [future.result() for future in (pool.submit(run_first), pool.submit(run_second))]
    assert warnings.filters == before
    assert all(solution.status is Status.CONVERGED for solution in solutions)


def test_finite_differences_are_exact_for_a_parabola():
    class Parabola(Hill):
        def value(self, x):
            self.evaluations += 1
            return float(1 - x @ self.A @ x)

    parabola = Parabola()
    differences = FiniteDifferences(parabola, 0.3)
    x = np.array([0.3, -0.1, 0.5])
    value, gradient = differences.value_and_gradient(x)
    assert value == pytest.approx(1 - x @ Hill.A @ x)
    np.testing.assert_allclose(gradient, -2 * Hill.A @ x, atol=1e-12)
    np.testing.assert_allclose(differences.hessian(x), -2 * Hill.A, atol=1e-11)
    assert differences.evaluations == parabola.evaluations == 7 + 19
    with pytest.raises(ValueError, match="positive"):
        FiniteDifferences(parabola, 0.0)
