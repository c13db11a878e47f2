import json

import cv2
import numpy as np
import pytest
import yaml

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.calibration import (
    fit_to_sensor,
    format_ros_yaml,
    parse_yaml_calibration,
    read_calibration,
    read_sensor_size,
)
from cmaxslam_fbp.io.lens_names import kalibr_camera, kalibr_values

SIZE = SensorSize(640, 480)
WANTED = Camera(640, 480, 500.5, 501.5, 320.25, 240.75, (-0.1, 0.02, 0.001, -0.002, 0.0))

ROS = """
image_width: 640
image_height: 480
camera_name: dvs
camera_matrix: {rows: 3, cols: 3, data: [500.5, 0, 320.25, 0, 501.5, 240.75, 0, 0, 1]}
distortion_model: plumb_bob
distortion_coefficients: {rows: 1, cols: 5, data: [-0.1, 0.02, 0.001, -0.002, 0]}
"""
KALIBR = """
cam0:
  camera_model: pinhole
  distortion_coeffs: [-0.1, 0.02, 0.001, -0.002]
  distortion_model: radtan
  intrinsics: [500.5, 501.5, 320.25, 240.75]
  resolution: [640, 480]
  rostopic: /cam0/image_raw
"""


def save(tmp_path, text, name="calib.yaml"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize("text", [ROS, KALIBR], ids=["ros", "kalibr"])
def test_yaml_files_give_the_camera_and_its_size(tmp_path, text):
    path = save(tmp_path, text)
    assert read_calibration(path, SIZE) == WANTED
    assert read_sensor_size(path, 1.0) == SIZE


def test_what_opencv_itself_writes_is_read(tmp_path):
    path = tmp_path / "calib.yml"
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    storage.write("image_width", 640)
    storage.write("image_height", 480)
    storage.write("camera_matrix", WANTED.matrix)
    storage.write("distortion_coefficients", np.array([WANTED.distortion]))
    storage.release()
    assert "opencv-matrix" in path.read_text()
    assert read_calibration(path, SIZE) == WANTED


def test_kalibr_equidistant_is_a_fisheye(tmp_path):
    camera = read_calibration(save(tmp_path, KALIBR.replace("radtan", "equidistant")), SIZE)
    assert camera.distortion_model == "equidistant"
    assert camera.distortion == (-0.1, 0.02, 0.001, -0.002)


KALIBR_MODELS = {
    "pinhole-radtan": ("pinhole", [], "radtan", [-0.1, 0.02, 0.001, -0.002], "plumb_bob"),
    "pinhole-equi": ("pinhole", [], "equidistant", [-0.1, 0.02, 0.001, -0.002], "equidistant"),
    "pinhole-fov": ("pinhole", [], "fov", [0.9], "fov"),
    "pinhole-none": ("pinhole", [], "none", [], "plumb_bob"),
    "omni-radtan": ("omni", [1.2], "radtan", [-0.1, 0.02, 0.001, -0.002], "omni"),
    "omni-none": ("omni", [1.2], "none", [], "omni"),
    "eucm-none": ("eucm", [0.6, 1.1], "none", [], "eucm"),
    "ds-none": ("ds", [-0.2, 0.6], "none", [], "ds"),
}


@pytest.mark.parametrize("name", KALIBR_MODELS)
def test_all_models_of_kalibr_are_read_and_written_again(tmp_path, name):
    kind, own, distortion, coefficients, model = KALIBR_MODELS[name]
    values = {
        "camera_model": kind,
        "intrinsics": [*own, 500.5, 501.5, 320.25, 240.75],
        "distortion_model": distortion,
        "distortion_coeffs": coefficients,
        "resolution": [640, 480],
    }
    camera = read_calibration(save(tmp_path, yaml.safe_dump({"cam0": values})), SIZE)
    assert camera == Camera(640, 480, 500.5, 501.5, 320.25, 240.75, (*own, *coefficients), model)
    assert kalibr_camera(kalibr_values(camera), None, "here") == camera
    assert parse_yaml_calibration(format_ros_yaml(camera), None, "here") == camera


def test_eight_coefficients_are_the_rational_model(tmp_path):
    numbers = "[0.6, 0.2, 0.0003, -0.0005, 0.01, 0.95, 0.4, 0.05]"
    for name in ("plumb_bob", "rational_polynomial"):
        text = ROS.replace("[-0.1, 0.02, 0.001, -0.002, 0]", numbers).replace("plumb_bob", name)
        camera = read_calibration(save(tmp_path, text), SIZE)
        assert camera.distortion_model == "rational_polynomial"
        assert camera.distortion == (0.6, 0.2, 0.0003, -0.0005, 0.01, 0.95, 0.4, 0.05)
    assert read_calibration(save(tmp_path, ROS.replace("plumb_bob", "rational_polynomial")), SIZE) == WANTED


DSEC = """
intrinsics:
  cam0: {camera_matrix: [555.3, 555.7, 342.8, 215.1], camera_model: pinhole, distortion_model: radtan,
         distortion_coeffs: [-0.09, 0.11, 1.0e-4, 2.0e-4], resolution: [640, 480]}
  camRect0: {camera_matrix: [569.2, 569.2, 335.1, 221.2], camera_model: pinhole, resolution: [640, 480]}
  cam1: {camera_matrix: [1164.6, 1164.2, 713.5, 570.9], camera_model: pinhole, distortion_coeffs: [-0.07, 0.1, 0, 0],
         distortion_model: radtan, resolution: [1440, 1080]}
  cam3: {camera_matrix: [553.4, 553.9, 346.6, 216.5], camera_model: pinhole, distortion_coeffs: [-0.08, 0.1, 0, 0],
         distortion_model: radtan, resolution: [640, 480]}
extrinsics: {T_10: [[1, 0, 0, 0]]}
"""


def test_dsec_has_its_event_cameras_left_and_right(tmp_path):
    path = save(tmp_path, DSEC, "cam_to_cam.yaml")
    assert read_sensor_size(path, 1.0) == SIZE
    assert read_calibration(path, SIZE) == Camera(640, 480, 555.3, 555.7, 342.8, 215.1, (-0.09, 0.11, 1e-4, 2e-4))
    assert read_calibration(path, SIZE, 1).fx == 553.4


def test_basalt_without_a_camera_is_refused(tmp_path):
    path = save(tmp_path, json.dumps({"value0": {"intrinsics": [], "resolution": []}}), "a.json")
    for read in (lambda: read_sensor_size(path, 1.0), lambda: read_calibration(path, SIZE)):
        with pytest.raises(CalibrationError, match="has no camera in it"):
            read()


def test_basalt_has_the_event_cameras_of_tum_vie_behind_the_others(tmp_path):
    def entry(fx, kind="kb4", **more):
        values = {"fx": fx, "fy": fx, "cx": 640.5, "cy": 360.25, **{f"k{i}": 0.001 * i for i in range(1, 5)}, **more}
        return {"camera_type": kind, "intrinsics": values}

    rig = {"intrinsics": [entry(747.0), entry(748.0), entry(1049.0), entry(1050.0)], "T_imu_cam": [{}] * 4}
    rig["resolution"] = [[1024, 1024], [1024, 1024], [1280, 720], [1280, 720]]
    path = save(tmp_path, json.dumps({"value0": rig}), "camera-calibrationA.json")
    assert read_sensor_size(path, 1.0) == SensorSize(1280, 720)
    left, right = (read_calibration(path, SensorSize(1280, 720), number) for number in (0, 1))
    assert left == Camera(1280, 720, 1049.0, 1049.0, 640.5, 360.25, (0.001, 0.002, 0.003, 0.004), "equidistant")
    assert right.fx == 1050.0
    for kind, more, model, coefficients in (
        ("ds", {"xi": -0.2, "alpha": 0.6}, "ds", (-0.2, 0.6)),
        ("eucm", {"alpha": 0.6, "beta": 1.1}, "eucm", (0.6, 1.1)),
        ("ucm", {"alpha": 0.6}, "eucm", (0.6, 1.0)),
        ("pinhole", {}, "plumb_bob", (0, 0, 0, 0, 0)),
    ):
        one = {"intrinsics": [entry(500.0, kind, **more)], "resolution": [[640, 480]]}
        camera = read_calibration(save(tmp_path, json.dumps({"value0": one}), "a.json"), SIZE)
        assert (camera.distortion_model, camera.distortion) == (model, coefficients)
    rig["intrinsics"][2]["camera_type"] = "magic"
    with pytest.raises(CalibrationError, match="camera type 'magic'"):
        read_calibration(save(tmp_path, json.dumps({"value0": rig}), "b.json"), SIZE)


def test_ecd_text_takes_the_size_of_the_recording(tmp_path):
    path = save(tmp_path, "500.5 501.5 320.25 240.75 -0.1 0.02 0.001 -0.002 0.0\n", "calib.txt")
    assert read_calibration(path, SIZE) == WANTED
    assert read_sensor_size(path, 1.0) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ROS.replace("plumb_bob", "thin_prism"), "distortion model 'thin_prism' is not supported"),
        (ROS.replace("[-0.1, 0.02, 0.001, -0.002, 0]", "[1, 2, 3, 4, 5, 6, 7, 8, 9]"), "at most 8 coefficients"),
        (ROS.replace("500.5", "0"), "not those of a camera"),
        (ROS.replace("[500.5, 0,", "[500.5,"), "not a complete calibration"),
        (KALIBR.replace("pinhole", "catadioptric"), "camera model 'catadioptric'; pinhole, omni, eucm, ds are"),
        (KALIBR.replace("pinhole", "omni"), "it is not a complete calibration"),  # one number is missing
        (KALIBR.replace("pinhole", "ds"), "camera model ds with the distortion 'radtan': not supported"),
        (KALIBR.replace("radtan", "magic"), "distortion model 'magic' is not supported"),
        (KALIBR.replace("intrinsics", "intrinsic"), "neither an OpenCV or ROS calibration"),
        ("- 1\n- 2\n", "expected named values"),
        ("a: [1\n", "not valid YAML"),
    ],
)
def test_faulty_calibrations_are_explained_in_one_line(tmp_path, text, complaint):
    with pytest.raises(CalibrationError, match=complaint) as caught:
        read_calibration(save(tmp_path, text), SIZE)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CalibrationError, match=r"nothing\.yaml cannot be read"):
        read_calibration(tmp_path / "nothing.yaml", SIZE)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: &a [1, 2]\nb: *a\n", r"has an alias \(\*name\); write the value out"),
        (ROS.replace("image_width: 640", "image_width: 2020-13-45"), "month must be in 1..12"),
        (ROS.replace("image_width: 640", "image_width: 2020-01-02"), "cannot be read: int"),
        (ROS.replace("image_width: 640", "image_width: .inf"), "cannot convert float infinity"),
        (ROS.replace("640", "!!int abc"), "invalid literal"),
        (ROS.replace("640", "1" + "0" * 400), "no sensor is so large"),
        (ROS.replace("640", "!!python/object:os.system {}"), "not valid YAML"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("cam0: [intrinsics]\n", "it is not a complete calibration"),
        ("cam0: 5\n", "it is not a complete calibration"),
        ("cam0: {intrinsics: [1, 2, 3]}\n", "it is not a complete calibration"),
        (KALIBR.replace("[640, 480]", "[[1], [2]]"), "it is not a complete calibration"),
    ],
)
def test_strange_yaml_is_one_line(tmp_path, text, complaint):
    with pytest.raises(CalibrationError, match=complaint) as caught:
        read_calibration(save(tmp_path, text), SIZE)
    assert "\n" not in str(caught.value)


