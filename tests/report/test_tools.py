"""The scripts that draw trajectories and maps."""

import subprocess
import sys
from pathlib import Path

import cv2
import pytest

from cmaxslam_fbp.io.trajectory_files import write_trajectory

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def tool(monkeypatch, capsys):
    """Run a script of the tools folder; return its exit code and what it says."""
    import runpy

    def call(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        code = runpy.run_path(str(TOOLS / f"{name}.py"))["main"]()
        return code, capsys.readouterr()

    return call


def test_trajectories_against_ground_truth(tool, make_run, made_trajectory, tmp_path):
    write_trajectory(tmp_path / "gt.txt", made_trajectory())
    one, two = make_run("one"), make_run("two", error_rad=0.02)
    code, said = tool("plot_trajectory", one, two, "-g", tmp_path / "gt.txt", "-o", tmp_path / "all.png")
    assert code == 0
    assert said.out == f"{tmp_path / 'all.png'}\n"
    whole = cv2.imread(str(tmp_path / "all.png"))
    tool("plot_trajectory", one / "trajectory.txt", "--parts", "orientation", "-o", tmp_path / "part.png")
    part = cv2.imread(str(tmp_path / "part.png"))
    assert whole.shape[0] > 2 * part.shape[0]  # seven plots against three


def test_a_part_of_the_map_with_the_field_of_view(tool, make_run, tmp_path):
    folder = make_run()
    for name, options in {
        "whole": [],
        "fit": ["--fit", "--width", 600],
        "outlined": ["--fit", "--width", 600, "--at", 1],
        "view": ["--view", 10, 0, 80, "--width", 320, "--at", 1, "--colours", "viridis"],
        "crop": ["--crop", 100, 50, 300, 150],
    }.items():
        code, said = tool("render_map", folder, tmp_path / f"{name}.png", *options)
        assert code == 0, said.err
    pictures = {path.stem: cv2.imread(str(path)).astype(int) for path in tmp_path.glob("*.png")}
    assert pictures["whole"].shape == (256, 512, 3)
    assert pictures["crop"].shape == (100, 200, 3)
    assert pictures["fit"].shape[1] == 600
    assert pictures["view"].shape == (240, 320, 3)
    orange = {name: ((picture[..., 2] - picture[..., 0]) > 150).sum() for name, picture in pictures.items()}
    assert orange["whole"] == orange["fit"] == 0
    assert orange["outlined"] > 500
    assert orange["view"] > 200


def test_mistakes_are_one_line(tool, make_run, tmp_path):
    folder = make_run(extra=False)
    for name, arguments, words in (
        ("render_map", [tmp_path / "none", "a.png"], "is not a folder"),
        ("render_map", [folder, tmp_path / "a.png", "--crop", 0, 0, 9999, 1], "does not lie in the map"),
        ("render_map", [folder, tmp_path / "a.png", "--at", 1], "does not tell the field of view"),
        ("render_map", [folder, tmp_path / "a.txt"], "must end in"),
        ("plot_trajectory", [tmp_path / "none.txt"], "no such file"),
    ):
        code, said = tool(name, *arguments)
        assert code == 1
        assert words in said.err
        assert said.err.count("\n") == 1


def test_the_scripts_run_as_programs():
    for name in ("plot_trajectory", "render_map"):
        done = subprocess.run(
            [sys.executable, TOOLS / f"{name}.py", "--help"], capture_output=True, text=True, check=True
        )
        assert "usage" in done.stdout
