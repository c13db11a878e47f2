import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend.map_search import Cells, MapSearch
from cmaxslam_fbp.backend.panorama import PanoramaMap, field_of_view_planes
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory.spline import RotationSpline

SIZE = (512, 256)
PROJECTION = Equirectangular(*SIZE)
CAMERA = Camera(120, 90, 100.0, 100.0, 59.5, 44.5)


@pytest.fixture(scope="module")
def search():
    return MapSearch(SIZE, field_of_view_planes(CAMERA))


def plain_score(R, cells, known, factor):
    """The correlation of the cells with the blocks that they turn to, written out."""
    column, row = PROJECTION.project((R @ cells.directions).T).T
    rows = np.clip(np.floor((row + 0.5) / factor).astype(int), 0, known.shape[0] - 1)
    columns = np.floor(((column + 0.5) % SIZE[0]) / factor).astype(int)
    values = known[rows, columns]
    inside = values >= 0
    if cells.events[inside].sum() < 0.5 * cells.events.sum():
        return -1.0
    return np.corrcoef(cells.values[inside].astype(float), values[inside].astype(float))[0, 1]


@pytest.mark.parametrize("factor", [4, 7])
def test_the_compiled_scores_are_the_correlations_written_out(search, factor):
    random = np.random.default_rng(3)
    directions = random.normal(size=(3, 400))
    directions /= np.linalg.norm(directions, axis=0)
    counts = random.poisson(3.0, 400).astype(np.float32)
    cells = Cells(directions.astype(np.float32), np.sqrt(counts / 2).astype(np.float32), counts)
    known = random.gamma(1.0, 1.0, (-(-SIZE[1] // factor), -(-SIZE[0] // factor))).astype(np.float32)
    known[random.random(known.shape) < 0.47] = -1
    rotations = Rotation.random(200, random_state=5).as_matrix()
    expected = [plain_score(R, cells, known, factor) for R in rotations.astype(np.float32).astype(float)]
    assert 5 < sum(score == -1 for score in expected) < 195
    # A direction so near to a block's border that float32 puts it into the next one changes a score a little.
    found = search.scores(rotations, cells, known, factor)
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert np.median(np.abs(found - expected)) < 1e-6


def made_map(scene):
    """A map of points that the whole world was seen through, except for its back."""
    panorama = PanoramaMap(BackendConfig(panorama_size=SIZE), CAMERA)
    panorama.visits[:, 64:-64] = 20
    points = PROJECTION.project(scene)
    np.add.at(panorama.image, tuple(np.rint(points).astype(int).T[::-1] % [[SIZE[1]], [SIZE[0]]]), 40.0)
    return panorama


def window_at(scene, R_wc, noise=0.2):
    """The events that points cause in a camera that turns through an orientation, and its motion at another place."""
    step_ns, start_ns = 25_000_000, 1_000_000_000
    random = np.random.default_rng(2)
    controls = Rotation.from_rotvec(np.linspace(-2, 2, 11)[:, None] * np.radians([1.5, 4.0, 2.0]) / 2)
    there = RotationSpline(4, start_ns, step_ns, (Rotation.from_matrix(R_wc) * controls).as_quat())
    elsewhere = RotationSpline(4, start_ns, step_ns, (Rotation.from_rotvec([0.3, 2, 0.4]) * controls).as_quat())
    t_ns = np.sort(random.integers(start_ns, there.end_ns, 20_000))
    local = np.einsum("nji,nj->ni", there.rotations_at(t_ns), scene[random.integers(0, len(scene), len(t_ns))])
    ahead = local[:, 2] > 0.1
    pixels = 100 * local[:, :2] / np.maximum(local[:, 2:], 0.1) + [59.5, 44.5]
    pixels = np.rint(pixels)
    inside = ahead & (pixels >= 0).all(1) & (pixels <= [119, 89]).all(1)
    x, y = pixels[inside].astype(np.uint16).T
    is_noise = random.random(len(x)) < noise
    x[is_noise] = random.integers(0, 120, is_noise.sum())
    events = Events(t_ns[inside], x, y, np.zeros(len(x), np.uint8))
    bearings = CAMERA.bearings().astype(np.float32)
    return PanoramicWarp(events, bearings, PROJECTION, start_ns, there.end_ns, 1_000_000), there, elsewhere


@pytest.fixture(scope="module")
def scene():
    random = np.random.default_rng(0)
    points = random.normal(size=(700, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_window_is_found_wherever_it_looks_and_however_it_is_rolled(search, scene, seed):
    random = np.random.default_rng(seed)
    yaw, pitch, roll = random.uniform(-1.8, 1.8), random.uniform(-0.7, 0.7), random.uniform(-3, 3)
    warp, there, elsewhere = window_at(scene, Rotation.from_euler("YXZ", [yaw, pitch, roll]).as_matrix())
    places = search.places(warp, elsewhere, made_map(scene))
    middle = there.rotations_at((there.start_ns + there.end_ns) // 2)
    angles = [np.degrees(Rotation.from_matrix(place.R_wc.T @ middle).magnitude()) for place in places]
    assert angles[0] < 2.0
    assert all(angle > 3.0 for angle in angles[1:])
    assert places[0].score > 1.5 * places[1].score


def test_nothing_stands_out_for_a_window_of_another_scene(search, scene):
    warp, _, elsewhere = window_at(scene @ Rotation.from_rotvec([2, 1, 0.5]).as_matrix() * [1, 1, -1], np.eye(3))
    places = search.places(warp, elsewhere, made_map(scene))
    assert places[0].score < min(1.5 * places[1].score, 0.2)


def test_a_map_that_nobody_has_seen_has_no_places(search, scene):
    warp, _, elsewhere = window_at(scene, np.eye(3))
    empty = PanoramaMap(BackendConfig(panorama_size=SIZE), CAMERA)
    assert search.places(warp, elsewhere, empty) == []


def test_a_map_without_any_edges_has_no_places(search, scene):
    warp, _, elsewhere = window_at(scene, np.eye(3))
    panorama = PanoramaMap(BackendConfig(panorama_size=SIZE), CAMERA)
    panorama.visits[:] = 20
    assert search.places(warp, elsewhere, panorama) == []


def test_blocks_of_the_map_are_roots_of_events_per_visit():
    panorama = PanoramaMap(BackendConfig(panorama_size=SIZE, max_visits=20), CAMERA)
    panorama.visits[:4, :4], panorama.visits[4:8, 2:6], panorama.visits[8:12, :4] = 9, 50, 7
    panorama.image[:12, :8] = 18.0
    blocks = panorama.blocks(4)
    assert blocks.shape == (64, 128)
    assert blocks[0, 0] == pytest.approx(np.sqrt(2.0))
    assert blocks[1, 0] == blocks[1, 1] == pytest.approx(np.sqrt(18 / 20))  # half of each; a full pixel has 20 visits
    assert blocks[2, 0] == blocks[0, 1] == -1  # seen too rarely, and never
