import numpy as np
import pytest

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.motions import NoRotation
from cmaxslam_fbp.simulation.translations import HandheldTranslation


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize(("duration_s", "peak_m_s"), [(0.5, 0.3), (5.0, 1.0), (30.0, 3.0)])
def test_a_handheld_path_reaches_its_peak_speed_and_stays_within_its_extent(duration_s, peak_m_s, seed):
    path = HandheldTranslation(duration_s, peak_m_s, 0.4, seed)
    t_s = np.linspace(0, duration_s, int(2000 * duration_s) + 1)
    assert np.linalg.norm(path.velocities(t_s), axis=1).max() == pytest.approx(peak_m_s, rel=0.01)
    assert (np.abs(path.positions(t_s)).max(axis=0) <= [0.4, 0.32, 0.2]).all()


def test_a_long_path_uses_its_room():
    path = HandheldTranslation(300.0, 1.0, 0.4, 3)
    assert (np.abs(path.positions(np.arange(0, 300, 0.01))).max(axis=0) > np.array([0.4, 0.32, 0.2]) / 2).all()


def test_velocity_and_acceleration_are_the_derivatives_also_while_it_sets_off():
    path = HandheldTranslation(4.0, 1.5, 0.4, 5)
    t_s, step_s = np.linspace(0.001, 3.99, 800), 1e-5
    positions = (path.positions(t_s + step_s) - path.positions(t_s - step_s)) / (2 * step_s)
    velocities = (path.velocities(t_s + step_s) - path.velocities(t_s - step_s)) / (2 * step_s)
    np.testing.assert_allclose(path.velocities(t_s), positions, atol=1e-8)
    np.testing.assert_allclose(path.accelerations(t_s), velocities, atol=1e-7)
    assert np.abs(path.accelerations(t_s[t_s < 1])).max() > 0.5


def test_a_path_starts_at_rest_at_the_origin():
    path = HandheldTranslation(3.0, 1.0, 0.4, 3)
    np.testing.assert_allclose(path.positions([0.0]), 0, atol=1e-12)
    np.testing.assert_array_equal(path.velocities([0.0]), 0)
    np.testing.assert_array_equal(path.accelerations([0.0]), 0)


def test_a_path_of_speed_zero_rests():
    path = HandheldTranslation(1.0, 0.0, 0.4, 3)
    np.testing.assert_allclose(path.positions([0.0, 0.5, 1.0]), 0, atol=1e-12)


def test_a_path_depends_on_its_seed_only():
    first, again, other = (HandheldTranslation(2.0, 1.0, 0.4, seed).positions([1.7]) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_a_camera_that_does_not_turn_keeps_the_identity():
    motion = NoRotation(2.0)
    assert motion.duration_s == 2.0
    np.testing.assert_array_equal(motion.rotations([0.0, 1.0]), [np.eye(3), np.eye(3)])
    np.testing.assert_array_equal(motion.angular_velocities([0.0, 1.0]), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((0.0, 1.0, 0.4), "duration"),
        ((1.0, -1.0, 0.4), "speed"),
        ((1.0, np.nan, 0.4), "speed"),
        ((1.0, 1, 0), "extent"),
    ],
)
def test_impossible_paths_are_refused_in_one_line(arguments, word):
    with pytest.raises(SimulationError, match=word) as failure:
        HandheldTranslation(*arguments, 0)
    assert "\n" not in str(failure.value)
