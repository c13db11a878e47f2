import numpy as np

from cmaxslam_fbp.report.map_picture import draw_graticule, draw_map


def test_many_events_are_black_and_none_are_white():
    panorama = np.zeros((8, 16), np.float32)
    panorama[2, 3:6] = 1, 5, 10
    picture = draw_map(panorama)
    assert picture[0, 0] == 255
    assert 255 > picture[2, 3] > picture[2, 4] > picture[2, 5]
    assert picture[2, 5] < 5
    assert (draw_map(np.zeros((4, 8), np.float32)) == 255).all()


def test_the_graticule_lies_under_the_events():
    picture = np.full((90, 180), 255, np.uint8)
    picture[45, 90] = 0
    drawn = draw_graticule(picture)
    assert drawn[45, 90] == 0  # the forward direction, on the equator
    assert (drawn[45, [0, 1, 91]] == 222).all()
    assert (drawn[[0, 44], 90] == 222).all()
    assert drawn[1, 1] == 255
    assert picture[45, 0] == 255  # the argument is not changed
