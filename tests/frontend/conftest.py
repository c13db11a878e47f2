from dataclasses import dataclass

import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.simulation import Simulation, SimulationSettings


@dataclass(frozen=True)
class SimulatedRecording:
    simulation: Simulation
    events: Events

    @property
    def camera(self):
        return self.simulation.camera

    def true_velocities(self, t_ns):
        return self.simulation.motion.angular_velocities((np.asarray(t_ns) - self.simulation.start_ns) * 1e-9)

    def errors_deg_s(self, estimates):
        found = np.array([estimate.velocity for estimate in estimates])
        return np.degrees(found - self.true_velocities([estimate.t_ns for estimate in estimates]))


def _simulate(scene, duration_s, seed):
    simulation = Simulation(SimulationSettings(scene=scene, duration_s=duration_s, peak_speed_deg_s=350.0, seed=seed))
    chunks = [chunk for chunk in simulation.chunks() if len(chunk)]
    return SimulatedRecording(simulation, Events.concatenate(chunks))


@pytest.fixture(scope="session")
def boxes():
    return _simulate("boxes", 0.5, 1)


@pytest.fixture(scope="session")
def shapes():
    return _simulate("shapes", 1.0, 1)
