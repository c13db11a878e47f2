import numpy as np

from cmaxslam_fbp.report.curves import even_indices, peak_indices


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
