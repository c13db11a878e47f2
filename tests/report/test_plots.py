import cv2
import numpy as np

from cmaxslam_fbp.report.plots import COLORS, Curve, Panel, plot_bars, plot_panels


def decode(png):
    return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)[..., ::-1].astype(int)


def count_color(image, index):
    wanted = [int(COLORS[index][place : place + 2], 16) for place in (1, 3, 5)]
    return int((np.abs(image - wanted).max(axis=-1) < 12).sum())


def test_curves_are_drawn_in_their_colours_and_references_pale_below_them():
    t = np.linspace(0, 1, 50)
    alone = decode(plot_panels([Panel("a", [Curve("one", t, np.sin(6 * t), 0)])]))
    both = decode(plot_panels([Panel("a", [Curve("one", t, np.sin(6 * t), 0), Curve("true", t, 0 * t, 2, True)])]))
    assert count_color(alone, 0) > 300
    assert count_color(both, 0) > 300
    assert count_color(both, 2) == 0  # pale
    assert np.abs(both - alone).sum() > 0


def test_more_panels_make_a_taller_picture():
    panel = Panel("a", [Curve("", [0, 1], [0, 1])])
    assert decode(plot_panels([panel] * 3)).shape[0] > 2 * decode(plot_panels([panel])).shape[0]


def test_bars_are_as_long_as_their_values():
    image = decode(plot_bars({"figure": {"a": 1.0, "b": 2.0, "c": None}}))
    assert 1.9 < count_color(image, 1) / count_color(image, 0) < 2.1
    assert count_color(image, 2) == 0


def test_pyplot_and_its_windows_are_not_loaded():
    import subprocess
    import sys

    code = "import sys, cmaxslam_fbp.report.plots as p; assert 'matplotlib' not in sys.modules; "
    code += "p.plot_bars({'a': {'b': 1.0}}); assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
