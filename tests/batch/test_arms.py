"""The configurations of a batch: each name is one, `+` joins several into one, a grid multiplies them."""

import pytest

from cmaxslam_fbp.batch.arms import make_arms
from cmaxslam_fbp.config import load_config
from cmaxslam_fbp.errors import ConfigError


def test_each_name_is_an_arm_and_a_plus_lays_one_over_the_other():
    single, joined = make_arms(["default", "cmax_slam+ecd/boxes_rotation"], [], [])
    assert single.config == load_config(["default"])
    assert joined.config == load_config(["cmax_slam", "ecd/boxes_rotation"])
    assert joined.options == ("--config", "cmax_slam", "--config", "ecd/boxes_rotation")


def test_a_grid_is_every_value_with_every_other():
    grid = ["backend.knot_s=0.02,0.05", "backend.panorama_size=[512, 256],[1024, 512]"]
    arms = make_arms(["default"], grid, ["events.subsample=2"])
    assert [(arm.config.backend.knot_s, arm.config.backend.panorama_size[0]) for arm in arms] == [
        (0.02, 512),
        (0.02, 1024),
        (0.05, 512),
        (0.05, 1024),
    ]
    assert arms[0].name == "default, backend.knot_s=0.02, backend.panorama_size=[512, 256]"
    assert all(arm.config.events.subsample == 2 for arm in arms)


@pytest.mark.parametrize(
    ("names", "grid", "words"),
    [
        (["defualt"], [], "configuration defualt: defualt is neither a preset nor a file; did you mean default"),
        ([], ["backend.knot_s"], "not of the form"),
        ([], ["backend.knots=1,2"], "configuration default, backend.knots=1: unknown key"),
        (["default", "default"], [], "given twice"),
        ([], ["backend.max_evaluations=" + ",".join(map(str, range(2, 1100)))], "more than 1000"),
    ],
)
def test_a_mistake_is_one_line(names, grid, words):
    with pytest.raises(ConfigError, match=words):
        make_arms(names, grid, [])
