"""What every motion model has to fulfil, and that one from outside the package needs nothing but its own class."""

import numpy as np
import pytest

from cmaxslam_fbp.choices import MODELS
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.frontend import EstimateStatus, VelocityEstimator
from cmaxslam_fbp.frontend.motion_models import ZERO, MotionModel, axis, cross, moved, scaled
from cmaxslam_fbp.frontend.packet_events import PacketEvents
from cmaxslam_fbp.frontend.warps import CAMERA_SIGN, Grid, VelocityWarp
from cmaxslam_fbp.geometry.camera import Camera


class RotationAndZoom(MotionModel):
    """`q = p + dt (w x p + w_4 (x, y, 0))`."""

    parameters = "wx_rad_s", "wy_rad_s", "wz_rad_s", "zoom_per_s"

    @staticmethod
    def transform(p, dt, w):
        q = moved(p, dt, cross(w, p))
        return q[0] + dt * w[3] * p[0], q[1] + dt * w[3] * p[1], q[2]

    @staticmethod
    def derivative(p, dt, w, q, b):
        if b == 3:
            return dt * p[0], dt * p[1], ZERO
        return scaled(dt, cross(axis(b), p))


class RollAndZoom(MotionModel):
    """`q = (1 + dt w_2) (x - dt w_1 y, y + dt w_1 x)`, with `q3 = 1`: not linear in its two parameters."""

    parameters = "roll_rad_s", "zoom_per_s"

    @staticmethod
    def transform(p, dt, w):
        zoom = p[2] + dt * w[1]
        return zoom * (p[0] - dt * w[0] * p[1]), zoom * (p[1] + dt * w[0] * p[0]), p[2]

    @staticmethod
    def derivative(p, dt, w, q, b):
        if b == 0:
            zoom = p[2] + dt * w[1]
            return -dt * zoom * p[1], dt * zoom * p[0], ZERO
        return dt * (p[0] - dt * w[0] * p[1]), dt * (p[1] + dt * w[0] * p[0]), ZERO

    @staticmethod
    def second_derivative(p, dt, w, q, b, c):
        if b == c:
            return ZERO, ZERO, ZERO
        return -dt * dt * p[1], dt * dt * p[0], ZERO


OWN = {"rotation_and_zoom": RotationAndZoom, "roll_and_zoom": RollAndZoom}
GRID = Grid((150, 200), 100.0, 107.0, 90.0, 87.0)
VELOCITIES = {"moving": np.array([0.3, -0.5, 0.8, 0.6]), "zero": np.zeros(4)}


@pytest.fixture(autouse=True)
def _own_models():
    for name, model in OWN.items():
        MODELS.add(name, model)
    yield
    for name in OWN:
        MODELS.remove(name)


@pytest.fixture(params=[*MODELS.names(), *OWN])
def model(request):
    return MODELS[request.param]()


@pytest.fixture(params=VELOCITIES)
def w(request, model):
    return VELOCITIES[request.param][: model.parameter_count]


@pytest.fixture
def packet():
    """More events than a block of the loops, and a number that no vector length divides."""
    random = np.random.default_rng(0)
    return PacketEvents(
        *random.uniform([[-0.8], [-0.7], [-0.04]], [[0.6], [0.4], [0.04]], (3, 1237)).astype(np.float32)
    )


def bins(model, packet, w):
    """The model's own `transform` in float64: bin coordinates (N, 2)."""
    q1, q2, q3 = model.transform((packet.x.astype(float), packet.y.astype(float), 1.0), packet.dt_s.astype(float), w)
    return np.column_stack([q2 / q3 * GRID.scale_y + GRID.offset_y, q1 / q3 * GRID.scale_x + GRID.offset_x])


def jacobian(model, packet, w, h=1e-5):
    """Central differences of the bin coordinates (N, 2, P)."""
    steps = h * np.eye(len(w))
    return np.stack([(bins(model, packet, w + s) - bins(model, packet, w - s)) / (2 * h) for s in steps], axis=2)


def test_tangents_are_finite_differences_of_the_points(model, packet, w):
    expected = jacobian(model, packet, w)
    tangent = np.empty((len(packet), 2), np.float32)
    for parameter in range(model.parameter_count):
        VelocityWarp(model, GRID, packet).tangent(w, parameter, tangent)
        np.testing.assert_allclose(tangent, expected[..., parameter], atol=3e-6 * np.abs(expected).max())


def test_pullbacks_are_transposes_of_the_jacobian(model, packet, w):
    points_bar = np.random.default_rng(1).normal(size=(len(packet), 2)).astype(np.float32)
    parts = np.einsum("ni,nib->nb", points_bar, jacobian(model, packet, w))
    warp = VelocityWarp(model, GRID, packet)
    gradient = parts.sum(axis=0)
    np.testing.assert_allclose(warp.pullback(w, points_bar), gradient, atol=3e-6 * np.abs(gradient).max())
    outer = parts.T @ parts
    np.testing.assert_allclose(warp.pullback_outer(w, points_bar), outer, atol=3e-6 * np.abs(outer).max())


