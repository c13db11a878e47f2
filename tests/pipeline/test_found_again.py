"""A camera whose lens is covered for a second, and that then goes on elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.simulation import Simulation, SimulationSettings
from cmaxslam_fbp.trajectory import RotationTrajectory

COVERED_S, UNCOVERED_S = 2.1, 3.0


def swinging(seed):
    """Simulate 3.7 s of a camera that swings by 44 degrees to the right and back in two seconds."""
    t_s = np.arange(0, 3.8, 0.005)
    angles = np.column_stack([22 * (1 - np.cos(np.pi * t_s)), 6 * np.sin(2.1 * t_s), 4 * np.sin(3.3 * t_s)])
    motion = RotationTrajectory.from_rotations(
        (t_s * 1e9).astype(np.int64), Rotation.from_euler("YXZ", angles, degrees=True)
    )
    return Simulation(SimulationSettings(scene="shapes", trajectory=motion, duration_s=3.7, seed=seed))


@pytest.fixture(scope="module")
def simulation():
    return swinging(4)


def covered(simulation, afterwards):
    """The recording without what the covered lens does not see, and from then on what another recording has seen."""

    def events(source, from_s, to_s):
        times = (source.start_ns + round(1e9 * t_s) for t_s in (from_s, to_s))
        return Events.concatenate(source.chunks()).between(*times)

    late = events(afterwards, UNCOVERED_S, 3.7)
    late = replace(late, t_ns=late.t_ns + simulation.start_ns - afterwards.start_ns)
    return Recording.from_events([events(simulation, 0, COVERED_S), late], camera=simulation.camera)


def test_a_covered_camera_is_found_again_forty_degrees_elsewhere(simulation):
    result = Slam().run(covered(simulation, simulation))
    start_ns = simulation.start_ns
    uncovered_ns = start_ns + round(1e9 * UNCOVERED_S)
    found = [window for window in result.windows if window.tracking.value == "found again"]
    assert len(found) == 1
    assert found[0].end_ns - uncovered_ns < 300_000_000
    assert result.lost_windows == 0
    trajectory = result.trajectory()
    t_s = (trajectory.t_ns - start_ns) / 1e9
    inside = (t_s > 0.1) & (t_s < 3.7)
    exact = Rotation.from_matrix(simulation.motion.rotations(t_s[inside]))
    turned = exact * trajectory.rotations[np.flatnonzero(inside)].inv()
    before, after = t_s[inside] < COVERED_S, t_s[inside] > UNCOVERED_S
    errors_deg = np.degrees((turned[before].mean().inv() * turned).magnitude())
    moved = trajectory.rotation_at(np.array([start_ns + round(1e9 * COVERED_S), uncovered_ns + 10_000_000]))
    assert np.degrees((moved[0].inv() * moved[1]).magnitude()) > 38
    assert errors_deg[before].max() < 0.3
    assert errors_deg[after].max() < 0.3
    assert any(line.startswith("found again in the map at ") for line in result.warnings)


def test_another_scene_is_not_taken_for_the_old_one(simulation):
    result = Slam().run(covered(simulation, swinging(5)))
    late = [window for window in result.windows if window.end_ns > simulation.start_ns + round(1e9 * UNCOVERED_S)]
    assert len(late) >= 7
    assert {window.tracking.value for window in late} <= {"lost", "still"}  # still: hardly a moment uncovered
    assert result.lost_windows >= 6
