"""A lens adjusted to a whole recording, and what is known of each of its parameters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.calibration.deviations import lens_covariance
from cmaxslam_fbp.calibration.lens_objective import LensObjective, LensState
from cmaxslam_fbp.calibration.lens_parameters import LensParameters, parameter_values
from cmaxslam_fbp.calibration.lens_refinement import LensStage, refine_lens
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.trajectory.spline import RotationSpline

STAGES = (LensStage(0.5, 1.0, 30), LensStage(1.0, 1.0, 50), LensStage(2.0, 1.0, 120), LensStage(3.0, 1.0, 120))
_JUDGE = STAGES[1]  # in whose map lenses are compared
_PARTS = (6, 8)  # of the image, down and across, over which sharpness is shown
# Events of one edge err alike, so that they tell less than as many that err each on its own: chosen on simulated
# recordings so that deviations cover the errors.
INFLATION = 4.0
_FOCAL_BIAS = 0.003  # of the focal length, which is found a little too long: as large as that is on such recordings
_UNOBSERVED = 0.5  # of the standard deviation beforehand: a parameter that the events do not narrow down to this
_AS_SHARP = 0.99  # what is held must not cost more of the contrast than this leaves


@dataclass(frozen=True)
class LensSharpness:
    """How sharp the map of a lens is, with the motion that was fitted to it.

    Attributes
    ----------
    contrast : float
        On equal terms for all lenses: one for a map without structure.
    over_image : (rows, columns) float64
        What the parts of the image contribute to it, per event; NaN where there are none.
    map : (height, width) float32
        The part of the panorama that events fell on.
    """

    contrast: float
    over_image: FloatArray
    map: SingleArray


@dataclass(frozen=True)
class LensCalibration:
    """What a recording tells of its lens.

    Attributes
    ----------
    camera : Camera
        The lens.
    rotations : RotationSpline
        The motion that goes with it.
    names : tuple of str
        The parameters that were free, see `LensParameters`.
    deviations : (P,) float64
        Their standard deviations; those beforehand of parameters that are not observed.
    observed : tuple of bool
        Which of them the events tell: the others are what was expected beforehand, unless that costs contrast.
    before, after : LensSharpness
        Of the map with the lens at the start and in the end, the motion fitted to each.
    """

    camera: Camera
    rotations: RotationSpline
    names: tuple[str, ...]
    deviations: FloatArray
    observed: tuple[bool, ...]
    before: LensSharpness
    after: LensSharpness


def calibrate_lens(
    passages: Events,
    camera: Camera,
    rotations: RotationSpline,
    model: str,
    fixed: Collection[str] = (),
    expected: Camera | None = None,
) -> LensCalibration:
    """Adjust lens and motion to all events; what they do not tell is held at what is expected, and all done again."""
    free = LensParameters.of(expected or camera, model, fixed)
    last, judge = STAGES[-1], _JUDGE
    start = LensState(rotations, parameter_values(camera, free.names))
    before = _with_motion_fitted(passages, free, start)
    state = refine_lens(passages, free, start, STAGES)
    deviations = _deviations(passages, free, state, last)
    observed = deviations < _UNOBSERVED * free.scales
    if not observed.all():
        unknown = [name for name, seen in zip(free.names, observed, strict=True) if not seen]
        held = np.where(observed, state.values, free.priors)
        fewer = free.holding(held, unknown)
        again = refine_lens(passages, fewer, LensState(state.rotations, held[observed]), STAGES)
        held[observed] = again.values
        holding = LensState(again.rotations, held)
        given_up = _contrast(passages, free, state, judge) - 1
        if _contrast(passages, free, holding, judge) - 1 > _AS_SHARP * given_up:
            state = holding
        if observed.any() and state is holding:
            deviations[observed] = _deviations(passages, fewer, again, last)
        deviations[~observed] = free.scales[~observed]
    return LensCalibration(
        camera=free.camera(state.values),
        rotations=state.rotations,
        names=free.names,
        deviations=deviations,
        observed=tuple(observed.tolist()),
        before=_sharpness(passages, free, before),
        after=_sharpness(passages, free, state),
    )


def hold_lens(
    passages: Events, camera: Camera, rotations: RotationSpline, model: str, fixed: Collection[str] = ()
) -> LensCalibration:
    """Return a lens as it is, none of it observed, for a motion that cannot tell it (see `ImageTravel`).

    The contrast has a curvature there too, by chance: deviations from that would mean nothing.
    """
    held = LensParameters.of(camera, model, fixed)
    state = _with_motion_fitted(passages, held, LensState(rotations, parameter_values(camera, held.names)))
    sharpness = _sharpness(passages, held, state)
    observed = (False,) * len(held.names)
    return LensCalibration(camera, state.rotations, held.names, held.scales, observed, sharpness, sharpness)


def _with_motion_fitted(passages: Events, parameters: LensParameters, state: LensState) -> LensState:
    """Return the motion that goes with a lens, and the lens."""
    held = parameters.holding(state.values, parameters.names)
    return LensState(
        refine_lens(passages, held, LensState(state.rotations, np.zeros(0)), STAGES[1:2]).rotations, state.values
    )


def _contrast(passages: Events, parameters: LensParameters, state: LensState, stage: LensStage) -> float:
    return LensObjective(passages, parameters, state, stage.px_per_px, stage.blur_sigma_px).contrast


def _sharpness(passages: Events, parameters: LensParameters, state: LensState) -> LensSharpness:
    objective = LensObjective(passages, parameters, state, _JUDGE.px_per_px, _JUDGE.blur_sigma_px)
    return LensSharpness(objective.contrast, objective.sharpness(*_PARTS), objective.map())


def _deviations(passages: Events, parameters: LensParameters, state: LensState, stage: LensStage) -> FloatArray:
    """Return the standard deviations (P,); infinite where the contrast has no maximum."""
    objective = LensObjective(passages, parameters, state, stage.px_per_px, stage.blur_sigma_px)
    variances = np.diag(lens_covariance(objective))
    biases = np.array([_FOCAL_BIAS if name == "focal" else 0.0 for name in parameters.names])
    return np.asarray(np.hypot(INFLATION * np.sqrt(np.where(variances > 0, variances, np.inf)), biases))
