"""Rotational event-camera SLAM by contrast maximisation with functional backpropagation."""

__version__ = "0.1.0"
