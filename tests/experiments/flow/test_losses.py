"""The loss: slow forms, and its gradient through warp, binning, blur and focus against finite differences."""

import numpy as np
import pytest
from moving_dots import moving_dots

torch = pytest.importorskip("torch")

from cmaxslam_fbp.experiments.flow.batches import make_batch, true_flow  # noqa: E402
from cmaxslam_fbp.experiments.flow.losses import (  # noqa: E402
    LossSettings,
    blur,
    charbonnier_smoothness,
    event_images,
    flow_loss,
    inverse_gradient_magnitude,
    inverse_variance,
    sobel,
)
from cmaxslam_fbp.experiments.flow.trajectories import displacement, flow_of, warp_events  # noqa: E402

SAMPLES = [moving_dots((5, -3)), moving_dots((-2, 4), seed=1)]


def test_trajectories_are_polynomials_of_time_without_a_constant():
    coefficients = torch.tensor([1.0, 2.0, 3.0, -4.0], dtype=torch.float64)
    moved = displacement(coefficients, *torch.tensor([0.3, 0.8], dtype=torch.float64))
    torch.testing.assert_close(moved, torch.tensor([0.5 + 3 * 0.55, 2 * 0.5 - 4 * 0.55], dtype=torch.float64))
    field = coefficients[None, :, None, None].expand(2, 4, 5, 6)
    assert flow_of(field).shape == (2, 2, 5, 6)
    torch.testing.assert_close(flow_of(field)[1, :, 2, 3], torch.tensor([4.0, -2.0], dtype=torch.float64))


@pytest.mark.parametrize("reference", [0.0, 0.4, 1.0])
def test_the_true_flow_carries_all_events_of_a_dot_to_one_place(reference):
    dot = moving_dots((7, -5), dots=1, seed=3)
    flow, _ = true_flow([dot])
    places = warp_events(make_batch([dot]), flow, reference)
    assert len(places) == 40
    assert places.std(0).max() < 0.45  # that of rounding to pixels is 0.29
    start = dot.y[0] - 5 * reference, dot.x[0] + 7 * reference
    torch.testing.assert_close(places.mean(0), torch.tensor(start, dtype=torch.float32), atol=0.6, rtol=0)


def test_images_are_weighted_histograms_by_sample_and_polarity():
    batch = make_batch(SAMPLES)
    flow, _ = true_flow(SAMPLES)
    images = event_images(batch, flow, 0.3, LossSettings().binning(batch.shape), 0.0).numpy()
    for k, sample in enumerate(SAMPLES):
        weights = 1 - np.abs(sample.t - np.float32(0.3))
        x = sample.x + (np.float32(0.3) - sample.t) * sample.flow_px[0, 0, 0]
        y = sample.y + (np.float32(0.3) - sample.t) * sample.flow_px[1, 0, 0]
        for polarity in (0, 1):
            chosen = sample.p == polarity
            edges = np.arange(49) - 0.5
            slow, _, _ = np.histogram2d(y[chosen], x[chosen], bins=(edges, edges), weights=weights[chosen])
            close = np.isclose(images[k, polarity], slow, atol=1e-3)
            assert close.mean() > 0.995  # but for places at the edges of pixels, by rounding


def test_blur_is_that_of_opencv():
    import cv2

    image = np.random.default_rng(0).random((20, 30)).astype(np.float32)
    ours = blur(torch.from_numpy(image)[None, None].expand(2, 2, 20, 30), 1.0)
    expected = cv2.GaussianBlur(image, (0, 0), 1.0)
    for one in ours.reshape(4, 20, 30):
        np.testing.assert_allclose(one.numpy(), expected, atol=1e-5)


