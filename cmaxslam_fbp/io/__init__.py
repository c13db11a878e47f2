"""Recordings, calibrations and trajectories as files."""

from cmaxslam_fbp.io.open_recording import open_recording
from cmaxslam_fbp.io.recording import Recording, RecordingOptions

__all__ = ["Recording", "RecordingOptions", "open_recording"]
