"""Camera calibrations as files: the ECD's `calib.txt`, OpenCV, ROS, Kalibr and DSEC YAML, Basalt JSON (TUM-VIE)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.io.bad_input import one_line_errors
from cmaxslam_fbp.io.lens_names import basalt_camera, distortion_model, kalibr_camera, told_size
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.plain_yaml import load_yaml
from cmaxslam_fbp.trajectory import AngularVelocities

Entry = float | str | Sequence[float]

_ENDINGS = {".yaml", ".yml", ".json"}  # of all but the ECD's text
_LARGEST_BYTES = 1 << 20
# Where the principal point of a lens lies on its sensor, as a part of the width or height: half or twice the resolution
# puts it at 0.25 or at 1. And how long a focal length is: from a fisheye's to that of a telescope, in widths.
_PRINCIPAL_POINT = 0.3, 0.7
_FOCAL_LENGTH = 0.1, 100.0
_DAMAGED = "it is not a complete calibration"
_GYROSCOPE = "imu_alignment"  # the section on how a gyroscope lies to the camera


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


def read_calibration(path: Path, size: SensorSize, number: int = 0) -> Camera:
    """Read a calibration file of any of the known formats; `size` is the sensor's, where the file does not tell it.

    Of a file of several cameras those of this size count, if there are any; `number` is that of the one among them.
    """
    if path.suffix.lower() not in _ENDINGS:
        return parse_ecd_calibration(_read_text(path), size, str(path))
    cameras = _parse(_read_text(path), size, str(path))
    fitting = [camera for camera in cameras if (camera.width, camera.height) == size] or cameras
    return fitting[min(number, len(fitting) - 1)]


def read_sensor_size(path: Path, scale: float) -> SensorSize | None:
    """Return the sensor size that a calibration file names, times `scale`; None where its format has none."""
    if path.suffix.lower() not in _ENDINGS:
        return None
    camera = _parse(_read_text(path), None, str(path))[0]
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
    near_axis = fitted.without_distortion()
    if not (_FOCAL_LENGTH[0] < near_axis.fx / size.width < _FOCAL_LENGTH[1] and 0.5 < fitted.fx / fitted.fy < 2):
        raise CalibrationError(
            f"{source} has the focal lengths {near_axis.fx:g} and {near_axis.fy:g} px, which no camera of {size} "
            "pixels has: give the right calibration with --calib, or scale it with --calib-scale"
        )
    return fitted


def _read_text(path: Path) -> str:
    if path.exists() and not path.is_file():
        raise CalibrationError(f"the calibration {path} cannot be read: it is not a file")
    with one_line_errors(f"the calibration {path}", "give a text file", CalibrationError), path.open("rb") as file:
        return small_text(file, f"the calibration {path}")


def small_text(file: BinaryIO, source: str) -> str:
    """Return the text of an open calibration file."""
    with one_line_errors(source, "give a text file", CalibrationError):
        data = file.read(_LARGEST_BYTES + 1)
        if len(data) > _LARGEST_BYTES:
            raise CalibrationError(f"{source} cannot be read: no calibration has more than a megabyte")
        return data.decode("utf-8-sig")


def parse_yaml_calibration(text: str, size: SensorSize | None, source: str) -> Camera:
    """Return the first camera of a text; `size` is for those that do not tell it."""
    return _parse(text, size, source)[0]


def _parse(text: str, size: SensorSize | None, source: str) -> list[Camera]:
    """Return the cameras of a text, those for events first."""
    with one_line_errors(source, _DAMAGED, CalibrationError):
        document = _load(text, source)
        if "camera_matrix" in document:
            return [_opencv(document, source, size)]
        if isinstance(rig := document.get("value0"), dict) and "intrinsics" in rig:
            cameras = [basalt_camera(*pair, source) for pair in zip(rig["intrinsics"], rig["resolution"], strict=True)]
            if not cameras:
                raise CalibrationError(f"{source} has no camera in it")
            return cameras[2:] + cameras[:2] if len(cameras) == 4 else cameras  # TUM-VIE's first two take images
        if isinstance(entries := document.get("intrinsics"), dict):  # DSEC: cam0 and cam3 see events
            entries = {name: {**entry, "intrinsics": entry["camera_matrix"]} for name, entry in entries.items()}
        else:
            entries = {name: entry for name, entry in document.items() if str(name).startswith("cam")}
            if "intrinsics" in document:
                entries = {"cam0": document}
        names = sorted(name for name in entries if str(name)[3:].isdigit() and "intrinsics" in entries[name])
        if names:
            return [kalibr_camera(entries[name], size, source) for name in names]
    raise CalibrationError(
        f"{source} is neither an OpenCV or ROS calibration (camera_matrix) nor a Kalibr one (cam0: intrinsics), "
        "nor DSEC's cam_to_cam.yaml, nor Basalt's JSON (value0)"
    )


def _load(text: str, source: str) -> dict[str, Any]:
    """Return the named values of a JSON or YAML text, OpenCV's dialect included."""
    document = None
    if text.lstrip().startswith("{"):  # YAML may begin so, too
        with suppress(json.JSONDecodeError):
            document = json.loads(text)
    document = load_yaml(text, source, CalibrationError) if document is None else document
    if not isinstance(document, dict):
        raise CalibrationError(f"{source} is not a calibration: expected named values")
    return document


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


