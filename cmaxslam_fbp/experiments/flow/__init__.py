"""Optical flow that a network learns from events alone, by the sharpness of the events that it moves."""
