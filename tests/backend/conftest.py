"""A made-up window with the mathematics of its objective written out in float64, and a short simulated recording."""

from dataclasses import dataclass

import numpy as np
import pytest
from equirectangular_jacobian import rotation_jacobian
from scipy.ndimage import correlate1d
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend.control_turns import ControlTurns
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.region import Region, find_region
from cmaxslam_fbp.backend.window import cut_into_windows
from cmaxslam_fbp.backend.window_objective import RegionContrast, View, WindowObjective
from cmaxslam_fbp.choices import SCORES
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.contrast.blur import GaussianBlur, gaussian_taps
from cmaxslam_fbp.evaluation.alignment import align_best_fit
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.geometry import so3
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.simulation import Simulation, SimulationSettings
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

START_NS, STEP_NS, SLOT_NS = 1_468_941_032_000_000_000, 50_000_000, 3_000_000
PROJECTION = Equirectangular(256, 128)
CAMERA = Camera(40, 30, 32.0, 30.0, 17.0, 16.0)


@dataclass
class MadeUpWindow:
    """Events of four knot intervals on a small panorama; the reference methods know neither regions nor float32."""

    spline: RotationSpline
    events: Events
    map_image: np.ndarray  # (128, 256), zero at the borders of the region
    first_free: int = 3
    prior: float = 0.5
    kernel: str = "rect"
    reconstruction: str | None = "linear"
    score: str = "variance"
    sigma_px: float = 0.0

    def __post_init__(self):
        self.bearings = CAMERA.bearings().astype(np.float32)
        self.end_ns = self.spline.end_ns
        self.warp = PanoramicWarp(self.events, self.bearings, PROJECTION, START_NS, self.end_ns, SLOT_NS)
        self.region = find_region(self.warp.points(self.warp.rotations(self.spline)), (128, 256), 16)

    def full_circle(self):
        """The region with all columns."""
        return Region(self.region.top, 0, (self.region.shape[0], 256), 8)

    def turns(self):
        return ControlTurns(self.spline, self.first_free, self.prior)

    def view(self, region):
        known = region.cut_out(self.map_image)
        return View(self.warp, region, known, known)

    def contrast(self, region, compute="numba"):
        columns = "wrap" if region.padding else "zero"
        return RegionContrast(
            Binning(region.frame_shape, self.kernel, self.reconstruction, backend=compute),
            GaussianBlur(region.shape, self.sigma_px, np.float32, rows="zero", columns=columns),
            SCORES[self.score](pixels=128 * 256),
        )

    def objective(self, region=None):
        region = region or self.region
        return WindowObjective(self.turns(), self.view(region), self.contrast(region))

    # The reference: a whole panorama, three turns of it side by side so that nothing ends at the seam.

    def spline_at(self, delta):
        turned = self.spline.quaternions_xyzw.copy()
        turned[self.first_free :] = (
            Rotation.from_rotvec(delta.reshape(-1, 3)) * Rotation.from_quat(turned[self.first_free :])
        ).as_quat()
        return RotationSpline(self.spline.order, START_NS, STEP_NS, turned)

    def slots(self):
        since = self.events.t_ns - START_NS
        slot = since // SLOT_NS
        ends = np.minimum((slot + 1) * SLOT_NS, self.end_ns - START_NS)
        return slot, (since - slot * SLOT_NS) / (ends - slot * SLOT_NS)

    def directions(self, delta):
        edges = self.spline_at(delta).rotations_at(self.warp.edges_ns)
        slot, s = self.slots()
        b = self.bearings[self.events.y, self.events.x].astype(float)
        matrices = (1 - s)[:, None, None] * edges[slot] + s[:, None, None] * edges[slot + 1]
        return np.einsum("nij,nj->ni", matrices, b)

    def points(self, delta):
        """Row and column in the middle one of three turns."""
        return PROJECTION.project(self.directions(delta))[:, ::-1] + [0, 256]

    def image(self, delta):
        wide = Binning((128, 768), self.kernel, self.reconstruction, backend="reference")(self.points(delta))
        return wide.reshape(128, 3, 256).sum(1)

    def blur(self, image):
        taps = gaussian_taps(self.sigma_px)
        weights = np.concatenate([taps[:0:-1], taps])
        return correlate1d(correlate1d(image, weights, axis=0, mode="constant"), weights, axis=1, mode="wrap")

    def cost(self, delta):
        turns = delta.reshape(-1, 3)
        before = np.concatenate([np.zeros((1, 3)) if self.first_free else turns[:1], turns[:-1]])
        return 0.5 * self.prior * ((turns - before) ** 2).sum()

    def value(self, delta):
        score = SCORES[self.score](pixels=128 * 256)
        return score.value(self.blur(self.image(delta) + self.map_image)) - self.cost(delta)

    def adjoint_image(self, delta):
        blurred = self.blur(self.image(delta) + self.map_image)
        return self.blur(SCORES[self.score](pixels=128 * 256).gradient(blurred))

    def turn_jacobians(self, delta):
        """`d(row, column)/d phi` (N, 2, 3)."""
        return rotation_jacobian(PROJECTION, self.directions(delta))[:, ::-1]

    def to_controls(self, delta):
        """The matrices (S + 1, 3, 3 M) of the edges' turns by those of the free control rotations."""
        first, jacobians = self.spline_at(delta).jacobians_at(self.warp.edges_ns)
        dense = np.zeros((len(first), 3, len(self.spline), 3))
        for e, start in enumerate(first):
            for j in range(self.spline.order):
                dense[e, :, start + j] = jacobians[e, j]
        return dense[:, :, self.first_free :].reshape(len(first), 3, -1)

    def cost_matrix(self):
        size = 3 * (len(self.spline) - self.first_free)
        unit = np.eye(size)
        p = np.array([[self.cost(a + b) - self.cost(a) - self.cost(b) for a in unit] for b in unit])
        return p

    def gradient(self, delta):
        binning = Binning((128, 768), self.kernel, self.reconstruction, backend="reference")
        bar, _ = binning.vjp(self.points(delta), None, np.tile(self.adjoint_image(delta), 3))
        by_event = np.einsum("nca,nc->na", self.turn_jacobians(delta), bar)
        slot, s = self.slots()
        controls = self.to_controls(delta)
        by_turn = sum(
            (1 - s[i]) * g @ controls[slot[i]] + s[i] * g @ controls[slot[i] + 1] for i, g in enumerate(by_event)
        )
        left = so3.left_jacobian(delta.reshape(-1, 3))
        chained = np.concatenate([g @ J for g, J in zip(by_turn.reshape(-1, 3), left, strict=True)])
        return chained - self.cost_matrix() @ delta

    def hessian(self, delta):
        reconstruction = self.reconstruction or "linear"
        binning = Binning((128, 768), self.kernel, reconstruction, backend="reference")
        bar, points = np.tile(self.adjoint_image(delta), 3), self.points(delta)
        along = [binning.hvp(points, None, bar, np.tile(axis, (len(points), 1))) for axis in np.eye(2)]
        A = self.turn_jacobians(delta)
        by_event = np.einsum("nca,ncd,ndb->nab", A, np.stack(along, -1), A)
        slot, s = self.slots()
        controls = self.to_controls(delta)
        total = -self.cost_matrix()
        for m in np.unique(slot):
            share, C = s[slot == m].mean(), by_event[slot == m].sum(0)
            total += (1 - share) * controls[m].T @ C @ controls[m] + share * controls[m + 1].T @ C @ controls[m + 1]
        return total


