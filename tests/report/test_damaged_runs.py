"""Run folders that were cut, changed or mixed up in any way: a page, or one line that says what is wrong."""

import copy
import io
import json

import numpy as np
import pytest

from cmaxslam_fbp.config import load_config
from cmaxslam_fbp.errors import CmaxSlamError
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.output import OUTPUTS, Run, write_outputs
from cmaxslam_fbp.report import comparison
from cmaxslam_fbp.report.map_picture import draw_graticule, draw_map
from cmaxslam_fbp.report.page import report_page, write_report
from cmaxslam_fbp.report.run_files import RunFiles
from cmaxslam_fbp.viewer.scene import Scene

READ = (
    "run.json",
    "metrics.json",
    "report_data.json",
    "trajectory.txt",
    "angular_velocity.csv",
    "windows.csv",
    "trajectory_deviation.csv",
    "panorama.npy",
    "packet_before.png",
    "packet_after.png",
)
ODD_VALUES = (
    *(None, True, -1, 0, 3, 1e300, -1e300, 1e-300, 2**62, 10**400, float("nan"), float("inf"), "", "text", "3"),
    *([], [1], [[]], ["a", "b"], [[0, 0, 0, 0]], {}, {"a": 1}, {"seconds": None}),
)
ODD_CELLS = ("", "nan", "inf", "-1", "1e999", "1e300", "text", "1,2", '"', "\x00", "#", "-0", "9" * 400)
ODD_MAPS = (
    np.zeros((0, 0)),
    np.zeros((1, 1)),
    np.zeros((2, 2)),
    np.full((64, 128), np.nan),
    np.full((64, 128), -1.0),
    np.full((64, 128), 1e300),
    np.full((64, 128), 3e38),
    np.zeros((64, 128), complex),
    np.zeros((64, 128), bool),
    np.zeros((64, 128), "M8[ns]"),
    np.zeros((64, 128), "U3"),
    np.zeros((64, 128), [("a", int)]),
    np.zeros((64, 128, 3)),
    np.zeros(100),
    np.ones((31, 16384), np.float32),
    np.ones((32, 16384), np.float32),
    np.ones((16384, 32), np.float32),
    np.ones((32, 16385), np.float32),
    np.ones((64, 128), np.uint8),
)


