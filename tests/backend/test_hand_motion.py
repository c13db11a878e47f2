"""Jacobians of the motion with parallax against finite differences, and what keeps it from collapsing."""

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend.hand_adjustment import HandHeld, HandStage
from cmaxslam_fbp.backend.hand_motion import HandMotion, HandState, Priors, bound, bound_transposed, stretch
from cmaxslam_fbp.backend.hand_objective import HandObjective
from cmaxslam_fbp.backend.hand_refinement import HandRefinement, without_hot_pixels
from cmaxslam_fbp.backend.parallax_warp import ParallaxWarp
from cmaxslam_fbp.backend.scene_distances import TABLE, SceneDistances, as_single, directions
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory.position_spline import PositionSpline
from cmaxslam_fbp.trajectory.spline import RotationSpline

STEP_NS = 25_000_000
PROJECTION = Equirectangular(1024, 512)


def random_state(rng, displaced):
    turns = Rotation.from_rotvec(np.cumsum(0.02 * rng.normal(size=(15, 3)), axis=0))
    rotations = RotationSpline(4, 0, STEP_NS, turns.as_quat())
    controls = displaced * rng.normal(size=(9, 3))
    return HandState(rotations, PositionSpline(4, 0, 2 * STEP_NS, controls), np.zeros(0))


def random_events(make_events, rotations, count=4000):
    return make_events(count, start_ns=0, duration_ns=rotations.end_ns)


def problem(make_events, displaced, degree=2, seed=0, held=0):
    rng = np.random.default_rng(seed)
    state = random_state(rng, displaced)
    events = random_events(make_events, state.rotations)
    bearings, end_ns = davis240c().bearings().astype(np.float32), state.rotations.end_ns
    warp = ParallaxWarp(events, bearings, 0, end_ns, 5_000_000, TABLE, has_map=held > 0)
    warp.locate(warp.poses(state.rotations, state.positions), np.ones(TABLE.width * TABLE.height, np.float32))
    distances = SceneDistances(degree, np.bincount(warp.cells, minlength=TABLE.width * TABLE.height).astype(float))
    state = HandState(state.rotations, state.positions, 0.1 * rng.normal(size=distances.parameter_count))
    curvatures = np.full(15, 1e4), np.full(9, 1e4), 1e2
    motion = HandMotion(state, distances, np.linspace(0.8, 1.2, 15), Priors(), curvatures, held)
    return rng, warp, distances, motion


@pytest.mark.parametrize("displaced", [0.0, 0.05])
@pytest.mark.parametrize(("at", "held"), [(0.0, 0), (0.3, 0), (0.3, 3)])
def test_gradients_of_points_and_weights_agree_with_finite_differences(make_events, displaced, at, held):
    rng, warp, distances, motion = problem(make_events, displaced, held=held)
    theta = at * rng.normal(size=motion.parameter_count)
    points_bar = rng.normal(size=(len(warp), 2)).astype(np.float32)
    weights_bar = rng.normal(size=len(warp)).astype(np.float32)

    def functional(theta):
        state = motion.state(theta)
        poses, inverse = warp.poses(state.rotations, state.positions), as_single(distances.table(state.coefficients))
        points, weights = np.empty((len(warp), 2), np.float32), np.empty(len(warp), np.float32)
        warp.points(poses, inverse, PROJECTION, None, points, weights)
        return float(np.vdot(points.astype(float), points_bar) + np.vdot(weights.astype(float), weights_bar))

    state = motion.state(theta)
    poses, inverse = warp.poses(state.rotations, state.positions), as_single(distances.table(state.coefficients))
    bars = warp.pullback(poses, inverse, PROJECTION, points_bar, weights_bar)
    gradient = motion.gradient(theta, state, warp.edges_ns, *bars)
    for part in (slice(0, 45), slice(45, 72), slice(72, None)):
        direction = np.zeros_like(theta)
        direction[part] = rng.normal(size=len(direction[part]))
        numeric = (functional(theta + 0.05 * direction) - functional(theta - 0.05 * direction)) / 0.1
        size = np.linalg.norm(gradient[part]) * np.linalg.norm(direction)
        assert gradient @ direction == pytest.approx(numeric, abs=0.01 * size + 0.02)


@pytest.mark.parametrize("held", [0, 3])
def test_the_gradient_of_the_objective_agrees_with_finite_differences_of_a_smooth_image(make_events, held):
    rng, warp, distances, motion = problem(make_events, 0.05, held=held)
    known = rng.uniform(0, 2, (512, 1024)).astype(np.float32) if held else None
    objective = HandObjective(
        warp, motion, distances, PROJECTION, 4.0, Priors(), kernel="linear", known=known, memory=30.0 * held
    )
    theta = 0.3 * rng.normal(size=motion.parameter_count)
    _, gradient = objective(theta)
    for _ in range(4):
        direction = rng.normal(size=len(theta))
        numeric = (objective(theta + 0.1 * direction)[0] - objective(theta - 0.1 * direction)[0]) / 0.2
        assert gradient @ direction == pytest.approx(numeric, rel=0.03, abs=0.01 * np.linalg.norm(gradient))


