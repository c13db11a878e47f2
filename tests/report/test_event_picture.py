import numpy as np
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.report.event_picture import EventPicture

CAMERA = Camera(100, 80, 60, 60, 49.5, 39.5)


def events_at(x, y):
    count = len(x)
    return Events(np.arange(count), np.array(x, np.uint16), np.array(y, np.uint16), np.ones(count, np.uint8))


def test_without_motion_events_stay_at_their_pixels():
    image = EventPicture(CAMERA).count(events_at([3, 3, 99, 0], [5, 5, 79, 0]))
    assert image.shape == (80, 100)
    np.testing.assert_allclose([image[5, 3], image[79, 99], image[0, 0], image.sum()], [2, 1, 1, 4], atol=1e-4)


def test_turns_bring_the_events_of_one_point_together():
    """A point straight ahead of the view, seen by a camera at three yaw angles."""
    yaw = np.radians([-10, 0, 10])
    turns = Rotation.from_euler("y", yaw[:, None])  # camera to view
    pixels = CAMERA.project(turns.inv().apply([0.1, 0.05, 1.0]))
    events = events_at(*np.rint(pixels).astype(int).T)
    picture = EventPicture(CAMERA)
    assert picture.count(events).max() < 1.01
    sharp = picture.count(events, turns)
    x, y = CAMERA.project([[0.1, 0.05, 1.0]])[0]
    assert sharp[int(y) - 1 : int(y) + 3, int(x) - 1 : int(x) + 3].sum() > 2.9


def test_events_behind_the_view_are_left_out():
    image = EventPicture(CAMERA).count(events_at([50], [40]), Rotation.from_euler("y", [np.pi]))
    assert image.sum() == 0
