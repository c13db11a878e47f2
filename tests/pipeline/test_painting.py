"""The brightness that comes with a run is that of the scene."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.backend.tracking import Tracking
from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity.event_sample import EventSample
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.painting import Painting, paint
from cmaxslam_fbp.simulation import Simulation, SimulationSettings
from cmaxslam_fbp.simulation.scene_map import log_levels


@pytest.fixture(scope="module")
def simulation():
    return Simulation(SimulationSettings(scene="boxes", duration_s=1.5, peak_speed_deg_s=150.0, seed=4))


@pytest.fixture(scope="module")
def recording(simulation):
    return Recording.from_events(
        list(simulation.chunks()), camera=simulation.camera, ground_truth=simulation.ground_truth
    )


@pytest.fixture(scope="module")
def result(recording):
    return Slam().run(recording)


def correlation(image, simulation):
    """Return the correlation with the true log panorama, which starts at the identity as an estimate does."""
    height, width = image.shape
    rows, columns = np.indices(image.shape)
    directions = Equirectangular(width, height).unproject(np.stack([columns, rows], axis=-1))
    scene = log_levels(cv2.GaussianBlur(simulation.panorama, (0, 0), 1.2))
    place = Equirectangular(scene.shape[1], scene.shape[0]).project(directions).astype(np.float32)
    truth = cv2.remap(scene, place[..., 0], place[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    seen = np.isfinite(image)
    return np.corrcoef(image[seen], truth[seen])[0, 1]


def test_the_scene_is_painted(result, recording, simulation):
    steps = []
    painted = paint(result, recording.require_camera(), Config(), on_step=steps.append)
    image = painted.brightness.log_intensity
    assert (image.shape, image.dtype) == ((512, 1024), np.float32)
    assert 0.03 < np.isfinite(image).mean() < 0.3
    assert correlation(image, simulation) > 0.88
    assert painted.brightness.threshold_ratio == pytest.approx(1, abs=0.1)
    assert painted.timing.painting_s > 0
    assert painted.timing.wall_s == result.timing.wall_s + painted.timing.painting_s
    assert [step.stage for step in steps] == ["brightness"] * len(steps)
    assert 10 <= len(steps) <= 15
    grown = [np.isfinite(step.brightness().log_intensity).sum() for step in steps[-1:]]
    assert grown[0] <= np.isfinite(image).sum()


def test_the_same_bits_every_time(result, recording):
    once, again = (paint(result, recording.require_camera(), Config()).brightness.log_intensity for _ in range(2))
    np.testing.assert_array_equal(once, again)


def test_a_finer_panorama_shows_the_same(result, recording, simulation):
    coarse = replace(result, panorama=result.panorama[::2, ::2])
    image = paint(coarse, recording.require_camera(), load_config([], ["intensity.scale=2"])).brightness.log_intensity
    assert image.shape == (512, 1024)
    assert correlation(image, simulation) > 0.88


def sample_of(chunks, recording):
    sample = EventSample(recording.sensor_size, 1_000_000)
    list(sample.watch(chunks))
    return sample


def test_single_events_at_the_ends_are_no_problem(result, recording):
    events = next(recording.chunks())
    first, last_ns = events[:1], result.stretches[-1].spline.end_ns
    last = replace(first, t_ns=np.array([last_ns]))
    alone = replace(
        result,
        stretches=(replace(result.stretches[0], end_ns=last_ns),),
        sample=sample_of([first, last], recording),
    )
    painted = paint(alone, recording.require_camera(), Config())
    assert np.nanmax(np.abs(painted.brightness.log_intensity)) == 0


def test_lost_windows_leave_no_trace(result, recording):
    half = len(result.windows) // 2
    windows = [*result.windows[:half], *(replace(w, tracking=Tracking.LOST) for w in result.windows[half:])]
    painting = Painting(replace(result, windows=windows), recording.require_camera(), Config())
    list(painting.run())
    events = Events.concatenate(result.sample.chunks()).between(0, result.windows[half].start_ns)
    first_half = Painting(replace(result, sample=sample_of([events], recording)), recording.require_camera(), Config())
    list(first_half.run())
    np.testing.assert_array_equal(painting._equations.cells, first_half._equations.cells)
    assert painting._equations.cells.any()


def test_one_event_of_several_for_the_slam_leaves_all_for_the_brightness(result, recording):
    some = Slam(load_config([], ["events.subsample=2"])).run(recording, duration_s=0.3)
    kept = Events.concatenate(result.sample.chunks())
    assert len(some.sample) == len(kept.between(0, int(kept.t_ns[0]) + 300_000_000)) > 1.9 * some.events
    assert Slam(load_config([], ["intensity.enabled=false"])).run(recording, duration_s=0.3).sample is None


def test_an_interrupted_painting_leaves_the_rest(result, recording):
    def interrupt(_):
        raise KeyboardInterrupt

    left = paint(result, recording.require_camera(), Config(), on_step=interrupt)
    assert left.brightness is None
    assert left.interrupted
    assert left.panorama is result.panorama
    assert "brightness" in left.warnings[-1]
