"""The paper's tables are transcribed whole and without a slip: counts, single cells, and sums that its text tells."""

import numpy as np
import pytest

from cmaxslam_fbp.experiments import paper_figures as paper


@pytest.mark.parametrize("table", [paper.ANGULAR, paper.LINEAR])
def test_the_velocity_tables_have_ten_methods_two_scores_and_four_scenes(table):
    assert len(table) == 10 * 2 * 4
    assert {score for score, _, _ in table} == set(paper.SCORES)
    assert {scene for _, _, scene in table} == set(paper.SCENES)


@pytest.mark.parametrize(
    ("table", "key", "error", "ms"),
    [
        (paper.ANGULAR, ("Var", "Rect", "boxes"), 44.61, 22.42),
        (paper.ANGULAR, ("Var", "FuncRect 2", "shapes"), 23.94, 9.96),
        (paper.ANGULAR, ("LL", "FuncRect 2", "shapes"), None, None),
        (paper.ANGULAR, ("LL", "Gauss 2", "poster"), 9.97, 6.85),
        (paper.ANGULAR, ("LL", "FuncGauss 2", "dynamic"), 5.35, 9.51),
        (paper.LINEAR, ("Var", "Rect", "boxes"), 0.924, None),
        (paper.LINEAR, ("LL", "FuncGauss 1", "poster"), 0.710, None),
        (paper.LINEAR, ("LL", "Linear", "shapes"), 0.706, None),
        (paper.LINEAR, ("Var", "FuncLinear 2", "dynamic"), 0.208, 6.77),
        (paper.RECONSTRUCTION, ("Var", "Lanczos", "poster"), 14.15, 9.01),
        (paper.RECONSTRUCTION, ("LL", "Cubic", "shapes"), 13.82, 18.07),
        (paper.SURROGATES, ("Var", "STE", "shapes"), 96.89, 13.07),
        (paper.SURROGATES, ("LL", "Sigmoid", "dynamic"), 5.88, 9.84),
    ],
)
def test_single_cells(table, key, error, ms):
    assert table[key] == paper.PaperCell(error, ms)


def test_the_cells_without_a_figure_are_those_of_the_paper():
    missing = [key for key, cell in paper.LINEAR.items() if cell.ms is None]
    assert len(missing) == 17
    assert all(paper.LINEAR[key].error is not None for key in missing)
    assert [key for key, cell in paper.ANGULAR.items() if cell.ms is None] == [("LL", "FuncRect 2", "shapes")]


@pytest.mark.parametrize("table", [paper.RECONSTRUCTION, paper.SURROGATES])
def test_the_ablations_repeat_the_row_funcrect_1(table):
    method = "Linear" if table is paper.RECONSTRUCTION else "FBP"
    assert len(table) == 3 * 2 * 4
    for score in paper.SCORES:
        for scene in paper.SCENES:
            assert table[score, method, scene] == paper.ANGULAR[score, "FuncRect 1", scene]


def test_the_slam_table_gives_the_improvement_of_the_text():
    reductions = [1 - paper.SLAM["FBP"][scene][0] / paper.SLAM["CMax-SLAM"][scene][0] for scene in paper.SCENES]
    assert 100 * np.mean(reductions) == pytest.approx(paper.SLAM_ABS_REDUCTION_PERCENT, abs=0.1)


def test_the_cost_table_gives_the_overheads_of_the_paper():
    overheads = [paper.COST_CPU_US["FuncGauss jvp"][k] / paper.COST_CPU_US["Gauss jvp"][k] for k in range(3)]
    np.testing.assert_allclose(overheads, [1.71, 2.25, 3.68], atol=0.006)
    overheads = [paper.COST_GPU_US["FuncLinear jvp"][k] / paper.COST_GPU_US["Linear jvp"][k] for k in range(3)]
    np.testing.assert_allclose(overheads, [2.38, 2.23, 2.27], atol=0.006)
