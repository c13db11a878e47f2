"""What motions can tell of a lens: closed forms, and whole recordings of a roll, a pan, a tilt and small angles."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.calibration.image_travel import ImageTravel, image_travel
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.pipeline.calibrating import CalibrationGuess, calibrate
from cmaxslam_fbp.pipeline.calibration_results import format_calibration, motion_remark, parameter_rows, summary
from cmaxslam_fbp.simulation import Simulation, SimulationSettings
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.spline import RotationSpline

CAMERA = Camera(120, 90, 100.0, 100.0, 62.0, 47.0)
STEP_NS = 5_000_000
EPOCH_NS = 1_468_941_032_000_006_000  # as recordings have it: more digits than float64


def swinging(yaw_deg=0.0, pitch_deg=0.0, roll_deg=0.0, about=(0, 0, 1), tempo=1.0):
    """Orientations (M,) over three seconds that swing so far to either side; the roll about a direction."""
    t_s = tempo * np.arange(0, 3, STEP_NS / 1e9)
    swings = np.stack([np.sin(2.5 * t_s), np.sin(3.7 * t_s), np.sin(3.1 * t_s)], axis=1)
    yaw, pitch, roll = (swings * np.radians([yaw_deg, pitch_deg, roll_deg])).T
    axis = np.array(about) / np.linalg.norm(about)
    return Rotation.from_euler("yx", np.stack([yaw, pitch], axis=1)) * Rotation.from_rotvec(roll[:, None] * axis)


def travel_of(rotations, camera=CAMERA):
    spline = RotationSpline(4, EPOCH_NS, STEP_NS, rotations.as_quat())
    t_ns = np.arange(spline.start_ns, spline.end_ns, 1_000_000, dtype=np.int64)
    zeros = np.zeros(len(t_ns), np.uint16)
    return image_travel(spline, Events(t_ns, zeros, zeros, zeros.astype(np.uint8)), camera)


def test_a_pan_travels_across_and_not_down():
    travel = travel_of(swinging(yaw_deg=20))
    seen_deg = np.degrees(np.arctan(62 / 100) + np.arctan(57 / 100))
    assert 0.8 * 40 / seen_deg < travel.across < 40 / seen_deg  # less in the corners
    assert travel.down < 0.03
    assert not travel.tells_lens


def test_a_tilt_travels_down_and_not_across():
    travel = travel_of(swinging(pitch_deg=18))
    assert travel.across < 0.03
    assert travel.down > 0.6
    assert not travel.tells_lens


@pytest.mark.parametrize("about", [(0, 0, 1), (0.3, 0, 1), (-0.2, 0.25, 1)])
def test_a_roll_about_any_place_of_the_image_tells_nothing(about):
    """Also where a principal point is assumed far from the true one, which looks like an axis that lies askew."""
    travel = travel_of(swinging(roll_deg=60, about=about))
    assert max(travel.across, travel.down) < 0.12
    assert not travel.tells_lens


def test_small_angles_tell_nothing():
    assert not travel_of(swinging(5, 4, 5)).tells_lens


def test_turns_in_all_directions_tell_everything():
    assert travel_of(swinging(30, 20, 20)).tells_lens


def test_the_travel_hardly_depends_on_the_focal_length_that_was_assumed():
    """Half the focal length makes twice the angles of the same events."""
    longer = replace(CAMERA, fx=200.0, fy=200.0)
    there, here = travel_of(swinging(8, 6, 20), longer), travel_of(swinging(16, 12, 20))
    assert there.across == pytest.approx(here.across, rel=0.15)
    assert there.down == pytest.approx(here.down, rel=0.15)


def recording_of(rotations, seed, camera=CAMERA, gyroscope=False):
    """Boxes seen by a small sensor that turns like this, without a calibration."""
    t_ns = np.arange(len(rotations), dtype=np.int64) * STEP_NS
    motion = RotationTrajectory(t_ns, rotations.as_quat())
    simulation = Simulation(SimulationSettings(scene="boxes", camera=camera, trajectory=motion, seed=seed))
    events = Events.concatenate(list(simulation.chunks()))
    imu = simulation.imu if gyroscope else None
    return Recording.from_events(events, sensor_size=simulation.sensor_size, imu=imu)


@pytest.mark.parametrize(
    "motion",
    [{"roll_deg": 50}, {"yaw_deg": 12}, {"yaw_deg": 4, "pitch_deg": 3, "tempo": 3}],
    ids=["roll", "short pan", "small angles"],
)
def test_a_lens_that_the_motion_does_not_tell_is_what_was_said_beforehand(motion):
    """A guess of 45 degrees where the lens sees 62: neither is claimed."""
    found = calibrate(recording_of(swinging(**motion), 4), CalibrationGuess("pinhole", field_of_view_deg=45.0))
    assert not any(found.lens.observed)
    assert found.lens.camera.fx == found.lens.camera.fy == pytest.approx(60 / np.tan(np.radians(22.5)))
    assert (found.lens.camera.cx, found.lens.camera.cy) == (59.5, 44.5)
    assert found.lens.after is found.lens.before
    rows = parameter_rows(found.lens)
    assert [row.name for row in rows] == ["fx", "fy/fx", "cx", "cy"]
    assert rows[0].deviation == pytest.approx(0.5 * found.lens.camera.fx)
    written = format_calibration(found)
    assert written.index("not_observed:") < written.index("fx:")


@pytest.mark.parametrize("motion", [{"yaw_deg": 40}, {"pitch_deg": 35}], ids=["pan", "tilt"])
def test_a_long_way_one_way_tells_the_focal_length_but_not_the_aspect(motion):
    found = calibrate(recording_of(swinging(**motion), 4), CalibrationGuess("pinhole", field_of_view_deg=55.0))
    lens, known = found.lens, dict(zip(found.lens.names, found.lens.observed, strict=True))
    assert known["focal"]
    assert not known["aspect"]
    assert lens.camera.fy == lens.camera.fx == pytest.approx(CAMERA.fx, rel=0.02)
    assert abs(np.log(lens.camera.fx / CAMERA.fx)) < 3 * lens.deviations[0] < 0.1
    assert lens.deviations[1] == 0.02  # what it was beforehand


@pytest.mark.parametrize("motion", [{"yaw_deg": 6}, {"pitch_deg": 5, "roll_deg": 8}], ids=["pan", "tilt and roll"])
def test_a_gyroscope_tells_the_focal_length_where_the_way_is_short(motion):
    """A guess of 40 degrees where the lens sees 62."""
    recording = recording_of(swinging(**motion), 4, gyroscope=True)
    found = calibrate(recording, CalibrationGuess("pinhole", field_of_view_deg=40.0))
    lens, known = found.lens, dict(zip(found.lens.names, found.lens.observed, strict=True))
    assert known == {"focal": True, "aspect": False, "cx": False, "cy": False}
    assert abs(np.log(lens.camera.fx / CAMERA.fx)) < 2 * lens.deviations[0] < 0.12
    assert lens.camera.fy == lens.camera.fx
    assert found.imu.rate_ratio == pytest.approx(1, abs=0.01)
    assert motion_remark(found).startswith("the focal length is from the gyroscope")
    assert summary(found)["focal_length_from"] == "gyroscope"


def test_what_is_unknown_of_the_distortion_is_unknown_of_the_gyroscopes_focal_length():
    distorted = replace(CAMERA, distortion=(-0.3, 0.1))
    recording = recording_of(swinging(yaw_deg=6), 4, distorted, gyroscope=True)
    lens = calibrate(recording, CalibrationGuess("plumb_bob", field_of_view_deg=40.0)).lens
    assert 0.1 < lens.deviations[0] < 0.25
    assert abs(np.log(lens.camera.fx / distorted.fx)) < 1.5 * lens.deviations[0]


def test_a_roll_tells_nothing_even_with_a_gyroscope():
    recording = recording_of(swinging(roll_deg=50, yaw_deg=0.2), 4, gyroscope=True)
    found = calibrate(recording, CalibrationGuess("pinhole", field_of_view_deg=45.0))
    assert not any(found.lens.observed)
    assert found.lens.camera.fx == pytest.approx(60 / np.tan(np.radians(22.5)))
    assert found.imu is not None
    assert summary(found)["focal_length_from"] == "given or usual"


def test_a_fisheye_is_found_from_a_guess():
    fisheye = Camera(120, 90, 70.0, 70.0, 57.0, 47.0, (0.02, -0.01, 0.0, 0.0), "equidistant")
    recording = recording_of(swinging(30, 22, 15), 6, fisheye)
    found = calibrate(recording, CalibrationGuess("equidistant", focal_px=62.0, fixed=("k3", "k4")))
    camera = found.lens.camera
    assert camera.distortion_model == "equidistant"
    assert all(found.lens.observed)
    assert camera.fx == pytest.approx(70.0, rel=0.01)
    assert (camera.cx, camera.cy) == pytest.approx((57.0, 47.0), abs=0.5)
    assert motion_remark(found) == ""


@pytest.mark.real_data
def test_a_real_roll_over_a_disk_tells_nothing_of_the_lens(real_data):
    recording = open_recording(real_data / "real" / "IMU_rotDisk.aedat")
    found = calibrate(recording, CalibrationGuess("pinhole", field_of_view_deg=53.0))
    assert not any(found.lens.observed)
    assert max(found.travel.across, found.travel.down) < 0.15
    assert motion_remark(found).startswith("the motion does not tell the lens: the image travelled by ")


def test_both_ways_are_needed_or_one_that_is_long():
    assert ImageTravel(0.6, 0.3).tells_lens
    assert ImageTravel(0.3, 0.6).tells_lens
    assert not ImageTravel(0.6, 0.1).tells_lens
    assert not ImageTravel(0.6, 0.3).untold
    assert not ImageTravel(0.3, 0.3).tells_lens
    assert ImageTravel(0.8, 0.0).tells_lens
    assert ImageTravel(0.0, 0.8).untold == ("aspect", "p1", "p2")
