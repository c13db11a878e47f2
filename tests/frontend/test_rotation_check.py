from dataclasses import replace

import numpy as np
import pytest

from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.frontend.estimate import EstimateStatus
from cmaxslam_fbp.frontend.estimator import VelocityEstimator
from cmaxslam_fbp.frontend.rotation_check import Drowned, RotationCheck, RotationResidual, _residual, _rotation_flow
from cmaxslam_fbp.geometry.camera import Camera, davis240c
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.pipeline.trust import unexplained_motion
from cmaxslam_fbp.simulation import SENSORS, PlanarSettings, PlanarSimulation, Simulation, SimulationSettings


def residuals(recording, camera, every=3):
    """What a rotation leaves of the motion in some packets."""
    estimator, check = VelocityEstimator(camera), RotationCheck(camera)
    found = []
    for number, packet in enumerate(estimator.packets(recording.chunks())):
        estimate = estimator.estimate(packet)
        residual = check.look(packet, estimate) if number % every == 0 else None
        if isinstance(residual, RotationResidual):
            found.append(residual)
    return found


def shares(recording, camera, every=3):
    """Parts of the motion that a rotation does not explain, of some packets."""
    return [np.sqrt(max(one.unexplained / one.motion, 0)) for one in residuals(recording, camera, every)]


@pytest.mark.parametrize(("scene", "speed"), [("shapes", 300.0), ("poster", 100.0)])
def test_a_rotation_explains_a_simulated_rotation(scene, speed):
    simulation = Simulation(SimulationSettings(scene=scene, duration_s=0.5, peak_speed_deg_s=speed, seed=81))
    found = shares(simulation, simulation.camera)
    assert len(found) >= 10
    assert np.median(found) < 0.02


@pytest.mark.parametrize("scene", ["shapes", "boxes"])
def test_a_rotation_does_not_explain_a_simulated_translation(scene):
    simulation = PlanarSimulation(PlanarSettings(scene=scene, duration_s=0.5, seed=81))
    found = shares(simulation, simulation.camera)
    assert len(found) >= 10
    assert np.median(found) > 0.08


@pytest.mark.parametrize("scene", ["shapes", "poster", "boxes", "dynamic"])
def test_real_rotations_are_told_from_real_translations(real_data, scene):
    slices = (open_recording(real_data / "slices" / f"{scene}_{motion}") for motion in ("rotation", "translation"))
    turning, moving = (np.median(shares(one, one.require_camera(), every=1)) for one in slices)
    assert turning < 0.03
    assert moving > 0.08


def test_a_real_roll_over_spokes_is_a_rotation(real_data):
    """Straight edges do not tell the flow along them."""
    camera = Camera(240, 180, 243.0, 243.0, 119.5, 89.5)
    found = residuals(open_recording(real_data / "real" / "IMU_rotDisk.aedat"), camera)
    assert len(found) > 80
    assert unexplained_motion(found) < 0.03


def test_the_flow_of_a_rotation_is_the_derivative_of_its_image():
    x, y, step = 0.3, -0.2, 1e-6
    p = np.array([x, y, 1.0])
    for axis, omega in enumerate(np.eye(3)):
        q = p + step * np.cross(omega, p)
        np.testing.assert_allclose(_rotation_flow(x, y)[:, axis], (q[:2] / q[2] - p[:2]) / step, atol=1e-5)


def test_a_further_turn_is_explained_and_a_common_flow_is_not():
    random = np.random.default_rng(0)
    jacobians = np.array([_rotation_flow(*middle) for middle in random.uniform(-0.5, 0.5, (12, 2))])
    information = np.broadcast_to(1e4 * np.eye(2), (12, 2, 2))
    omega, turn = np.array([0.5, 2.0, -0.4]), np.array([0.1, -0.2, 0.3])
    turned = _residual(0, omega, jacobians @ turn, information, jacobians)
    assert turned.unexplained == pytest.approx(-21)  # 24 flows less three parameters: what noise would leave
    whole = jacobians @ (omega + turn)
    assert turned.motion == pytest.approx(1e4 * (whole**2).sum())
    common = _residual(0, np.zeros(3), np.tile([1.0, 0.0], (12, 1)), information, jacobians)
    assert 0.03 < np.sqrt(common.unexplained / common.motion) < 0.3
    assert _residual(0, omega, np.zeros((3, 2)), information[:3], jacobians[:3]) is None


def test_packets_without_a_measured_velocity_tell_nothing(make_events):
    camera = davis240c()
    packet = Packet(make_events(5000), 1_468_941_032_254_417_000)
    estimate = VelocityEstimator(camera).estimate(packet)
    still = replace(estimate, status=EstimateStatus.STILL, velocity=np.zeros(3))
    slow = replace(estimate, status=EstimateStatus.CONVERGED, velocity=np.full(3, 1e-3))
    assert RotationCheck(camera).look(packet, still) is None
    assert RotationCheck(camera).look(packet, slow) is None


def test_noise_that_hides_the_motion_is_no_other_motion():
    """Twenty events of noise for each of an edge: no part has a flow, rather than one by chance."""
    noisy = replace(SENSORS["ideal"], noise_rate_hz=60.0)
    simulation = Simulation(
        SimulationSettings(scene="shapes", duration_s=0.3, peak_speed_deg_s=100.0, seed=81, sensor=noisy)
    )
    estimator, check = VelocityEstimator(simulation.camera), RotationCheck(simulation.camera)
    looks = [
        check.look(packet, replace(estimator.estimate(packet), status=EstimateStatus.CONVERGED, velocity=np.ones(3)))
        for packet in estimator.packets(simulation.chunks())
    ]
    told = [look for look in looks if look is not None]
    assert len(told) >= 10
    assert np.mean([isinstance(look, Drowned) for look in told]) > 0.8
