"""The exact flow: against closed forms, and by the brightness that it keeps."""

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.simulation import (
    ForegroundSettings,
    PlanarSettings,
    PlanarSimulation,
    RoomSettings,
    RoomSimulation,
    Simulation,
    SimulationSettings,
)
from cmaxslam_fbp.simulation.dense_flow import dense_flow

CAMERA = Camera(96, 72, 80.0, 80.0, 47.5, 35.5)
DISTORTED = Camera(96, 72, 80.0, 79.0, 46.5, 36.5, (-0.2, 0.05, 0.001, -0.001))
START_S, END_S = 1.3, 1.34


def scenes():
    common = {"scene": "poster", "duration_s": 1.5, "camera": DISTORTED, "seed": 3}
    disc = ForegroundSettings(radius_deg=12, peak_speed_deg_s=90)
    return {
        "rotation": Simulation(SimulationSettings(**common, peak_speed_deg_s=250)),
        "foreground": Simulation(SimulationSettings(**common, peak_speed_deg_s=60, foreground=disc)),
        "plane": PlanarSimulation(PlanarSettings(**common, peak_speed_m_s=1.5)),
        "room": RoomSimulation(RoomSettings(**common, peak_speed_deg_s=60, lever_m=0.4, room="clutter")),
    }


def render(recording, t_s):
    times = np.array([t_s])
    front, path = recording.foreground, recording.translation
    return recording.sensor().render(
        recording.motion.rotations(times)[0],
        None if front is None else front.motion.rotations(times)[0],
        None if path is None else path.positions(times)[0],
    )


@pytest.mark.parametrize(("name", "recording"), scenes().items())
def test_the_later_image_looks_the_same_where_the_flow_leads(name, recording):
    dense = dense_flow(recording, START_S, END_S)
    before, after = render(recording, START_S), render(recording, END_S)
    rows, columns = np.mgrid[:72, :96].astype(np.float32)
    x, y = columns + dense.flow_px[..., 0].astype(np.float32), rows + dense.flow_px[..., 1].astype(np.float32)
    moved = cv2.remap(after, x, y, cv2.INTER_CUBIC)
    seen = dense.is_valid & (x > 1) & (x < 94) & (y > 1) & (y < 70)
    assert seen.mean() > 0.7
    assert np.linalg.norm(dense.flow_px[seen], axis=1).mean() > 2
    if recording.foreground is not None:  # what the object covers or leaves has no partner
        assert 50 < dense.is_foreground.sum() < 1500
        edge = cv2.dilate(dense.is_foreground.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
        seen &= ~edge | (cv2.erode(dense.is_foreground.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0)
    kept, changed = np.abs(moved - before)[seen], np.abs(after - before)[seen]
    assert np.median(kept) < 0.1 * np.median(changed)
    if dense.is_foreground.any():
        assert np.median(kept[dense.is_foreground[seen]]) < 0.02


def test_a_short_flow_is_the_rotational_flow_field():
    """`u = f (x y w_x - (1 + x^2) w_y + y w_z)` and so on, at the normalised points x, y."""
    recording = Simulation(SimulationSettings(scene="shapes", duration_s=1.5, camera=CAMERA))
    step_s = 1e-5
    flow = dense_flow(recording, 1.2, 1.2 + step_s).flow_px / step_s / 80.0
    w_x, w_y, w_z = recording.motion.angular_velocities(np.array([1.2 + step_s / 2]))[0]
    x, y = np.moveaxis(CAMERA.undistorted_pixels(), -1, 0)
    expected = np.stack([x * y * w_x - (1 + x**2) * w_y + y * w_z, (1 + y**2) * w_x - x * y * w_y - x * w_z], -1)
    np.testing.assert_allclose(flow, expected, atol=2e-4 * np.abs(expected).max())


def test_a_flow_before_a_plane_is_that_of_its_normalised_velocity():
    recording = PlanarSimulation(PlanarSettings(scene="shapes", duration_s=1.5, camera=CAMERA, depth_m=2.0))
    step_s = 1e-5
    flow = dense_flow(recording, 1.2, 1.2 + step_s).flow_px / step_s / 80.0
    v = recording.normalised_velocities([1.2 + step_s / 2])[0]
    expected = CAMERA.undistorted_pixels() * v[2] - v[:2]
    np.testing.assert_allclose(flow, expected, atol=1e-4 * np.abs(expected).max())


def test_no_time_is_no_flow_and_times_outside_are_refused():
    recording = Simulation(SimulationSettings(scene="shapes", duration_s=1.5, camera=DISTORTED))
    dense = dense_flow(recording, 1.0, 1.0)
    assert dense.is_valid.all()
    assert np.abs(dense.flow_px).max() < 1e-6
    with pytest.raises(SimulationError, match="there is no flow"):
        dense_flow(recording, 1.0, 2.0)
