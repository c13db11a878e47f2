"""Velocity of the camera from a packet of events."""
