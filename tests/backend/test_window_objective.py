import numpy as np
import pytest
from scipy.spatial.transform import Rotation

KERNELS = [("rect", "linear", 0.0), ("rect", "cubic", 1.0), ("linear", None, 1.0), ("linear", "linear", 0.0)]
SETTINGS = [dict(zip(("kernel", "reconstruction", "sigma_px"), values, strict=True)) for values in KERNELS]


def relative(actual, expected):
    return np.abs(actual - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("is_zero", [True, False], ids=["start", "elsewhere"])
@pytest.mark.parametrize("full_circle", [False, True], ids=["region", "full circle"])
def test_value_gradient_and_hessian_are_those_of_the_written_out_chain(
    make_window, delta, settings, is_zero, full_circle
):
    window = make_window(**settings)
    at = np.zeros(12) if is_zero else delta
    objective = window.objective(window.full_circle() if full_circle else None)
    value, gradient = objective.value_and_gradient(at)
    assert objective.value(at) == value == pytest.approx(window.value(at), rel=2e-6)
    assert relative(gradient, window.gradient(at)) < 2e-5
    assert relative(objective.hessian(at), window.hessian(at)) < 2e-5
    assert (objective.evaluations, objective.hessians) == (2, 1)


@pytest.mark.parametrize("score", ["mean_square", "negative_binomial"])
def test_other_scores(make_window, delta, score):
    window = make_window(score=score)
    value, gradient = window.objective().value_and_gradient(delta)
    assert value == pytest.approx(window.value(delta), rel=2e-6)
    assert relative(gradient, window.gradient(delta)) < 2e-5


@pytest.mark.parametrize(("order", "first_free"), [(2, 1), (2, 0), (4, 0)])
def test_linear_splines_and_other_numbers_of_free_rotations(make_window, delta, order, first_free):
    window = make_window(order=order, first_free=first_free)
    objective = window.objective()
    assert window.turns().parameter_count == 3 * (order + 3 - first_free)
    at = np.resize(delta, window.turns().parameter_count)
    assert relative(objective.value_and_gradient(at)[1], window.gradient(at)) < 2e-5
    assert relative(objective.hessian(at), window.hessian(at)) < 2e-5


def test_a_plain_gradient_is_the_derivative_of_the_value(make_window, delta):
    """Of bilinear voting, whose value is smooth enough: by finite differences of the written-out value."""
    window = make_window(kernel="linear", reconstruction=None, sigma_px=1.0)
    h = 1e-6
    expected = np.array([(window.value(delta + h * e) - window.value(delta - h * e)) / (2 * h) for e in np.eye(12)])
    assert relative(window.objective().value_and_gradient(delta)[1], expected) < 1e-4


def test_the_prior_is_a_parabola_in_the_turns(make_window, delta):
    free, held = make_window(prior=0.0).objective(), make_window(prior=2.0)
    (value, gradient), (lower, pulled) = free.value_and_gradient(delta), held.objective().value_and_gradient(delta)
    assert value - lower == pytest.approx(held.cost(delta), rel=1e-9)
    h = 1e-5
    expected = [(held.cost(delta + h * e) - held.cost(delta - h * e)) / (2 * h) for e in np.eye(12)]
    np.testing.assert_allclose(gradient - pulled, expected, rtol=1e-6)


@pytest.mark.parametrize("columns", [97, 152, 160])
@pytest.mark.parametrize("full_circle", [False, True], ids=["region", "full circle"])
def test_a_world_turned_over_the_seam_has_the_same_score_and_a_turned_gradient(
    make_window, delta, columns, full_circle
):
    here, there = make_window(), make_window(columns)
    assert (there.region.left - here.region.left) % 256 == columns
    if columns > 97:
        assert there.region.left + there.region.shape[1] > 256
    turn = Rotation.from_rotvec([0, 2 * np.pi * columns / 256, 0])
    turned = turn.apply(delta.reshape(-1, 3)).ravel()
    value, gradient = here.objective().value_and_gradient(delta)
    objective = there.objective(there.full_circle() if full_circle else None)
    other, other_gradient = objective.value_and_gradient(turned)
    assert other == pytest.approx(value, rel=1e-6)
    assert relative(turn.inv().apply(other_gradient.reshape(-1, 3)).ravel(), gradient) < 2e-5
    image = np.zeros((128, 256), np.float32)
    objective_region = there.full_circle() if full_circle else there.region
    objective_region.add_to(image, objective.window_image(turned))
    np.testing.assert_allclose(np.roll(image, -columns, axis=1), here.image(delta), atol=1e-4)


def test_the_window_s_image_has_no_map_and_stays_as_it_is(make_window, delta):
    window = make_window()
    objective = window.objective()
    image = objective.window_image(delta)
    expected = window.region.cut_out(window.image(delta))
    np.testing.assert_allclose(image, expected, atol=1e-4)
    objective.value(np.zeros(12))
    np.testing.assert_allclose(image, expected, atol=1e-4)
    assert image.sum() == pytest.approx(len(window.events), rel=1e-6)


def test_the_trajectory_of_a_delta_turns_the_free_rotations_on_the_left(make_window, delta):
    window = make_window()
    found, expected = window.turns().spline_at(delta), window.spline_at(delta)
    t_ns = window.warp.edges_ns
    np.testing.assert_allclose(found.rotations_at(t_ns), expected.rotations_at(t_ns), atol=1e-12)
