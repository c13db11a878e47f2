"""A recording of events in memory follows the rules of those in files."""

import numpy as np
import pytest

import cmaxslam_fbp
from cmaxslam_fbp.errors import CalibrationError, RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.summary import summarize
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples


def test_everything_that_is_given_is_there_in_every_pass(make_events, assert_same_events):
    events = make_events(1000)
    poses = RotationTrajectory(np.array([0, 10]), np.array([[0.0, 0, 0, 1], [0, 0, 1, 0]]))
    imu = ImuSamples(np.array([5]), np.array([[1.0, 2, 3]]), np.array([[4.0, 5, 6]]))
    chunks = (events[first : first + 300] for first in range(0, 1000, 300))
    recording = cmaxslam_fbp.Recording.from_events(
        chunks, camera=davis240c(), sensor_size=[240, 180], ground_truth=poses, imu=imu
    )
    for _ in range(2):
        assert_same_events(Events.concatenate(recording.chunks()), events)
    assert recording.sensor_size == SensorSize(240, 180)
    assert recording.require_camera() == davis240c()
    assert recording.ground_truth is poses
    assert recording.gyroscope.omega_rad_s.tolist() == [[1, 2, 3]]
    assert recording.start_ns == events.t_ns[0]
    assert summarize(recording).events == 1000


def test_disorder_is_sorted_and_events_outside_the_sensor_are_dropped():
    events = Events.from_arrays([1, 3, 2, 4], [1, 2, 3, 9], [1, 1, 1, 1], [0, 1, 1, 0])
    stream = Recording.from_events(events, sensor_size=(5, 5)).chunks()
    assert Events.concatenate(stream).x.tolist() == [1, 3, 2]
    assert (stream.defects.reordered, stream.defects.outside_sensor) == (1, 1)


def test_a_jump_back_names_the_chunk():
    chunks = [Events.from_arrays([t_ns], [1], [1], [1]) for t_ns in (5_000_000_000, 1_000_000_000)]
    with pytest.raises(RecordingError, match=r"jumps back by 4\.000 s at event 0 of chunk 1 of mine"):
        list(Recording.from_events(chunks, sensor_size=(5, 5), name="mine").chunks())


def test_sizes_and_cameras_that_are_missing_or_disagree_are_one_line(make_events):
    with pytest.raises(
        RecordingError, match=r"tell the sensor's size: give a camera, or sensor_size=\(width, height\)"
    ):
        list(Recording.from_events(make_events(10)).chunks())
    with pytest.raises(CalibrationError, match="has no calibration"):
        Recording.from_events(make_events(10), sensor_size=(240, 180)).require_camera()
    with pytest.raises(CalibrationError, match="one of 240 x 180 pixels, but the sensor_size is 640 x 480"):
        Recording.from_events(make_events(10), camera=davis240c(), sensor_size=(640, 480))
    with pytest.raises(RecordingError, match="has no events"):
        list(Recording.from_events([], camera=davis240c()).chunks())


def test_the_name_and_a_digest_of_the_events_stand_for_the_file(make_events):
    one, same, other = (Recording.from_events(make_events(9, seed=seed), name="mine") for seed in (0, 0, 1))
    assert one.origin() == same.origin()
    assert one.origin()[0] == "mine"
    assert one.origin()[1] != other.origin()[1]


def test_it_is_written_as_a_file(tmp_path, make_events, assert_same_events):
    events = make_events(100)
    assert Recording.from_events(events, camera=davis240c()).convert(tmp_path / "a.npz") == 100
    again = open_recording(tmp_path / "a.npz")
    assert_same_events(Events.concatenate(again.chunks()), events)
    assert again.camera == davis240c()
