import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
APP = Path(__file__).parents[2] / "apps" / "gradient_through_binning.py"


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_the_motion_is_recovered_and_printed(capsys):
    app = runpy.run_path(str(APP))
    velocity = app["main"]()
    torch.testing.assert_close(velocity, app["TRUE_VELOCITY"], atol=0.2, rtol=0)
    assert "found" in capsys.readouterr().out


def test_a_plain_histogram_of_the_same_events_has_no_gradient():
    time, events = runpy.run_path(str(APP))["make_events"]()
    velocity = torch.zeros(2, requires_grad=True)
    rows, columns = torch.floor(events - time * velocity + 0.5).long().T
    frame = torch.zeros(100 * 100).index_add(0, (rows * 100 + columns).clamp(0, 9999), torch.ones(len(events)))
    assert not frame.requires_grad
