"""The arms of the study: one network trained with each way through the binning, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cmaxslam_fbp.experiments.flow.batches import make_batch, true_flow
from cmaxslam_fbp.experiments.flow.losses import LossSettings
from cmaxslam_fbp.experiments.flow.metrics import flow_errors
from cmaxslam_fbp.experiments.flow.network import FlowNet
from cmaxslam_fbp.experiments.flow.sample_sets import load_groups, load_samples
from cmaxslam_fbp.experiments.flow.samples import FlowSample
from cmaxslam_fbp.experiments.flow.training import Training, TrainingSettings, middle_crop, predict
from cmaxslam_fbp.experiments.flow.trajectories import flow_of
from cmaxslam_fbp.fbp.torch_module import Tensor, torch
from cmaxslam_fbp.rows.row import Values

ARMS: dict[str, dict[str, str | None]] = {
    "linear, plain": {"kernel": "linear", "reconstruction": None},
    "linear, FBP": {"kernel": "linear", "reconstruction": "linear"},
    "rect, FBP": {"kernel": "rect", "reconstruction": "linear"},
    "rect, STE": {"kernel": "rect", "surrogate": "ste"},
    "rect, sigmoid": {"kernel": "rect", "surrogate": "sigmoid"},
}
JUDGED_CROP = 128
_LOOKED_AT = 4  # every so many of the held-out samples make the learning curve


def train_arm(settings: Mapping[str, Any], out: Path) -> Values:
    """Train a network; return its learning curve and its errors on every recording that is held out."""
    chosen = dict(settings["training"])
    training_settings = TrainingSettings(**{**chosen, "loss": LossSettings(**chosen["loss"])})
    groups = [[_judged(sample) for sample in group] for group in load_groups(settings["held_out_places"], out)]
    looked_at = [sample for group in groups for sample in group][::_LOOKED_AT]
    samples = load_samples(settings["learned_places"], out)
    name = f"flow/networks/{settings['name']}.pt"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the same bits wherever it runs, and two trainings beside each other
    try:
        training = Training(training_settings, samples, looked_at, checkpoint=out / name)
        looks = training.run()
        errors = [group_errors(training.network, group) for group in groups]
    finally:
        torch.set_num_threads(threads)
    return {"files": [name], "network": name, "looks": [asdict(look) for look in looks], "errors": errors}


def measure_zero(settings: Mapping[str, Any], out: Path) -> Values:
    """Return the errors of a flow that is zero everywhere, on every recording that is held out."""
    groups = [[_judged(sample) for sample in group] for group in load_groups(settings["held_out_places"], out)]
    return {"errors": [group_errors(None, group) for group in groups]}


def _judged(sample: FlowSample) -> FlowSample:
    """Return the middle 128 x 128 pixels of a small image, or a large one whole."""
    return middle_crop(sample, JUDGED_CROP) if min(sample.shape) < 2 * JUDGED_CROP else sample


def group_errors(network: FlowNet | None, samples: Sequence[FlowSample]) -> dict[str, dict[str, float]]:
    """Return the errors at all pixels with a true flow, and at those with events too; without a network, of no flow."""
    flows, truths, valids, active = [], [], [], []
    for first in range(0, len(samples), 8):
        some = samples[first : first + 8]
        truth, valid = true_flow(some)
        batch = make_batch(some)
        seen = torch.zeros(valid.numel(), dtype=torch.bool).index_fill(0, batch.pixels, True).reshape(valid.shape)
        flows.append(torch.zeros_like(truth) if network is None else _predicted(network, some))
        truths.append(truth)
        valids.append(valid)
        active.append(valid & seen)
    flow, truth = torch.cat(flows), torch.cat(truths)
    where = {"dense": torch.cat(valids), "events": torch.cat(active)}
    return {name: asdict(flow_errors(flow, truth, pixels)) for name, pixels in where.items() if bool(pixels.any())}


def _predicted(network: FlowNet, samples: Sequence[FlowSample]) -> Tensor:
    return torch.cat([flow_of(coefficients) for _, coefficients in predict(network, samples)])
