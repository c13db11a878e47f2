import numpy as np
import pytest
from equirectangular_jacobian import rotation_jacobian
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory.spline import RotationSpline

PROJECTION = Equirectangular(1024, 512)
START_NS, END_NS, SLOT_NS = 5_000_000_000, 5_100_300_000, 1_000_000
COUNT = 4000


def spline(speed_rad_s=7.0):
    """About 400 deg/s by default, around an axis that changes as fast as in a hand."""
    random = np.random.default_rng(0)
    steps = 0.05 * speed_rad_s * (np.array([0.48, -0.8, 0.36]) + random.normal(0, 0.15, (6, 3)))
    controls = [Rotation.from_rotvec([0.4, -1.0, 0.2])]
    for step in steps:
        controls.append(controls[-1] * Rotation.from_rotvec(step))
    return RotationSpline(4, START_NS, 50_000_000, Rotation.concatenate(controls).as_quat())


def warp_and_directions(trajectory, world):
    """Events that see the given directions (N, 3) of the world, each in a pixel of its own."""
    random = np.random.default_rng(1)
    t_ns = np.sort(random.integers(START_NS, END_NS, len(world)))
    t_ns[::9] -= (t_ns[::9] - START_NS) % SLOT_NS  # some just at the edges of slots
    t_ns[-1] = END_NS
    t_ns.sort()
    seen = np.einsum("nji,nj->ni", trajectory.rotations_at(t_ns), world)
    table = seen.astype(np.float32).reshape(-1, 50, 3)
    place = np.arange(len(world))
    events = Events(t_ns, (place % 50).astype("u2"), (place // 50).astype("u2"), np.ones(len(world), "u1"))
    return PanoramicWarp(events, table, PROJECTION, START_NS, END_NS, SLOT_NS), table.reshape(-1, 3).astype(float), t_ns


def random_directions():
    vectors = np.random.default_rng(2).normal(size=(COUNT, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def points_of(warp, trajectory, region=None):
    points = np.empty((len(warp), 2), np.float32)
    warp.points(warp.rotations(trajectory), region, points)
    return points.astype(float)


def around(columns):
    return (columns + 512) % 1024 - 512


def test_points_are_the_projected_rotated_bearings():
    trajectory, world = spline(), random_directions()
    column, row = PROJECTION.project(world).T
    points = points_of(warp_and_directions(trajectory, world)[0], trajectory)
    level = np.abs(row - 256) < 128
    assert np.abs(points[:, 0] - row).max() < 2e-3
    assert np.abs(around(points[:, 1] - column))[level].max() < 2e-3
    assert ((points[:, 1] >= 0) & (points[:, 1] < 1024)).all()
    assert np.abs(around(points[:, 1] - column)).max() > 0  # float32 is not exact


@pytest.mark.parametrize("pole", [-1, 1])
def test_near_the_poles_points_are_as_precise_on_the_sphere(pole):
    trajectory = spline()
    longitude = np.random.default_rng(3).uniform(-np.pi, np.pi, COUNT)
    distance = np.radians(np.linspace(0.2, 5, COUNT))
    world = np.column_stack(
        [np.sin(distance) * np.sin(longitude), pole * np.cos(distance), np.sin(distance) * np.cos(longitude)]
    )
    column, row = PROJECTION.project(world).T
    points = points_of(warp_and_directions(trajectory, world)[0], trajectory)
    assert np.abs(points[:, 0] - row).max() < 2e-3
    assert np.abs(around(points[:, 1] - column) * np.sin(distance)).max() < 2e-3


def test_at_the_seam_columns_of_a_region_go_on():
    trajectory = spline()
    random = np.random.default_rng(4)
    longitude, latitude = np.pi + random.uniform(-0.02, 0.02, COUNT), random.uniform(-0.5, 0.5, COUNT)
    level = np.cos(latitude)
    world = np.column_stack([level * np.sin(longitude), np.sin(latitude), level * np.cos(longitude)])
    warp, _, _ = warp_and_directions(trajectory, world)
    points = points_of(warp, trajectory, Region(100, 1010, (300, 64)))
    np.testing.assert_allclose(points[:, 1], (longitude - np.pi) * 512 / np.pi + 14, atol=2e-3)
    np.testing.assert_allclose(points[:, 0], 256 + latitude * 512 / np.pi - 100, atol=2e-3)
    whole = points_of(warp, trajectory)
    assert set((whole[:, 1] > 512).tolist()) == {True, False}
    padded = points_of(warp, trajectory, Region(100, 0, (300, 1024), 8))
    np.testing.assert_allclose(padded - whole, np.tile([-100.0, 8.0], (COUNT, 1)), atol=1e-4)


def test_the_rotation_is_linear_within_a_slot_and_the_last_slot_is_shorter():
    warp, _, t_ns = warp_and_directions(spline(), random_directions())
    slots, place, _ = warp.arrays()
    assert warp.edges_ns[0] == START_NS
    assert warp.edges_ns[-1] == END_NS
    assert len(warp.edges_ns) == 102
    np.testing.assert_allclose(
        warp.edges_ns[slots] + place * np.diff(warp.edges_ns)[slots], t_ns, atol=0.2, rtol=0
    )  # nanoseconds
    assert (place >= 0).all()
    assert (place <= 1).all()


def interpolated(warp, bearings, edges):
    """`((1 - s) R_m + s R_{m+1}) b` in float64."""
    slots, place, _ = warp.arrays()
    s = place.astype(float)[:, None]
    at = [np.einsum("nij,nj->ni", edges[slots + k], bearings) for k in (0, 1)]
    return (1 - s) * at[0] + s * at[1]


@pytest.fixture(scope="module")
def slow():
    """A slow motion, away from the poles: there the linear interpolation is its own derivative to a thousandth."""
    trajectory = spline(1.0)
    world = random_directions()
    world[:, 1] *= 0.3
    warp, bearings, _ = warp_and_directions(trajectory, world / np.linalg.norm(world, axis=1, keepdims=True))
    return trajectory, warp, bearings, trajectory.rotations_at(warp.edges_ns)


def test_the_pullback_is_the_derivative_by_turns_of_single_edges(slow):
    """Of the made-up function `sum_i sin(row_i / 9) + a_i column_i`."""
    trajectory, warp, bearings, edges = slow
    a = np.random.default_rng(5).normal(size=len(warp))

    def function(edges):
        column, row = PROJECTION.project(interpolated(warp, bearings, edges)).T
        return (np.sin(row / 9) + a * column).sum()

    row = points_of(warp, trajectory)[:, 0]
    bar = np.column_stack([np.cos(row / 9) / 9, a]).astype(np.float32)
    gradient = warp.pullback(warp.rotations(trajectory), bar)
    h = 1e-6
    for m in (0, 1, 50, 100, 101):
        for axis in range(3):
            ends = []
            for sign in (1, -1):
                turned = edges.copy()
                turned[m] = Rotation.from_rotvec(sign * h * np.eye(3)[axis]).as_matrix() @ edges[m]
                ends.append(function(turned))
            expected = (ends[0] - ends[1]) / (2 * h)
            assert gradient[m, axis] == pytest.approx(expected, abs=2e-3 * np.abs(gradient).max())


def test_the_sum_of_the_pullback_is_the_derivative_by_a_turn_of_all(slow):
    trajectory, warp, bearings, edges = slow
    bar = np.random.default_rng(6).normal(size=(len(warp), 2))
    gradient = warp.pullback(warp.rotations(trajectory), bar.astype(np.float32)).sum(0)
    world, h = interpolated(warp, bearings, edges), 1e-6
    for axis in range(3):
        turn = Rotation.from_rotvec(h * np.eye(3)[axis])
        change = PROJECTION.project(turn.apply(world)) - PROJECTION.project(turn.inv().apply(world))
        change[:, 0] = around(change[:, 0])
        expected = (bar * change[:, ::-1]).sum() / (2 * h)
        assert gradient[axis] == pytest.approx(expected, abs=1e-5 * np.abs(gradient).max())


def test_the_pulled_back_curvature_is_that_of_dense_jacobians(slow):
    trajectory, warp, bearings, edges = slow
    C = np.random.default_rng(7).normal(size=(len(warp), 2, 2))
    C = C + C.transpose(0, 2, 1)
    A = rotation_jacobian(PROJECTION, interpolated(warp, bearings, edges))[:, ::-1]  # row before column
    by_event = np.einsum("nca,ncd,ndb->nab", A, C, A)
    slots, place, _ = warp.arrays()
    expected = np.zeros((102, 3, 3))
    for m in range(101):
        mine = slots == m
        share = place[mine].mean() if mine.any() else 0.0
        expected[m] += (1 - share) * by_event[mine].sum(0)
        expected[m + 1] += share * by_event[mine].sum(0)
    upper = np.ascontiguousarray(C[:, [0, 0, 1], [0, 1, 1]], np.float32)
    actual = warp.pullback_curvature(warp.rotations(trajectory), upper)
    np.testing.assert_allclose(actual, expected, atol=2e-5 * np.abs(expected).max())


def test_a_window_without_events_in_some_slots_is_no_trouble():
    trajectory = spline()
    events = Events(np.array([START_NS + 1], np.int64), *(np.zeros(1, kind) for kind in ("u2", "u2", "u1")))
    table = np.array([[[0.6, 0.0, 0.8]]], np.float32)
    warp = PanoramicWarp(events, table, PROJECTION, START_NS, END_NS, SLOT_NS)
    gradient = warp.pullback(warp.rotations(trajectory), np.ones((1, 2), np.float32))
    assert np.isfinite(gradient).all()
    assert gradient[0].any()
    assert not gradient[2:].any()