def format_opencv_yaml(camera: Camera, sections: Mapping[str, Mapping[str, Entry]] | None = None) -> str:
    """Return a calibration as `cv2.FileStorage` and `--calib` read it, with further named sections of values."""
    lines = ["%YAML:1.0", "---", f"image_width: {camera.width}", f"image_height: {camera.height}"]
    lines += _matrix("camera_matrix", 3, camera.matrix.reshape(-1).tolist())
    lines.append(f"distortion_model: {camera.distortion_model}")
    lines += _matrix("distortion_coefficients", 1, camera.distortion)
    for name, entries in (sections or {}).items():
        lines.append(f"{name}:")
        lines += [f"   {key}: {_words(value)}" for key, value in entries.items()]
    return "\n".join(lines) + "\n"


def _matrix(name: str, rows: int, data: Sequence[float]) -> list[str]:
    words = _words(data)
    return [
        f"{name}: !!opencv-matrix",
        f"   rows: {rows}",
        f"   cols: {len(data) // rows}",
        "   dt: d",
        f"   data: {words}",
    ]


def _words(value: Entry) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return f"[ {', '.join(repr(float(number)) for number in value)} ]"
    return repr(float(value))


def _opencv(document: dict[str, Any], source: str, size: SensorSize | None) -> Camera:
    K = np.array(document["camera_matrix"]["data"], float).reshape(3, 3)
    coefficients = document.get("distortion_coefficients") or document.get("distortion_coeffs") or {"data": []}
    width, height = told_size(document.get("image_width"), document.get("image_height"), size, source)
    distortion = tuple(np.array(coefficients["data"], float).reshape(-1).tolist())
    model = distortion_model(str(document.get("distortion_model", "")), distortion)
    return Camera(width, height, K[0, 0], K[1, 1], K[0, 2], K[1, 2], distortion, model)


@dataclass(frozen=True)
class GyroscopePlace:
    """`omega_camera(t) = R (omega_imu(t + offset) - bias)`, as `calibrate` writes it."""

    quaternion_xyzw: FloatArray
    time_offset_s: float
    bias_rad_s: FloatArray

    def apply(self, gyroscope: AngularVelocities) -> AngularVelocities:
        """Return the rates in the camera's axes and on its clock."""
        turned = Rotation.from_quat(self.quaternion_xyzw).apply(gyroscope.omega_rad_s - self.bias_rad_s)
        return AngularVelocities(gyroscope.t_ns - round(self.time_offset_s * NS_PER_S), np.asarray(turned))


def read_imu_alignment(path: Path) -> GyroscopePlace | None:
    """Read how the gyroscope lies; None where the file does not tell, or says that it is not observed."""
    if path.suffix.lower() not in (".yaml", ".yml"):
        return None
    with path.open("rb") as file:
        text = small_text(file, f"the calibration {path}")
    if _GYROSCOPE not in text:
        return None
    with one_line_errors(f"the calibration {path}", f"its {_GYROSCOPE} is damaged", CalibrationError):
        section = load_yaml(text, str(path), CalibrationError)[_GYROSCOPE]
        if section["observed"] not in ("yes", True):
            return None
        quaternion, bias = (np.array(section[name], float) for name in ("quaternion_xyzw", "bias_rad_s"))
        return GyroscopePlace(quaternion.reshape(4), float(section["time_offset_s"]), bias.reshape(3))
