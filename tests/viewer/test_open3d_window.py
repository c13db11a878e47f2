from types import SimpleNamespace

import numpy as np
import pytest

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.viewer.open3d_window import _Window


@pytest.fixture
def window():
    """A window without Open3D, that shows grey."""
    made = object.__new__(_Window)
    made._window = SimpleNamespace(
        poll_events=lambda: None,
        update_renderer=lambda: None,
        capture_screen_float_buffer=lambda do_render: np.full((4, 6, 3), 0.5),
        destroy_window=lambda: None,
    )
    return made


def test_a_picture_appears_whole_or_says_what_to_do(window, tmp_path):
    window.save(tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    with pytest.raises(OutputError, match=r"cannot write .*a\.png: No such file .*; choose a folder that exists"):
        window.save(tmp_path / "missing" / "a.png")