@pytest.fixture(scope="module")
def files_of_a_run(simulated_bag, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    config = load_config([], ["backend.panorama_size=[128, 64]"])
    recording = open_recording(simulated_bag)
    write_outputs(
        Run(folder, Slam(config).run(recording, duration_s=0.5), config, recording, ["cmaxslam-fbp", "run"]), OUTPUTS
    )
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def places(value, path=()):
    """Yield the way to every value of a JSON document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def with_value(document, path, value):
    if not path:
        return value
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


def changed_bytes(random, data, others):
    """Return a file cut, with other bits, with a piece of another file, or doubled."""
    place = int(random.integers(len(data) + 1))
    kind = random.integers(6)
    if kind == 0:
        return data[:place]
    if kind == 1:
        other = others[int(random.integers(len(others)))]
        return data[:place] + other[place : place + 1000] + data[place + 1000 :]
    if kind == 2:
        return data + data[place:]
    if kind == 3:
        return b""
    changed = np.frombuffer(data, np.uint8).copy()
    where = random.integers(0, min(len(changed), 300) if kind == 4 else len(changed), 1 + int(random.integers(8)))
    changed[where] = random.integers(0, 256, len(where))
    return changed.tobytes()


def changed_file(random, name, data, others):
    """Return a file with something in it that does not belong there."""
    if random.random() < 0.4:
        return changed_bytes(random, data, others)
    if name.endswith(".json"):
        document = json.loads(data)
        ways = list(places(document))
        short = [way for way in ways if len(way) < 3]
        way = (short if random.random() < 0.7 else ways)[int(random.integers(len(short)))]
        odd = (*ODD_VALUES, *([KeyError] if way and isinstance(way[-1], str) else []))
        return json.dumps(with_value(document, way, odd[int(random.integers(len(odd)))])).encode()
    if name.endswith((".csv", ".txt")):
        mark = "," if name.endswith(".csv") else " "
        lines = [line.split(mark) for line in data.decode().splitlines()]
        row = lines[int(random.integers(len(lines))) if random.random() < 0.7 else 0]
        row[int(random.integers(len(row)))] = ODD_CELLS[int(random.integers(len(ODD_CELLS)))]
        if random.random() < 0.3:
            row.append("1")
        return "\n".join(mark.join(row) for row in lines).encode()
    if name.endswith(".npy"):
        buffer = io.BytesIO()
        np.save(buffer, ODD_MAPS[int(random.integers(len(ODD_MAPS)))])
        return buffer.getvalue()
    return changed_bytes(random, data, others)


def look_at(folder):
    """Do what `report`, `compare` and `view` do with a run; return the files that were left out."""
    runs = comparison.read_runs([folder])
    files = runs[folder.name]
    assert report_page(files).startswith("<!DOCTYPE html>")
    json.dumps(comparison.figures(runs), allow_nan=False)
    comparison.comparison_table(runs)
    draw_graticule(draw_map(files.panorama))
    scene = Scene(np.zeros((64, 128, 3), np.uint8), files.trajectory, files.field_of_view())
    assert np.isfinite(scene.path.vertices).all()
    assert np.isfinite(scene.frustum(1 / files.duration_s).vertices).all()
    return files.faults


def complaint_of(folder):
    try:
        return look_at(folder)
    except CmaxSlamError as error:
        return [str(error)]


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def test_a_whole_run_has_no_faults(files_of_a_run, tmp_path):
    write(tmp_path / "run", files_of_a_run)
    assert set(READ) < set(files_of_a_run)
    assert look_at(tmp_path / "run") == []


@pytest.mark.parametrize("name", READ)
def test_a_damaged_file_is_one_line_that_names_it_or_does_no_harm(files_of_a_run, tmp_path, name):
    random = np.random.default_rng(READ.index(name))
    folder = tmp_path / "run"
    write(folder, files_of_a_run)
    others = [data for other, data in files_of_a_run.items() if other != name]
    complaints = 0
    for _ in range(60):
        (folder / name).write_bytes(changed_file(random, name, files_of_a_run[name], others))
        for line in complaint_of(folder):
            assert name in line
            assert "\n" not in line
            assert len(line) < 300
            complaints += 1
    assert complaints > 10


@pytest.mark.parametrize("name", READ)
def test_a_file_that_is_missing_or_a_folder_is_left_out_or_named(files_of_a_run, tmp_path, name):
    folder = tmp_path / "run"
    write(folder, {other: data for other, data in files_of_a_run.items() if other != name})
    expected = ["missing"] if name in {"run.json", "trajectory.txt", "panorama.npy"} else []
    assert [line.split()[-1] for line in complaint_of(folder)] == expected
    (folder / name).mkdir()
    assert [line.split()[-1] for line in complaint_of(folder)] == expected


def test_the_page_and_the_command_say_what_was_left_out(run, files_of_a_run, tmp_path):
    folder = tmp_path / "run"
    write(folder, {**files_of_a_run, "metrics.json": b"{}", "windows.csv": b"a,b\n1,2\n"})
    done = run("report", folder)
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["warning", "warning"]
    page = (folder / "report.html").read_text()
    for name in ("metrics.json", "windows.csv"):
        assert f"{folder / name} is damaged" in page
        assert f"{folder / name} is damaged" in done.stderr
    assert "The errors cannot be read" in page
    assert "left out" in run("compare", folder).stderr


def test_an_error_without_the_floor_of_its_metric_is_left_out_of_the_page(files_of_a_run, tmp_path):
    metrics = json.loads(files_of_a_run["metrics.json"])
    for published, rows in (
        ({"abs_deg": 2.5, "abs_floor_deg": 2.25, "rel_deg_s": 3.5, "rel_floor_deg_s": 3.25}, 2),
        ({"abs_deg": 2.5, "rel_deg_s": 3.5, "rel_floor_deg_s": 3.25}, 1),
        ({"abs_deg": None, "abs_floor_deg": 1.0, "rel_deg_s": 3.5}, 0),
    ):
        changed = json.dumps({**metrics, "cmax_slam": published}).encode()
        write(tmp_path / "run", {**files_of_a_run, "metrics.json": changed})
        files = RunFiles.read(tmp_path / "run")
        assert report_page(files).count("as CMax-SLAM prints it") == rows
        assert files.faults == []


@pytest.mark.parametrize("name", ["parallax_deg", "scene_distance_m"])
def test_figures_of_a_hand_held_run_are_numbers_or_said_to_be_none(files_of_a_run, tmp_path, name):
    figures = json.loads(files_of_a_run["run.json"])
    for odd in ("text", [1], {"a": 1}):
        write(tmp_path / "run", {**files_of_a_run, "run.json": json.dumps({**figures, name: odd}).encode()})
        (line,) = complaint_of(tmp_path / "run")
        assert f"{tmp_path / 'run' / 'run.json'} is damaged" in line
        assert name in line
    write(tmp_path / "run", {**files_of_a_run, "run.json": json.dumps({**figures, name: 0.5}).encode()})
    assert complaint_of(tmp_path / "run") == []


def test_a_map_with_values_beyond_all_others_is_drawn():
    panorama = np.full((64, 128), 1e-6, np.float32)
    panorama[3, 4], panorama[5, 6] = 3e38, 0
    picture = draw_map(panorama)
    assert (picture[3, 4], picture[5, 6], picture[0, 0]) == (0, 255, 0)


def test_runs_of_any_name_are_compared(run_alone, files_of_a_run, tmp_path):
    names = ("$x", "a_{b}$ \\frac$", "[red]", "run <1>", "\u8d70\u884c", "b\udcff", "long" * 60)
    for name in names:
        write(tmp_path / name, files_of_a_run)
    out = run_alone("compare", *(tmp_path / name for name in names), "--json", "--out", tmp_path / "out")
    assert set(json.loads(out.stdout)["wall time [s]"]) == set(names)
    assert "warning" not in out.stderr.lower()
    assert (tmp_path / "out" / "compare.html").is_file()


def test_the_name_of_a_recording_need_not_be_utf_8(files_of_a_run, tmp_path):
    figures = json.loads(files_of_a_run["run.json"]) | {"input": "/data/b\udcff.bag"}
    write(tmp_path / "run", {**files_of_a_run, "run.json": json.dumps(figures).encode()})
    assert "b\\udcff" in write_report(tmp_path / "run").read_text()
    assert RunFiles.read(tmp_path / "run").faults == []