@pytest.fixture(scope="session")
def delta():
    """Turns of the four free control rotations that are far from small."""
    return np.random.default_rng(5).normal(0, 0.03, 12) + np.tile([0.2, -0.1, 0.15], 4)


@pytest.fixture(scope="session")
def make_window(delta):
    """Make a window; `columns` turns its whole world to the right by so many columns of the panorama."""

    def make(columns=0, count=1500, order=4, **settings):
        random = np.random.default_rng(7)
        size = 4 + order - 1
        steps = Rotation.from_rotvec(random.normal([0.01, 0.05, 0.02], 0.04, (size, 3)))
        controls = [Rotation.from_rotvec([0.15, -0.3, 0.1])]
        for step in steps[1:]:
            controls.append(controls[-1] * step)
        world = Rotation.from_rotvec([0, 2 * np.pi * columns / 256, 0])
        spline = RotationSpline(order, START_NS, STEP_NS, (world * Rotation.concatenate(controls)).as_quat())
        events = Events(
            np.sort(random.integers(0, 4 * STEP_NS, count)) + START_NS,
            (20 + random.normal(0, 8, count)).clip(0, 39).astype(np.uint16),
            (15 + random.normal(0, 6, count)).clip(0, 29).astype(np.uint16),
            random.integers(0, 2, count).astype(np.uint8),
        )
        blank = np.zeros((128, 256), np.float32)
        settings = {"first_free": size - 4, **settings}
        window = MadeUpWindow(spline, events, blank, **settings)
        # Events so near to the border of a bin that float32 might put them into the next one are left out.
        near = np.zeros(count, bool)
        free = 3 * (size - window.first_free)
        for turns in (np.zeros(free), np.resize(world.apply(delta.reshape(-1, 3)), free)):
            fraction = window.points(turns) % 1
            near |= (np.abs(fraction - 0.5) < 2e-3).any(1) | (np.minimum(fraction, 1 - fraction) < 2e-3).any(1)
        window = MadeUpWindow(spline, events[~near], blank, **settings)
        inner = random.gamma(0.4, 3, window.region.shape).astype(np.float32)
        inner[:8] = inner[-8:] = 0
        inner[:, :8] = inner[:, -8:] = 0
        window.region.add_to(window.map_image, inner)
        return window

    return make


