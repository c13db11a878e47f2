"""Bundle adjustment of one window: turn its control rotations until its events agree with the map and each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.backend.panorama import event_density
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.region import Region, find_region
from cmaxslam_fbp.backend.window_objective import WindowObjective, Workspace
from cmaxslam_fbp.choices import SCORES
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.contrast.scores import Score
from cmaxslam_fbp.contrast.solution import Solution
from cmaxslam_fbp.contrast.solvers import FletcherReeves, Lbfgsb, QuasiNewton, Solver
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory.spline import RotationSpline

if TYPE_CHECKING:
    from cmaxslam_fbp.backend.torch_window_objective import TorchWindowObjective


SLOT_NS = 1_000_000  # time over which the rotation is taken as linear
_MARGIN_PX = 16  # by which events may move during the optimisation
_MODEL_SCALE = 0.7  # of the objective's Hessian, which is too large by what it leaves out


@dataclass(frozen=True)
class Adjusted:
    """What an adjustment found.

    Attributes
    ----------
    spline : the trajectory of the window
    solution : how the optimisation ended
    region : the part of the panorama that the window's events touch
    image : (rows, columns) float32, the window's events on the region
    """

    spline: RotationSpline
    solution: Solution
    region: Region
    image: SingleArray


class Adjuster:
    """Holds what the adjustments of all windows share: the panorama's geometry, binnings, blurs, room for events."""

    def __init__(self, config: BackendConfig, camera: Camera) -> None:
        self._config = config
        width, height = config.panorama_size
        self.projection = Equirectangular(width, height)
        self.shape = (height, width)
        self._bearings: SingleArray = camera.bearings().astype(np.float32)
        self._score: Score = SCORES[config.score](pixels=width * height)
        # What so many events do to the score that each share a pixel with one other.
        unit = float(self._score.curvature(np.ones(1))[0])
        self._prior = config.prior_events * unit * self.projection.focal_px**2
        self._solver = make_solver(config, self.projection.focal_px)
        self._workspace = Workspace.empty()
        self._binnings: dict[tuple[tuple[int, int], str], Binning] = {}
        self._blurs: dict[tuple[tuple[int, int], float, bool], GaussianBlur[np.float32]] = {}

    def warp(self, events: Events, start_ns: int, end_ns: int) -> PanoramicWarp:
        """Return the panoramic warp of events of a time range."""
        return PanoramicWarp(events, self._bearings, self.projection, start_ns, end_ns, SLOT_NS)

    def region_of(self, warp: PanoramicWarp, spline: RotationSpline) -> Region:
        """Return the region that events touch, with a margin."""
        self._workspace.reserve(len(warp))
        points = self._workspace.points[: len(warp)]
        warp.points(warp.rotations(spline), None, points)
        return find_region(points, self.shape, _MARGIN_PX)

    def image_of(self, warp: PanoramicWarp, spline: RotationSpline, region: Region) -> SingleArray:
        """Return the image of warped events (rows, columns) on a region."""
        self._workspace.reserve(len(warp))
        points = self._workspace.points[: len(warp)]
        warp.points(warp.rotations(spline), region, points)
        return region.image_of(self._binning(region)(points))

    def weigh_map(
        self,
        known: SingleArray,
        warp: PanoramicWarp,
        spline: RotationSpline,
        region: Region,
        whole_density: float | None,
    ) -> SingleArray:
        """Return `alpha I_G` (rows, columns): the map on a region, as dense as the window's image.

        Parameters
        ----------
        known : (rows, columns) float32, `I_G`, the map on the region
        warp, spline : the window's events and their trajectory
        region : the part of the panorama that they touch
        whole_density : event density of the whole map, or None to take that of the region
        """
        density = event_density(known) if whole_density is None else whole_density
        alpha = event_density(self.image_of(warp, spline, region)) / density if density > 0 else 0.0
        return np.asarray(known * np.float32(alpha), np.float32)

    def adjust(
        self,
        warp: PanoramicWarp,
        region: Region,
        spline: RotationSpline,
        first_free: int,
        map_image: SingleArray,
        *,
        held: int = 0,
        blur_sigma_px: float | None = None,
    ) -> Adjusted:
        """Maximise the contrast of the window with the map.

        Parameters
        ----------
        warp : the window's events
        region : the part of the panorama that they touch
        spline : the window's trajectory to start from; from control rotation `first_free` on it is adjusted
        map_image : (rows, columns) float32, `alpha I_G`, the weighted map on the region
        held : number of control rotations at the spline's end that are not adjusted
        blur_sigma_px : instead of the configured blur
        """
        sigma_px = self._config.blur_sigma_px if blur_sigma_px is None else blur_sigma_px
        objective = self._objective(spline, first_free, held, warp, region, map_image, sigma_px)
        start = np.zeros(objective.parameter_count)
        solution = self._solver.maximise(objective, start, unit=1 / self.projection.focal_px)
        return Adjusted(
            objective.spline_at(solution.parameters), solution, region, objective.window_image(solution.parameters)
        )

    def _objective(
        self,
        spline: RotationSpline,
        first_free: int,
        held: int,
        warp: PanoramicWarp,
        region: Region,
        map_image: SingleArray,
        sigma_px: float,
    ) -> WindowObjective | TorchWindowObjective:
        """Return the objective, compiled or on tensors."""
        blur = self._blur(region, sigma_px)
        window = spline, first_free, warp, region, self._binning(region, self._config.compute), map_image, blur
        if self._config.compute == "torch":
            from cmaxslam_fbp.backend.torch_window_objective import TorchWindowObjective

            return TorchWindowObjective(*window, self._score, self._prior, self._config.device, held)
        return WindowObjective(*window, self._score, self._prior, self._workspace, held)

    def _binning(self, region: Region, backend: str = "numba") -> Binning:
        key = (region.frame_shape, backend)
        if key not in self._binnings:
            reconstruction = None if self._config.reconstruction == "none" else self._config.reconstruction
            self._binnings[key] = Binning(region.frame_shape, self._config.kernel, reconstruction, backend=backend)
        return self._binnings[key]

    def _blur(self, region: Region, sigma_px: float) -> GaussianBlur[np.float32]:
        key = (region.shape, sigma_px, region.padding > 0)
        if key not in self._blurs:
            self._blurs[key] = GaussianBlur(
                region.shape, sigma_px, np.float32, rows="zero", columns="wrap" if region.padding else "zero"
            )
        return self._blurs[key]


def make_solver(config: BackendConfig, focal_px: float) -> Solver:
    """Return the configured optimiser of rotation vectors in radians, for a panorama of so many pixels per radian.

    Fletcher-Reeves has the rules of CMax-SLAM's backend.
    """
    if config.solver == "quasi_newton":
        return QuasiNewton(
            tolerance_bins=np.radians(config.tolerance_deg) * focal_px,
            max_step_bins=np.radians(config.max_step_deg) * focal_px,
            model_scale=_MODEL_SCALE,
            max_evaluations=config.max_evaluations,
        )
    if config.solver == "lbfgsb":
        return Lbfgsb(max_iterations=config.max_evaluations)
    return FletcherReeves(
        initial_step=0.1, line_tolerance=0.1, gradient_tolerance=1e-4, relative_change=1e-4, max_iterations=50
    )
