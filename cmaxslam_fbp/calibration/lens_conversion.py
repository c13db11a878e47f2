"""One lens described by another lens model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.calibration.bearing_grid import BearingGrid
from cmaxslam_fbp.calibration.lens_parameters import LensParameters, parameter_values
from cmaxslam_fbp.geometry.camera import Camera

_WIDEST_DEG = 60.0  # off the axis: what lies beyond decides no plumb_bob lens, whose tangents run away there


def convert_lens(camera: Camera, model: str) -> Camera:
    """Return the camera of another model, with the same principal point, that sees nearest to the same directions.

    Minimises the distances in pixels over a grid on the sensor. The radial coefficients of both are few and smooth:
    within the image they agree to a fraction of a pixel.
    """
    kind = "equidistant" if model == "equidistant" else "plumb_bob"
    if camera.distortion_model == kind and model != "pinhole":
        return camera
    pixels = BearingGrid(camera.width, camera.height).pixels
    plane = camera.undistort(pixels)
    seen = np.linalg.norm(plane, axis=1) < np.tan(np.radians(_WIDEST_DEG))
    rays = np.column_stack([plane[seen], np.ones(int(seen.sum()))])
    fixed = ("aspect", "cx", "cy", "p1", "p2", "k3", "k4") if model != "pinhole" else ("aspect", "cx", "cy")
    start = replace(camera, distortion=(), distortion_model=kind)
    names = [name for name in LensParameters.of(start, model).names if name not in fixed]
    parameters = LensParameters.of(start, model, fixed=set(LensParameters.of(start, model).names) - set(names))

    def misses(values: FloatArray) -> FloatArray:
        return (parameters.camera(values).project(rays) - pixels[seen]).reshape(-1)

    found = least_squares(misses, parameter_values(start, names), x_scale=parameters.scales)
    return parameters.camera(np.asarray(found.x))
