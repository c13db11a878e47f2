import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.report.map_picture import (
    COLOUR_MAPS,
    colour_map,
    look,
    outline_in_view,
    outline_on_map,
    used_part,
    view_camera,
)

BORDER = np.array([[-0.2, -0.1, 1], [0.2, -0.1, 1], [0.2, 0.1, 1], [-0.2, 0.1, 1]])


@pytest.mark.parametrize("name", COLOUR_MAPS)
def test_events_stand_out_in_every_colour_map(name):
    panorama = np.zeros((8, 16), np.float32)
    panorama[4, 8] = 5
    picture = colour_map(panorama, name).astype(int)
    assert picture.shape == (8, 16, 3)
    assert np.abs(picture[4, 8] - picture[0, 0]).max() > 100


def test_the_used_part_has_the_events_and_a_margin():
    panorama = np.zeros((100, 200), np.float32)
    assert used_part(panorama) == (0, 0, 200, 100)
    panorama[40:50, 1:60] = 1
    assert used_part(panorama, margin=0.02) == (0, 36, 64, 54)


@pytest.mark.parametrize("yaw_deg", [0, 40, 180])
def test_a_view_sees_in_its_middle_what_lies_in_its_direction(yaw_deg):
    projection = Equirectangular(360, 180)
    turn = Rotation.from_euler("YX", [yaw_deg, 20], degrees=True).as_matrix()
    x, y = projection.project(turn[:, 2])
    picture = np.zeros((180, 360, 3), np.uint8)
    picture[int(y) - 2 : int(y) + 4, [(int(x) + i) % 360 for i in range(-2, 4)]] = 255
    seen = look(picture, turn, view_camera(101, 81, 60))
    assert seen.shape == (81, 101, 3)
    assert seen[40, 50, 0] > 200
    rows, columns = np.nonzero(seen[..., 0] > 100)
    assert abs(rows.mean() - 40) < 2
    assert abs(columns.mean() - 50) < 2


def test_a_view_of_any_panorama_has_its_numbers_and_not_where_they_are_not_known():
    panorama = np.full((256, 512), 1.25, np.float32)
    panorama[:, :256] = np.nan
    seen = look(panorama, np.eye(3), view_camera(101, 81, 60))
    assert seen.dtype == np.float32
    assert np.isnan(seen[:, :50]).all()
    assert (seen[:, 52:] == 1.25).all()


def test_an_outline_is_closed_and_cut_at_the_seam():
    (line,) = outline_on_map(BORDER, np.eye(3), 360, 180)
    np.testing.assert_allclose(line[0], line[-1])
    np.testing.assert_allclose(line[:, 0].min(), 180 - np.degrees(np.arctan(0.2)))
    pieces = outline_on_map(BORDER, Rotation.from_euler("y", np.pi).as_matrix(), 360, 180)
    assert len(pieces) >= 2
    assert all(np.ptp(piece[:, 0]) < 180 for piece in pieces)


def test_an_outline_behind_the_view_is_not_drawn():
    view = view_camera(100, 80, 90)
    (line,) = outline_in_view(BORDER, np.eye(3), np.eye(3), view)
    np.testing.assert_allclose(line.mean(axis=0)[1], 39.5, atol=5)
    np.testing.assert_allclose(line[0], view.project([[-0.2, -0.1, 1.0]])[0])
    assert outline_in_view(BORDER, np.eye(3), Rotation.from_euler("y", np.pi).as_matrix(), view) == []
