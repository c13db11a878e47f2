import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.report.map_video import MapVideo
from cmaxslam_fbp.report.reference import field_of_view


def read(path):
    video = cv2.VideoCapture(str(path))
    frames = []
    while True:
        more, frame = video.read()
        if not more:
            return frames, video.get(cv2.CAP_PROP_FPS)
        frames.append(frame.astype(int))


def test_the_map_grows_and_the_field_of_view_moves(tmp_path):
    panorama = np.zeros((256, 512), np.float32)
    with MapVideo(tmp_path / "map.mp4", field_of_view(davis240c()), rate_hz=8) as video:
        for number in range(6):
            panorama[100 + 10 * number : 105 + 10 * number, 200:300] = 9
            video.add(panorama, Rotation.from_euler("y", 12 * number, degrees=True).as_matrix(), 0.1 * number)
        assert not (tmp_path / "map.mp4").exists()
    frames, rate = read(tmp_path / "map.mp4")
    assert (len(frames), rate, frames[0].shape) == (6, 8, (256, 512, 3))
    dark = [(frame[:240].max(axis=-1) < 90).sum() for frame in frames]
    assert (np.diff(dark) > 100).all()
    columns = [np.flatnonzero((frame[..., 2] - frame[..., 0] > 120).any(axis=0)).mean() for frame in frames]
    np.testing.assert_allclose(np.diff(columns), 512 * 12 / 360, atol=4)
    assert list(tmp_path.iterdir()) == [tmp_path / "map.mp4"]


def test_maps_of_odd_size_and_views_over_the_seam_are_no_problem(tmp_path):
    with MapVideo(tmp_path / "map.mp4", field_of_view(davis240c())) as video:
        video.add(np.ones((101, 201), np.float32), Rotation.from_euler("y", np.pi).as_matrix(), 0.0)
    frames, _ = read(tmp_path / "map.mp4")
    assert frames[0].shape == (100, 200, 3)


def test_an_error_leaves_no_file(tmp_path):
    def fail():
        with MapVideo(tmp_path / "map.mp4") as video:
            video.add(np.ones((64, 128), np.float32), np.eye(3), 0.0)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_wrong_places_are_one_line(tmp_path):
    with pytest.raises(OutputError, match=r"must end in \.mp4"):
        MapVideo(tmp_path / "map.avi")
    with pytest.raises(OutputError, match="cannot write"), MapVideo(tmp_path / "no" / "map.mp4") as video:
        video.add(np.ones((64, 128), np.float32), np.eye(3), 0.0)
