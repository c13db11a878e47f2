"""The studies' plots are pictures with something on them, also where figures are missing."""

import cv2
import numpy as np

from cmaxslam_fbp.report.study_plots import (
    plot_errors_and_times,
    plot_grouped_bars,
    plot_pictures,
    plot_signed_distributions,
)


def decoded(data):
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    assert image.std() > 5
    return image


def test_errors_and_times_with_gaps():
    errors = {"Rect": [1.0, None], "FuncRect 1": [None, None], "Linear": [100.0, 2.0]}
    times = {"Rect": [5.0, None], "FuncRect 1": [None, None], "Linear": [1.0, 2.0]}
    decoded(plot_errors_and_times({"Var": (errors, times), "LL": (errors, times)}, ["boxes", "shapes"], "RMS", "title"))


def test_bars_of_several_series():
    decoded(
        plot_grouped_bars({"numba": {"Rect": 30.0, "jvp": 150.0}, "paper": {"Rect": 37.0, "jvp": None}}, "us", "title")
    )


def test_distributions_also_of_zeros():
    values = np.random.default_rng(0).normal(size=200)
    cells = {"rect": (values, -values), "linear": (np.zeros(200), values)}
    decoded(plot_signed_distributions({"plain": cells, "FBP": cells}, "bias", "title"))


def test_pictures_side_by_side_with_one_missing():
    picture = np.random.default_rng(0).integers(0, 255, (40, 80)).astype(np.uint8)
    decoded(plot_pictures({"boxes": {"CMax-SLAM": picture, "FBP": None}, "shapes": {"CMax-SLAM": picture}}, "maps"))
