"""Training without labels: the loss is the focus of the events that the network's flow moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.errors import CmaxSlamError
from cmaxslam_fbp.experiments.flow.batches import make_batch, true_flow
from cmaxslam_fbp.experiments.flow.losses import LossSettings, flow_loss
from cmaxslam_fbp.experiments.flow.metrics import FlowErrors, flow_errors
from cmaxslam_fbp.experiments.flow.network import FlowNet
from cmaxslam_fbp.experiments.flow.samples import FlowSample
from cmaxslam_fbp.experiments.flow.trajectories import flow_of
from cmaxslam_fbp.fbp.torch_module import Tensor, find_device, torch
from cmaxslam_fbp.io.atomic_files import in_the_making

_AT_ONCE = 8  # samples that a network is given


class TrainingError(CmaxSlamError):
    """A training that cannot go on, or a saved network that cannot be used."""


@dataclass(frozen=True)
class TrainingSettings:
    """How a network is trained; all that determines its weights besides the samples.

    Attributes
    ----------
    loss : LossSettings
        What is minimised.
    seed : int
        Draws the first weights, the samples, their crops and the reference times.
    steps, batch : int
        How many steps, of how many samples each.
    crop : int
        Pixels per side of what is cut from a sample; a multiple of 8.
    most_events : int
        Of a crop; more are thinned out at random.
    learning_rate : float
        Of AdamW; it falls to a tenth as half a cosine.
    references : int
        Reference times per step: one is drawn from [0, 1]; more are spread evenly, beginning at a drawn one.
    degree, channels : int
        Of the trajectories, and of the network's first level.
    judged_every : int
        Steps between two looks at the samples that are held out.
    patience : int, optional
        Training ends when so many looks in a row brought no lower loss on the samples that are held out.
    """

    loss: LossSettings = field(default_factory=LossSettings)
    seed: int = 0
    steps: int = 500
    batch: int = 4
    crop: int = 128
    most_events: int = 20_000
    learning_rate: float = 1e-3
    references: int = 1
    degree: int = 1
    channels: int = 16
    judged_every: int = 100
    patience: int | None = None


@dataclass(frozen=True)
class Look:
    """The state of a training at a step: the mean training loss since the last look, and errors on held-out samples."""

    step: int
    training_loss: float
    held_out_loss: float
    errors: FlowErrors


OnStep = Callable[[int, float, Look | None], None]  # step, loss, and the look that was taken at it


class Training:
    """A network, its optimiser and how far they are; goes on where an earlier one stopped.

    Parameters
    ----------
    settings : TrainingSettings
        How to train.
    samples, held_out : samples to learn from, and those to judge by, which nothing is learned from
    checkpoint : Path, optional
        Where to keep the state at each look; what is there is taken up if it is of the same settings.
    device : str
        Where the tensors live.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        samples: Sequence[FlowSample],
        held_out: Sequence[FlowSample],
        *,
        checkpoint: Path | None = None,
        device: str = "cpu",
    ) -> None:
        if not samples or not held_out:
            raise TrainingError("there are no samples to learn from, or none to judge by")
        smallest = min(samples[0].shape)
        if settings.crop % 8 or not 8 <= settings.crop <= smallest:
            raise TrainingError(f"a crop of {settings.crop} pixels must be a multiple of 8 and at most {smallest}")
        self.settings, self._samples, self._held_out = settings, samples, held_out
        self._checkpoint, self._device = checkpoint, str(find_device(device))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.network = FlowNet(settings.degree, settings.channels).to(self._device)
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=settings.learning_rate)
        self.looks: list[Look] = []
        self.step = 0
        if checkpoint is not None and checkpoint.exists():
            self._take_up(checkpoint)

    @property
    def is_done(self) -> bool:
        """Whether all steps are made, or the last looks brought nothing."""
        patience = self.settings.patience
        if patience is not None and len(self.looks) > patience:
            losses = [look.held_out_loss for look in self.looks]
            if min(losses[-patience:]) >= min(losses[:-patience]):
                return True
        return self.step >= self.settings.steps

    def run(self, on_step: OnStep | None = None) -> list[Look]:
        """Train to the end; return all looks at the samples that are held out.

        The state is kept at every look: an interrupted training goes on from the last one.
        """
        since: list[float] = []
        while not self.is_done:
            since.append(self._step())
            look = None
            if self.step % self.settings.judged_every == 0 or self.step == self.settings.steps:
                look = self._look(float(np.mean(since)))
                self.looks.append(look)
                since = []
                self._keep()
            if on_step is not None:
                on_step(self.step, since[-1] if since else self.looks[-1].training_loss, look)
        return self.looks

    def _step(self) -> float:
        """Make one step; return the loss before it."""
        settings, rng = self.settings, np.random.default_rng([self.settings.seed, self.step])
        chosen = rng.choice(len(self._samples), settings.batch, replace=len(self._samples) < settings.batch)
        drawn = [draw_crop(self._samples[k], settings.crop, settings.most_events, rng) for k in chosen]
        references = (rng.random() + np.arange(settings.references) / settings.references) % 1.0
        for group in self.optimiser.param_groups:
            group["lr"] = settings.learning_rate * falling(self.step / settings.steps)
        batch = make_batch(drawn, self._device)
        loss = flow_loss(batch, self.network(batch.voxels), references.tolist(), settings.loss)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        self.step += 1
        value = float(loss.detach())
        if not np.isfinite(value):
            raise TrainingError(f"the loss is {value} after {self.step} steps; give a smaller learning rate")
        return value

    def _look(self, training_loss: float) -> Look:
        losses, flows, truths, where = [], [], [], []
        for samples, coefficients in predict(self.network, self._held_out, self._device):
            batch = make_batch(samples, self._device)
            with torch.no_grad():
                losses.append(float(flow_loss(batch, coefficients, [0.5], self.settings.loss)))
            truth, valid = true_flow(samples)
            flows.append(flow_of(coefficients).cpu())
            truths.append(truth)
            where.append(valid)
        errors = flow_errors(torch.cat(flows), torch.cat(truths), torch.cat(where))
        return Look(self.step, training_loss, float(np.mean(losses)), errors)

    def _keep(self) -> None:
        if self._checkpoint is None:
            return
        state = {
            "settings": asdict(self.settings),
            "step": self.step,
            "looks": [asdict(look) for look in self.looks],
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }
        with in_the_making(self._checkpoint, make_folder=True) as temporary:
            torch.save(state, temporary)

    def _take_up(self, path: Path) -> None:
        state = read_checkpoint(path)
        if state["settings"] != asdict(self.settings):
            raise TrainingError(f"{path} is of a training with other settings; choose another file, or remove it")
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]
        self.looks = [Look(**{**look, "errors": FlowErrors(**look["errors"])}) for look in state["looks"]]


