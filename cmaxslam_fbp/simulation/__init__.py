"""Scenes, motions and the events that they cause."""

from cmaxslam_fbp.simulation.dense_flow import DenseFlow, dense_flow
from cmaxslam_fbp.simulation.foreground import ForegroundSettings
from cmaxslam_fbp.simulation.imu import ImuNoise
from cmaxslam_fbp.simulation.lighting import CoverSettings, FlickerSettings
from cmaxslam_fbp.simulation.planar_simulator import PlanarSimulation
from cmaxslam_fbp.simulation.sensor_settings import SENSORS, SensorSettings
from cmaxslam_fbp.simulation.settings import PlanarSettings, RoomSettings, SimulationSettings
from cmaxslam_fbp.simulation.simulator import RoomSimulation, Simulation

__all__ = [
    "SENSORS",
    "CoverSettings",
    "DenseFlow",
    "FlickerSettings",
    "ForegroundSettings",
    "ImuNoise",
    "PlanarSettings",
    "PlanarSimulation",
    "RoomSettings",
    "RoomSimulation",
    "SensorSettings",
    "Simulation",
    "SimulationSettings",
    "dense_flow",
]
