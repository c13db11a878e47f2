"""Blur and score of the image of a region on tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.contrast.blur import gaussian_taps
from cmaxslam_fbp.contrast.scores import MeanSquare, NegativeBinomial, Score, Variance
from cmaxslam_fbp.contrast.torch_objective import torch_module


def image_of(frame: Any, region: Region) -> Any:
    """Return the image (rows, columns) of a frame: see `Region.image_of`."""
    p = region.padding
    if not p:
        return frame
    image = frame[:, p:-p].clone()
    image[:, :p] += frame[:, -p:]
    image[:, -p:] += frame[:, :p]
    return image


def blurred(image: Any, sigma_px: float, region: Region) -> Any:
    """Return the blurred image, continued by zeros, and around the circle where the region has all columns."""
    taps = gaussian_taps(sigma_px)
    radius = len(taps) - 1
    if not radius:
        return image
    torch = torch_module()
    both_sides = torch.as_tensor(np.concatenate([taps[:0:-1], taps]), dtype=image.dtype, device=image.device)
    functional = torch.nn.functional
    rows = functional.conv2d(functional.pad(image[None, None], (0, 0, radius, radius)), both_sides[None, None, :, None])
    padded = functional.pad(rows, (radius, radius, 0, 0), mode="circular" if region.padding else "constant")
    return functional.conv2d(padded, both_sides[None, None, None, :])[0, 0]


def score_of(score: Score, image: Any) -> Any:
    """Return the score of an image, part of one of `score.pixels`, as a tensor; it is summed in float64."""
    torch, h = torch_module(), image.double()
    if isinstance(score, Variance):
        pixels = score.pixels or h.numel()
        mean = h.sum() / pixels
        return (((h - mean) ** 2).sum() + (pixels - h.numel()) * mean**2) / pixels
    if isinstance(score, MeanSquare):
        return (h**2).sum() / (score.pixels or h.numel())
    if isinstance(score, NegativeBinomial):
        r, p, pixels = score.r, score.p, score.pixels or h.numel()
        terms = torch.lgamma(h + r) - torch.lgamma(h + 1) + h * math.log(p) - math.lgamma(r)
        return terms.sum() + pixels * r * math.log1p(-p)
    raise TypeError(f"there is no {type(score).__name__} on tensors")
