"""A run in a window: the map as a sphere, the camera and its path."""
