"""Directions, warp, compensation and objective against finite differences; what a true lens scores."""

from dataclasses import replace

import numpy as np
import pytest

from cmaxslam_fbp.backend.hand_motion import control_times
from cmaxslam_fbp.calibration.bearing_grid import BearingGrid
from cmaxslam_fbp.calibration.compensation import compensating_turns
from cmaxslam_fbp.calibration.lens_objective import LensObjective, LensState
from cmaxslam_fbp.calibration.lens_parameters import LensParameters, parameter_values
from cmaxslam_fbp.calibration.lens_refinement import LensStage, refine_lens
from cmaxslam_fbp.calibration.lens_warp import LensWarp
from cmaxslam_fbp.geometry.camera import Camera, dvxplorer
from cmaxslam_fbp.geometry.equirectangular import Equirectangular

LENSES = [
    Camera(120, 90, 99.5, 98.0, 64.0, 50.0, (-0.3, 0.12, 0.001, -0.002, 0.0)),
    Camera(120, 90, 70.0, 70.5, 58.0, 44.0, (0.02, -0.01, 0.003, -0.001), "equidistant"),
]


@pytest.mark.parametrize("camera", LENSES, ids=lambda camera: camera.distortion_model)
def test_directions_follow_the_parameters(camera):
    parameters = LensParameters.of(camera, camera.distortion_model)
    values, grid = parameter_values(camera, parameters.names), BearingGrid(camera.width, camera.height)
    view = grid.view(parameters, values)
    for j, scale in enumerate(parameters.scales):
        step = np.zeros(len(values))
        step[j] = 1e-4 * scale
        numeric = (grid.view(parameters, values + step).rays - grid.view(parameters, values - step).rays) / (
            2 * step[j]
        )
        np.testing.assert_allclose(view.jacobian[..., j], numeric, atol=1e-6 * np.abs(numeric).max())


@pytest.mark.parametrize(
    "camera", [*LENSES, dvxplorer()], ids=lambda camera: f"{camera.distortion_model} {camera.width}"
)
def test_interpolated_directions_are_those_of_all_pixels(camera):
    grid, parameters = BearingGrid(camera.width, camera.height), LensParameters.of(camera, camera.distortion_model)
    rays = grid.expand(grid.view(parameters, parameter_values(camera, parameters.names)).rays)
    assert np.abs(rays - camera.bearings()).max() * camera.fx < 0.06


def test_gather_is_the_transpose_of_expand(random):
    grid = BearingGrid(37, 22)
    nodes, pixels = random.normal(size=(*grid.shape, 3)), random.normal(size=(22, 37, 3))
    assert np.vdot(grid.expand(nodes), pixels) == pytest.approx(np.vdot(nodes, grid.gather(pixels)))


@pytest.mark.parametrize("camera", LENSES, ids=lambda camera: camera.distortion_model)
def test_areas_follow_the_parameters_and_add_up(camera):
    parameters, grid = LensParameters.of(camera, camera.distortion_model), BearingGrid(camera.width, camera.height)
    values = parameter_values(camera, parameters.names)
    areas, by_log = grid.areas(grid.view(parameters, values))
    for j, scale in enumerate(parameters.scales):
        step = np.zeros(len(values))
        step[j] = 1e-4 * scale
        there, back = (grid.areas(grid.view(parameters, values + sign * step))[0] for sign in (1, -1))
        np.testing.assert_allclose(
            by_log[..., j], np.log(there / back) / (2 * step[j]), atol=1e-5 * np.abs(by_log[..., j]).max()
        )
    rays = camera.bearings()
    down, across = np.gradient(rays, axis=0), np.gradient(rays, axis=1)
    whole = np.linalg.norm(np.cross(across, down), axis=-1).sum()
    assert grid.expand(areas).sum() == pytest.approx(whole, rel=5e-3)


def test_the_pullback_to_pixels_is_the_gradient_of_the_warp(turning, few, random):
    bearings = turning.camera.bearings().astype(np.float32)
    warp = LensWarp(few, bearings, Equirectangular(512, 256), turning.spline)
    rotations = warp.rotations(turning.spline)
    bars = random.normal(size=(len(few), 2)).astype(np.float32)
    table = warp.pullback_bearings(rotations, bars, bearings.shape[:2])
    direction = random.normal(size=bearings.shape)
    step = 1e-3
    there, back = (
        (warp.see((bearings + sign * step * direction).astype(np.float32)), warp.points(rotations))[1].astype(float)
        for sign in (1, -1)
    )
    moved = there - back
    moved[:, 1] = (moved[:, 1] + 256) % 512 - 256
    assert np.vdot(bars, moved) / (2 * step) == pytest.approx(np.vdot(table, direction), rel=2e-3)


