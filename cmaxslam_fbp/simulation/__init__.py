"""Scenes, motions and the events that they cause."""

from cmaxslam_fbp.simulation.foreground import ForegroundSettings
from cmaxslam_fbp.simulation.imu import ImuNoise
from cmaxslam_fbp.simulation.planar_simulator import PlanarSimulation
from cmaxslam_fbp.simulation.room_simulator import RoomSimulation
from cmaxslam_fbp.simulation.sensor import SensorSettings
from cmaxslam_fbp.simulation.settings import PlanarSettings, RoomSettings, SimulationSettings
from cmaxslam_fbp.simulation.simulator import Simulation

__all__ = [
    "ForegroundSettings",
    "ImuNoise",
    "PlanarSettings",
    "PlanarSimulation",
    "RoomSettings",
    "RoomSimulation",
    "SensorSettings",
    "Simulation",
    "SimulationSettings",
]