def test_aliases_that_stand_for_a_thousand_million_values_take_no_time(tmp_path):
    lines = ["l0: &l0 [1.0, 1.0]"] + [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 10)]
    text = "\n".join([*lines, "camera_matrix: {rows: 3, cols: 3, data: *l9}"])
    with pytest.raises(CalibrationError, match="has an alias"):
        read_calibration(save(tmp_path, text), SIZE)


def test_a_large_or_binary_file_is_no_calibration(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1 " * 600_000)
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00")
    for name, words in (("a.txt", "no calibration has more than a megabyte"), ("b.txt", "codec can't decode")):
        with pytest.raises(CalibrationError, match=rf"{name} cannot be read: .*{words}"):
            read_calibration(tmp_path / name, SIZE)


HALF = SensorSize(320, 240)


def test_a_calibration_at_twice_the_resolution_is_scaled_by_its_pixels(tmp_path):
    camera = read_calibration(save(tmp_path, ROS), HALF)
    with pytest.raises(CalibrationError, match=r"of 640 x 480 pixels, but the recording's has 320 x 240: .*scale 0\.5"):
        fit_to_sensor(camera, HALF, None, "a file")
    half = fit_to_sensor(camera, HALF, 0.5, "a file")
    # The first two pixels of a row become one: its centre lies at 0.5 of theirs, and at 0 of its own.
    assert (half.width, half.height) == HALF
    assert (half.fx, half.fy, half.cx, half.cy) == (250.25, 250.75, 159.875, 120.125)
    assert half.distortion == camera.distortion
    points = camera.undistort([[0.5, 0.5], [639.5, 479.5]])
    np.testing.assert_allclose(half.undistort([[0.0, 0.0], [319.5, 239.5]]), points, atol=1e-12)


@pytest.mark.parametrize(
    ("numbers", "complaint"),
    [
        ("1001 1003 640.5 481.5", r"principal point at pixel \(640\.5, 481\.5\) of a sensor of 640 x 480.*scale 0\.5 "),
        ("250 250 160.1 120.4", r"principal point at pixel \(160\.1, 120\.4\) .*--calib-scale 2 \(1 confirms it\)"),
        ("500 500 320 -4", "principal point"),
        ("0.5 0.5 320 240", "focal lengths 0.5 and 0.5 px, which no camera of 640 x 480 pixels has"),
        ("1e5 1e5 320 240", "focal lengths"),
        ("500 50 320 240", "focal lengths 500 and 50 px"),
    ],
)
def test_intrinsics_of_another_resolution_are_refused(tmp_path, numbers, complaint):
    path = save(tmp_path, numbers, "calib.txt")
    np.savez(tmp_path / "a.npz", t_ns=[1], x=[1], y=[1], p=[1], width=640, height=480)
    with pytest.raises(CalibrationError, match=complaint):
        open_recording(tmp_path / "a.npz", calibration=path).require_camera()


def test_a_scale_is_the_users_word_on_the_resolution(tmp_path, run):
    path = save(tmp_path, "1001 1003 640.5 481.5", "calib.txt")
    np.savez(tmp_path / "a.npz", t_ns=[1], x=[1], y=[1], p=[1], width=640, height=480)
    camera = open_recording(tmp_path / "a.npz", calibration=path, calibration_scale=0.5).require_camera()
    assert (camera.width, camera.height, camera.fx, camera.cx) == (640, 480, 500.5, 320.0)
    np.savez(tmp_path / "b.npz", t_ns=[1], x=[1], y=[1], p=[1], width=641, height=481)
    for name in ("a.npz", "b.npz"):
        assert "fx 500.500" in run("info", tmp_path / name, "--calib", path, "--calib-scale", "0.5", "--quiet").stdout
    assert "principal point" in run("info", tmp_path / "a.npz", "--calib", path, "--quiet", code=1).stderr
    off_centre = save(tmp_path, "500 500 100 400", "crop.txt")
    assert open_recording(tmp_path / "a.npz", calibration=off_centre, calibration_scale=1).require_camera().cx == 100


def test_the_size_that_a_calibration_tells_is_scaled_too(tmp_path):
    np.savez(tmp_path / "a.npz", t_ns=[1], x=[1], y=[1], p=[1])
    recording = open_recording(tmp_path / "a.npz", calibration=save(tmp_path, ROS), calibration_scale=0.5)
    assert recording.sensor_size == HALF
    assert recording.require_camera().fx == 250.25


@pytest.mark.parametrize("model", ["omni", "ds"])
def test_a_lens_without_a_focal_length_is_refused(tmp_path, model):
    """At xi = -1 the model's points lie infinitely far out."""
    intrinsics = [-1.0, *([0.5] if model == "ds" else []), 420.0, 420.0, 120.0, 90.0]
    (tmp_path / "a.yaml").write_text(
        f"cam0: {{camera_model: {model}, intrinsics: {intrinsics}, distortion_model: none, distortion_coeffs: [], "
        "resolution: [240, 180]}\n"
    )
    with pytest.raises(CalibrationError):
        fit_to_sensor(read_calibration(tmp_path / "a.yaml", SensorSize(240, 180)), SensorSize(240, 180), None, "a")
