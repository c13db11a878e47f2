import cv2
import numpy as np
import pytest

from cmaxslam_fbp.evaluation.brightness_errors import compare_brightness


@pytest.fixture
def truth():
    noise = np.random.default_rng(0).normal(size=(80, 120)).astype(np.float32)
    return cv2.GaussianBlur(noise, (0, 0), 3)


def test_unit_and_zero_do_not_count(truth):
    errors = compare_brightness((5 * truth + 2).astype(np.float32), truth)
    assert errors.correlation == pytest.approx(1, abs=1e-5)
    assert errors.ssim == pytest.approx(1, abs=1e-5)
    assert errors.threshold == pytest.approx(0.2, rel=1e-4)


def test_what_was_not_seen_does_not_count(truth):
    estimate = truth.copy()
    estimate[:, 60:] = np.nan
    other = truth.copy()
    other[:, 60:] = 100
    assert compare_brightness(estimate, other).ssim == pytest.approx(1, abs=1e-5)


def test_the_similarity_is_the_equation_of_its_paper(truth):
    """Against the plain form, window by window."""
    estimate = np.full_like(truth, np.nan)
    part = np.s_[30:42, 50:65]
    estimate[part] = truth[part] + np.random.default_rng(1).normal(0, 0.05, (12, 15))
    slope, offset = np.polyfit(estimate[part].ravel(), truth[part].ravel(), 1)
    dark, bright = np.percentile(truth[part], [0.5, 99.5])
    a, b = ((image - dark) / (bright - dark) for image in (slope * estimate[part] + offset, truth[part]))
    rows, columns = np.indices(a.shape)
    values = []
    for row, column in np.ndindex(*a.shape):
        w = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * 1.5**2))
        w /= w.sum()
        ma, mb = (w * a).sum(), (w * b).sum()
        va, vb, cov = (w * (a - ma) ** 2).sum(), (w * (b - mb) ** 2).sum(), (w * (a - ma) * (b - mb)).sum()
        values.append((2 * ma * mb + 1e-4) * (2 * cov + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4)))
    assert 0.2 < np.mean(values) < 0.97
    assert compare_brightness(estimate, truth).ssim == pytest.approx(np.mean(values), abs=2e-3)