def test_a_turn_that_a_move_is_compensated_by_keeps_the_middle_of_the_image_in_place(make_events):
    rng, _, _, motion = problem(make_events, 0.0, degree=0)
    theta = np.zeros(motion.parameter_count)
    theta[45:72] = 20 * rng.normal(size=27)
    state, start = motion.state(theta), motion.state(np.zeros_like(theta))
    t_ns = np.arange(2 * STEP_NS, 10 * STEP_NS, STEP_NS)
    before = start.rotations.rotations_at(t_ns)[:, :, 2]
    moved = state.positions.positions_at(t_ns)
    after = state.rotations.rotations_at(t_ns)[:, :, 2] + moved
    after /= np.linalg.norm(after, axis=1, keepdims=True)
    assert np.linalg.norm(moved, axis=1).max() > 0.01
    assert np.linalg.norm(after - before, axis=1).max() < 0.35 * np.linalg.norm(moved, axis=1).max()


def test_positions_are_bounded_and_centred_whatever_the_parameters(make_events):
    rng, _, _, motion = problem(make_events, 0.0)
    controls = motion.state(1e4 * rng.normal(size=motion.parameter_count)).positions.controls
    assert np.linalg.norm(controls, axis=1).max() < 0.7
    np.testing.assert_allclose(controls.mean(axis=0), 0, atol=1e-12)


def test_held_controls_stay_whatever_the_parameters(make_events):
    rng, _, _, motion = problem(make_events, 0.05, held=3)
    start, moved = (
        motion.state(x) for x in (np.zeros(motion.parameter_count), rng.normal(size=motion.parameter_count))
    )
    for controls in (lambda state: state.rotations.quaternions_xyzw, lambda state: state.positions.controls):
        np.testing.assert_allclose(controls(moved)[:3], controls(start)[:3], atol=1e-6)
        assert np.abs(controls(moved)[3:] - controls(start)[3:]).max() > 1e-3


def test_a_unit_and_a_world_can_be_changed_without_changing_what_is_seen(make_events):
    _, warp, distances, motion = problem(make_events, 0.05)
    state = motion.state(np.zeros(motion.parameter_count))
    seen = np.bincount(warp.cells, minlength=TABLE.width * TABLE.height).reshape(TABLE.height, TABLE.width)
    found = HandHeld(
        state.rotations, state.positions, 1.3 * distances.everywhere(state.coefficients), seen.astype(float)
    )
    scaled = found.in_mean_distances()
    assert (seen * np.log(scaled.inverse)).sum() / seen.sum() == pytest.approx(0, abs=1e-9)
    product = scaled.inverse[40, 50] * scaled.positions.controls
    np.testing.assert_allclose(product, found.inverse[40, 50] * found.positions.controls, rtol=1e-9)
    turned = found.from_first_orientation()
    np.testing.assert_allclose(turned.rotations.rotations_at(0), np.eye(3), atol=1e-9)
    first = found.rotations.rotations_at(0)
    np.testing.assert_allclose(turned.positions.controls @ first.T, found.positions.controls, atol=1e-9)


def test_the_bound_has_its_inverse_and_its_transpose():
    rng = np.random.default_rng(1)
    raw, bar, step = 0.2 * rng.normal(size=(3, 5, 3))
    np.testing.assert_allclose(stretch(bound(raw)), raw, atol=1e-12)
    numeric = np.vdot(bound(raw + 1e-6 * step) - bound(raw - 1e-6 * step), bar) / 2e-6
    assert np.vdot(bound_transposed(bound(raw), bar), step) == pytest.approx(numeric, rel=1e-6)


def test_a_camera_that_draws_all_its_views_together_gains_nothing_from_it(make_events):
    """Provoked: a place ahead of the true one contracts all views; the plain score grows by that, ours does not."""
    state = random_state(np.random.default_rng(0), 0.0)
    events = random_events(make_events, state.rotations, 300_000)
    warp = ParallaxWarp(events, davis240c().bearings().astype(np.float32), 0, state.rotations.end_ns, 5_000_000, TABLE)
    t_ns = np.clip(2 * STEP_NS * np.arange(-1, 8), 0, state.rotations.end_ns)
    axes = state.rotations.rotations_at(t_ns)[:, :, 2]

    def scores(ahead):
        positions = PositionSpline(4, 0, 2 * STEP_NS, ahead * axes)
        points, weights = np.empty((len(warp), 2), np.float32), np.empty(len(warp), np.float32)
        one = np.ones(TABLE.width * TABLE.height, np.float32)
        warp.points(warp.poses(state.rotations, positions), one, PROJECTION, None, points, weights)
        cells = np.rint(points[:, 0]).astype(int) * 1024 + np.rint(points[:, 1]).astype(int)
        return np.array([(np.bincount(cells, w) ** 2).sum() for w in (np.ones(len(warp)), weights)])

    plain, weighted = scores(0.2) / scores(0.0)
    assert plain > 1.3
    assert weighted == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("ahead", [-0.2, 0.2])
