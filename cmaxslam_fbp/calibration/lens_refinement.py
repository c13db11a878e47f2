"""Joint adjustment of a lens and of the camera's rotation to all events, from coarse to fine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from cmaxslam_fbp.calibration.lens_objective import LensObjective, LensState
from cmaxslam_fbp.calibration.lens_parameters import LensParameters
from cmaxslam_fbp.events import Events

_CHANGE = 1e-12  # relative, of the score
_MOST_PIXELS = 320 * 240  # of a sensor, that maps become finer with
_MEMORY = 60  # steps that the quasi-Newton method remembers: the ridges are long


@dataclass(frozen=True)
class LensStage:
    """From coarse to fine: pixels of the map per pixel of the sensor, the map's blur, iterations.

    Of a sensor with more than 320 x 240 pixels the map has no more for that: as many edges are told as well by it.
    """

    px_per_px: float
    blur_sigma_px: float
    iterations: int

    def objective(self, events: Events, parameters: LensParameters, state: LensState) -> LensObjective:
        """Return the contrast about a state, in a map of this stage."""
        camera = parameters.start
        coarser = min(1.0, float(np.sqrt(_MOST_PIXELS / (camera.width * camera.height))))
        return LensObjective(events, parameters, state, coarser * self.px_per_px, self.blur_sigma_px)


def refine_lens(events: Events, parameters: LensParameters, start: LensState, stages: Sequence[LensStage]) -> LensState:
    """Return the lens and the motion that maximise the contrast of the events' map."""
    state = start
    for stage in stages:
        objective = stage.objective(events, parameters, state)
        options = {"maxiter": stage.iterations, "maxfun": 2 * stage.iterations, "maxcor": _MEMORY, "ftol": _CHANGE}
        found = minimize(objective, np.zeros(objective.parameter_count), jac=True, method="L-BFGS-B", options=options)
        state = objective.state(np.asarray(found.x, np.float64))
    return state
