"""A panorama that is known comes back from the events of a perfect sensor, wherever on the sphere it lies."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity.brightness import solve_brightness
from cmaxslam_fbp.intensity.field_of_view import seen_part
from cmaxslam_fbp.intensity.gradient_equations import GradientEquations

CAMERA = Camera(48, 36, 60.0, 60.0, 23.5, 17.5)
MAP = Equirectangular(512, 256)
ON, OFF = 0.1, 0.15


def scene(directions):
    """Return smooth log intensity, with structure in all directions."""
    x, y, z = np.moveaxis(directions, -1, 0)
    return np.sin(9 * x + 2) + np.sin(8 * y - 1) + 0.7 * np.sin(11 * z + 4 * x) + 0.5 * np.sin(13 * y - 7 * z)


def paint(turned):
    """Look around with a camera of sharp thresholds, in a world that is turned; return the map and the truth."""
    t = np.linspace(0, 1, 1500)
    angles = np.column_stack([0.35 * np.sin(23 * t), 0.3 * np.sin(17 * t + 1), 0.4 * np.sin(11 * t)])
    rotations = turned * Rotation.from_euler("YXZ", angles)
    bearings = CAMERA.bearings().reshape(-1, 3)
    equations = GradientEquations(CAMERA, MAP)
    y, x = (index.ravel().astype(np.uint16) for index in np.indices((36, 48)))
    reference = scene(rotations[0].apply(bearings))
    for n, rotation in enumerate(rotations):
        directions = rotation.apply(bearings)
        points = MAP.project(directions)[:, ::-1].astype(np.float32)
        level = scene(directions)
        for polarity, change in ((1, level - reference > ON), (0, reference - level > OFF)):
            events = Events(
                np.full(change.sum(), n, np.int64), x[change], y[change], np.full(change.sum(), polarity, np.uint8)
            )
            equations.add(events, points[change])
            reference[change] += ON if polarity else -OFF
    seen = seen_part(CAMERA, rotations.as_matrix()[::20], MAP)
    rows, columns = np.indices((256, 512))
    truth = scene(MAP.unproject(np.stack([columns, rows], axis=-1)))
    return solve_brightness(equations, seen), truth, seen


@pytest.mark.parametrize(
    "turned",
    [Rotation.identity(), Rotation.from_euler("y", 180, degrees=True), Rotation.from_euler("x", -90, degrees=True)],
    ids=["ahead", "at the seam", "at a pole"],
)
def test_the_scene_comes_back(turned):
    found, truth, seen = paint(turned)
    image = found.log_intensity
    np.testing.assert_array_equal(np.isfinite(image), seen)
    assert abs(image[seen].mean()) < 1e-3
    assert found.threshold_ratio == pytest.approx(ON / OFF, rel=0.1)
    weights = np.sqrt(np.cos((np.arange(256) - 128) / MAP.focal_px)[:, None] * seen)[seen]
    a, b = image[seen], truth[seen]
    slope, offset = np.polyfit(a, b, 1, w=weights)
    residual = np.sqrt(np.average((slope * a + offset - b) ** 2, weights=weights**2))
    assert residual < 0.12 * b.std()
    assert slope == pytest.approx(np.sqrt(ON * OFF), rel=0.1)


def test_without_a_view_all_is_transparent():
    found = solve_brightness(GradientEquations(CAMERA, MAP), np.zeros((256, 512), bool))
    assert np.isnan(found.log_intensity).all()


def test_without_events_what_was_seen_is_even():
    seen = seen_part(CAMERA, np.repeat(np.eye(3)[None], 5, axis=0), MAP)
    found = solve_brightness(GradientEquations(CAMERA, MAP), seen)
    assert (found.log_intensity[seen] == 0).all()
    rows, columns = np.nonzero(seen)
    assert np.ptp(columns) == pytest.approx(2 * np.arctan(23.5 / 60) * MAP.focal_px, abs=3)
    assert np.ptp(rows) == pytest.approx(2 * np.arctan(17.5 / 60) * MAP.focal_px, abs=3)
