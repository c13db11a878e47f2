"""The Events type, packets, filters."""

from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.ordering import Defects
from cmaxslam_fbp.events.sensor import SensorSize

__all__ = ["Defects", "Events", "SensorSize"]
