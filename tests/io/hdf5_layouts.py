"""Files in the layouts of public data sets, written through h5py alone: independent of the code under test.

Each function takes a recording (its events, camera, poses and inertial samples) and a folder, and writes what the data
set would have: sensors in frames of their own, times in its unit. It returns the file to open.
"""

import json

import h5py
import hdf5plugin
import numpy as np
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.events import Events

# The rigs: where the sensors are on them, any numbers.
R_IMU_CAMERA = Rotation.from_euler("xyz", [92, -4, 3], degrees=True)
R_IMU_MARKER = Rotation.from_euler("xyz", [-10, 20, 170], degrees=True)
R_LEFT_RIGHT = Rotation.from_euler("xyz", [0.4, -1.1, 0.3], degrees=True)
OFFSET_US = 1_468_941_032_000_000


def microseconds(events):
    assert not (events.t_ns % 1000).any()
    return events.t_ns // 1000


def columns(group, events, t_us, **compression):
    for name, column in (("x", events.x), ("y", events.y), ("t", t_us), ("p", events.p)):
        group.create_dataset(name, data=column, chunks=(min(4096, len(events)),), **compression)


def matrix(rotation, position=(0, 0, 0)):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation.as_matrix(), position
    return T


def kalibr(camera):
    return {
        "camera_model": "pinhole",
        "intrinsics": [camera.fx, camera.fy, camera.cx, camera.cy],
        "distortion_model": {"plumb_bob": "radtan"}.get(camera.distortion_model, camera.distortion_model),
        "distortion_coeffs": list(camera.distortion[:4]),
        "resolution": [camera.width, camera.height],
    }


