"""The log intensity of the scene on a panorama."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.region import find_region
from cmaxslam_fbp.intensity.gradient_equations import GradientEquations
from cmaxslam_fbp.intensity.gradient_kernels import BRIGHTER, DARKER, ENTRIES, WEIGHT
from cmaxslam_fbp.intensity.poisson import FastPoisson, Stencil, good_columns, smoothness, solve_poisson

# A cell's equations count in full where `sum |d|^2` is well above this (square pixels of the map): what is left then is
# not noise, of which more events would make less, but that the intensity is not linear between two events.
_ENOUGH = 15.0
# Weight of equal neighbours beside that: a cell without events that was looked at has the same brightness throughout.
_SMOOTHNESS = 0.02
_MEAN_WEIGHT = 0.3  # of the equations, about; it only changes how fast the solution is found
_TOLERANCE, _MOST_STEPS = 3e-3, 100
_MARGIN_PX = 2


@dataclass(frozen=True, eq=False)
class Brightness:
    """Log intensity of the scene, up to a constant, in units of the mean contrast threshold of the sensor.

    Attributes
    ----------
    log_intensity : (height, width) float32
        On an equirectangular panorama; NaN where the camera did not look. Its mean is zero.
    threshold_ratio : float
        The threshold of brighter over that of darker events.
    """

    log_intensity: SingleArray
    threshold_ratio: float


def solve_brightness(equations: GradientEquations, seen: npt.NDArray[np.bool_]) -> Brightness:
    """Return the map of least squares over all pairs of events, where the camera has looked (height, width).

    It minimises `sum_cells a (M^T A M - 2 b^T M) + smoothness`, with the sums `A` and `b` of a cell and its weight
    `a = 1 / (sum |d|^2 + enough)`.
    """
    height, width = seen.shape
    image: SingleArray = np.full(seen.shape, np.nan, np.float32)
    ratio = equations.threshold_ratio
    if not seen.any():
        return Brightness(image, ratio)
    region = find_region(np.argwhere(seen).astype(np.float32), (height, width), _MARGIN_PX)
    columns = (region.left + np.arange(good_columns(region.shape[1], width))) % width
    rows = np.arange(region.top, region.top + region.shape[0])
    solution = _solve(equations, ratio, rows, columns)
    image[np.ix_(rows, columns)] = solution
    image[~seen] = np.nan
    image -= np.nanmean(image)
    return Brightness(image, ratio)


def _solve(
    equations: GradientEquations, ratio: float, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]
) -> FloatArray:
    """Return the solution on some rows and columns of the map, all neighbours."""
    projection = equations.projection
    cells = equations.cells[rows[0] : rows[-1]][:, columns].astype(np.float64)
    if len(columns) < projection.width:
        cells[:, -1] = 0  # the last column is not beside the first
    weights = 1 / (cells[..., WEIGHT, None] + _ENOUGH)
    balance = np.sqrt(ratio)
    target = balance * cells[..., BRIGHTER:DARKER] - cells[..., DARKER:WEIGHT] / balance
    cosines = np.cos((rows - projection.height / 2) / projection.focal_px)
    stencil = Stencil(weights * cells[..., :ENTRIES])
    across, down = smoothness(cosines, _SMOOTHNESS)
    stencil.add_ties(across, down, wraps=len(columns) == projection.width)
    fast = FastPoisson(*smoothness(cosines, _MEAN_WEIGHT), len(columns))
    return solve_poisson(stencil, stencil.gather(weights * target), fast, _TOLERANCE, _MOST_STEPS)
