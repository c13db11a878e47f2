import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.geometry.camera import Camera, davis240c
from cmaxslam_fbp.report.reference import describe_reference, field_of_view
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory


def test_the_field_of_view_of_an_ideal_camera_is_its_sensor():
    border = field_of_view(Camera(100, 80, 50, 50, 49.5, 39.5))
    np.testing.assert_allclose(np.linalg.norm(border, axis=1), 1)
    plane = border[:, :2] / border[:, 2:]
    np.testing.assert_allclose([plane.min(axis=0), plane.max(axis=0)], [[-1, -0.8], [1, 0.8]], atol=1e-9)


def test_distortion_bends_the_border_outwards():
    border = field_of_view(davis240c())
    plane = border[:, :2] / border[:, 2:]
    top = plane[plane[:, 1] < plane[:, 1].min() * 0.9]
    assert np.ptp(top[:, 1]) > 0.01


def test_the_ground_truth_is_given_in_the_world_of_the_estimate(made_trajectory):
    estimate = made_trajectory()
    turned = RotationTrajectory.from_rotations(estimate.t_ns, Rotation.from_rotvec([1, 2, 0.5]) * estimate.rotations)
    values = describe_reference(estimate, estimate.start_ns, davis240c(), turned, None)
    given = Rotation.from_quat(values["ground_truth"]["quaternions_xyzw"])
    assert (given.inv() * estimate.rotations).magnitude().max() < 1e-5
    assert max(values["errors"]["absolute_deg"]) < 1e-4
    assert values["angular_velocity"]["source"] == "ground truth"


def test_errors_over_time_show_where_the_estimate_is_wrong(made_trajectory):
    estimate, truth = made_trajectory(error_rad=0.01), made_trajectory()
    errors = describe_reference(estimate, estimate.start_ns, davis240c(), truth, None)["errors"]
    # The best fit shares the step between both halves.
    np.testing.assert_allclose(errors["absolute_deg"], np.degrees(0.005), atol=0.02)
    assert errors["t_s"][0] == 0


def test_a_gyroscope_comes_before_the_ground_truth_and_is_cut_to_the_run(made_trajectory):
    estimate = made_trajectory(duration_s=1.0)
    t_ns = estimate.start_ns + np.arange(-500_000_000, 20_000_000_000, 1_000_000)
    gyroscope = AngularVelocities(t_ns, np.full((len(t_ns), 3), 0.25))
    samples = describe_reference(estimate, estimate.start_ns, davis240c(), made_trajectory(), gyroscope)[
        "angular_velocity"
    ]
    assert samples["source"] == "gyroscope"
    assert (samples["t_s"][0], samples["t_s"][-1]) == (0, 1)
    assert samples["omega_rad_s"][0] == [0.25] * 3


@pytest.mark.parametrize("shift_s", [None, 100])
def test_without_a_reference_there_is_none(made_trajectory, shift_s):
    estimate = made_trajectory()
    truth = None
    if shift_s:
        truth = RotationTrajectory(estimate.t_ns + round(shift_s * 1e9), estimate.quaternions_xyzw)
    values = describe_reference(estimate, estimate.start_ns, davis240c(), truth, None)
    assert values["ground_truth"] is values["errors"] is values["angular_velocity"] is None
