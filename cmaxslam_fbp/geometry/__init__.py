"""Rotations, cameras, projections."""
