import numpy as np
import pytest

from cmaxslam_fbp.choices import MODELS
from cmaxslam_fbp.contrast.objective import ContrastObjective
from cmaxslam_fbp.contrast.scores import score_named
from cmaxslam_fbp.errors import ConfigError
from cmaxslam_fbp.frontend.packet_events import PacketEvents
from cmaxslam_fbp.frontend.warps import Grid, VelocityWarp

pytest.importorskip("torch")

GRID = Grid((40, 50), 25.0, 25.0, 25.0, 20.0)
THETA = np.array([0.8, -1.1, 2.0])


def objectives(model="rotation", score="variance", weights=None, **settings):
    from cmaxslam_fbp.contrast.torch_objective import TorchObjective

    random = np.random.default_rng(0)
    centres = random.uniform(-0.6, 0.6, (30, 2))
    points = (centres[random.integers(0, 30, 4000)] + random.normal(0, 0.02, (4000, 2))).astype(np.float32)
    dt = random.uniform(-0.03, 0.03, 4000).astype(np.float32)
    events = PacketEvents(np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1]), dt)
    warp = VelocityWarp(MODELS[model](), GRID, events)
    pair = ContrastObjective(GRID.shape, score_named(score), **settings), TorchObjective(GRID.shape, score, **settings)
    for objective in pair:
        objective.use(warp, weights)
    return pair


def assert_same(compiled, tensors, second=3e-5):
    value, gradient = compiled.value_and_gradient(THETA)
    other, other_gradient = tensors.value_and_gradient(THETA)
    assert other == pytest.approx(value, rel=1e-5)
    assert tensors.value(THETA) == other
    np.testing.assert_allclose(other_gradient, gradient, atol=1e-5 * np.abs(gradient).max())
    hessian, scatter = compiled.hessian(THETA), compiled.gradient_scatter(THETA)
    np.testing.assert_allclose(tensors.hessian(THETA), hessian, atol=second * np.abs(hessian).max())
    np.testing.assert_allclose(tensors.gradient_scatter(THETA), scatter, atol=3e-5 * np.abs(scatter).max())
    np.testing.assert_allclose(tensors.image, compiled.image, atol=1e-4 * compiled.image.max())


@pytest.mark.parametrize("model", ["rotation", "exact_rotation", "translation"])
@pytest.mark.parametrize("score", ["variance", "mean_square", "negative_binomial"])
def test_tensors_give_the_same_values_gradients_and_hessians(model, score):
    # The compiled second derivative of the exact rotation is its leading term.
    assert_same(*objectives(model, score), second=2e-3 if model == "exact_rotation" else 3e-5)


@pytest.mark.parametrize(("kernel", "reconstruction"), [("linear", "linear"), ("linear", None), ("gauss", "cubic")])
def test_with_other_kernels_and_blur(kernel, reconstruction):
    assert_same(*objectives(kernel=kernel, reconstruction=reconstruction, blur_sigma_px=1.0))


def test_with_signed_weights():
    signs = np.random.default_rng(1).choice(np.array([-1, 1], np.float32), 4000)
    assert_same(*objectives(weights=signs))


def test_a_device_that_is_not_there_is_one_line():
    from cmaxslam_fbp.contrast.torch_objective import TorchObjective

    with pytest.raises(ConfigError, match=r"device 'warp-drive' cannot be used"):
        TorchObjective((8, 8), "variance", device="warp-drive")
