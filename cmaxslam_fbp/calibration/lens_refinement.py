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
_MEMORY = 60  # steps that the quasi-Newton method remembers: the ridges are long


@dataclass(frozen=True)
class LensStage:
    """From coarse to fine: pixels of the map per pixel of the sensor, the map's blur, iterations."""

    px_per_px: float
    blur_sigma_px: float
    iterations: int


def refine_lens(events: Events, parameters: LensParameters, start: LensState, stages: Sequence[LensStage]) -> LensState:
    """Return the lens and the motion that maximise the contrast of the events' map."""
    state = start
    for stage in stages:
        objective = LensObjective(events, parameters, state, stage.px_per_px, stage.blur_sigma_px)
        options = {"maxiter": stage.iterations, "maxfun": 2 * stage.iterations, "maxcor": _MEMORY, "ftol": _CHANGE}
        found = minimize(objective, np.zeros(objective.parameter_count), jac=True, method="L-BFGS-B", options=options)
        state = objective.state(np.asarray(found.x, np.float64))
    return state