def test_a_lens_and_its_compensating_turns_keep_edges_together_over_short_times(turning):
    """Points at rest, seen through a longer lens, stay within hundredths of a pixel over 50 ms: not without turns."""
    camera, spline = turning.camera, turning.spline
    parameters, grid = LensParameters.of(camera, "plumb_bob"), BearingGrid(camera.width, camera.height)
    view = grid.view(parameters, parameter_values(camera, parameters.names))
    t_ns = control_times(spline)
    edges_ns = np.arange(spline.start_ns, spline.end_ns + 1, 5_000_000)
    change = 0.01
    turns = compensating_turns(view, spline, t_ns, edges_ns)[parameters.names.index("focal")]
    longer = replace(camera, fx=camera.fx * (1 + change), fy=camera.fy * (1 + change))
    turned = spline.with_perturbation(0, change * turns)
    middle_ns = (spline.start_ns + spline.end_ns) // 2 + 300_000_000
    pixels = np.random.default_rng(1).uniform((25, 20), (95, 70), (200, 2))

    def smear(rotations):
        rays = np.column_stack([camera.undistort(pixels), np.ones(len(pixels))])
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        world = rays @ spline.rotations_at(middle_ns).T
        later = camera.project(world @ spline.rotations_at(middle_ns + 50_000_000))
        ends = []
        for place, t in ((pixels, middle_ns), (later, middle_ns + 50_000_000)):
            seen = np.column_stack([longer.undistort(place), np.ones(len(place))])
            seen /= np.linalg.norm(seen, axis=1, keepdims=True)
            ends.append(seen @ rotations.rotations_at(t).T)
        return np.sqrt(((ends[1] - ends[0]) ** 2).sum(axis=1).mean()) * camera.fx

    assert smear(turned) < 0.25 * smear(spline)


@pytest.mark.parametrize("model", ["plumb_bob", "equidistant"])
def test_the_gradient_is_that_of_the_value(turning, random, model):
    camera = turning.camera if model == "plumb_bob" else LENSES[1]
    parameters = LensParameters.of(camera, model)
    start = LensState(turning.spline, parameter_values(camera, parameters.names))
    objective = LensObjective(turning.passages, parameters, start, 0.5, 2.0)
    theta = 0.5 * random.normal(size=objective.parameter_count)
    _, gradient = objective(theta)
    lenses = np.eye(objective.parameter_count)[-objective.lens_count :]
    turns = random.normal(size=objective.parameter_count)
    turns[-objective.lens_count :] = 0
    for direction in (turns, *lenses):
        there, back = (objective(theta + sign * 0.3 * direction)[0] for sign in (1, -1))  # over less, votes are rough
        assert (there - back) / 0.6 == pytest.approx(gradient @ direction, abs=0.01 * np.linalg.norm(gradient) / 3)


def test_a_map_that_is_drawn_apart_scores_the_same(turning):
    """A lens with twice the focal length, and half the turns: no gain from that alone, up to a few percent."""
    passages, camera = turning.passages, replace(turning.camera, distortion=())
    scores = []
    for factor in (1.0, 1.3):
        lens = replace(camera, fx=camera.fx * factor, fy=camera.fy * factor)
        parameters = LensParameters.of(lens, "pinhole")
        slow = turning.spline.with_perturbation(0, np.zeros((len(turning.spline), 3)))
        vectors = np.zeros((len(slow), 3))
        still = replace(slow, quaternions_xyzw=np.tile([0.0, 0, 0, 1], (len(slow), 1))).with_perturbation(0, vectors)
        state = LensState(still, parameter_values(lens, parameters.names))
        scores.append(LensObjective(passages, parameters, state, 1.0, 1.0).contrast)
    assert scores[1] == pytest.approx(scores[0], rel=0.05)


@pytest.mark.parametrize("factor", [0.88, 1.12])
def test_the_true_lens_has_the_highest_contrast(turning, factor):
    """A wrong focal length, with the motion fitted to it, scores less: in a fine map, which shows small errors."""
    contrasts = []
    passages = turning.passages[::2]
    for scale in (1.0, factor):
        lens = replace(turning.camera, fx=turning.camera.fx * scale, fy=turning.camera.fy * scale)
        parameters = LensParameters.of(lens, "plumb_bob")
        values = parameter_values(lens, parameters.names)
        held, stages = parameters.holding(values, parameters.names), [LensStage(1, 1, 40), LensStage(3, 1, 40)]
        state = refine_lens(passages, held, LensState(turning.spline, np.zeros(0)), stages)
        fitted = LensState(state.rotations, values)
        contrasts.append(LensObjective(passages, parameters, fitted, 3.0, 1.0).contrast)
    assert contrasts[0] > 1.01 * contrasts[1]


def test_the_sharpness_of_the_parts_of_the_image_adds_up_to_the_contrast(turning, few):
    parameters = LensParameters.of(turning.camera, "plumb_bob")
    start = LensState(turning.spline, parameter_values(turning.camera, parameters.names))
    objective = LensObjective(few, parameters, start, 1.0, 1.0)
    parts = objective.sharpness(3, 4)
    rows, columns = few.y.astype(int) * 3 // 90, few.x.astype(int) * 4 // 120
    assert np.mean(parts[rows, columns]) == pytest.approx(objective.contrast, rel=1e-3)
    assert objective.map().sum() == pytest.approx(len(few), rel=0.1)
