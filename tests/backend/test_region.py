import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.backend.region import Region, find_region
from cmaxslam_fbp.fbp import Binning

HEIGHT, WIDTH, MARGIN = 160, 320, 5


def span(columns):
    """The shortest way around the circle that holds all columns, one start after the other."""
    return min(((columns - start) % WIDTH).max() for start in columns)


@st.composite
def clusters(draw):
    """Points around a place, of any width, anywhere on the circle."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    middle, half = draw(st.floats(0, WIDTH)), draw(st.sampled_from([0.4, 3.0, 30.0, 90.0, 130.0, 160.0]))
    row, height = draw(st.floats(0, HEIGHT - 1)), draw(st.sampled_from([0.4, 20.0, 80.0]))
    count = draw(st.integers(1, 60))
    columns = (middle + random.uniform(-half, half, count)) % WIDTH
    rows = np.clip(row + random.uniform(-height, height, count), 0, HEIGHT - 1)
    points = np.column_stack([rows, columns]).astype(np.float32)
    points[:, 1] %= WIDTH  # float32 may round up to the width
    return points


@given(clusters())
def test_a_region_holds_all_points_with_the_margin_and_is_as_small_as_it_can_be(points):
    region = find_region(points, (HEIGHT, WIDTH), MARGIN)
    rows = points[:, 0].astype(float) - region.top
    assert region.top >= 0
    assert region.top + region.shape[0] <= HEIGHT
    assert rows.min() >= min(MARGIN, points[:, 0].min())
    assert np.floor(rows.max()) + 2 + MARGIN <= region.shape[0] or region.top + region.shape[0] == HEIGHT
    assert region.shape[0] <= rows.max() - rows.min() + 2 * MARGIN + 3 + 32
    columns = (points[:, 1].astype(float) - region.left) % WIDTH
    needed = span(np.floor(points[:, 1].astype(float))) + 2 + 2 * MARGIN
    if region.shape[1] == WIDTH:
        assert (region.left, region.padding) == (0, 8)
        assert needed + 2 * 32 > WIDTH
    else:
        assert 0 <= region.left < WIDTH
        assert region.padding == 0
        assert columns.min() >= MARGIN
        assert columns.max() + 1 + MARGIN <= region.shape[1]
        assert needed <= region.shape[1] < needed + 32
        assert region.shape[1] % 32 == 0


def test_points_on_both_sides_of_the_seam_have_one_narrow_region():
    points = np.array([[80, WIDTH - 3.2], [80, 4.7]], np.float32)
    region = find_region(points, (HEIGHT, WIDTH), MARGIN)
    assert region.left == WIDTH - 4 - MARGIN
    assert region.shape[1] == 32


regions = st.builds(
    lambda top, left, rows, columns: Region(top, left, (rows, columns)),
    st.integers(0, 5),
    st.integers(0, 39),
    st.integers(1, 7),
    st.integers(1, 39),
) | st.builds(
    lambda top, rows, padding: Region(top, 0, (rows, 40), padding), st.integers(0, 5), st.integers(1, 7), st.just(8)
)


def whole_numbers(seed, shape):
    return np.random.default_rng(seed).integers(-99, 99, shape).astype(np.float32)


@given(region=regions, seed=st.integers(0, 1000))
def test_image_of_and_frame_of_are_adjoint(region, seed):
    frame, image = whole_numbers(seed, region.frame_shape), whole_numbers(seed + 1, region.shape)
    before = frame.copy()
    assert (region.image_of(frame) * image).sum() == (frame * region.frame_of(image)).sum()
    np.testing.assert_array_equal(frame, before)


@given(region=regions, seed=st.integers(0, 1000))
def test_cutting_out_and_adding_are_what_the_indices_say(region, seed):
    panorama, image = whole_numbers(seed, (12, 40)), whole_numbers(seed + 1, region.shape)
    cut = region.cut_out(panorama)
    added = panorama.copy()
    region.add_to(added, image)
    expected = panorama.copy()
    for r in range(region.shape[0]):
        for c in range(region.shape[1]):
            place = region.top + r, (region.left + c) % 40
            assert cut[r, c] == panorama[place]
            expected[place] += image[r, c]
    np.testing.assert_array_equal(added, expected)
    assert cut.flags.c_contiguous
    cut += 1  # a copy: the panorama stays
    np.testing.assert_array_equal(region.cut_out(added) - image, cut - 1)


@pytest.mark.parametrize("kernel", ["rect", "linear", "gauss"])
def test_events_at_the_seam_of_a_full_circle_count_on_both_sides(kernel):
    points = np.random.default_rng(0).uniform([2, 0], [9, 40], (300, 2))
    region = Region(0, 0, (12, 40), 8)
    image = region.image_of(
        Binning(region.frame_shape, kernel, "linear")((points + np.array([0, 8])).astype(np.float32))
    )
    # On a wide frame without any seam, folded: three turns side by side.
    wide = Binning((12, 120), kernel, "linear", backend="reference")(points + np.array([0, 40]))
    np.testing.assert_allclose(image, wide.reshape(12, 3, 40).sum(1), atol=1e-4)
    assert image[:, 0].any()
    assert image[:, -1].any()
