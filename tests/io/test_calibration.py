import cv2
import numpy as np
import pytest

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.calibration import read_calibration, read_sensor_size

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


def test_ecd_text_takes_the_size_of_the_recording(tmp_path):
    path = save(tmp_path, "500.5 501.5 320.25 240.75 -0.1 0.02 0.001 -0.002 0.0\n", "calib.txt")
    assert read_calibration(path, SIZE) == WANTED
    assert read_sensor_size(path, 1.0) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ROS.replace("plumb_bob", "thin_prism"), "distortion model 'thin_prism' is not supported"),
        (ROS.replace("[-0.1, 0.02, 0.001, -0.002, 0]", "[1, 2, 3, 4, 5, 6, 7, 8]"), "at most 5 coefficients"),
        (ROS.replace("500.5", "0"), "not those of a camera"),
        (ROS.replace("[500.5, 0,", "[500.5,"), "not a complete calibration"),
        (KALIBR.replace("pinhole", "omni"), "camera model 'omni'"),
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
