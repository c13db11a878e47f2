"""Calibrations in the layout of OpenCV's FileStorage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cmaxslam_fbp.geometry.camera import Camera

Entry = float | str | Sequence[float]


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
