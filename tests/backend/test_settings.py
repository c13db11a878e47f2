"""Settings of the backend that no other test changes do what their sentences say; its document names them all."""

from pathlib import Path

import numpy as np
import pytest

from cmaxslam_fbp.backend.backend import Backend
from cmaxslam_fbp.backend.tracking import Tracking
from cmaxslam_fbp.backend.window import cut_into_windows
from cmaxslam_fbp.config import BackendConfig

DOCUMENT = Path(__file__).parents[2] / "docs" / "backend.md"


@pytest.mark.parametrize("name", BackendConfig.model_fields)
def test_the_document_names_the_setting(name):
    assert f"`{name}`" in DOCUMENT.read_text()


def windows(recording, end_s=0.8, **settings):
    chunks = [recording.events.between(0, recording.simulation.start_ns + round(end_s * 1e9))]
    return list(cut_into_windows(chunks, recording.simulation.sensor_size, BackendConfig(**settings)))


def test_weak_passages_are_left_out_where_enough_others_remain(recording):
    def counts(**settings):
        return np.array([len(window.events) for window in windows(recording, **settings)])

    no_limit = {"most_passages_s": 1e9}
    every = counts(passage_events=1, **no_limit)
    strong, stronger = (counts(passage_events=n, enough_passages_s=0, **no_limit) for n in (2, 3))
    assert (strong < every).all()
    assert (stronger < strong).all()
    np.testing.assert_array_equal(counts(passage_events=2, enough_passages_s=1e9, **no_limit), every)
    all_events = counts(passage_s=0)
    assert (all_events > every).all()


def test_no_window_has_more_passages_than_are_wanted(recording):
    counts = [len(window.events) for window in windows(recording, most_passages_s=50_000)]
    assert 4500 < max(counts) < 10_500  # of 0.2 s


def track(recording, end_s=0.8, **settings):
    backend = Backend(BackendConfig(**settings), recording.simulation.camera)
    for window in windows(recording, end_s):
        backend.process(window, recording.velocities())
    return backend


def test_what_counts_as_a_loss_is_configured(recording):
    """No window turns by as little as a thousandth of a degree, once there is a usual match to compare with."""
    assert {r.tracking for r in track(recording, 1.3).state.reports.values()} == {Tracking.TRACKED}
    strict = track(recording, 1.3, lost_step_deg=1e-3, bootstrap_s=0, relocalisation=False)
    assert Tracking.LOST in {r.tracking for r in strict.state.reports.values()}


def test_refinement_ends_after_its_last_pass(recording):
    backend = track(recording, max_refinements=1)
    stages = {stage for stage, _ in backend.refine(lambda: windows(recording))}
    assert stages == {"refinement 1: map", "refinement 1", "last map"}
    assert len(backend.refinement.turns_deg) == 1
