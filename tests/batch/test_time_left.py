from cmaxslam_fbp.batch.time_left import TimeLeft


def test_the_time_left_is_that_of_the_sizes_over_the_workers():
    left = TimeLeft()
    assert left.left_s([10.0], []) is None
    left.finished(size=10.0, seconds=20.0)
    assert left.left_s([10.0, 20.0], [(10.0, 5.0), (10.0, 15.0)]) == (20 + 40 + 15 + 5) / 2
    assert left.left_s([], [(10.0, 5.0), (10.0, 19.0)]) == 15  # the last runs do not share their work
    assert left.left_s([], [(10.0, 50.0)]) == 0
