"""Scenes, motions and the events that they cause."""
