"""ECRot: its bags where they are, its panorama otherwise, and the figures that are published for it."""

import csv

import cv2
import numpy as np
import pytest
from rosbags.rosbag1 import Reader, Writer

from cmaxslam_fbp.experiments.ecrot import PANORAMA, baseline, find_bag, find_sequences
from cmaxslam_fbp.experiments.sequences import open_sequence
from cmaxslam_fbp.experiments.settings import StudySettings
from cmaxslam_fbp.experiments.simulated_sequences import panorama_row
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

PLAYROOM = (91.4014729896821, 91.4014729896821, 64, 64)  # ECRot's DVS128-synthetic: fx, fy, cx, cy


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


def relabelled(source, path, names):
    """Copy a bag's messages as they are to topics of other names; topics without one are left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Reader(source) as reader, Writer(path) as writer:
        kept = [one for one in reader.connections if one.topic in names]
        to = {
            one.id: writer.add_connection(names[one.topic], one.msgtype, msgdef=one.msgdef.data, md5sum=one.digest)
            for one in kept
        }
        for connection, stamp_ns, data in reader.messages(kept):
            writer.write(to[connection.id], stamp_ns, data)


@pytest.fixture(scope="module")
def bags(tmp_path_factory, simulated_bag):
    """Two bags as ECRot has them: on ESIM's topics, and of a DVS128 on those of its driver, without a lens."""
    folder = tmp_path_factory.mktemp("ecrot")
    open_recording(simulated_bag).convert(folder / "wide.bag", duration_s=1.2)
    names = {"events": "/cam0/events", "camera_info": "/cam0/camera_info"}
    topics = {f"/dvs/{name}": topic for name, topic in names.items()} | {"/optitrack/davis": "/cam0/pose"}
    relabelled(folder / "wide.bag", folder / "bicycle" / "events.bag", topics)
    square = Simulation(SimulationSettings(scene="shapes", camera=Camera(128, 128, *PLAYROOM), duration_s=1.2))
    write_recording(square, square.chunks(), folder / "square.bag")
    topics = {"/dvs/events": "/dvs/events", "/optitrack/davis": "/dvs/pose"}
    relabelled(folder / "square.bag", folder / "ecrot" / "playroom.bag", topics)
    return folder


def test_bags_are_run_and_judged_from_a_tenth_of_a_second(tmp_path, bags, run):
    run("reproduce", "ecrot", "--data", bags, "--out", tmp_path / "out")
    text = (tmp_path / "out" / "ecrot" / "ecrot.md").read_text()
    assert "- bicycle: ECRot bicycle (events.bag, SHA-256 " in text
    assert "- playroom: ECRot playroom (playroom.bag, SHA-256 " in text
    assert "simulated" not in text
    assert "| CMax-SLAM, published | 0.763 / 0.593 | 0.327 / 0.414 |" in text
    assert "are not ECRot's" not in text
    with (tmp_path / "out" / "ecrot" / "ecrot.csv").open() as file:
        rows = {(row["sequence"], row["method"]): row for row in csv.DictReader(file)}
    assert list(rows) == [(name, method) for name in ("playroom", "bicycle") for method in ("CMax-SLAM", "default")]
    assert {row["align_at_s"] for row in rows.values()} == {"0.1"}
    assert all(float(rows[name, "default"]["best_fit_deg"]) < 0.5 for name in ("playroom", "bicycle"))


def test_playroom_has_the_lens_that_its_bag_lacks(tmp_path, bags):
    assert open_recording(bags / "ecrot" / "playroom.bag").camera is None
    found = {one.name: one for one in find_sequences(Workbench(StudySettings(tmp_path, data=bags)))}
    camera = open_sequence(found["playroom"].places, tmp_path).require_camera()
    assert (camera.width, camera.height) == (128, 128)
    np.testing.assert_allclose([camera.fx, camera.fy, camera.cx, camera.cy], PLAYROOM)
    assert found["bicycle"].options == {}
    assert open_sequence(found["bicycle"].places, tmp_path).require_camera().width == 240


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
