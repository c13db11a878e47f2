"""The rule that gives the paper's headline from the paper's own tables."""

import pytest

from cmaxslam_fbp.experiments import paper_figures as paper
from cmaxslam_fbp.experiments.headline import ALL_PAIRS, headline, per_pair
from cmaxslam_fbp.experiments.paper_figures import PaperCell


def test_the_paper_s_angular_table_gives_its_headline():
    told = headline(paper.ANGULAR)
    reduction, speed_up = paper.HEADLINES["angular"]
    assert told.error_reduction_percent == pytest.approx(reduction, abs=0.05)
    assert told.speed_up == pytest.approx(speed_up, abs=0.005)


def test_the_paper_s_linear_table_gives_its_error_and_lacks_the_times():
    told = headline(paper.LINEAR)
    reduction, speed_up = paper.HEADLINES["linear"]
    assert told.error_reduction_percent == pytest.approx(reduction, abs=0.05)
    assert told.speed_up == pytest.approx(1.57, abs=0.005)
    assert told.speed_up > speed_up + 0.05


def test_both_scores_would_give_more():
    told = headline(paper.ANGULAR, paper.SCORES)
    assert told.error_reduction_percent == pytest.approx(17.2, abs=0.05)
    assert told.speed_up == pytest.approx(1.90, abs=0.005)


def test_sequences_without_a_figure_do_not_count():
    cells = {
        ("LL", method, scene): PaperCell(2.0, 4.0) for pair in ALL_PAIRS for method in pair for scene in paper.SCENES
    }
    for scene in paper.SCENES[:3]:
        cells["LL", "FuncRect 1", scene] = PaperCell(None, None)
    cells["LL", "FuncRect 1", paper.SCENES[3]] = PaperCell(1.0, 2.0)
    cells["LL", "Rect", paper.SCENES[0]] = PaperCell(100.0, 100.0)
    told = headline(cells, pairs=(("Rect", "FuncRect 1"),))
    assert told.error_reduction_percent == pytest.approx(50)
    assert told.speed_up == pytest.approx(2)


def test_nothing_comes_of_nothing():
    cells = {
        ("LL", method, scene): PaperCell(None, None) for pair in ALL_PAIRS for method in pair for scene in paper.SCENES
    }
    told = headline(cells)
    assert told.error_reduction_percent is None
    assert told.speed_up is None


def test_each_pair_by_itself():
    assert len(per_pair(paper.ANGULAR)) == 12
