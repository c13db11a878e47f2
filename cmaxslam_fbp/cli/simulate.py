"""`cmaxslam-fbp simulate`: make a recording of a rotating event camera."""

from __future__ import annotations


def simulate() -> None:
    """Make a recording."""
