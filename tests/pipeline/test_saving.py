"""Files of a run that goes on: at each moment they are those that a run of this result would have."""

from dataclasses import replace

import numpy as np
import pytest

from cmaxslam_fbp import Slam, open_recording
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.io.run_folder import create_run_folder
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.pipeline import saving
from cmaxslam_fbp.pipeline.output import OUTPUTS, TABLES, Run, write_outputs
from cmaxslam_fbp.pipeline.saving import RunSaver
from cmaxslam_fbp.report.page import write_report


@pytest.fixture
def written_at_once(monkeypatch):
    for name in ("_TABLES_EVERY_S", "_MAP_EVERY_S"):
        monkeypatch.setattr(saving, name, 0.0)
    monkeypatch.setattr(saving, "_LARGEST_SHARE", np.inf)


def with_gap(recording, gap_ns):
    """The recording with a gap after 1.2 s."""
    events = Events.concatenate(recording.chunks())
    cut_ns = int(events.t_ns[0]) + 1_200_000_000
    later = events.t_ns >= cut_ns
    return Recording.from_events(
        replace(events, t_ns=events.t_ns + np.where(later, gap_ns, 0)), camera=recording.require_camera()
    )


@pytest.mark.parametrize("gap_s", [0, 7, 86_400])
@pytest.mark.usefixtures("written_at_once")
def test_after_each_window_the_files_are_those_of_the_result_so_far(simulated_bag, tmp_path, gap_s):
    recording = with_gap(open_recording(simulated_bag), gap_s * 10**9)
    saver = RunSaver(tmp_path, Config(), recording, ["run"])
    settled = []

    def check(step):
        saver.on_step(step)
        settled.append(step.settled_ns)
        run = Run(tmp_path, step.result(), Config(), recording, ["run"])
        for name, table in TABLES.items():
            assert (tmp_path / name).read_text() == table(run), name
        np.testing.assert_array_equal(np.load(tmp_path / "panorama.npy"), step.panorama)

    Slam().run(recording, on_step=check)
    assert settled[3] is None  # the beginning may still change
    assert settled[-1] > settled[-3] > recording.start_ns
    assert not list(tmp_path.glob(".*"))


@pytest.mark.usefixtures("written_at_once")
def test_settled_lines_are_made_once(simulated_bag, tmp_path):
    """What is written after a window does not grow with the run, once its beginning has settled."""
    recording = open_recording(simulated_bag)
    saver = RunSaver(tmp_path, Config(), recording, ["run"])
    made = []

    def count(step):
        before = saver._tables[0]._since_ns
        saver.on_step(step)
        made.append(len(step.result().trajectory(before)))

    result = Slam().run(recording, on_step=count)
    assert max(made[-5:]) < 0.4 * len(result.trajectory())
    assert saver._tables[0]._kept_bytes > 0.6 * (tmp_path / "trajectory.txt").stat().st_size


def test_what_a_refinement_has_changed_is_written_though_nothing_was_while_it_went_on(
    simulated_bag, tmp_path, monkeypatch
):
    monkeypatch.setattr(saving, "_TABLES_EVERY_S", 0.0)
    recording = open_recording(simulated_bag)
    saver = RunSaver(tmp_path, Config(), recording, ["run"])
    steps = []

    def on_step(step):
        if step.stage != "tracking":
            saver._tables_due = np.inf
        saver.on_step(step)
        steps.append(step)

    result = Slam().run(recording, duration_s=1.0, refine=True, on_step=on_step)
    assert steps[-1].settled_ns is None
    saver.on_step(replace(steps[-1], settled_ns=result.end_ns + 1))  # as the painting of the brightness tells
    before = (tmp_path / "trajectory.txt").read_text()
    saver.finish(result, "")
    run = Run(tmp_path, result, Config(), recording, ["run"])
    for name, table in TABLES.items():
        assert (tmp_path / name).read_text() == table(run), name
    assert (tmp_path / "trajectory.txt").read_text() != before


def test_files_come_with_the_first_window_and_a_report_can_be_made(simulated_bag, tmp_path):
    recording = open_recording(simulated_bag)
    saver = RunSaver(tmp_path, Config(), recording, ["run"])

    def stop(step):
        saver.on_step(step)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Slam().run(recording, on_step=stop)
    assert len(read_trajectory(tmp_path / "trajectory.txt")) > 10
    assert "Still running, or killed" in write_report(tmp_path).read_text()


def test_tables_are_written_every_five_seconds_however_slow_that_is_and_maps_less_often(
    simulated_bag, tmp_path, monkeypatch
):
    now_s, tables_s, maps_s = [0.0], [], []
    monkeypatch.setattr(saving.time, "monotonic", lambda: now_s[0])

    def write_slowly(written_s):
        written_s.append(now_s[0])
        now_s[0] += 1.0

    monkeypatch.setattr(saving.GrowingFile, "write", lambda *_: write_slowly(tables_s))
    monkeypatch.setattr(
        saving, "write_outputs", lambda _, names: write_slowly(maps_s) if "panorama.npy" in names else []
    )
    saver = RunSaver(tmp_path, Config(), open_recording(simulated_bag), ["run"])

    def on_step(step):
        now_s[0] += 1.0
        saver.on_step(step)

    Slam().run(open_recording(simulated_bag), on_step=on_step)
    assert len(tables_s) > 9  # three tables each time
    assert np.diff(tables_s[::3]).max() <= 5.0
    assert np.diff(maps_s).min() >= 50.0  # a fiftieth of the time


def test_a_file_that_cannot_be_made_costs_none_of_the_others(simulated_bag, tmp_path):
    recording = open_recording(simulated_bag)
    result = Slam().run(recording, duration_s=0.5)

    class Vanished(type(recording)):
        def chunks(self, *_):
            raise OSError("the file has gone")

        def origin(self):
            raise FileNotFoundError

    recording.__class__ = Vanished
    problems = write_outputs(Run(tmp_path, result, Config(), recording, ["run"]), OUTPUTS)
    assert any("is left out: the file has gone" in line for line in problems)
    assert (tmp_path / "trajectory.txt").exists()
    assert (tmp_path / "report.html").exists()


def test_the_error_of_a_recording_reaches_the_caller_of_a_run(simulated_bag):
    recording = open_recording(simulated_bag)
    good = list(recording.chunks(0, 1.9))

    class Cut(type(recording)):
        def _pieces(self, skip_before_ns):
            yield from (Piece(events, "here") for events in good)
            raise RecordingError("the file ends here")

    recording.__class__ = Cut
    steps = []
    with pytest.raises(RecordingError, match="the file ends here"):
        Slam().run(recording, on_step=steps.append)
    assert steps[-1].result().duration_s > 1.89


def test_a_long_list_of_other_files_makes_a_short_message(tmp_path):
    for k in range(50):
        (tmp_path / f"{k}{'x' * 200}").write_text("")
    with pytest.raises(Exception, match="and 47 more in it") as caught:
        create_run_folder(tmp_path, files=OUTPUTS, overwrite=True)
    assert len(str(caught.value)) - len(str(tmp_path)) < 300