def write_dsec(recording, folder, side="left"):
    """`events/left/events.h5`, uint32 microseconds from an offset, Blosc; `calibration/cam_to_cam.yaml`."""
    events = Events.concatenate(recording.chunks())
    place = folder / "events" / side
    place.mkdir(parents=True)
    t_us = (microseconds(events) - OFFSET_US).astype(np.uint32)
    with h5py.File(place / "events.h5", "w") as file:
        columns(file.create_group("events"), events, t_us, **hdf5plugin.Blosc(cname="zstd", clevel=5, shuffle=1))
        file["ms_to_idx"] = np.searchsorted(t_us, np.arange(0, t_us[-1] // 1000 + 1) * 1000).astype(np.uint64)
        file["t_offset"] = np.int64(OFFSET_US)
    cameras = {"cam0": kalibr(recording.camera), "cam1": {**kalibr(recording.camera), "resolution": [1440, 1080]}}
    cameras["cam3"] = cameras["cam0"]
    for camera in cameras.values():
        camera["camera_matrix"] = camera.pop("intrinsics", camera.get("camera_matrix"))
    (folder / "calibration").mkdir()
    (folder / "calibration" / "cam_to_cam.yaml").write_text(json.dumps({"intrinsics": cameras, "extrinsics": {}}))
    return place / "events.h5"


def write_m3ed(recording, folder):
    """`NAME_data.h5` with two event cameras and an IMU, `NAME_pose_gt.h5` with `Cn_T_C0` of the left one."""
    events, truth, imu = Events.concatenate(recording.chunks()), recording.ground_truth, recording.imu
    path = folder / "turning_data.h5"
    with h5py.File(path, "w") as file:
        for side, turn in (("left", Rotation.identity()), ("right", R_LEFT_RIGHT)):
            group = file.create_group(f"prophesee/{side}")
            columns(group, events, microseconds(events), compression="lzf")
            group["ms_map_idx"] = np.arange(3)
            for name, value in kalibr(recording.camera).items():
                group[f"calib/{name}"] = value
            group["calib/T_to_prophesee_left"] = matrix(turn, [0.1, 0, 0] if side == "right" else [0, 0, 0])
        turn = R_IMU_CAMERA.as_matrix()  # rows are vectors: `v R` is `R^T v`
        file["ovc/imu/ts"] = imu.t_ns // 1000
        file["ovc/imu/omega"] = imu.angular_velocity_rad_s @ turn.T
        file["ovc/imu/accel"] = imu.linear_acceleration_m_s2 @ turn.T
        file["ovc/imu/calib/T_to_prophesee_left"] = matrix(R_IMU_CAMERA.inv())
    with h5py.File(folder / "turning_pose_gt.h5", "w") as file:
        first = truth.rotations[0]
        poses = [matrix(rotation.inv() * first) for rotation in truth.rotations]
        file["Cn_T_C0"] = np.array(poses)
        file["ts"] = truth.t_ns // 1000
    return path


def basalt_pose(rotation):
    qx, qy, qz, qw = rotation.as_quat().tolist()
    return {"px": 0.0, "py": 0.0, "pz": 0.0, "qx": qx, "qy": qy, "qz": qz, "qw": qw}


def write_tum_vie(recording, folder):
    """`NAME-events_left.h5`, `NAME-vi_gt_data/` with motion capture of markers and IMU, calibrations of letter B."""
    events, truth, imu = Events.concatenate(recording.chunks()), recording.ground_truth, recording.imu
    camera = recording.camera
    assert camera.distortion_model == "equidistant"
    path = folder / "turning-events_left.h5"
    with h5py.File(path, "w") as file:
        columns(file.create_group("events"), events, microseconds(events), **hdf5plugin.Blosc(cname="lz4"))
        file["ms_to_idx"] = np.arange(3)
    data = folder / "turning-vi_gt_data"
    data.mkdir()
    markers = (truth.rotations * R_IMU_CAMERA.inv() * R_IMU_MARKER).as_quat()
    rows = [f"{t / 1000:.3f} 0 0 0 {' '.join(map(repr, q))}" for t, q in zip(truth.t_ns, markers.tolist(), strict=True)]
    (data / "mocap_data.txt").write_text("\n".join(["# timestamp(us) px py pz qx qy qz qw", *rows]))
    turn = R_IMU_CAMERA.as_matrix().T
    table = np.hstack([imu.angular_velocity_rad_s @ turn, imu.linear_acceleration_m_s2 @ turn]).tolist()
    rows = [f"{t / 1000:.3f} {' '.join(map(repr, v))} 31.5" for t, v in zip(imu.t_ns, table, strict=True)]
    (data / "imu_data.txt").write_text("\n".join(["# timestamp(us) gx gy gz ax ay az temperature", *rows]))
    values = {name: getattr(camera, name) for name in ("fx", "fy", "cx", "cy")}
    values |= {f"k{number}": k for number, k in enumerate(camera.distortion, start=1)}
    eye = {"camera_type": "kb4", "intrinsics": values}
    rig = {"intrinsics": [eye] * 4, "resolution": [[1024, 1024]] * 2 + [[camera.width, camera.height]] * 2}
    rig["T_imu_cam"] = [basalt_pose(Rotation.identity())] * 2 + [basalt_pose(R_IMU_CAMERA)] * 2
    (folder / "camera-calibrationB.json").write_text(json.dumps({"value0": rig}))
    (folder / "mocap-imu-calibrationB.json").write_text(
        json.dumps({"value0": {"T_imu_marker": basalt_pose(R_IMU_MARKER)}})
    )
    return path


def write_mvsec(recording, folder):
    """`NAME_data.hdf5` with rows of x, y, seconds and -1 or 1, `NAME_gt.hdf5`; nothing is compressed."""
    events, truth, imu = Events.concatenate(recording.chunks()), recording.ground_truth, recording.imu
    path = folder / "turning_data.hdf5"
    rows = np.column_stack([events.x, events.y, events.t_ns / 1e9, events.p * 2.0 - 1])
    with h5py.File(path, "w") as file:
        for side in ("left", "right"):
            file[f"davis/{side}/events"] = rows
            file[f"davis/{side}/imu"] = np.hstack([imu.linear_acceleration_m_s2, imu.angular_velocity_rad_s])
            file[f"davis/{side}/imu_ts"] = imu.t_ns / 1e9
        file["davis/left/image_raw"] = np.zeros((1, recording.camera.height, recording.camera.width), np.uint8)
        file["davis/left/image_raw_ts"] = [0.0]
    with h5py.File(folder / "turning_gt.hdf5", "w") as file:
        file["davis/left/pose"] = np.array([matrix(rotation) for rotation in truth.rotations])
        file["davis/left/pose_ts"] = truth.t_ns / 1e9
    return path


def write_prophesee(recording, folder):
    """`/CD/events`, records of x, y, p and t, not compressed; an attribute with the geometry."""
    events = Events.concatenate(recording.chunks())
    records = np.empty(len(events), np.dtype([("x", "<u2"), ("y", "<u2"), ("p", "<i2"), ("t", "<i8")], align=True))
    records["x"], records["y"], records["p"], records["t"] = events.x, events.y, events.p, microseconds(events)
    path = folder / "recording.hdf5"
    with h5py.File(path, "w") as file:
        file["CD/events"] = records
        file["CD/indexes"] = np.zeros(3, np.dtype([("id", "<u8"), ("ts", "<i8")]))
        file["EXT_TRIGGER/events"] = np.zeros(2, np.dtype([("p", "<i2"), ("t", "<i8"), ("id", "<i2")]))
        file.attrs["geometry"] = f"{recording.camera.width}x{recording.camera.height}"
    return path


def write_matlab73(recording, folder):
    """`/{x,y,ts,pol}` as rows of doubles, behind 512 bytes of MATLAB's own."""
    events = Events.concatenate(recording.chunks())
    path = folder / "events.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, column in (("x", events.x), ("y", events.y), ("ts", microseconds(events)), ("pol", events.p)):
            file[name] = column.astype(float)[None]
        file["width"], file["height"] = [[float(recording.camera.width)]], [[float(recording.camera.height)]]
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created by a test")
    return path


LAYOUTS = {
    "dsec": write_dsec,
    "m3ed": write_m3ed,
    "tum-vie": write_tum_vie,
    "mvsec": write_mvsec,
    "prophesee": write_prophesee,
    "matlab 7.3": write_matlab73,
}
