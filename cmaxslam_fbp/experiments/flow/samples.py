"""A sample to learn flow from or to judge it by: the events of a stretch of time on an image, and the true flow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.events import Events


@dataclass(frozen=True, eq=False)
class FlowSample:
    """N events of a stretch of time, and the displacements of all pixels from its start to its end.

    Attributes
    ----------
    t : (N,) float32
        Times as parts of the stretch, 0 to 1.
    x, y : (N,) int16
        Pixel column and row.
    p : (N,) bool
        Where the pixel became brighter.
    flow_px : (2, height, width) float32
        To the right and down; where it is not known, anything.
    is_valid : (height, width) bool
        Where it is known.
    """

    t: SingleArray
    x: npt.NDArray[np.int16]
    y: npt.NDArray[np.int16]
    p: npt.NDArray[np.bool_]
    flow_px: SingleArray
    is_valid: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.t)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.is_valid.shape[0], self.is_valid.shape[1]

    def crop(self, top: int, left: int, height: int, width: int) -> FlowSample:
        """Return a part of the image."""
        kept = (self.y >= top) & (self.y < top + height) & (self.x >= left) & (self.x < left + width)
        rows, columns = slice(top, top + height), slice(left, left + width)
        x, y = self.x[kept] - np.int16(left), self.y[kept] - np.int16(top)
        flow, is_valid = self.flow_px[:, rows, columns], self.is_valid[rows, columns]
        return FlowSample(self.t[kept], x, y, self.p[kept], flow, is_valid)

    def mirrored(self, left_right: bool, up_down: bool) -> FlowSample:
        """Return the sample as in a mirror: the flow turns with the image."""
        (height, width), x, y, flow, is_valid = self.shape, self.x, self.y, self.flow_px, self.is_valid
        if left_right:
            x, flow, is_valid = np.int16(width - 1) - x, flow[:, :, ::-1] * _NEGATIVE_X, is_valid[:, ::-1]
        if up_down:
            y, flow, is_valid = np.int16(height - 1) - y, flow[:, ::-1] * _NEGATIVE_X[::-1], is_valid[::-1]
        return FlowSample(self.t, x, y, self.p, np.ascontiguousarray(flow), np.ascontiguousarray(is_valid))

    def transposed(self) -> FlowSample:
        """Return the sample with rows and columns exchanged."""
        flow = np.ascontiguousarray(self.flow_px[::-1].transpose(0, 2, 1))
        return FlowSample(self.t, self.y, self.x, self.p, flow, np.ascontiguousarray(self.is_valid.T))

    def thinned(self, most: int, rng: np.random.Generator) -> FlowSample:
        """Return the sample with at most so many events, drawn at random, in order of time."""
        if len(self) <= most:
            return self
        kept = np.sort(rng.choice(len(self), most, replace=False))
        return FlowSample(self.t[kept], self.x[kept], self.y[kept], self.p[kept], self.flow_px, self.is_valid)


_NEGATIVE_X = np.array([-1, 1], np.float32)[:, None, None]


def make_sample(
    events: Events, start_ns: int, end_ns: int, flow_px: npt.NDArray[np.floating], is_valid: npt.NDArray[np.bool_]
) -> FlowSample:
    """Return the sample of the events with `start_ns <= t < end_ns`, and of a flow (height, width, 2)."""
    part = events.between(start_ns, end_ns)
    return FlowSample(
        ((part.t_ns - start_ns) / (end_ns - start_ns)).astype(np.float32),
        part.x.astype(np.int16),
        part.y.astype(np.int16),
        part.p.astype(bool),
        np.ascontiguousarray(np.moveaxis(flow_px, -1, 0), np.float32),
        np.ascontiguousarray(is_valid, bool),
    )


def pack_samples(samples: list[FlowSample]) -> dict[str, npt.NDArray[np.generic]]:
    """Return samples of one size as a few arrays, for a file."""
    packed: dict[str, npt.NDArray[np.generic]] = {
        name: np.concatenate([getattr(sample, name) for sample in samples]) for name in ("t", "x", "y", "p")
    }
    packed["lengths"] = np.array([len(sample) for sample in samples])
    packed["flow_px"] = np.stack([sample.flow_px for sample in samples]).astype(np.float16)
    packed["is_valid"] = np.stack([sample.is_valid for sample in samples])
    return packed


def unpack_samples(packed: dict[str, npt.NDArray[np.generic]]) -> list[FlowSample]:
    """Return the samples of `pack_samples`."""
    ends = np.cumsum(packed["lengths"])[:-1]
    columns = [np.split(packed[name], ends) for name in ("t", "x", "y", "p")]
    rest = packed["flow_px"].astype(np.float32), packed["is_valid"]
    return [FlowSample(*parts) for parts in zip(*columns, *rest, strict=True)]
