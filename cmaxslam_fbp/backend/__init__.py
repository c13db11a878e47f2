"""Bundle adjustment of the trajectory over a panoramic image of warped events."""
