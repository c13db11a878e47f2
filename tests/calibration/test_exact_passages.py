"""Passages of circles on the sphere, through a true lens along a true motion, without a sensor: what the score adds."""

from types import SimpleNamespace

import numpy as np
import pytest

from cmaxslam_fbp.calibration import area_weights, lens_objective
from cmaxslam_fbp.calibration.lens_objective import LensState
from cmaxslam_fbp.calibration.lens_parameters import LensParameters, parameter_values
from cmaxslam_fbp.calibration.lens_refinement import LensStage, refine_lens
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.simulation import Simulation, SimulationSettings
from cmaxslam_fbp.trajectory.initialisation import fit_spline

CIRCLES, PIXELS, MOST, STEP_NS = 40, 700, 80_000, 2_000_000


@pytest.fixture(scope="module")
def exact():
    """Six seconds of a DAVIS240C with 60 degrees of travel; a ray `b` meets a circle where `n . R b = cos r`."""
    random, camera = np.random.default_rng(9), davis240c()
    settings = SimulationSettings(scene="shapes", camera=camera, duration_s=6.0, extent_deg=30.0, seed=9)
    truth = Simulation(settings).ground_truth
    count = -(-(truth.end_ns - truth.start_ns) // 25_000_000) + 3
    spline = fit_spline(truth, order=4, start_ns=truth.start_ns, step_ns=25_000_000, count=count)
    t_ns = np.arange(truth.start_ns, min(truth.end_ns, spline.end_ns), STEP_NS)
    R = spline.rotations_at(t_ns)
    x, y = random.integers(0, camera.width, PIXELS), random.integers(0, camera.height, PIXELS)
    rays = camera.bearings()[y, x]
    times, pixels = [], []
    for _ in range(CIRCLES):
        n = R[random.integers(len(R))] @ rays[random.integers(PIXELS)]
        inside = np.einsum("tji,j->ti", R, n) @ rays.T - np.cos(np.radians(random.uniform(3, 20)))
        k, pixel = np.nonzero((inside[:-1] > 0) != (inside[1:] > 0))
        before, after = inside[k, pixel], inside[k + 1, pixel]
        times.append(t_ns[k] + (before / (before - after) * STEP_NS).astype(np.int64))
        pixels.append(pixel)
    t_ns, pixel = np.concatenate(times), np.concatenate(pixels)
    chosen = np.argsort(t_ns)[:: -(-len(t_ns) // MOST)]
    at = pixel[chosen]
    two = np.full(len(at), 2, np.uint8)
    passages = Events(t_ns[chosen], x[at].astype(np.uint16), y[at].astype(np.uint16), two)
    return SimpleNamespace(camera=camera, spline=spline, passages=passages)


def focal_error(exact):
    """Return the relative error of the focal length in a coarse map, where a bias is largest, from the truth on."""
    parameters = LensParameters.of(exact.camera, "plumb_bob")
    start = LensState(exact.spline, parameter_values(exact.camera, parameters.names))
    found = refine_lens(exact.passages, parameters, start, [LensStage(1.0, 1.0, 60)])
    return float((found.values - start.values)[:2] @ (1, 0.5))


def test_the_score_keeps_the_true_lens(exact):
    assert abs(focal_error(exact)) < 0.004


class SumOfSquares:
    """`sum (B h)^2`, what contrast usually is."""

    def __init__(self, shape, sigma_px, columns):
        self._blur = GaussianBlur(shape, sigma_px, np.float32, rows="zero", columns=columns)

    def value(self, image):
        self._map = self._blur.forward(image)
        return float(np.square(self._map, dtype=np.float64).sum())

    def gradient(self):
        return 2 * self._blur.adjoint(self._map)


def test_a_sum_of_squares_is_biased_by_how_the_panorama_stretches(exact, monkeypatch):
    """It finds the focal length percents too long, unless weights undo that areas grow towards the poles."""
    monkeypatch.setattr(lens_objective, "Relief", SumOfSquares)
    undone = focal_error(exact)
    monkeypatch.setattr(area_weights, "_HIGHEST_RAD", 0.0)
    left = focal_error(exact)
    assert left > 0.006
    assert abs(undone) < 0.5 * left
