"""What a user installs: the wheel, away from the source tree."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_presets_and_commands_work_from_an_installed_wheel_in_an_empty_folder(tmp_path):
    pytest.importorskip("build")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel], check=True
    )
    # The dependencies are those of this environment; the package itself is the wheel's alone.
    here = next(path for path in map(Path, sys.path) if (path / "numpy").is_dir())
    for entry in here.iterdir():
        if not (site / entry.name).exists() and "cmaxslam" not in entry.name and not entry.name.endswith(".pth"):
            (site / entry.name).symlink_to(entry)
    empty = tmp_path / "empty"
    empty.mkdir()

    def call(*arguments):
        return subprocess.run(
            [python, "-E", "-m", "cmaxslam_fbp", *arguments], cwd=empty, check=True, capture_output=True, text=True
        ).stdout

    where = subprocess.run(
        [python, "-E", "-c", "import cmaxslam_fbp; print(cmaxslam_fbp.__file__)"],
        cwd=empty,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert str(site) in where
    assert (site / "cmaxslam_fbp" / "py.typed").is_file()
    presets = call("config", "list").split()
    assert "default" in presets
    for name in presets:
        assert "recording:" in call("config", "show", name)
