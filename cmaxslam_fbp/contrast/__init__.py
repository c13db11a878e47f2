"""How sharp an image of warped events is, and how that changes."""
