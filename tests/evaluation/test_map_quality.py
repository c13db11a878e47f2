"""The event area, by hand and of maps of the same events along better and worse trajectories; the brightness."""

import itertools

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.backend.panorama import add_visits, field_of_view_planes
from cmaxslam_fbp.evaluation import event_area
from cmaxslam_fbp.evaluation.map_quality import compare_brightness
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.io import open_recording

LOOKS = np.full((4, 8), 20, np.uint16)


def test_the_event_area_is_the_share_of_pixels_with_events_where_all_hold_equally_many():
    panorama = np.zeros((4, 8), np.float32)
    panorama[1, 2:5] = 30
    assert event_area(panorama, LOOKS) == pytest.approx(3 / 32)
    panorama[1, 4] = 60
    assert event_area(panorama, LOOKS) == pytest.approx((1 + 1 + 2) ** 2 / (1 + 1 + 4) / 32)
    assert event_area(0 * panorama, LOOKS) == 0


def test_for_the_event_area_it_does_not_matter_how_often_a_pixel_was_seen():
    panorama, looks = np.zeros((4, 8), np.float32), LOOKS.copy()
    panorama[1, 2:5], looks[1, 2:5] = (10, 20, 40), (10, 20, 40)
    assert event_area(panorama, looks) == pytest.approx(3 / 32)
    looks[1, 4] = 1  # hardly seen at all
    assert event_area(panorama, looks) == pytest.approx(2 / 32)


def test_the_event_area_grows_with_every_error_of_the_trajectory_and_hardly_with_noise(simulated_bag, make_events):
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


@pytest.fixture
def truth():
    noise = np.random.default_rng(0).normal(size=(80, 120)).astype(np.float32)
    return cv2.GaussianBlur(noise, (0, 0), 3)


def test_unit_and_zero_of_a_brightness_do_not_count(truth):
    errors = compare_brightness((5 * truth + 2).astype(np.float32), truth)
    assert errors.correlation == pytest.approx(1, abs=1e-5)
    assert errors.ssim == pytest.approx(1, abs=1e-5)
    assert errors.threshold == pytest.approx(0.2, rel=1e-4)


def test_what_was_not_seen_does_not_count(truth):
    estimate = truth.copy()
    estimate[:, 60:] = np.nan
    other = truth.copy()
    other[:, 60:] = 100
    assert compare_brightness(estimate, other).ssim == pytest.approx(1, abs=1e-5)


def test_the_similarity_is_the_equation_of_its_paper(truth):
    """Against the plain form, window by window."""
    estimate = np.full_like(truth, np.nan)
    part = np.s_[30:42, 50:65]
    estimate[part] = truth[part] + np.random.default_rng(1).normal(0, 0.05, (12, 15))
    slope, offset = np.polyfit(estimate[part].ravel(), truth[part].ravel(), 1)
    dark, bright = np.percentile(truth[part], [0.5, 99.5])
    a, b = ((image - dark) / (bright - dark) for image in (slope * estimate[part] + offset, truth[part]))
    rows, columns = np.indices(a.shape)
    values = []
    for row, column in np.ndindex(*a.shape):
        w = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * 1.5**2))
        w /= w.sum()
        ma, mb = (w * a).sum(), (w * b).sum()
        va, vb, cov = (w * (a - ma) ** 2).sum(), (w * (b - mb) ** 2).sum(), (w * (a - ma) * (b - mb)).sum()
        values.append((2 * ma * mb + 1e-4) * (2 * cov + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4)))
    assert 0.2 < np.mean(values) < 0.97
    assert compare_brightness(estimate, truth).ssim == pytest.approx(np.mean(values), abs=2e-3)
