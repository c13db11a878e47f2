import numpy as np
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.report.curves import even_indices, peak_indices, yaw_pitch_roll_deg


def test_signs_are_right_up_and_clockwise():
    """The camera's axes are x right, y down, z forward."""
    for axis, direction, moved in ((0, [0, 0, 1], 0), (1, [0, 0, 1], 1), (2, [1, 0, 0], 1)):
        angles = np.zeros((1, 3))
        angles[0, axis] = 0.1
        turned = Rotation.from_euler("YXZ", angles).apply(direction)[0]
        np.testing.assert_allclose(
            yaw_pitch_roll_deg(Rotation.from_euler("YXZ", angles)), np.degrees(angles), atol=1e-9
        )
        assert np.sign(turned[moved]) == (-1 if axis == 1 else 1)  # up is minus y


def test_a_full_turn_goes_on_beyond_180_degrees():
    yaw = np.linspace(0, 400, 200)
    angles = yaw_pitch_roll_deg(Rotation.from_euler("y", yaw[:, None], degrees=True))
    np.testing.assert_allclose(angles[:, 0], yaw, atol=1e-9)


def test_straight_up_gives_numbers_and_no_warning():
    assert np.isfinite(yaw_pitch_roll_deg(Rotation.from_euler("YXZ", [[0.3, np.pi / 2, 0.1]]))).all()


def test_short_curves_keep_all_points():
    np.testing.assert_array_equal(even_indices(7, 10), np.arange(7))
    np.testing.assert_array_equal(peak_indices(np.zeros(7), 10), np.arange(7))


def test_long_curves_keep_both_ends_and_no_more_points_than_asked():
    chosen = even_indices(12_345, 2000)
    assert (chosen[0], chosen[-1]) == (0, 12_344)
    assert 1990 <= len(chosen) <= 2000
    assert np.diff(chosen).max() <= 7


def test_a_single_peak_survives():
    values = np.zeros(10_000)
    values[4567] = 1.0
    chosen = peak_indices(values, 100)
    assert 4567 in chosen
    assert len(chosen) == 100
    assert (np.diff(chosen) > 0).all()
