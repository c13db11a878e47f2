"""The Events type, packets, filters."""

from cmaxslam_fbp.events.events import Events

__all__ = ["Events"]
