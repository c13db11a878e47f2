"""Alignment and errors of trajectories."""