def test_the_curvature_is_the_derivative_of_the_gradient(model, packet, w):
    """Of a made-up quadratic function of the points: `sum g.(p - p0) + (p - p0)^T C (p - p0) / 2`."""
    random = np.random.default_rng(2)
    g, c = random.normal(size=(len(packet), 2)), random.normal(size=(len(packet), 3))
    C = np.stack([c[:, [0, 1]], c[:, [1, 2]]], axis=1)
    p0 = bins(model, packet, w)

    def gradient(at):
        bar = g + np.einsum("nij,nj->ni", C, bins(model, packet, at) - p0)
        return np.einsum("ni,nib->b", bar, jacobian(model, packet, at))

    h = 1e-3
    expected = np.stack([(gradient(w + s) - gradient(w - s)) / (2 * h) for s in h * np.eye(len(w))], axis=1)
    actual = VelocityWarp(model, GRID, packet).pullback_curvature(w, g.astype(np.float32), c.astype(np.float32))
    np.testing.assert_array_equal(actual, actual.T)
    # The exact rotation leaves out terms of higher order in the angle.
    tolerance = 1e-3 if type(model) is MODELS["exact_rotation"] else 5e-5
    np.testing.assert_allclose(actual, expected, atol=tolerance * np.abs(expected).max())


def test_tensors_come_to_lie_on_the_same_points_bit_by_bit(model, packet, w):
    torch = pytest.importorskip("torch")
    warp = VelocityWarp(model, GRID, packet)
    points = np.empty((len(packet), 2), np.float32)
    warp.points(w, points)
    tensors = [torch.as_tensor(array) for array in warp.arrays()]
    single = torch.as_tensor(w.astype(np.float32))[:, None]
    np.testing.assert_array_equal(warp.tensor_points(single, *tensors).numpy(), points)
    np.testing.assert_array_equal(warp.tensor_points(single.expand(-1, len(packet)), *tensors).numpy(), points)


def moving_dots(model, w, camera, count=20_000):
    """Events of dots that move by a model, 15 ms before and after the time of the packet."""
    random = np.random.default_rng(5)
    dots = random.uniform([-0.4, -0.3], [0.4, 0.3], (150, 2))[random.integers(0, 150, count)]
    t_s = np.sort(random.uniform(-0.015, 0.015, count))
    x, y, z = model.transform((dots[:, 0], dots[:, 1], 1.0), t_s, w)
    columns, rows = (x / z * camera.fx + camera.cx, y / z * camera.fy + camera.cy)
    events = Events(
        np.round(1e9 + t_s * 1e9).astype(np.int64),
        np.round(columns).astype(np.uint16),
        np.round(rows).astype(np.uint16),
        np.ones(count, np.uint8),
    )
    return Packet(events, 1_000_000_000)


@pytest.mark.parametrize(
    ("name", "velocity"), [("rotation_and_zoom", [0.5, -0.8, 2.0, 1.5]), ("roll_and_zoom", [-3.0, 2.0])]
)
def test_a_model_of_one_s_own_runs_through_the_estimator_with_both_computes(name, velocity):
    camera = Camera(240, 180, 220.0, 220.0, 119.5, 89.5)
    packet = moving_dots(MODELS[name](), np.array(velocity), camera)
    estimates = []
    for compute in ["numba", "torch"]:
        if compute == "torch":
            pytest.importorskip("torch")
        estimator = VelocityEstimator(camera, FrontendConfig(model=name, compute=compute))
        assert estimator.model.parameter_count == len(velocity)
        assert estimator.model.kind is None
        estimates.append(estimator.estimate(packet))
    for estimate in estimates:
        assert estimate.status in (EstimateStatus.CONVERGED, EstimateStatus.RECOVERED)
        np.testing.assert_allclose(CAMERA_SIGN * estimate.velocity, velocity, atol=0.1)
        assert estimate.covariance.shape == (len(velocity), len(velocity))
        assert (np.linalg.eigvalsh(estimate.covariance) > 0).all()
        np.testing.assert_array_equal(estimate.velocity, estimates[0].velocity)


@pytest.mark.parametrize("events", [5, 200])
def test_a_packet_without_motion_has_as_many_zeros_as_the_model_has_parameters(events):
    camera = Camera(240, 180, 220.0, 220.0, 119.5, 89.5)
    packet = moving_dots(RollAndZoom(), np.zeros(2), camera, events)
    estimate = VelocityEstimator(camera, FrontendConfig(model="roll_and_zoom")).estimate(packet)
    assert estimate.status in (EstimateStatus.TOO_FEW_EVENTS, EstimateStatus.STILL)
    np.testing.assert_array_equal(estimate.velocity, np.zeros(2))
    assert estimate.covariance.shape == (2, 2)


def test_models_say_which_velocity_they_are_of():
    kinds = {name: MODELS[name].kind for name in ("rotation", "exact_rotation", "translation")}
    assert kinds == {"rotation": "angular", "exact_rotation": "angular", "translation": "linear"}
