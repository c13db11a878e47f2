"""What a trained network does with real events, whose flow is not known: how much sharper they become."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.experiments.flow.batches import make_batch
from cmaxslam_fbp.experiments.flow.losses import LossSettings, event_images
from cmaxslam_fbp.experiments.flow.network import FlowNet
from cmaxslam_fbp.experiments.flow.samples import FlowSample, make_sample
from cmaxslam_fbp.experiments.flow.training import load_network
from cmaxslam_fbp.fbp.torch_module import Tensor, torch
from cmaxslam_fbp.io.opening import open_recording
from cmaxslam_fbp.rows.row import Values

MULTIPLE = 8  # of pixels: the network halves images three times


def sample_without_flow(events: Events, width: int, height: int) -> FlowSample:
    """Return a sample of all events given, on an image that is enlarged to whole multiples of eight pixels."""
    shape = -(-height // MULTIPLE) * MULTIPLE, -(-width // MULTIPLE) * MULTIPLE
    start_ns, end_ns = int(events.t_ns[0]), int(events.t_ns[-1]) + 1
    return make_sample(events, start_ns, end_ns, np.zeros((*shape, 2)), np.zeros(shape, bool))


def sharpness_gain(network: FlowNet, sample: FlowSample) -> float:
    """Return `Var h(u) / Var h(0)`: by how much the flow `u` of a network raises the variance of the events' images.

    Images are histograms by polarity at the middle of the stretch, blurred by one pixel. The literature calls this
    the flow warp loss; events that are sharpened have more than one.
    """
    batch, binning = make_batch([sample]), LossSettings().binning(sample.shape)

    def variance(coefficients: Tensor) -> float:
        return float(event_images(batch, coefficients, 0.5, binning, 1.0).var(dim=(2, 3)).mean())

    with torch.no_grad():
        coefficients = network(batch.voxels)
        return variance(coefficients) / variance(torch.zeros_like(coefficients))


def measure_slices(settings: Mapping[str, Any], out: Path) -> Values:
    """Return the gain in sharpness on each of the real slices, by name."""
    network = load_network(out / settings["network"])
    gains = {}
    for name in settings["slices"]:
        recording = open_recording(Path(settings["folder"]) / name)
        size = recording.sensor_size
        events = Events.concatenate(recording.chunks())
        gains[name] = sharpness_gain(network, sample_without_flow(events, size.width, size.height))
    return {"gains": gains}
