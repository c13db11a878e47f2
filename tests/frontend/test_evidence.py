"""Whether events show a motion: noise does not, whatever its rate, and what moves does."""

import numpy as np
import pytest

from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.frontend import EstimateStatus, VelocityEstimator
from cmaxslam_fbp.frontend.evidence import Evidence, deviations_from_still
from cmaxslam_fbp.frontend.motion_models import ExactRotation
from cmaxslam_fbp.frontend.objectives import Pyramid
from cmaxslam_fbp.frontend.packet_events import PacketLookup
from cmaxslam_fbp.frontend.warps import Grid
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

CAMERA = davis240c()
WANTED = FrontendConfig().min_evidence


def noise(rate_hz, duration_s, seed):
    """Return events that come by chance, at a rate per pixel."""
    random = np.random.default_rng(seed)
    count = random.poisson(rate_hz * CAMERA.width * CAMERA.height * duration_s)
    t_ns = np.sort(random.integers(0, int(1e9 * duration_s), count))
    x, y = (random.integers(0, side, count) for side in (CAMERA.width, CAMERA.height))
    return Events.from_arrays(t_ns, x, y, random.integers(0, 2, count), time_unit="ns")


def noise_packet(count, seed):
    return Packet(noise(count / (0.04 * CAMERA.width * CAMERA.height), 0.04, seed), 20_000_000)


@pytest.mark.parametrize("count", [1000, 3000, 20_000])
def test_scattered_events_have_the_deviations_of_chance_at_any_velocity(count):
    """Of about unit spread: that of the pairs, and half of it from the two images that they are compared with."""
    evidence = Evidence(Pyramid(ExactRotation(), Grid.normalised(CAMERA)), CAMERA)
    look_up, random = PacketLookup(CAMERA), np.random.default_rng(count)
    packets = [noise_packet(count, seed) for seed in range(60)]
    found = [evidence(packet.events, look_up(packet), random.normal(0, 2.0, 3), np.inf) for packet in packets]
    assert 0 < np.mean(found) < (2.5 if count > 10_000 else 1.2)  # the largest of three axes; and the sensor's border
    assert 0.7 < np.std(found) < 2


@pytest.mark.parametrize("count", [1000, 3000, 20_000])
def test_scattered_events_do_not_reach_the_threshold_where_they_agree_most(count, monkeypatch):
    estimator, found, bounds = VelocityEstimator(CAMERA, FrontendConfig(packets="count")), [], []

    def look(events, points, velocity, wanted, least_deviations):
        found.append(estimator._evidence(events, points, velocity, wanted))
        bounds.append(least_deviations)
        return False

    monkeypatch.setattr(estimator._evidence, "is_enough", look)
    for seed in range(40):
        estimator.reset()
        estimator.estimate(noise_packet(count, seed))
    assert len(found) == 40
    assert 1 < np.mean(found) < 5
    assert np.std(found) < 2
    assert np.mean(found) + 3.5 * np.std(found) < WANTED
    assert max(bounds) < WANTED


def test_deviations_from_a_still_image_are_those_of_its_moments():
    image = np.random.default_rng(0).poisson(3.0, (30, 40)).astype(np.float32)
    count, sharp = int(image.sum()), np.random.default_rng(1).permutation(np.repeat([0.0, 6.0], 600))
    sharp *= count / sharp.sum()
    pairs, chance = (float((h * h).sum() - count) for h in (sharp, image))
    triples = float((image * (image - 1) * (image - 2)).sum())
    sharpness, still_sharpness = (h.var() / (count / h.size) ** 2 for h in (sharp, image))
    expected = (pairs - chance) / np.sqrt(2 * chance + 4 * max(triples - chance**2 / count, 0) + 2)
    assert deviations_from_still(sharpness, still_sharpness, image, count) == pytest.approx(expected, rel=1e-4)


def test_events_beyond_the_image_make_no_variance_negative():
    """A hundred events in 111 bins, of which a tenth left the image: as if all had stayed."""
    whole = np.full(111, 100 / 111, np.float32)
    expected = deviations_from_still(2.0, 0.0, whole, 100)
    assert expected == pytest.approx(2 * 100**2 / 111 / np.sqrt(2 + 2 * 100 * (1 - 100 / 111)), rel=1e-5)
    assert deviations_from_still(2.0, 0.0, np.float32(0.9) * whole, 100) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rate_hz", [1.0, 2.0, 10.0])
def test_noise_alone_gives_no_velocity(rate_hz):
    estimates = list(VelocityEstimator(CAMERA).run([noise(rate_hz, 1.0, seed=7)]))
    assert len(estimates) == 99
    assert {one.status for one in estimates} == {EstimateStatus.NO_EVIDENCE}
    assert not np.any([one.velocity for one in estimates])
    # Of packets like those before, most are not looked at again.
    assert np.count_nonzero([one.evaluations for one in estimates]) < 0.3 * len(estimates)


def test_hot_pixels_are_no_evidence():
    """They agree at zero velocity: until they are found, the frontend sees them."""
    random = np.random.default_rng(3)
    background = noise(1.0, 0.5, seed=8)
    count = 3000
    hot = Events.from_arrays(
        np.sort(random.integers(0, 500_000_000, count)),
        *random.integers(0, [[240], [180]], (2, 6))[:, random.integers(0, 6, count)],
        np.ones(count, int),
        time_unit="ns",
    )
    both = Events.concatenate([background, hot])
    both = both[np.argsort(both.t_ns, kind="stable")]
    estimates = list(VelocityEstimator(CAMERA).run([both]))
    assert {one.status for one in estimates} == {EstimateStatus.NO_EVIDENCE}


def test_without_the_rule_noise_moves():
    estimates = VelocityEstimator(CAMERA, FrontendConfig(min_evidence=0)).run([noise(2.0, 0.3, seed=7)])
    assert all(one.status.is_measured and one.velocity.any() for one in estimates)


def without_evidence(camera, chunks):
    """Return the times of packets without evidence after the first 0.2 s."""
    estimates = list(VelocityEstimator(camera).run(chunks))
    since_ns = estimates[0].t_ns + 200_000_000
    return [one.t_ns for one in estimates if one.status is EstimateStatus.NO_EVIDENCE and one.t_ns > since_ns]


@pytest.mark.parametrize("scene", ["shapes", "boxes"])
def test_every_packet_of_a_fast_camera_is_evidence(scene, request):
    recording = request.getfixturevalue(scene)
    assert without_evidence(recording.camera, [recording.events]) == []


@pytest.mark.parametrize(("scene", "speed_deg_s"), [("shapes", 30), ("boxes", 15)])
def test_every_packet_of_a_slow_camera_is_evidence(scene, speed_deg_s):
    simulation = Simulation(SimulationSettings(scene=scene, duration_s=1.0, peak_speed_deg_s=speed_deg_s, seed=23))
    assert without_evidence(simulation.camera, simulation.chunks()) == []


@pytest.mark.parametrize("settings", [{}, {"packets": "count", "events_per_packet": 5000}], ids=["rate", "count"])
@pytest.mark.parametrize("name", ["boxes", "poster", "dynamic", "shapes"])
def test_every_packet_of_real_events_is_evidence(real_data, name, settings):
    recording = open_recording(real_data / "slices" / f"{name}_rotation")
    estimates = list(VelocityEstimator(recording.require_camera(), FrontendConfig(**settings)).run(recording.chunks()))
    assert estimates
    assert all(one.status.is_measured for one in estimates)
