"""ECRot: its bags where they are, its panorama otherwise, and the figures that are published for it."""

import shutil

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.experiments.ecrot import baseline
from cmaxslam_fbp.experiments.ecrot_sequences import PANORAMA, find_bag, find_sequences
from cmaxslam_fbp.experiments.sequences import open_sequence
from cmaxslam_fbp.experiments.settings import StudySettings
from cmaxslam_fbp.experiments.simulated_sequences import panorama_row
from cmaxslam_fbp.experiments.studies import reproduce
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.io import open_recording


def test_a_bag_is_found_by_its_name_or_in_its_folder(tmp_path):
    assert find_bag("bay", tmp_path) is None
    inside = tmp_path / "ecrot" / "bay" / "events.bag"
    inside.parent.mkdir(parents=True)
    inside.write_bytes(b"")
    assert find_bag("bay", tmp_path) == inside
    (tmp_path / "bay.bag").write_bytes(b"")
    assert find_bag("bay", tmp_path) == tmp_path / "bay.bag"


def test_the_baseline_has_the_packets_of_each_scene():
    assert baseline("street").frontend.events_per_packet == 250_000
    assert baseline("boxes").frontend.events_per_packet == 30_000
    assert baseline("bay").backend.spline == "linear"


def test_bags_are_run_and_judged_from_a_tenth_of_a_second(tmp_path, simulated_bag):
    data = tmp_path / "data"
    data.mkdir()
    open_recording(simulated_bag).convert(data / "bicycle.bag", duration_s=1.5)
    out = tmp_path / "out"
    reproduce("ecrot", StudySettings(out, data=data))
    text = (out / "ecrot" / "ecrot.md").read_text()
    assert "- bicycle: ECRot bicycle (bicycle.bag, SHA-256 " in text
    assert "simulated" not in text
    assert "| CMax-SLAM, published | 0.763 / 0.593 | 0.327 / 0.414 |" in text
    assert "are not ECRot's" not in text
    head, *rows = (out / "ecrot" / "ecrot.csv").read_text().splitlines()
    place = head.split(",").index("align_at_s")
    assert [row.split(",")[place] for row in rows] == ["0.1", "0.1"]


def test_playroom_has_the_lens_that_its_bag_lacks(tmp_path, simulated_bag):
    data = tmp_path / "data"
    (data / "playroom").mkdir(parents=True)
    shutil.copy(simulated_bag, data / "playroom" / "events.bag")
    (sequence,) = find_sequences(Workbench(StudySettings(tmp_path / "out", data=data)))
    assert sequence.kind == "ECRot"
    assert open_sequence(sequence.places, tmp_path).require_camera().fx == pytest.approx(91.4014729896821)
    lens = np.loadtxt(sequence.options["calibration"])
    np.testing.assert_allclose(lens, [91.4014729896821, 91.4014729896821, 64, 64])
    assert sequence.options["sensor_size"] == [128, 128]


def test_a_panorama_is_simulated_with_the_camera_of_ecrot(tmp_path):
    picture = tmp_path / PANORAMA
    picture.parent.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (32, 64), np.uint8)
    cv2.imwrite(str(picture.with_suffix(".png")), cv2.resize(noise, (512, 256), interpolation=cv2.INTER_CUBIC))
    row = panorama_row("bicycle_1", picture.with_suffix(".png"), 0.5, 1)
    values = row.compute(tmp_path)
    camera = open_recording(tmp_path / values["path"]).require_camera()
    assert (camera.width, camera.height, camera.fx, camera.cx) == (240, 180, 200, 120)
    assert not any(camera.distortion)
    assert values["provenance"].startswith("simulated bicycle.png, random hand-held rotation")
    assert row.key != panorama_row("bicycle_1", None, 0.5, 1).key


def test_without_data_it_says_that_its_recordings_are_not_those_of_ecrot(quick_study):
    text = (quick_study("ecrot") / "ecrot.md").read_text()
    assert "boxes_301: simulated boxes" in text
    assert "are not ECRot's" in text
