"""Residuals and derivatives against finite differences, the Schur complement against a dense solve, steps that help."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity.event_pairs import find_pairs
from cmaxslam_fbp.intensity.joint_equations import JointEquations
from cmaxslam_fbp.intensity.photometric_refinement import PhotometricRefinement, slope_of
from cmaxslam_fbp.trajectory.spline import RotationSpline

CAMERA = Camera(48, 36, 60.0, 60.0, 23.5, 17.5)
MAP = Equirectangular(512, 256)


def scene(directions):
    x, y, z = np.moveaxis(directions, -1, 0)
    return np.sin(9 * x + 2) + np.sin(8 * y - 1) + 0.7 * np.sin(11 * z + 4 * x) + 0.5 * np.sin(13 * y - 7 * z)


@pytest.fixture(scope="module")
def motion():
    k = np.arange(12)
    angles = np.column_stack([0.3 * np.sin(0.9 * k), 0.25 * np.sin(0.7 * k + 1), 0.3 * np.sin(0.5 * k)])
    return RotationSpline(4, 5_000, 1_000_000, Rotation.from_euler("YXZ", angles).as_quat())


@pytest.fixture(scope="module")
def pairs(motion):
    """Events of a camera of sharp thresholds, 0.1 and 0.1, that moves so."""
    bearings = CAMERA.bearings()
    y, x = (index.ravel().astype(np.uint16) for index in np.indices((36, 48)))
    times = np.linspace(motion.start_ns, motion.end_ns, 1500).astype(np.int64)
    reference, pieces = None, []
    for t_ns, rotation in zip(times, motion.rotations_at(times), strict=True):
        level = scene(bearings.reshape(-1, 3) @ rotation.T)
        reference = level.copy() if reference is None else reference
        for polarity, change in ((1, level - reference > 0.1), (0, reference - level > 0.1)):
            count = int(change.sum())
            pieces.append(Events(np.full(count, t_ns), x[change], y[change], np.full(count, polarity, np.uint8)))
            reference[change] += 0.1 if polarity else -0.1
    events = Events.concatenate(pieces)
    return find_pairs(events, np.zeros(len(events), np.int64), bearings)


def test_pairs_are_events_in_a_row_of_one_pixel_and_part():
    bearings = CAMERA.bearings()
    events = Events(
        np.arange(6, dtype=np.int64) * 10,
        np.array([3, 4, 3, 3, 4, 3], np.uint16),
        np.array([2, 2, 2, 2, 2, 2], np.uint16),
        np.array([1, 1, 0, 1, 0, 0], np.uint8),
    )
    found = find_pairs(events, np.array([0, 0, 0, 1, 1, 1]), bearings)
    assert found.before_ns.tolist() == [0, 30]
    assert found.t_ns.tolist() == [20, 50]
    np.testing.assert_array_equal(found.bearings, bearings[2, [3, 3]])
    np.testing.assert_allclose(found.change, [-1, -1])


@pytest.mark.parametrize("order", [2, 4])
def test_derivatives_are_those_of_finite_differences(motion, pairs, order):
    """Also of pairs whose events lie several knots apart."""
    random = np.random.default_rng(0)
    spline = RotationSpline(order, motion.start_ns, motion.step_ns, motion.quaternions_xyzw)
    some = pairs[:: len(pairs) // 300]
    some.before_ns[::7] = np.maximum(some.before_ns[::7] - 4_500_000, spline.start_ns)
    refinement = PhotometricRefinement(some, spline, MAP, CAMERA)
    refinement._pairs = some
    gradient, slope = random.normal(size=(256, 512, 2)), random.normal(size=(256, 512, 2, 2))
    found = refinement.compare(spline, gradient, slope, with_jacobian=True)
    jacobian = found.jacobian.toarray()
    step = 1e-6
    for column in range(3 * len(spline)):
        turns = np.zeros(3 * len(spline))
        turns[column] = step
        ends = [refinement.compare(spline.with_perturbation(0, sign * turns), gradient, slope) for sign in (1, -1)]
        stays = (ends[0].pixel == found.pixel) & (ends[1].pixel == found.pixel)
        assert stays.mean() > 0.99
        expected = (ends[0].residual - ends[1].residual) / (2 * step)
        scale = np.abs(jacobian).max()
        np.testing.assert_allclose(jacobian[stays, column], expected[stays], rtol=1e-4, atol=1e-6 * scale)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_the_schur_complement_gives_the_dense_solution(damping):
    random = np.random.default_rng(1)
    count, turns, pixels, prior = 400, 12, 30, 0.2
    jacobian = random.normal(size=(count, turns)) * (random.random((count, turns)) < 0.4)
    moved, pixel = random.normal(size=(count, 2)), random.integers(0, pixels, count)
    weights, residual = random.uniform(0.2, 1, count), random.normal(size=count)
    gradient = random.normal(size=(pixels, 2))
    equations = JointEquations(sparse.csr_array(jacobian), moved, pixel, weights, residual, gradient, prior)
    x, y = equations.solve(damping, tolerance=1e-12)

    by_map = np.zeros((count, 2 * pixels))
    by_map[np.arange(count)[:, None], 2 * pixel[:, None] + np.arange(2)] = moved
    whole = np.concatenate([jacobian, by_map], axis=1)
    matrix = whole.T @ (weights[:, None] * whole)
    rhs = -whole.T @ (weights * residual)
    inside = np.arange(turns, turns + 2 * pixels)
    matrix[inside, inside] += prior
    rhs[inside] -= prior * gradient.ravel()
    matrix[inside, inside] *= 1 + damping
    sample = (jacobian[::8] ** 2 * (8 * weights[::8, None])).sum(axis=0)
    matrix[np.arange(turns), np.arange(turns)] += damping * (sample + sample.mean())
    expected = np.linalg.solve(matrix, rhs)
    np.testing.assert_allclose(x.ravel(), expected[:turns], atol=1e-8)
    np.testing.assert_allclose(y.ravel(), expected[turns:], atol=1e-8)
    alone = np.linalg.solve(matrix[np.ix_(inside, inside)], rhs[inside])
    np.testing.assert_allclose(equations.map_changes(damping).ravel(), alone, atol=1e-10)


def test_steps_lower_the_error_of_a_disturbed_motion_and_do_not_lead_it_astray(motion, pairs):
    random = np.random.default_rng(2)
    disturbed = motion.with_perturbation(0, np.radians(1.0) * random.normal(size=(len(motion), 3)))
    times = np.linspace(motion.start_ns, motion.end_ns, 200).astype(np.int64)

    def error_deg(spline):
        known, found = (Rotation.from_matrix(one.rotations_at(times)) for one in (motion, spline))
        offsets = known * found.inv()
        return np.degrees(np.sqrt(np.mean((offsets.mean().inv() * offsets).magnitude() ** 2)))

    refinement = PhotometricRefinement(pairs, disturbed, MAP, CAMERA)
    turns = list(refinement.run())
    assert len(turns) == len(refinement.errors) - 1 > 0
    assert refinement.errors[-1] < 0.9 * refinement.errors[0]
    assert error_deg(refinement.spline) < 0.9 * error_deg(disturbed)
    np.testing.assert_allclose(
        refinement.spline.rotations_at(motion.start_ns), disturbed.rotations_at(motion.start_ns), atol=1e-9
    )


def test_the_slope_is_the_gradient_s_derivative():
    columns, rows = np.meshgrid(np.arange(256), np.arange(128))
    wave = np.sin(2 * np.pi * columns / 64)
    slope = slope_of(np.stack([wave, 0.02 * rows], axis=-1).astype(float))
    np.testing.assert_allclose(slope[..., 0, 0], 2 * np.pi / 64 * np.cos(2 * np.pi * columns / 64), atol=2e-3)
    np.testing.assert_allclose(slope[10:-10, :, 1, 1], 0.02, rtol=1e-4)
    np.testing.assert_allclose(slope[..., [0, 1], [1, 0]], 0, atol=1e-9)
