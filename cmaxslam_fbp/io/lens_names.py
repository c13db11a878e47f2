"""What calibration files call lens models, in the terms of `geometry.lenses`: ROS and OpenCV, Kalibr, Basalt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.geometry.camera import Camera

_LONGEST_SIDE_PX = 1 << 16

# The distortions of a pinhole camera, as ROS, OpenCV and Kalibr name them; and our own names of the other models.
_MODELS = {
    **dict.fromkeys(("plumb_bob", "radtan", "none", ""), "plumb_bob"),
    **dict.fromkeys(("rational_polynomial", "radtan8"), "rational_polynomial"),
    **dict.fromkeys(("equidistant", "equi", "fisheye", "kannala_brandt", "kb4"), "equidistant"),
    **{name: name for name in ("fov", "omni", "eucm", "ds")},
}
# How many numbers each of Kalibr's camera models has before fx fy cx cy, and the distortions that go with it.
_KALIBR = {
    "pinhole": (0, ("radtan", "equidistant", "equi", "fov", "none", "", "rational_polynomial")),
    "omni": (1, ("radtan", "none", "")),
    "eucm": (2, ("none", "")),
    "ds": (2, ("none", "")),
}
# The lens coefficients of Basalt's camera types, by their names there.
_BASALT = {
    "pinhole": ("plumb_bob", ()),
    "pinhole-radtan8": ("rational_polynomial", ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6")),
    "kb4": ("equidistant", ("k1", "k2", "k3", "k4")),
    "fov": ("fov", ("w",)),
    "eucm": ("eucm", ("alpha", "beta")),
    "ds": ("ds", ("xi", "alpha")),
}


def distortion_model(name: str, coefficients: Sequence[float] = ()) -> str:
    """Return our name of a distortion that a file names; how many coefficients it has decides between the first two."""
    try:
        model = _MODELS[name.strip().lower()]
    except KeyError:
        raise CalibrationError(
            f"the distortion model {name!r} is not supported; plumb_bob (radtan), rational_polynomial, equidistant, "
            "fov, omni, eucm and ds are"
        ) from None
    if model in ("plumb_bob", "rational_polynomial"):
        return "rational_polynomial" if any(coefficients[5:]) else "plumb_bob"
    return model


def told_size(width: Any, height: Any, size: SensorSize | None, source: str) -> SensorSize:
    """Return the size that a file tells, else the one that is known otherwise."""
    if width is not None and height is not None:
        if max(int(width), int(height)) > _LONGEST_SIDE_PX:
            raise ValueError("no sensor is so large")
        return SensorSize(int(width), int(height))
    if size is None:
        raise CalibrationError(f"{source} does not name the sensor's size: give it with --sensor-size")
    return size


def kalibr_camera(values: Mapping[str, Any], size: SensorSize | None, source: str) -> Camera:
    """Return the camera of Kalibr's camera_model, intrinsics, distortion_model, distortion_coeffs and resolution."""
    kind = str(values.get("camera_model", "pinhole"))
    if kind not in _KALIBR:
        raise CalibrationError(f"{source} has the camera model {kind!r}; {', '.join(_KALIBR)} are supported")
    own, distortions = _KALIBR[kind]
    name = str(values.get("distortion_model", "")).strip().lower()
    if name not in distortions:
        distortion_model(name)  # says what there is, if it is unknown altogether
        raise CalibrationError(f"{source} has the camera model {kind} with the distortion {name!r}: not supported")
    numbers = [float(number) for number in values["intrinsics"]]
    fx, fy, cx, cy = numbers[own:]
    coefficients = [float(c) for c in values.get("distortion_coeffs") or ()]
    if any(coefficients) and name in ("none", ""):
        name = "radtan" if kind == "pinhole" else name
    model = distortion_model(name, coefficients) if kind == "pinhole" else kind
    wide, high = values.get("resolution") or (None, None)
    width, height = told_size(wide, high, size, source)
    return Camera(width, height, fx, fy, cx, cy, (*numbers[:own], *coefficients), model)


def kalibr_values(camera: Camera) -> dict[str, Any]:
    """Return a camera in Kalibr's terms: what `kalibr_camera` reads."""
    own = _KALIBR.get(camera.distortion_model, (0,))[0]
    kind = camera.distortion_model if own else "pinhole"
    names = {"plumb_bob": "radtan", "omni": "radtan", "eucm": "none", "ds": "none"}
    return {
        "camera_model": kind,
        "intrinsics": [*camera.distortion[:own], camera.fx, camera.fy, camera.cx, camera.cy],
        "distortion_model": names.get(camera.distortion_model, camera.distortion_model),
        "distortion_coeffs": list(camera.distortion[own:]),
        "resolution": [camera.width, camera.height],
    }


def basalt_camera(entry: Mapping[str, Any], resolution: Sequence[Any], source: str) -> Camera:
    """Return a camera of a Basalt calibration, as TUM-VIE has it."""
    kind, values = str(entry["camera_type"]), entry["intrinsics"]
    if kind == "ucm":
        kind, values = "eucm", {**values, "beta": 1.0}
    if kind not in _BASALT:
        raise CalibrationError(f"{source} has the camera type {kind!r}; {', '.join(_BASALT)} are supported")
    model, names = _BASALT[kind]
    wide, high = resolution
    width, height = told_size(wide, high, None, source)
    fx, fy, cx, cy = (float(values[name]) for name in ("fx", "fy", "cx", "cy"))
    return Camera(width, height, fx, fy, cx, cy, tuple(float(values[name]) for name in names), model)
