"""Every setting of the frontend does what its sentence says, and is named in its document."""

from pathlib import Path

import numpy as np
import pytest

from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.frontend import VelocityEstimator
from cmaxslam_fbp.frontend.warps import Grid
from cmaxslam_fbp.geometry.camera import davis240c

DOCUMENT = Path(__file__).parents[2] / "docs" / "frontend.md"


@pytest.mark.parametrize("name", FrontendConfig.model_fields)
def test_the_document_names_the_setting(name):
    assert f"`{name}`" in DOCUMENT.read_text()


def test_the_grid_has_the_configured_columns_rows_and_step():
    grid = Grid.configured(davis240c(), FrontendConfig(grid_size=(120, 80), grid_step=0.02))
    assert grid.shape == (80, 120)
    assert grid.scale_x == grid.scale_y == 50
    assert Grid.configured(davis240c(), FrontendConfig()) == Grid.normalised(davis240c())
    assert Grid.configured(davis240c(), FrontendConfig(grid="sensor")) == Grid.sensor(davis240c())


def packets_of(shapes, **settings):
    """The packets away from the ends of the recording: numbers of events, and durations in seconds."""
    packets = list(VelocityEstimator(shapes.camera, FrontendConfig(**settings)).packets([shapes.events]))[10:-10]
    durations_s = [1e-9 * float(packet.events.t_ns[-1] - packet.events.t_ns[0]) for packet in packets]
    return np.array([len(packet.events) for packet in packets]), np.array(durations_s)


def test_long_packets_are_cut_but_not_to_fewer_than_the_least_events(shapes):
    uncut, durations_s = packets_of(shapes, max_packet_s=None)
    assert (uncut == 20_000).all()
    assert durations_s.min() > 0.02
    counts, durations_s = packets_of(shapes, max_packet_s=0.02, min_packet_events=1)
    assert durations_s.max() <= 0.02
    assert counts.min() < 10_000 <= counts.max()
    counts, durations_s = packets_of(shapes, max_packet_s=0.02, min_packet_events=10_000)
    assert counts.min() == 10_000
    assert durations_s.max() > 0.02


def test_short_packets_are_stretched_by_taking_every_nth_event(shapes):
    _, durations_s = packets_of(shapes, events_per_packet=1000, min_packet_s=0)
    assert durations_s.max() < 0.01
    counts, durations_s = packets_of(shapes, events_per_packet=1000, min_packet_s=0.02)
    assert durations_s.min() > 0.019
    assert counts.min() > 300
    assert counts.max() <= 1000
