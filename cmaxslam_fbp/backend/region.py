"""The part of a panorama that the events of a window touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import SingleArray

if TYPE_CHECKING:
    from cmaxslam_fbp.fbp.torch_module import Tensor

Number = TypeVar("Number", np.float32, np.uint16)
Frame = TypeVar("Frame", SingleArray, "Tensor")

_ROUNDING = 32  # shapes are multiples of this, so that few differ
_PADDING = 8  # more than any kernel reaches


@dataclass(frozen=True)
class Region:
    """Rows of a panorama from `top` on and columns from `left` on, which may run over its seam.

    Events vote into a frame. It is the region's image, except where the region has all columns of the panorama: then
    the frame has `padding` more on either side, and what falls on them belongs to the columns at the other end.

    Attributes
    ----------
    top, left : int
        First row and column in the panorama.
    shape : (rows, columns)
        Of the image.
    padding : int
        More columns of the frame on either side.
    """

    top: int
    left: int
    shape: tuple[int, int]
    padding: int = 0

    @property
    def frame_shape(self) -> tuple[int, int]:
        """Rows and columns of the frame."""
        return self.shape[0], self.shape[1] + 2 * self.padding

    def image_of(self, frame: Frame) -> Frame:
        """Return the image of an array or tensor (itself, or a copy with the padding added where it belongs)."""
        p = self.padding
        if not p:
            return frame
        image = 1 * frame[:, p:-p]
        image[:, :p] += frame[:, -p:]
        image[:, -p:] += frame[:, :p]
        return image

    def frame_of(self, image: SingleArray) -> SingleArray:
        """Return the frame that continues an image (the image itself, or a copy that goes on around the circle)."""
        p = self.padding
        return np.concatenate([image[:, -p:], image, image[:, :p]], axis=1) if p else image

    def cut_out(self, panorama: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return a copy of the region's part of a panorama (height, width)."""
        cut = np.empty(self.shape, panorama.dtype)
        for part, columns in self._parts(panorama):
            cut[:, columns] = part
        return cut

    def add_to(self, panorama: SingleArray, image: SingleArray) -> None:
        """Add an image of the region to the panorama (height, width)."""
        for part, columns in self._parts(panorama):
            part += image[:, columns]

    def make_positive(self, panorama: SingleArray) -> None:
        """Raise what is negative in the region's part of a panorama (height, width) to zero."""
        for part, _ in self._parts(panorama):
            np.maximum(part, 0, out=part)

    def _parts(self, panorama: npt.NDArray[Number]) -> Iterator[tuple[npt.NDArray[Number], slice]]:
        """Yield the parts of a panorama before and behind its seam, with the region's columns of each."""
        rows = slice(self.top, self.top + self.shape[0])
        before_seam = min(panorama.shape[1] - self.left, self.shape[1])
        yield panorama[rows, self.left : self.left + before_seam], slice(before_seam)
        yield panorama[rows, : self.shape[1] - before_seam], slice(before_seam, None)


def find_region(points: SingleArray, panorama: tuple[int, int], margin_px: int) -> Region:
    """Return the region around points (N, 2), row and column in the whole panorama, with a margin on all sides.

    The columns start behind the widest gap between points, counted around the circle.
    """
    height, width = panorama
    top = max(int(points[:, 0].min()) - margin_px, 0)
    bottom = min(int(points[:, 0].max()) + 2 + margin_px, height)
    rows = min(_round_up(bottom - top), height - top)
    columns = np.clip(points[:, 1].astype(np.intp), 0, width - 1)
    occupied = np.flatnonzero(np.bincount(columns, minlength=width))
    gaps = np.diff(np.append(occupied, occupied[0] + width))
    widest = int(np.argmax(gaps))
    first = int(occupied[(widest + 1) % len(occupied)])
    wanted = _round_up(width - int(gaps[widest]) + 2 + 2 * margin_px)
    if wanted + _ROUNDING > width:
        return Region(top, 0, (rows, width), _PADDING)
    return Region(top, (first - margin_px) % width, (rows, wanted))


def _round_up(size: int) -> int:
    return -(-size // _ROUNDING) * _ROUNDING
