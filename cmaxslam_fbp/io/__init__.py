"""Recordings, calibrations and trajectories as files."""
