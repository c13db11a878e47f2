import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend.backend import Backend
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.errors import ConfigError
from cmaxslam_fbp.evaluation.alignment import align_best_fit

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other cost more than they bring where other work runs beside."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def on_tensors(window, region, device="cpu"):
    from cmaxslam_fbp.backend.torch_window_objective import TorchWindowObjective

    return TorchWindowObjective(window.turns(), window.view(region), window.contrast(region, "torch"), device)


def relative(actual, expected):
    return np.abs(actual - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("full_circle", [False, True], ids=["region", "full circle"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sigma_px": 1.5},
        {"kernel": "linear", "reconstruction": None, "sigma_px": 1.0},
        {"score": "mean_square", "reconstruction": "cubic"},
        {"score": "negative_binomial", "kernel": "linear"},
        {"columns": 152, "sigma_px": 1.0, "first_free": 0},
    ],
    ids=str,
)
def test_tensors_give_the_same_values_gradients_and_hessians(make_window, delta, settings, full_circle):
    window = make_window(**settings)
    region = window.full_circle() if full_circle else window.region
    compiled, tensors = window.objective(region), on_tensors(window, region)
    turns = Rotation.from_rotvec([0, 2 * np.pi * settings.get("columns", 0) / 256, 0]).apply(delta.reshape(-1, 3))
    at = np.resize(turns, window.turns().parameter_count)
    value, gradient = tensors.value_and_gradient(at)
    expected, expected_gradient = compiled.value_and_gradient(at)
    assert value == tensors.value(at) == pytest.approx(expected, rel=1e-6)
    assert relative(gradient, expected_gradient) < 1e-5
    assert relative(tensors.hessian(at), compiled.hessian(at)) < 1e-5
    np.testing.assert_allclose(tensors.window_image(at), compiled.window_image(at), atol=1e-3)
    assert (tensors.evaluations, tensors.hessians) == (2, 1)


def test_a_recording_gives_the_same_trajectory(recording):
    splines = []
    for compute in ("numba", "torch"):
        tracker = Backend(BackendConfig(compute=compute), recording.simulation.camera)
        for window in recording.windows(end_s=0.75):
            tracker.process(window, recording.velocities())
        splines.append(tracker.state.spline)
    t_ns = np.arange(splines[0].start_ns + 150_000_000, splines[0].end_ns - 150_000_000, 1_000_000)
    one, other = (Rotation.from_quat(spline.quaternions_at(t_ns)) for spline in splines)
    # The very beginning has hardly any events to fix the world frame by: it is left out.
    _, angles = align_best_fit(one, other)
    assert np.degrees(angles).max() < 0.03
    assert np.degrees(np.sqrt((angles**2).mean())) < 0.01


def test_a_device_that_is_not_there_is_one_line(make_window):
    window = make_window()
    with pytest.raises(ConfigError, match=r"device 'warp-drive' cannot be used"):
        on_tensors(window, window.region, "warp-drive")


@pytest.mark.parametrize("full_circle", [False, True], ids=["region", "full circle"])
def test_results_leave_the_device_in_one_place(make_window, delta, full_circle, monkeypatch):
    """On the meta device any other copy to the host raises, and so does a mixture of devices."""
    from cmaxslam_fbp.backend import tensor_panoramic_warp, torch_window_objective

    kinds = []

    def watch(tensor):
        kinds.append(tensor.device.type)
        return np.zeros(tensor.shape)

    for module in (tensor_panoramic_warp, torch_window_objective):
        monkeypatch.setattr(module, "to_host", watch)
    window = make_window(sigma_px=1.0)
    objective = on_tensors(window, window.full_circle() if full_circle else window.region, "meta")
    at = np.resize(delta, window.turns().parameter_count)
    for call in (objective.value, objective.value_and_gradient, objective.hessian, objective.window_image):
        kinds.clear()
        call(at)
        assert set(kinds) == {"meta"}