@dataclass
class SimulatedRecording:
    simulation: Simulation
    events: Events

    def windows(self, *, window_s=0.2, stride_s=0.1, end_s=None):
        end_ns = self.simulation.start_ns + round((end_s or 1e9) * 1e9)
        config = BackendConfig(window_s=window_s, stride_s=stride_s)
        return list(cut_into_windows([self.events.between(0, end_ns)], self.simulation.sensor_size, config))

    def velocities(self, noise_rad_s=0.1):
        """The true velocities, every 10 ms, with noise."""
        t_s = np.arange(0, self.simulation.duration_s, 0.01)
        noise = noise_rad_s * np.random.default_rng(0).normal(size=(len(t_s), 3))
        t_ns = self.simulation.start_ns + np.rint(t_s * 1e9).astype(np.int64)
        return AngularVelocities(t_ns, self.simulation.motion.angular_velocities(t_s) + noise)

    def errors_deg(self, spline, start_s=0.3, end_s=None):
        """Angles to the exact rotations after the best fit."""
        last_ns = self.simulation.start_ns + round((end_s or self.simulation.duration_s) * 1e9)
        start_ns = self.simulation.start_ns + round(start_s * 1e9)
        t_ns = np.arange(max(start_ns, spline.start_ns), min(spline.end_ns, last_ns), 5_000_000)
        exact = Rotation.from_matrix(self.simulation.motion.rotations((t_ns - self.simulation.start_ns) * 1e-9))
        _, angles = align_best_fit(exact, Rotation.from_quat(spline.quaternions_at(t_ns)))
        return np.degrees(angles)


@pytest.fixture(scope="session")
def simulate():
    """Make a simulated recording."""

    def make(settings):
        simulation = Simulation(settings)
        return SimulatedRecording(simulation, Events.concatenate(simulation.chunks()))

    return make


@pytest.fixture(scope="session")
def recording(simulate):
    return simulate(SimulationSettings(scene="boxes", duration_s=1.66, peak_speed_deg_s=120.0, extent_deg=30.0, seed=1))
