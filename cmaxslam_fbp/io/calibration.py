"""Camera calibrations as files: the ECD's `calib.txt`, and OpenCV, ROS and Kalibr YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.geometry.camera import Camera, DistortionModel
from cmaxslam_fbp.io.bad_input import one_line_errors
from cmaxslam_fbp.plain_yaml import load_yaml

# The names that the formats give to the two models.
_MODELS: dict[str, DistortionModel] = {
    "plumb_bob": "plumb_bob",
    "radtan": "plumb_bob",
    "rational_polynomial": "plumb_bob",  # with no more than five coefficients that are not zero
    "none": "plumb_bob",
    "": "plumb_bob",
    "equidistant": "equidistant",
    "fisheye": "equidistant",
    "kannala_brandt": "equidistant",
}
_YAML_ENDINGS = {".yaml", ".yml"}
_LARGEST_BYTES = 1 << 20
_LONGEST_SIDE_PX = 1 << 16
# Where the principal point of a lens lies on its sensor, as a part of the width or height: half or twice the resolution
# puts it at 0.25 or at 1. And how long a focal length is: from a fisheye's to that of a telescope, in widths.
_PRINCIPAL_POINT = 0.3, 0.7
_FOCAL_LENGTH = 0.1, 100.0
_DAMAGED = "it is not a complete calibration"


def distortion_model(name: str) -> DistortionModel:
    """Return our name of a distortion model that a file names."""
    try:
        return _MODELS[name.strip().lower()]
    except KeyError:
        raise CalibrationError(
            f"the distortion model {name!r} is not supported; plumb_bob (radtan) and equidistant are"
        ) from None


def parse_ecd_calibration(text: str, size: SensorSize, source: str) -> Camera:
    """Return the camera of an ECD `calib.txt`: `fx fy cx cy k1 k2 p1 p2 k3` (which does not tell the sensor's size)."""
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        numbers = []
    if len(numbers) not in (4, 8, 9):
        raise CalibrationError(f"{source} is not an ECD calibration: expected the numbers fx fy cx cy k1 k2 p1 p2 k3")
    fx, fy, cx, cy, *distortion = numbers
    return Camera(size.width, size.height, fx, fy, cx, cy, tuple(distortion))


def read_calibration(path: Path, size: SensorSize) -> Camera:
    """Read a calibration file of any of the known formats; `size` is the sensor's, where the file does not tell it."""
    parse = parse_yaml_calibration if path.suffix.lower() in _YAML_ENDINGS else parse_ecd_calibration
    return parse(_read_text(path), size, str(path))


def read_sensor_size(path: Path, scale: float) -> SensorSize | None:
    """Return the sensor size that a calibration file names, times `scale`; None where its format has none."""
    if path.suffix.lower() not in _YAML_ENDINGS:
        return None
    camera = parse_yaml_calibration(_read_text(path), None, str(path))
    return SensorSize(camera.width, camera.height).scaled(scale)


def fit_to_sensor(camera: Camera, size: SensorSize, scale: float | None, source: str) -> Camera:
    """Return a calibration scaled to the recording's sensor; one that cannot be of that sensor is an error.

    `scale` is the user's word on the resolution: with it, only what no camera can be is refused.
    """
    told, factor = SensorSize(camera.width, camera.height), scale or 1.0
    off_px = max(abs(told.width * factor - size.width), abs(told.height * factor - size.height))
    if off_px >= max(factor, 1):
        raise CalibrationError(
            f"{source} calibrates a sensor of {told} pixels, but the recording's has {size}: give the right one with "
            f"--calib, or scale it with --calib-scale {size.width / told.width:g}"
        )
    fitted = camera if scale is None else camera.scaled(scale, *size)
    across, down = fitted.cx / size.width, fitted.cy / size.height
    lowest, highest = _PRINCIPAL_POINT if scale is None else (0.0, 1.0)
    if not (lowest < across < highest and lowest < down < highest):
        raise CalibrationError(
            f"{source} has its principal point at pixel ({fitted.cx:.1f}, {fitted.cy:.1f}) of a sensor of {size}: it "
            f"is of another resolution; scale it, say with --calib-scale {0.5 / max(across, 1e-3):.2g} (1 confirms it)"
        )
    if not (_FOCAL_LENGTH[0] < fitted.fx / size.width < _FOCAL_LENGTH[1] and 0.5 < fitted.fx / fitted.fy < 2):
        raise CalibrationError(
            f"{source} has the focal lengths {fitted.fx:g} and {fitted.fy:g} px, which no camera of {size} pixels has: "
            "give the right calibration with --calib, or scale it with --calib-scale"
        )
    return fitted


def _read_text(path: Path) -> str:
    if path.exists() and not path.is_file():
        raise CalibrationError(f"the calibration {path} cannot be read: it is not a file")
    with one_line_errors(f"the calibration {path}", "give a text file", CalibrationError):
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
        if len(data) > _LARGEST_BYTES:
            raise CalibrationError(f"the calibration {path} cannot be read: no calibration has more than a megabyte")
        return data.decode()


def parse_yaml_calibration(text: str, size: SensorSize | None, source: str) -> Camera:
    """Return the camera of an OpenCV, ROS or Kalibr YAML text; `size` is for those that do not tell it."""
    with one_line_errors(source, _DAMAGED, CalibrationError):
        document = load_yaml(text, source, CalibrationError)
        if not isinstance(document, dict):
            raise CalibrationError(f"{source} is not a calibration: expected named values")
        if "camera_matrix" in document:
            return _opencv(document, source, size)
        name = next((n for n in ("cam0", "cam1") if n in document), None)
        kalibr = document[name] if name else document
        if "intrinsics" in kalibr:
            return _kalibr(kalibr, source, size)
    raise CalibrationError(
        f"{source} is neither an OpenCV or ROS calibration (camera_matrix) nor a Kalibr one (cam0: intrinsics)"
    )


def format_ros_yaml(camera: Camera) -> str:
    """Return a calibration in the YAML of ROS's camera_info files."""
    import yaml

    document = {
        "image_width": camera.width,
        "image_height": camera.height,
        "camera_matrix": {"rows": 3, "cols": 3, "data": camera.matrix.reshape(-1).tolist()},
        "distortion_model": camera.distortion_model,
        "distortion_coefficients": {"rows": 1, "cols": len(camera.distortion), "data": list(camera.distortion)},
    }
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None)


