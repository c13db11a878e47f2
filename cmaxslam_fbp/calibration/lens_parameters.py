"""The parameters of a lens: their names, what is known of them beforehand, and the camera that they make."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.lenses import LENSES

MODELS = ("pinhole", "plumb_bob", "equidistant")
_CENTRE_SHARE = 0.15  # how far from the sensor's middle the principal point usually is, as a share of its size
# How large usual coefficients are. What the events do not tell stays near zero.
_USUAL = {
    "plumb_bob": {"k1": 0.3, "k2": 0.3, "p1": 0.003, "p2": 0.003},
    "equidistant": {"k1": 0.1, "k2": 0.1, "k3": 0.05, "k4": 0.05},
}
_FARTHEST = 6.0  # standard deviations from what is expected
FOCAL_SHARE, _ASPECT_SHARE = 0.5, 0.02  # of the focal length, and of fy/fx


@dataclass(frozen=True)
class LensParameters:
    """Free parameters of a camera, and the values of all others.

    `focal` is `log(fx / width)`, `aspect` is `log(fy / fx)`, `cx` and `cy` are in pixels, the rest are coefficients of
    the lens model.

    Attributes
    ----------
    start : Camera
        Has the values at which free parameters start, and those of the ones that are not free.
    names : tuple of str
        Of the free parameters, P of them.
    priors : (P,) float64
        What each is expected to be.
    scales : (P,) float64
        By how much it usually differs from that: standard deviations.
    """

    start: Camera
    names: tuple[str, ...]
    priors: FloatArray
    scales: FloatArray

    @staticmethod
    def of(start: Camera, model: str, fixed: Collection[str] = ()) -> LensParameters:
        """Return the parameters of a lens model that are not fixed; `start` is what is expected."""
        usual = dict(_USUAL.get(model, {}))
        scales = {
            "focal": FOCAL_SHARE,
            "aspect": _ASPECT_SHARE,
            "cx": _CENTRE_SHARE * start.width,
            "cy": _CENTRE_SHARE * start.height,
            **usual,
        }
        if model not in MODELS:
            raise CalibrationError(f"there is no lens model '{model}' to calibrate; choose one of {', '.join(MODELS)}")
        if unknown := sorted(set(fixed) - set(scales)):
            raise CalibrationError(f"the {model} lens has no parameter {unknown[0]}; it has {', '.join(scales)}")
        names = tuple(name for name in scales if name not in fixed)
        values = parameter_values(start, names)
        return LensParameters(start, names, values, np.array([scales[name] for name in names]))

    def holding(self, values: FloatArray, names: Collection[str]) -> LensParameters:
        """Return the parameters without some, which have the values that they have among `values` (P,)."""
        free = np.array([name not in names for name in self.names], bool)
        kept = tuple(name for name in self.names if name not in names)
        return LensParameters(self.camera(values), kept, self.priors[free], self.scales[free])

    def allow(self, values: FloatArray) -> bool:
        """Tell whether some values (P,) are within what any lens has: six standard deviations are far beyond."""
        return bool((np.abs(values - self.priors) < _FARTHEST * self.scales).all())

    def camera(self, values: FloatArray) -> Camera:
        """Return the camera of some values (P,)."""
        given = dict(zip(self.names, values.tolist(), strict=True))
        start = self.start
        fx = start.width * np.exp(given["focal"]) if "focal" in given else start.fx
        fy = fx * (np.exp(given["aspect"]) if "aspect" in given else start.fy / start.fx)
        coefficients = LENSES[start.distortion_model].coefficients
        distortion = tuple(given.get(name, value) for name, value in zip(coefficients, start.distortion, strict=True))
        cx, cy = given.get("cx", start.cx), given.get("cy", start.cy)
        return Camera(start.width, start.height, fx, fy, cx, cy, distortion, start.distortion_model)


def parameter_values(camera: Camera, names: Collection[str]) -> FloatArray:
    """Return the values (P,) that a camera has."""
    coefficients = dict(zip(LENSES[camera.distortion_model].coefficients, camera.distortion, strict=True))
    own = {
        "focal": float(np.log(camera.fx / camera.width)),
        "aspect": float(np.log(camera.fy / camera.fx)),
        "cx": camera.cx,
        "cy": camera.cy,
    }
    return np.array([own[name] if name in own else coefficients[name] for name in names])
