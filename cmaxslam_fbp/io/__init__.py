"""Recordings, calibrations and trajectories as files."""

from cmaxslam_fbp.io.opening import open_recording
from cmaxslam_fbp.io.recording import Recording

__all__ = ["Recording", "open_recording"]