def format_ecd_calibration(camera: Camera) -> str:
    """Return a calibration as the line `fx fy cx cy k1 k2 p1 p2 k3`."""
    return " ".join(repr(float(c)) for c in (camera.fx, camera.fy, camera.cx, camera.cy, *camera.distortion)) + "\n"


def _size(width: Any, height: Any, size: SensorSize | None, source: str) -> SensorSize:
    if width is not None and height is not None:
        if max(int(width), int(height)) > _LONGEST_SIDE_PX:
            raise ValueError("no sensor is so large")
        return SensorSize(int(width), int(height))
    if size is None:
        raise CalibrationError(f"{source} does not name the sensor's size: give it with --sensor-size")
    return size


def _opencv(document: dict[str, Any], source: str, size: SensorSize | None) -> Camera:
    K = np.array(document["camera_matrix"]["data"], float).reshape(3, 3)
    coefficients = document.get("distortion_coefficients") or document.get("distortion_coeffs") or {"data": []}
    width, height = _size(document.get("image_width"), document.get("image_height"), size, source)
    model = distortion_model(str(document.get("distortion_model", "")))
    distortion = tuple(np.array(coefficients["data"], float).reshape(-1).tolist())
    return Camera(width, height, K[0, 0], K[1, 1], K[0, 2], K[1, 2], distortion, model)


def _kalibr(document: dict[str, Any], source: str, size: SensorSize | None) -> Camera:
    if (camera_model := document.get("camera_model", "pinhole")) != "pinhole":
        raise CalibrationError(f"{source} has the camera model {camera_model!r}; only pinhole is supported")
    fx, fy, cx, cy = (float(number) for number in document["intrinsics"])
    wide, high = document.get("resolution", (None, None))
    width, height = _size(wide, high, size, source)
    model = distortion_model(str(document.get("distortion_model", "")))
    return Camera(width, height, fx, fy, cx, cy, tuple(float(c) for c in document.get("distortion_coeffs", ())), model)
