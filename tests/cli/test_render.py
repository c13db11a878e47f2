import runpy
from pathlib import Path

import cv2
import numpy as np
import pytest

make_run = runpy.run_path(str(Path(__file__).parents[1] / "report" / "made_run.py"))["make_run"]


@pytest.fixture
def folder(tmp_path):
    """A run whose brightness grows with the longitude, and is unknown behind the camera."""
    path = make_run(tmp_path / "run")
    brightness = np.repeat(np.linspace(-1, 1, 512, dtype=np.float32)[None], 256, axis=0)
    brightness[:, :50] = brightness[:, -50:] = np.nan
    np.save(path / "intensity.npy", brightness)
    return path


def read(path):
    return cv2.imread(str(path), cv2.IMREAD_UNCHANGED)


def test_a_view_is_what_the_camera_sees(run, folder, tmp_path):
    assert run("render", folder, "--pose", 1.0).stdout == f"{folder / 'view.png'}\n"
    picture = read(folder / "view.png")
    assert picture.shape == (480, 640, 4)
    assert (picture[..., 3] == 255).all()
    assert picture[240, 20, 0] + 100 < picture[240, 620, 0]
    run("render", folder, "--pose", 0, "--size", "100x50", "--field", 140, "-o", tmp_path / "wide.png")
    assert read(tmp_path / "wide.png").shape == (50, 100, 4)


def test_what_nobody_saw_is_transparent(run, folder, tmp_path):
    np.save(folder / "intensity.npy", np.full((256, 512), np.nan, np.float32))
    run("render", folder, "--pose", 0, "-o", tmp_path / "a.png")
    assert not read(tmp_path / "a.png").any()


def test_wrong_wishes_are_one_line(run, folder, tmp_path):
    run("render", folder, "--pose", 0)
    for words, arguments in (
        ("exists already", ["--pose", 0]),
        ("reach outside the trajectory", ["--pose", 100, "--overwrite"]),
        ("must end in .png", ["--pose", 0, "-o", tmp_path / "a.jpg"]),
        ("is impossible", ["--pose", 0, "--field", 170, "--overwrite"]),
        ("too large", ["--pose", 0, "--size", "99999x10", "--overwrite"]),
    ):
        assert words in run("render", folder, *arguments, code=1).stderr
    (folder / "intensity.npy").unlink()
    assert "has no intensity.npy" in run("render", folder, "--pose", 0, "--overwrite", code=1).stderr
    (folder / "intensity.npy").write_bytes(b"no array")
    done = run("render", folder, "--pose", 0, "--overwrite", code=1)
    assert "left out" in done.stderr
