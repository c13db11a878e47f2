"""Tables for people and for programs."""

import csv
import io

import numpy as np

from cmaxslam_fbp.experiments.slam_tables import cut_maps
from cmaxslam_fbp.experiments.tables import beside, csv_text, markdown_table, number, page


def test_a_figure_stands_beside_the_paper_s():
    assert beside(1.234, 5.6) == "1.23 [5.60]"
    assert beside(None, 0.5, 3) == "n/a [0.500]"
    assert number(None) == "n/a"


def test_markdown_has_one_line_per_row_and_escapes_bars():
    lines = markdown_table(["a", "b"], [["x|y", "1"], ["z", "2"]]).splitlines()
    assert lines == ["| a | b |", "| --- | ---: |", r"| x\|y | 1 |", "| z | 2 |"]


def test_csv_has_all_columns_and_empty_cells():
    rows = list(csv.DictReader(io.StringIO(csv_text([{"a": 1, "b": None}, {"a": 2, "c": "x, y"}]))))
    assert rows == [{"a": "1", "b": "", "c": ""}, {"a": "2", "b": "", "c": "x, y"}]


def test_a_page_says_where_its_figures_come_from():
    text = page("Title", ["words"], {"boxes_rotation": "simulated boxes, seed 0"}, [{"jobs": 1}, {"jobs": 3}])
    assert text.startswith("### Title\n")
    assert "- boxes_rotation: simulated boxes, seed 0" in text
    assert "np.bincount" in text
    assert "3 rows ran at the same time" in text
    assert "at the same time" not in page("Title", [], {}, [{"jobs": 1}])


def test_maps_of_any_sizes_are_cut_to_the_part_of_the_sphere_that_any_of_them_has_seen():
    small, large = np.full((8, 16), 255, np.uint8), np.full((16, 32), 255, np.uint8)
    small[2, 4], large[10, 6:12] = 0, 0
    cut = cut_maps({"small": small, "large": large, "none": None})
    np.testing.assert_array_equal(cut["small"], small[2:6, 3:6])
    np.testing.assert_array_equal(cut["large"], large[4:11, 6:12])
    assert cut["none"] is None
    blank = np.full((4, 8), 255, np.uint8)
    np.testing.assert_array_equal(cut_maps({"blank": blank})["blank"], blank)
