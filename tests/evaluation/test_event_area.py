"""The event area: by hand, and of maps of the same events along better and worse trajectories."""

import itertools

import numpy as np
import pytest

from cmaxslam_fbp.backend.panorama import add_visits, field_of_view_planes
from cmaxslam_fbp.evaluation import event_area
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.io import open_recording

LOOKS = np.full((4, 8), 20, np.uint16)


def test_it_is_the_share_of_pixels_with_events_where_all_hold_equally_many():
    panorama = np.zeros((4, 8), np.float32)
    panorama[1, 2:5] = 30
    assert event_area(panorama, LOOKS) == pytest.approx(3 / 32)
    panorama[1, 4] = 60
    assert event_area(panorama, LOOKS) == pytest.approx((1 + 1 + 2) ** 2 / (1 + 1 + 4) / 32)
    assert event_area(0 * panorama, LOOKS) == 0


def test_it_does_not_matter_how_often_a_pixel_was_seen():
    panorama, looks = np.zeros((4, 8), np.float32), LOOKS.copy()
    panorama[1, 2:5], looks[1, 2:5] = (10, 20, 40), (10, 20, 40)
    assert event_area(panorama, looks) == pytest.approx(3 / 32)
    looks[1, 4] = 1  # hardly seen at all
    assert event_area(panorama, looks) == pytest.approx(2 / 32)


def test_it_grows_with_every_error_of_the_trajectory_and_hardly_with_noise(simulated_bag, make_events):
    recording = open_recording(simulated_bag)
    camera, truth = recording.require_camera(), recording.ground_truth
    signal = Events.concatenate(recording.chunks()).between(truth.start_ns, truth.end_ns)[::3]
    duration_ns = int(signal.t_ns[-1] - signal.t_ns[0])
    noise = make_events(len(signal) // 20, start_ns=int(signal.t_ns[0]), duration_ns=duration_ns)
    noisy = Events.concatenate([signal, noise])
    noisy = noisy[np.argsort(noisy.t_ns, kind="stable")]

    def area(events, error_deg):
        """Turn the camera to and fro about a slanted axis, four times a second."""
        t_s = (events.t_ns - signal.t_ns[0]) / 1e9
        wrong = np.radians(error_deg) * np.sin(8 * np.pi * t_s)[:, None] * np.array([0.6, 0.6, 0.5])
        rotations = Rotation.from_rotvec(wrong) * truth.rotation_at(events.t_ns)
        bearings = camera.bearings()[events.y, events.x]
        points = Equirectangular(1024, 512).project(rotations.apply(bearings))
        panorama = np.zeros((512, 1024), np.float32)
        columns, rows = np.floor(points + 0.5).astype(int).T
        np.add.at(panorama, (rows, columns % 1024), 1)
        looks, every = np.zeros(panorama.shape, np.uint16), len(events) // 40
        add_visits(looks, field_of_view_planes(camera), rotations[::every].as_matrix())
        return event_area(panorama, looks)

    areas = [area(noisy, error_deg) for error_deg in (0, 0.2, 0.5, 1.0)]
    assert all(later > 1.04 * earlier for earlier, later in itertools.pairwise(areas)), areas
    assert areas[-1] > 1.5 * areas[0]
    assert areas[0] < 1.2 * area(signal, 0)