def falling(progress: float) -> float:
    """Return `0.1 + 0.9 (1 + cos(pi p)) / 2`: from one to a tenth."""
    return float(0.1 + 0.45 * (1 + np.cos(np.pi * min(progress, 1.0))))


def draw_crop(sample: FlowSample, crop: int, most_events: int, rng: np.random.Generator) -> FlowSample:
    """Return a random part of a sample, as seen in a random mirror, and with rows and columns exchanged or not."""
    height, width = sample.shape
    top, left = int(rng.integers(0, height - crop + 1)), int(rng.integers(0, width - crop + 1))
    part = sample.crop(top, left, crop, crop).thinned(most_events, rng)
    part = part.mirrored(bool(rng.integers(2)), bool(rng.integers(2)))
    return part.transposed() if rng.integers(2) else part


def middle_crop(sample: FlowSample, crop: int) -> FlowSample:
    """Return the middle of a sample: a square of so many pixels per side, or of as many multiples of 8 as it has."""
    height, width = sample.shape
    crop = min(crop, min(height, width) // 8 * 8)
    return sample.crop((height - crop) // 2, (width - crop) // 2, crop, crop)


def predict(
    network: FlowNet, samples: Sequence[FlowSample], device: str = "cpu"
) -> Iterator[tuple[Sequence[FlowSample], Tensor]]:
    """Yield samples of one size, some at a time, and the coefficients that the network finds for them."""
    for first in range(0, len(samples), _AT_ONCE):
        some = samples[first : first + _AT_ONCE]
        with torch.no_grad():
            yield some, network(make_batch(some, device).voxels)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read the state of a training; a `TrainingError` where the file is none."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        missing = {"settings", "step", "looks", "network", "optimiser"} - set(state)
    except Exception as error:  # whatever the library finds wrong with a file
        raise TrainingError(f"{path} is not the state of a training: {str(error).splitlines()[0][:120]}") from error
    if missing:
        raise TrainingError(f"{path} is not the state of a training: it lacks {', '.join(sorted(missing))}")
    return state


def load_network(path: Path) -> FlowNet:
    """Return the trained network of a checkpoint."""
    state = read_checkpoint(path)
    network = FlowNet(state["settings"]["degree"], state["settings"]["channels"])
    network.load_state_dict(state["network"])
    return network.eval()
