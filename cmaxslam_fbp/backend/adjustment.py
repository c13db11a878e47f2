"""Bundle adjustment of one window: turn its control rotations until its events agree with the map and each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.control_turns import ControlTurns
from cmaxslam_fbp.backend.orientation_covariance import orientation_covariance
from cmaxslam_fbp.backend.panorama import PanoramaMap, map_size
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.region import Region, find_region
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.backend.window_objective import RegionContrast, View, WindowObjective
from cmaxslam_fbp.choices import SCORES, SOLVERS
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.contrast.scores import Score
from cmaxslam_fbp.contrast.solvers import Solver
from cmaxslam_fbp.contrast.solvers.solver import Solution
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory.spline import RotationSpline

SLOT_NS = 1_000_000  # time over which the rotation is taken as linear
_MARGIN_PX = 16  # by which events may move during the optimisation
_MODEL_SCALE = 0.7  # of the objective's Hessian, which is too large by what it leaves out
_MOST_CONTRASTS, _MOST_PIXELS = 32, 3_000_000  # shapes of regions, and pixels in all, whose images are kept at hand
_PRIOR_S = 0.025  # the time over which `prior_events` speak for a change of the rate


@dataclass(frozen=True)
class Adjusted:
    """What an adjustment found.

    Attributes
    ----------
    spline : the trajectory of the window
    solution : how the optimisation ended
    image : (rows, columns) float32, the window's events on the region of its view
    """

    spline: RotationSpline
    solution: Solution
    image: SingleArray


class Adjuster:
    """Holds what the adjustments of all windows share: the panorama's geometry, score, solver, binnings and blurs."""

    def __init__(self, config: BackendConfig, camera: Camera) -> None:
        self._config = config
        width, height = map_size(config, camera)
        self._projection = Equirectangular(width, height)
        self._bearings: SingleArray = camera.bearings().astype(np.float32)
        self._score: Score = SCORES[config.score](pixels=width * height)
        # What so many events do to the score that each share a pixel with one other. A change of the body rate by `w`
        # for a time `T` costs the same whatever the knots: `lambda/2 sum_k |w step|^2` over the `T / step` of them.
        unit = float(self._score.curvature(np.ones(1))[0])
        self._prior = config.prior_events * unit * self._projection.focal_px**2 * _PRIOR_S / config.knot_s
        self._solver = make_solver(config, self._projection.focal_px)
        self._contrasts: dict[tuple[Region, float, str], RegionContrast] = {}

    def warp(self, window: Window, events: Events | None = None) -> PanoramicWarp:
        """Return the panoramic warp of a window's events, or of some of them."""
        events = window.events if events is None else events
        return PanoramicWarp(events, self._bearings, self._projection, window.start_ns, window.end_ns, SLOT_NS)

    def region(self, warp: PanoramicWarp, spline: RotationSpline) -> Region:
        """Return the region that events touch, with a margin."""
        points = warp.points(warp.rotations(spline))
        return find_region(points, (self._projection.height, self._projection.width), _MARGIN_PX)

    def image(self, warp: PanoramicWarp, spline: RotationSpline, region: Region) -> SingleArray:
        """Return the image of warped events (rows, columns) on a region."""
        points = warp.points(warp.rotations(spline), region)
        return region.image_of(self._contrast(region, 0.0, "numba").binning(points))

    def look(self, window: Window, spline: RotationSpline, panorama: PanoramaMap) -> View:
        """Return a window's events with the map as they see it along a trajectory."""
        warp = self.warp(window)
        region = self.region(warp, spline)
        return self.view(warp, region, spline, region.cut_out(panorama.image), panorama)

    def view(
        self, warp: PanoramicWarp, region: Region, spline: RotationSpline, known: SingleArray, panorama: PanoramaMap
    ) -> View:
        """Return a window's events with what is known of the map on their region, weighted to their density."""
        return View(warp, region, known, panorama.weighted(known, self.image(warp, spline, region)))

    def adjust(
        self,
        view: View,
        spline: RotationSpline,
        first_free: int,
        *,
        held: int = 0,
        blur_sigma_px: float | None = None,
    ) -> Adjusted:
        """Maximise the contrast of the window with the map.

        Parameters
        ----------
        view : the window's events and the map
        spline : the window's trajectory to start from; from control rotation `first_free` on it is adjusted
        held : number of control rotations at the spline's end that are not adjusted
        blur_sigma_px : instead of the configured blur
        """
        sigma_px = self._config.blur_sigma_px if blur_sigma_px is None else blur_sigma_px
        turns = ControlTurns(spline, first_free, self._prior, held)
        contrast = self._contrast(view.region, sigma_px, self._config.compute)
        if self._config.compute == "torch":
            from cmaxslam_fbp.backend.torch_window_objective import TorchWindowObjective

            objective: WindowObjective | TorchWindowObjective = TorchWindowObjective(
                turns, view, contrast, self._config.device
            )
        else:
            objective = WindowObjective(turns, view, contrast)
        start = np.zeros(turns.parameter_count)
        solution = self._solver.maximise(objective, start, unit=1 / self._projection.focal_px)
        return Adjusted(turns.spline_at(solution.parameters), solution, objective.window_image(solution.parameters))

    def covariance(
        self, view: View, spline: RotationSpline, first_free: int, t_ns: int, panorama: PanoramaMap
    ) -> FloatArray:
        """Return the covariance (3, 3) in rad^2 of an adjusted trajectory at a time, in the body frame.

        The window's visits are counted in the map already. See `orientation_covariance`.
        """
        turns = ControlTurns(spline, first_free, self._prior)
        contrast = self._contrast(view.region, self._config.blur_sigma_px, "numba")
        objective = WindowObjective(turns, view, contrast)
        seen_s = panorama.seen_s(view.region, objective.window_image(np.zeros(turns.parameter_count)))
        return orientation_covariance(objective, spline, first_free, t_ns, self._projection.focal_px, seen_s)

    def _contrast(self, region: Region, sigma_px: float, compute: str) -> RegionContrast:
        """Return binning, blur and score for regions of one shape; those of the last shapes are kept."""
        shape = Region(0, 0, region.shape, region.padding)
        key = (shape, sigma_px, compute)
        if key in self._contrasts:
            self._contrasts[key] = self._contrasts.pop(key)  # the last one is the last to go
        else:
            pixels = sum(_pixels(kept) for kept, *_ in (*self._contrasts, key))
            while self._contrasts and (len(self._contrasts) == _MOST_CONTRASTS or pixels > _MOST_PIXELS):
                oldest = next(iter(self._contrasts))
                pixels -= _pixels(oldest[0])
                del self._contrasts[oldest]
            reconstruction = None if self._config.reconstruction == "none" else self._config.reconstruction
            self._contrasts[key] = RegionContrast(
                Binning(region.frame_shape, self._config.kernel, reconstruction, backend=compute),
                GaussianBlur(
                    region.shape, sigma_px, np.float32, rows="zero", columns="wrap" if region.padding else "zero"
                ),
                self._score,
            )
        return self._contrasts[key]


def _pixels(region: Region) -> int:
    return region.shape[0] * region.shape[1]


def make_solver(config: BackendConfig, focal_px: float) -> Solver:
    """Return the configured optimiser of rotation vectors in radians, for a panorama of so many pixels per radian.

    Fletcher-Reeves has the rules of CMax-SLAM's backend.
    """
    settings = {
        "quasi_newton": {
            "tolerance_bins": np.radians(config.tolerance_deg) * focal_px,
            "max_step_bins": np.radians(config.max_step_deg) * focal_px,
            "model_scale": _MODEL_SCALE,
            "max_evaluations": config.max_evaluations,
        },
        "lbfgsb": {"max_iterations": config.max_evaluations},
        "fletcher_reeves": {"line_tolerance": 0.1, "gradient_tolerance": 1e-4},
    }
    solver: Solver = SOLVERS[config.solver](**settings.get(config.solver, {}))
    return solver