def test_a_window_against_a_map_weighs_the_same_wherever_it_is(make_events, ahead):
    """Provoked: a window behind its place would weigh more, and so meet more of the map; with a map it does not."""
    state = random_state(np.random.default_rng(0), 0.0)
    events, bearings = random_events(make_events, state.rotations, 20_000), davis240c().bearings().astype(np.float32)
    t_ns = np.clip(2 * STEP_NS * np.arange(-1, 8), 0, state.rotations.end_ns)
    positions = PositionSpline(4, 0, 2 * STEP_NS, ahead * state.rotations.rotations_at(t_ns)[:, :, 2])
    means = []
    for has_map in (False, True):
        warp = ParallaxWarp(events, bearings, 0, state.rotations.end_ns, 5_000_000, TABLE, has_map=has_map)
        points, weights = np.empty((len(warp), 2), np.float32), np.empty(len(warp), np.float32)
        one = np.ones(TABLE.width * TABLE.height, np.float32)
        warp.points(warp.poses(state.rotations, positions), one, PROJECTION, None, points, weights)
        means.append(weights.mean())
    assert abs(means[0] - 1) > 0.15
    assert means[1] == pytest.approx(1, abs=0.02)


def test_events_of_a_still_texture_do_not_make_the_camera_leave_its_place(make_events):
    """Provoked: random events, which no motion explains, pull at positions and distances; they stay where they were."""
    rng = np.random.default_rng(2)
    state = random_state(rng, 0.0)
    events = random_events(make_events, state.rotations, 20_000)
    stages = (HandStage(1024, 2.0, 0, 30), HandStage(1024, 1.0, 2, 60))
    refinement = HandRefinement(davis240c(), events, HandHeld.of_rotation(state.rotations), stages=stages)
    assert len(list(refinement.run())) == 2
    found = refinement.result()
    assert found.parallax_deg < 6
    assert np.linalg.norm(found.positions.controls, axis=1).max() < 0.7
    assert 0.36 < found.inverse.min() <= found.inverse.max() < 2.8


def test_a_position_spline_is_the_b_spline_of_its_controls():
    rng = np.random.default_rng(3)
    controls = rng.normal(size=(8, 3))
    spline = PositionSpline(4, 1000, 10, controls)
    t_ns = np.arange(spline.start_ns, spline.end_ns + 1)
    reference = BSpline(np.arange(-3, 9), controls, 3)((t_ns - 1000) / 10)
    np.testing.assert_allclose(spline.positions_at(t_ns), reference, atol=1e-12)
    linear = PositionSpline(2, 0, 10, controls)
    np.testing.assert_allclose(
        linear.positions_at(np.array([0, 5, 70])), [controls[0], controls[:2].mean(0), controls[7]]
    )


def test_distances_have_a_mean_of_one_a_gradient_and_fit_a_plane():
    rng = np.random.default_rng(4)
    rays = directions(TABLE)
    counts = np.where(rays[:, 2] > 0.6, 3.0, 0.0)
    distances = SceneDistances(3, counts)
    coefficients = 0.05 * rng.normal(size=distances.parameter_count)
    table = distances.table(coefficients)
    assert abs((counts * np.log(table)).sum() / counts.sum()) < 0.01
    bar, step = rng.normal(size=len(table)), rng.normal(size=len(coefficients))
    numeric = (distances.table(coefficients + 1e-5 * step) - distances.table(coefficients - 1e-5 * step)) @ bar / 2e-5
    assert distances.gradient(coefficients, bar) @ step == pytest.approx(numeric, rel=1e-5)
    plane = np.maximum(rays @ [0.2, -0.1, 1.0], 0.1)
    plane /= np.exp((counts * np.log(plane)).sum() / counts.sum())
    fitted = distances.table(distances.fit(plane))
    assert np.abs(np.log(fitted / plane))[counts > 0].max() < 0.05
    everywhere = distances.everywhere(coefficients).reshape(-1)
    np.testing.assert_allclose(everywhere[counts > 0], table[counts > 0], rtol=1e-9)


def test_hot_pixels_have_no_say(make_events):
    events = make_events(50_000)
    hot = Events(
        np.arange(5000, dtype=np.int64), *(np.full(5000, n, np.uint16) for n in (7, 9)), np.ones(5000, np.uint8)
    )
    left = without_hot_pixels(Events.concatenate([hot, events]), davis240c())
    assert not ((left.x == 7) & (left.y == 9)).any()
    assert len(left) > 49_000
