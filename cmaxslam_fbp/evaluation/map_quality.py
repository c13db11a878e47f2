"""How good a map is: how sharp its events are, and how well its brightness agrees with the true one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray

_FEWEST_LOOKS = 8  # a pixel that was hardly seen says little
_ROWS = 64  # that are worked on at once
_SIGMA_PX = 1.5  # of the window of the structural similarity
_C1, _C2 = 0.01**2, 0.03**2
_RANGE_PERCENT = 0.5, 99.5


def event_area(panorama: SingleArray, looks: npt.NDArray[np.uint16]) -> float:
    """Return the share of a map's pixels that its events fill: of two maps of the same events, the sharper has less.

    With `d` events per look at each of `n` pixels it is `(sum d)^2 / (n sum d^2)`: the share of pixels that hold events
    where all of those hold equally many. Single noise events, which lie everywhere, hardly count beside edges; nor
    does it matter how often a pixel was seen, or how many events there are.

    Parameters
    ----------
    panorama : (height, width) event counts
    looks : (height, width) how often each pixel was in view while its events were counted
    """
    total, squares = 0.0, 0.0
    for row in range(0, len(panorama), _ROWS):
        events, seen = panorama[row : row + _ROWS], looks[row : row + _ROWS]
        density = events[seen >= _FEWEST_LOOKS] / seen[seen >= _FEWEST_LOOKS]
        total += float(density.sum(dtype=np.float64))
        squares += float(np.square(density).sum(dtype=np.float64))
    return total**2 / (panorama.size * squares) if squares > 0 else 0.0


@dataclass(frozen=True)
class BrightnessErrors:
    """Correlation and mean structural similarity of a brightness over what was seen, and the threshold that fits."""

    correlation: float
    ssim: float
    threshold: float


def compare_brightness(estimate: SingleArray, truth: SingleArray) -> BrightnessErrors:
    """Compare two images (height, width) where the first is not NaN, after its best affine change.

    The structural similarity (Wang et al., TIP 2004) is that of pictures whose black and white are the truth's own
    darkest and brightest pixels, within half a percent.
    """
    import cv2

    seen = np.isfinite(estimate)
    slope, offset = np.polyfit(estimate[seen], truth[seen], 1)
    dark, bright = np.percentile(truth[seen], _RANGE_PERCENT)
    fitted = slope * np.where(seen, estimate, 0) + offset
    a, b = ((image.astype(np.float64) - dark) / (bright - dark) for image in (fitted, truth))
    weights = seen.astype(np.float64)
    total = cv2.GaussianBlur(weights, (0, 0), _SIGMA_PX) + 1e-12

    def mean(image: FloatArray) -> FloatArray:
        return np.asarray(cv2.GaussianBlur(image * weights, (0, 0), _SIGMA_PX) / total)

    mean_a, mean_b = mean(a), mean(b)
    variance_a, variance_b = mean(a * a) - mean_a**2, mean(b * b) - mean_b**2
    covariance = mean(a * b) - mean_a * mean_b
    luminance = (2 * mean_a * mean_b + _C1) / (mean_a**2 + mean_b**2 + _C1)
    structure = (2 * covariance + _C2) / (variance_a + variance_b + _C2)
    correlation = float(np.corrcoef(estimate[seen], truth[seen])[0, 1])
    return BrightnessErrors(correlation, float((luminance * structure)[seen].mean()), float(slope))
