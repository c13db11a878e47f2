"""A calibration for people and files: the table of its parameters, its figures, the YAML file, the page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cmaxslam_fbp.calibration.imu_alignment import ImuAlignment
from cmaxslam_fbp.calibration.lens_calibration import LensCalibration
from cmaxslam_fbp.calibration.lens_parameters import parameter_values
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.calibration import Entry, format_opencv_yaml
from cmaxslam_fbp.pipeline.calibrating import RecordingCalibration


@dataclass(frozen=True)
class ParameterRow:
    """One line of the table of a lens: a name as in a calibration, its value and standard deviation."""

    name: str
    value: float
    deviation: float
    observed: bool


def parameter_rows(lens: LensCalibration) -> list[ParameterRow]:
    """Return the free parameters of a lens in the units of a calibration: focal lengths in pixels."""
    camera, known = lens.camera, dict(zip(lens.names, zip(lens.deviations, lens.observed, strict=True), strict=True))
    rows = []
    if "focal" in known:
        rows.append(ParameterRow("fx", camera.fx, camera.fx * float(known["focal"][0]), known["focal"][1]))
    if "aspect" in known:
        rows.append(ParameterRow("fy/fx", camera.fy / camera.fx, float(known["aspect"][0]), known["aspect"][1]))
    names = [name for name in lens.names if name not in ("focal", "aspect")]
    for name, value in zip(names, parameter_values(camera, names), strict=True):
        rows.append(ParameterRow(name, float(value), float(known[name][0]), known[name][1]))
    return rows


def field_of_view_deg(camera: Camera) -> tuple[float, float]:
    """Return the angles that the middle row and the middle column of the sensor see, in degrees."""
    rays = camera.bearings()
    row, column = camera.height // 2, camera.width // 2
    ends = (rays[row, 0], rays[row, -1]), (rays[0, column], rays[-1, column])
    across, down = (float(np.degrees(np.arccos(np.clip(a @ b, -1, 1)))) for a, b in ends)
    return across, down


def motion_remark(found: RecordingCalibration) -> str:
    """Return in words what the motion does not tell; nothing where it tells the whole lens."""
    across, down = (f"{100 * share:.0f} %" for share in (found.travel.across, found.travel.down))
    travelled = f"the image travelled by {across} of its width and {down} of its height"
    if found.focal_by_gyroscope:
        return f"the focal length is from the gyroscope: its rates are the camera's at this one; {travelled}"
    if found.lens.names and not any(found.lens.observed):
        return f"the motion does not tell the lens: {travelled}. The lens is what was given, or what is usual"
    if found.travel.untold:
        return f"{travelled}: pixels are taken as square"
    return ""


def summary(found: RecordingCalibration) -> dict[str, Any]:
    """Return the figures of a calibration as plain values."""
    camera, lens = found.lens.camera, found.lens
    return {
        "camera_matrix": camera.matrix.tolist(),
        "distortion_model": camera.distortion_model,
        "distortion_coefficients": list(camera.distortion),
        "field_of_view_deg": list(field_of_view_deg(camera)),
        "parameters": [asdict(row) for row in parameter_rows(lens)],
        "image_travel": asdict(found.travel),
        "focal_length_from": _focal_length_from(found),
        "remark": motion_remark(found),
        "contrast_before": lens.before.contrast,
        "contrast": lens.after.contrast,
        "passages": len(found.passages),
        "imu_alignment": None if found.imu is None else imu_entries(found.imu),
        "scan": [{"field_of_view_deg": c.start_deg, "fx": c.camera.fx, "contrast": c.contrast} for c in found.scan],
    }


def _focal_length_from(found: RecordingCalibration) -> str:
    """Return what the focal length was told by."""
    if found.focal_by_gyroscope:
        return "gyroscope"
    return "contrast" if "focal" in found.lens.names and found.lens.tells_focal_length else "given or usual"


def format_calibration(found: RecordingCalibration) -> str:
    """Return a calibration file: the lens, and the standard deviations of its parameters."""
    rows = parameter_rows(found.lens)
    deviations = {row.name.replace("/", "_over_"): row.deviation for row in rows if row.observed}
    held = {row.name.replace("/", "_over_"): row.value for row in rows if not row.observed}
    sections: dict[str, dict[str, Entry]] = {"standard_deviations": {**deviations}}
    if held:
        sections["not_observed"] = {**held}
    if found.imu is not None:
        sections["imu_alignment"] = imu_entries(found.imu)
    return format_opencv_yaml(found.lens.camera, sections)


def calibration_page(found: RecordingCalibration, name: str) -> str:
    """Return a page that shows a calibration."""
    from cmaxslam_fbp.report.lens_page import LensPicture, lens_page

    before, after = (
        LensPicture(title, sharpness.contrast, sharpness.over_image, sharpness.map)
        for title, sharpness in (("First lens", found.lens.before), ("This lens", found.lens.after))
    )
    return lens_page(name, summary(found), before, after)


def imu_entries(imu: ImuAlignment) -> dict[str, Entry]:
    """Return what is known of a gyroscope as plain values."""
    return {
        "quaternion_xyzw": imu.quaternion_xyzw.tolist(),
        "time_offset_s": imu.time_offset_s,
        "bias_rad_s": imu.bias_rad_s.tolist(),
        "rate_ratio": imu.rate_ratio,
        "rate_ratio_deviation": imu.rate_ratio_deviation,
        "rms_deg_s": imu.rms_deg_s,
        "observed": "yes" if imu.observed else "no",
    }