def test_focus_of_a_ramp_and_smoothness_of_a_slope_have_closed_forms():
    ramp = torch.arange(20.0).expand(1, 2, 10, 20) * 0.5
    down = ramp + 3 * ramp.new_tensor(range(10))[:, None]
    assert float(inverse_gradient_magnitude(ramp)) == pytest.approx(1 / 4, rel=1e-5)  # Sobel's weights sum to eight
    assert float(inverse_gradient_magnitude(torch.cat([ramp, down]))) == pytest.approx(2 / (4 + 28), rel=1e-5)
    stripes = torch.tensor([0.0, 4.0]).repeat(10).expand(1, 2, 10, 20)
    assert float(inverse_variance(stripes)) == pytest.approx(1 / (4.0 * 200 / 199), rel=1e-5)
    assert float(charbonnier_smoothness(ramp)) == pytest.approx((4 + 1e-3) / 2, rel=1e-5)  # to the right; down: epsilon


def test_differences_are_those_of_opencv():
    import cv2

    image = np.random.default_rng(0).random((12, 17))
    for ours, order in zip(sobel(torch.from_numpy(image)[None, None]), ((1, 0), (0, 1)), strict=True):
        np.testing.assert_allclose(ours[0, 0].numpy(), cv2.Sobel(image, cv2.CV_64F, *order)[1:-1, 1:-1], atol=1e-12)


@pytest.mark.parametrize("focus", ["gradient", "variance"])
@pytest.mark.parametrize("kernel", ["rect", "linear"])
def test_the_true_flow_has_the_lowest_loss_among_its_multiples(kernel, focus):
    batch, (flow, _) = make_batch(SAMPLES), true_flow(SAMPLES)
    settings = LossSettings(kernel, focus=focus)
    losses = [float(flow_loss(batch, s * flow, [0.2, 0.5, 0.9], settings)) for s in (-0.5, 0, 0.5, 0.8, 1, 1.2, 1.5)]
    assert int(np.argmin(losses)) == 4
    assert losses[4] < 0.9 * losses[1]


def smooth_field(size, spread, generator):
    coarse = spread * torch.randn((2, 4, size, size), generator=generator, dtype=torch.float64)
    return torch.nn.functional.interpolate(coarse, size=(48, 48), mode="bilinear", align_corners=True)


def directional_derivatives(settings, step_px, count=24):
    """Derivatives of the whole loss along smooth changes of a field of trajectories: differences, and by autograd."""
    batch, generator = make_batch(SAMPLES), torch.Generator().manual_seed(1)
    differences, gradients = [], []
    for _ in range(count):
        field, direction = smooth_field(3, 3.0, generator), smooth_field(2, 1.0, generator)

        def loss(coefficients):
            return flow_loss(batch, coefficients, [0.2, 0.7], settings)

        ahead, behind = (float(loss(field + sign * step_px * direction)) for sign in (1, -1))
        differences.append((ahead - behind) / (2 * step_px))
        field.requires_grad_()
        (gradient,) = torch.autograd.grad(loss(field), field)
        gradients.append(float((gradient * direction).sum()))
    return np.array(differences), np.array(gradients)


@pytest.mark.parametrize("focus", ["gradient", "variance"])
@pytest.mark.parametrize(
    ("kernel", "reconstruction", "rms"), [("linear", None, 0.09), ("linear", "linear", 0.13), ("rect", "linear", 0.18)]
)
def test_the_gradient_agrees_with_differences_over_a_long_way(kernel, reconstruction, rms, focus):
    """Over about a pixel the staircase of counts is a slope, which plain and synthesized gradients follow."""
    finite, gradient = directional_derivatives(LossSettings(kernel, reconstruction, focus=focus), 1.0)
    assert (finite * gradient).sum() / (finite**2).sum() == pytest.approx(1, abs=0.08)
    assert np.sqrt(((gradient - finite) ** 2).mean() / (finite**2).mean()) < rms


def test_short_differences_agree_where_the_frame_is_smooth_and_are_noise_where_it_is_a_staircase():
    for kernel, reconstruction, agrees in (("linear", None, True), ("rect", "linear", False)):
        finite, gradient = directional_derivatives(LossSettings(kernel, reconstruction), 1e-3, 8)
        error = np.sqrt(((gradient - finite) ** 2).mean() / (gradient**2).mean())
        assert (error < 0.03) == agrees
