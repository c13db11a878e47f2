"""A lens adjusted to a whole recording, and what is known of each of its parameters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.calibration.deviations import lens_covariance
from cmaxslam_fbp.calibration.lens_objective import LensState
from cmaxslam_fbp.calibration.lens_parameters import FOCAL_SHARE, LensParameters, parameter_values
from cmaxslam_fbp.calibration.lens_refinement import LensStage, refine_lens
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.trajectory.spline import RotationSpline

STAGES = (LensStage(0.5, 1.0, 30), LensStage(1.0, 1.0, 50), LensStage(2.0, 1.0, 120), LensStage(3.0, 1.0, 120))
_JUDGE = STAGES[1]  # in whose map lenses are compared
_PARTS = (6, 8)  # of the image, down and across, over which sharpness is shown
# Events of one edge err alike, so that they tell less than as many that err each on its own: chosen on simulated
# recordings so that deviations cover the errors.
INFLATION = 2.5
_FOCAL_BIAS = 0.002  # of the focal length, which is found a little too short: as much as that is on such recordings
_ASKEW = 2.0  # times larger are deviations where some parameters are untold beforehand: what is held is not exact
_UNOBSERVED = 0.5  # of the standard deviation beforehand: a parameter that the events do not narrow down to this
UNOBSERVED_FOCAL = _UNOBSERVED * FOCAL_SHARE
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

    @property
    def tells_focal_length(self) -> bool:
        """Whether the focal length is observed, or was given for good: without it nothing else means anything."""
        return dict(zip(self.names, self.observed, strict=True)).get("focal", True)

    def with_focal_length_known_to(self, deviation: float) -> LensCalibration:
        """Return the lens with its focal length, which was held, as one that is known to so much (of its logarithm)."""
        return replace(
            self,
            names=("focal", *self.names),
            deviations=np.append(deviation, self.deviations),
            observed=(True, *self.observed),
        )


def calibrate_lens(
    passages: Events,
    camera: Camera,
    rotations: RotationSpline,
    model: str,
    fixed: Collection[str] = (),
    expected: Camera | None = None,
    untold: Collection[str] = (),
) -> LensCalibration:
    """Adjust lens and motion to all events.

    Parameters that are `untold` beforehand are held at what is expected, as are those that the events turn out not to
    tell; all is done again without these.
    """
    free = LensParameters.of(expected or camera, model, fixed)
    told = np.array([name not in untold for name in free.names], bool)
    given = parameter_values(camera, free.names)
    before = _with_motion_fitted(passages, free, LensState(rotations, given))
    start = LensState(rotations, np.where(told, given, free.priors))
    state, deviations = _fit(passages, free, start, told)
    observed = told & (deviations < _UNOBSERVED * free.scales)
    if (observed != told).any():
        held = LensState(state.rotations, np.where(observed, state.values, free.priors))
        again, of_fewer = _fit(passages, free, held, observed)
        sharpness = _contrast(passages, free, again) - 1, _contrast(passages, free, state) - 1
        if sharpness[0] > _AS_SHARP * sharpness[1]:
            state, deviations = again, of_fewer
        deviations = np.where(observed, deviations, free.scales)
    if not told.all():
        deviations = np.where(observed, _ASKEW * deviations, deviations)
    return LensCalibration(
        camera=free.camera(state.values),
        rotations=state.rotations,
        names=free.names,
        deviations=deviations,
        observed=tuple(observed.tolist()),
        before=_sharpness(passages, free, before),
        after=_sharpness(passages, free, state),
    )


def _fit(
    passages: Events, free: LensParameters, start: LensState, told: npt.NDArray[np.bool_]
) -> tuple[LensState, FloatArray]:
    """Return the motion and the values (P,) that fit, and deviations (P,); of parameters not told those that were."""
    fewer = free.holding(start.values, [name for name, is_told in zip(free.names, told, strict=True) if not is_told])
    found = refine_lens(passages, fewer, LensState(start.rotations, start.values[told]), STAGES)
    values, deviations = start.values.copy(), free.scales.copy()
    values[told] = found.values
    if told.any():
        deviations[told] = _deviations(passages, fewer, found)
    return LensState(found.rotations, values), deviations


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


def _contrast(passages: Events, parameters: LensParameters, state: LensState) -> float:
    return _JUDGE.objective(passages, parameters, state).contrast


def _sharpness(passages: Events, parameters: LensParameters, state: LensState) -> LensSharpness:
    objective = _JUDGE.objective(passages, parameters, state)
    return LensSharpness(objective.contrast, objective.sharpness(*_PARTS), objective.map())


def _deviations(passages: Events, parameters: LensParameters, state: LensState) -> FloatArray:
    """Return the standard deviations (P,); infinite where the contrast has no maximum."""
    objective = STAGES[-1].objective(passages, parameters, state)
    variances = np.diag(lens_covariance(objective))
    biases = np.array([_FOCAL_BIAS if name == "focal" else 0.0 for name in parameters.names])
    return np.asarray(np.hypot(INFLATION * np.sqrt(np.where(variances > 0, variances, np.inf)), biases))
