import json

import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.simulation import PlanarSettings, PlanarSimulation
from cmaxslam_fbp.simulation.translations import HandheldTranslation

QUICK = ("--scene", "shapes", "--duration", "0.3", "--quiet")


@pytest.mark.parametrize("name", ["a.bag", "a.npz", "a.zip", "a"])
def test_every_format_holds_the_same_recording(run, tmp_path, name):
    run("simulate", tmp_path / name, *QUICK, "--seed", "5")
    figures = json.loads(run("info", tmp_path / name, "--json").stdout)
    assert (figures["width"], figures["height"]) == (240, 180)
    assert figures["duration_s"] == pytest.approx(0.3, abs=0.01)
    assert figures["ground_truth_poses"] == 61
    assert figures["imu_samples"] == 301
    assert figures["calibration"]["fx"] == 199.092
    events = Events.concatenate(open_recording(tmp_path / name).chunks())
    assert len(events) == figures["events"] > 1000
    assert (events.t_ns % 1000 == 0).all()
    assert {0, 1} == set(events.p.tolist())


def test_the_same_options_give_the_same_bytes_and_another_seed_does_not(run, tmp_path):
    for name, seed in (("a.bag", 5), ("b.bag", 5), ("c.bag", 6)):
        run("simulate", tmp_path / name, *QUICK, "--seed", seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in ("a.bag", "b.bag", "c.bag"))
    assert a == b
    assert a != c


def test_a_trajectory_file_is_followed(run, tmp_path):
    times = np.arange(0, 2.0, 0.005)
    half = 0.5 * 0.8 * np.sin(2 * times)
    lines = [f"{t:.9f} 0 0 0 0 {np.sin(a):.12f} 0 {np.cos(a):.12f}" for t, a in zip(times, half, strict=True)]
    (tmp_path / "gt.txt").write_text("\n".join(lines) + "\n")
    run("simulate", tmp_path / "a.bag", *QUICK, "--trajectory", tmp_path / "gt.txt", "--start", "0.5")
    truth = open_recording(tmp_path / "a.bag").ground_truth
    omega = truth.angular_velocity_at(truth.start_ns + 150_000_000)
    np.testing.assert_allclose(omega, [0, 0.8 * 2 * np.cos(2 * 0.65), 0], atol=0.02)


@pytest.mark.parametrize("name", ["a.bag", "a.npz", "a"])
def test_a_translation_is_written_with_its_positions(run, tmp_path, name):
    options = ("--motion", "translation", "--depth", "2", "--peak-speed", "1.5", "--extent", "0.3", "--seed", "4")
    run("simulate", tmp_path / name, *QUICK, *options)
    recording = open_recording(tmp_path / name)
    truth = recording.ground_truth
    path = HandheldTranslation(0.3, 1.5, 0.3, 4)
    np.testing.assert_allclose(truth.positions_m, path.positions(np.arange(61) * 0.005), atol=1e-6)
    np.testing.assert_allclose(truth.rotations.magnitude(), 0, atol=1e-9)
    assert np.abs(recording.imu.angular_velocity_rad_s).max() < 0.1
    settings = PlanarSettings("shapes", duration_s=0.3, depth_m=2.0, peak_speed_m_s=1.5, extent_m=0.3, seed=4)
    written, expected = (Events.concatenate(source.chunks()) for source in (recording, PlanarSimulation(settings)))
    for column in ("t_ns", "x", "y", "p"):
        np.testing.assert_array_equal(getattr(written, column), getattr(expected, column))


def test_noise_hot_pixels_and_foreground_are_options(run, tmp_path):
    run("simulate", tmp_path / "a.npz", *QUICK, "--noise-rate", "0", "--hot-pixels", "0", "--contrast", "0.3")
    run("simulate", tmp_path / "b.npz", *QUICK, "--noise-rate", "5", "--hot-pixels", "0", "--contrast", "0.3")
    run("simulate", tmp_path / "c.npz", *QUICK, "--noise-rate", "0", "--hot-pixels", "0", "--foreground")
    counts = [sum(len(e) for e in open_recording(tmp_path / name).chunks()) for name in ("a.npz", "b.npz", "c.npz")]
    assert counts[1] - counts[0] == pytest.approx(5 * 0.3 * 240 * 180, rel=0.1)
    assert counts[2] > 1.05 * counts[0]


def test_sensors_hot_pixels_flicker_and_a_covered_lens_are_options(run, tmp_path):
    def counts(*options):
        run("simulate", tmp_path / "a.npz", *QUICK, "--peak-speed", "0", "--overwrite", *options)
        events = Events.concatenate(open_recording(tmp_path / "a.npz").chunks())
        return np.sort(np.bincount(events.y.astype(int) * 240 + events.x, minlength=43_200))

    still = ("--noise-rate", "0", "--hot-pixels", "0")
    hot = counts("--noise-rate", "0", "--hot-pixels", "2", "--hot-rate", "5000", "--sensor", "davis")
    np.testing.assert_allclose(hot[-2:], 1500, atol=200)
    assert hot[-3] < 3
    assert (counts(*still, "--flicker", "100") > 0).mean() == pytest.approx(0.25, abs=0.01)
    run("simulate", tmp_path / "b.npz", *QUICK, *still, "--duration", "1.4", "--cover", "0.2", "--cover-turn", "30")
    truth = open_recording(tmp_path / "b.npz").ground_truth
    assert np.degrees((truth.rotations[0].inv() * truth.rotations[-1]).magnitude()) > 20


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("a.bag", "--scene", "nothing.jpg"), "nothing.jpg"),
        (("a.bag", "--duration", "-1"), "impossible"),
        (("a.bag", "--contrast", "0"), "impossible"),
        (("a.bag", "--flicker", "0"), "impossible"),
        (("a.bag", "--cover-turn", "20"), "--cover"),
        (("a.xyz", "--duration", "0.1", "--scene", "shapes"), "names no format"),
        (("a.bag", "--trajectory", "missing.txt"), "no such file"),
        (("a.bag", "--depth", "2"), "--motion translation"),
        (("a.bag", "--motion", "translation", "--trajectory", "a.txt"), "--trajectory"),
        (("a.bag", "--motion", "translation", "--depth", "0.1"), "too close"),
        (("a.bag", "--motion", "translation", "--peak-speed", "-1"), "m/s"),
        (("a.bag", "--motion", "translation", "--scene", "nothing.jpg"), "no such picture"),
    ],
)
def test_impossible_wishes_are_one_line(run, tmp_path, arguments, complaint):
    done = run("simulate", *arguments, "--quiet", code=1)
    assert done.stderr.startswith("error: ")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
