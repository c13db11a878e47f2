"""Brightness of the scene from events and a trajectory."""
