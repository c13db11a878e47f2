"""The table shows the figures, and what a reader must know about them."""

from dataclasses import replace

import pytest
from rich.console import Console

from cmaxslam_fbp.evaluation import evaluate, evaluation_table


@pytest.fixture
def evaluation(smooth_motion):
    return replace(
        evaluate(smooth_motion(0, 2, 10), smooth_motion(0, 2, 100)),
        absolute_best_fit_rms_deg=1.23456,
        time_offset_s=0.00071,
        angular_velocity_rms_deg_s=7.5,
        ground_truth_longest_gap_s=0.01,
    )


def lines_of(table):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


def row(lines, label):
    (line,) = [line for line in lines if label in line]
    return [cell.strip() for cell in line.strip("│┃ ").split("│")]


def test_figures_stand_in_their_rows_with_units(evaluation):
    lines = lines_of(evaluation_table(evaluation))
    assert row(lines, "absolute, best fit: RMS") == ["absolute, best fit: RMS [deg]", "1.235"]
    assert row(lines, "best time offset") == ["best time offset [ms]", "+0.71"]
    assert row(lines, "angular velocity: RMS [")[1] == "7.500"


def test_several_evaluations_stand_side_by_side(evaluation):
    other = replace(evaluation, absolute_best_fit_rms_deg=2.0, time_offset_s=None)
    lines = lines_of(evaluation_table({"linear": evaluation, "[cubic]": other}, title="poster"))
    assert "poster" in lines[0]
    assert any("linear" in line and "[cubic]" in line for line in lines)
    assert row(lines, "absolute, best fit: RMS")[1:] == ["1.235", "2.000"]
    assert row(lines, "best time offset")[1:] == ["+0.71", "-"]


def test_interpolated_figures_are_marked_and_explained(evaluation):
    text = lines_of(evaluation_table(evaluation))
    assert row(text, "relative over 0.01 s")[1].endswith("*")
    assert not row(text, "relative over 0.1 s")[1].endswith("*")
    assert any("shorter than the step between poses" in line for line in text)
    dense = replace(evaluation, relative_interpolated=dict.fromkeys(evaluation.relative_interpolated, False))
    assert not any("*" in line for line in lines_of(evaluation_table(dense)))


def test_a_gap_of_the_ground_truth_is_named(evaluation):
    assert not any("gap" in line for line in lines_of(evaluation_table(evaluation)))
    gappy = replace(evaluation, ground_truth_longest_gap_s=0.75)
    assert any("gap of 0.75 s" in line for line in lines_of(evaluation_table(gappy)))


def test_a_gyroscope_as_reference_is_named(evaluation):
    assert not any("gyroscope" in line for line in lines_of(evaluation_table(evaluation)))
    against_gyroscope = replace(evaluation, angular_velocity_reference="gyroscope")
    assert any("against the gyroscope" in line for line in lines_of(evaluation_table(against_gyroscope)))
