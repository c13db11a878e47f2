"""How well a brightness agrees with the true one, up to its unit and its zero."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray

_SIGMA_PX = 1.5  # of the window of the structural similarity
_C1, _C2 = 0.01**2, 0.03**2
_RANGE_PERCENT = 0.5, 99.5


@dataclass(frozen=True)
class BrightnessErrors:
    """Correlation and mean structural similarity over what was seen, and the threshold that fits best."""

    correlation: float
    ssim: float
    threshold: float


def compare_brightness(estimate: SingleArray, truth: SingleArray) -> BrightnessErrors:
    """Compare two images (height, width) where the first is not NaN, after its best affine change.

    The structural similarity (Wang et al., TIP 2004) is that of pictures whose black and white are the truth's own
    darkest and brightest pixels, within half a percent.
    """
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
