"""Pictures of flow as colours, and of events before and after they are moved along it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import Picture, SingleArray
from cmaxslam_fbp.experiments.flow.batches import make_batch, true_flow
from cmaxslam_fbp.experiments.flow.losses import LossSettings, event_images
from cmaxslam_fbp.experiments.flow.sample_sets import load_groups
from cmaxslam_fbp.experiments.flow.samples import FlowSample
from cmaxslam_fbp.experiments.flow.training import load_network, middle_crop
from cmaxslam_fbp.experiments.flow.trajectories import flow_of
from cmaxslam_fbp.fbp.torch_module import Tensor, to_host, torch


def flow_picture(flow_px: SingleArray, most_px: float) -> Picture:
    """Return a flow (2, h, w) as red, green and blue (h, w, 3): the direction as hue, the length as saturation."""
    import cv2

    x, y = flow_px
    hue = (np.degrees(np.arctan2(y, x)) % 360) / 2
    strength = np.clip(np.hypot(x, y) / most_px, 0, 1)
    hsv = np.stack([hue, 255 * strength, np.full_like(x, 255)], axis=-1).astype(np.uint8)
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.uint8)


def events_picture(sample: FlowSample, coefficients: Tensor) -> Picture:
    """Return the image (h, w) of a sample's events, moved to the middle of the stretch: dark on white."""
    binning = LossSettings().binning(sample.shape)
    with torch.no_grad():
        images = event_images(make_batch([sample]), coefficients, 0.5, binning, 0.0)
    image = to_host(images[0].sum(0))
    return (255 * (1 - np.clip(image / max(float(np.percentile(image, 99.5)), 1e-6), 0, 1))).astype(np.uint8)


def sample_pictures(
    places: Mapping[str, Any], group: int, networks: Mapping[str, Path], out: Path
) -> dict[str, Picture]:
    """Return the pictures of the middle sample of a recording: events, true flow, and both of each network."""
    samples = load_groups(places, out)[group]
    sample = samples[len(samples) // 2]
    if min(sample.shape) < 256:
        sample = middle_crop(sample, 128)
    truth, valid = true_flow([sample])
    most_px = float(truth.norm(dim=1)[valid].quantile(0.95)) or 1.0
    still = torch.zeros_like(truth)
    pictures = {
        "events": events_picture(sample, still),
        "true flow": flow_picture(to_host(truth[0] * valid), most_px),
        "moved by it": events_picture(sample, truth * valid),
    }
    for arm, path in networks.items():
        network = load_network(path)
        with torch.no_grad():
            coefficients = network(make_batch([sample]).voxels)
        pictures[arm] = flow_picture(to_host(flow_of(coefficients)[0]), most_px)
        pictures[f"{arm}, events"] = events_picture(sample, coefficients)
    return pictures
