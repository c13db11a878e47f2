"""The folder of a run, made up: a camera that sweeps to the right over a map of lines."""

import json

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io.trajectory_files import format_seconds, write_trajectory
from cmaxslam_fbp.report.reference import describe_reference
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory

START_NS = 1_468_941_032_000_000_000


def made_trajectory(duration_s=2.0, amplitude=0.6, error_rad=0.0):
    """Return a sweep in yaw, wrong by a constant angle in pitch in the second half."""
    t_ns = START_NS + np.arange(0, round(duration_s * 1e9) + 1, 5_000_000)
    t = (t_ns - START_NS) / 1e9
    angles = np.column_stack([amplitude * np.sin(t), 0.2 * np.sin(2 * t) + error_rad * (t > duration_s / 2), 0 * t])
    return RotationTrajectory.from_rotations(t_ns, Rotation.from_euler("YXZ", angles))


def make_run(path, *, reference=True, lost=(), warnings=(), size=(512, 256), error_rad=0.002, extra=True):
    """Write the files of a run; return its folder."""
    path.mkdir(parents=True)
    estimate, truth = made_trajectory(error_rad=error_rad), made_trajectory()
    duration_s = (estimate.end_ns - START_NS) / 1e9
    write_trajectory(path / "trajectory.txt", estimate)
    panorama = np.zeros((size[1], size[0]), np.float32)
    for place in np.linspace(0.3, 0.7, 9):
        cv2.line(
            panorama, (int(place * size[0]), int(0.3 * size[1])), (int(place * size[0]), int(0.7 * size[1])), 9.0, 2
        )
    cv2.rectangle(panorama, (int(0.5 * size[0]), int(0.4 * size[1])), (int(0.6 * size[0]), int(0.6 * size[1])), 9.0, -1)
    np.save(path / "panorama.npy", panorama)
    omega = estimate.angular_velocity_at(estimate.t_ns[1:-1:2])
    lines = ["t_s,wx_rad_s,wy_rad_s,wz_rad_s,frontend_wx_rad_s,frontend_wy_rad_s,frontend_wz_rad_s,status"]
    for t_ns, w in zip(estimate.t_ns[1:-1:2], omega, strict=True):
        numbers = ",".join(f"{value:.6f}" for value in (*w, *(1.02 * w)))
        lines.append(f"{format_seconds(int(t_ns))},{numbers},converged")
    (path / "angular_velocity.csv").write_text("\n".join(lines) + "\n")
    lines = ["start_s,end_s,events,tracking,score,match,evaluations,seconds"]
    for number in range(19):
        first, last = START_NS + number * 100_000_000, START_NS + (number + 2) * 100_000_000
        tracking, match = "lost" if number in lost else "tracked", f"{0.5 + 0.01 * number}" if number else ""
        row = f"{100_000 + number},{tracking},{1 + number},{match},7,0.1"
        lines.append(f"{format_seconds(first)},{format_seconds(last)},{row}")
    (path / "windows.csv").write_text("\n".join(lines) + "\n")
    lines = ["t_s,sigma_x_deg,sigma_y_deg,sigma_z_deg"]
    for number in set(range(19)) - set(lost):
        lines.append(f"{format_seconds(START_NS + (number + 1) * 100_000_000)},0.02,{0.03 + 0.001 * number},0.04")
    (path / "trajectory_deviation.csv").write_text("\n".join(lines) + "\n")
    run = {
        "version": "0.1.0",
        "command": ["cmaxslam-fbp", "run", "my file.bag", "-o", "there"],
        "input": "/data/sweep <1>.bag",
        "events": 1_000_000,
        "start_ns": START_NS,
        "end_ns": estimate.end_ns,
        "duration_s": duration_s,
        "event_rate_ev_s": 5e5,
        "wall_s": 4.0,
        "real_time_factor": 0.5,
        "stages": {"backend": {"seconds": 3.0, "real_time_factor": 0.67}},
        "windows": 19,
        "windows_lost": len(lost),
        "evaluations_per_window": 7.0,
        "state": "finished",
        "reason": "",
        "peak_memory_mb": 300.0,
        "warnings": list(warnings),
    }
    (path / "run.json").write_text(json.dumps(run))
    if reference:
        (path / "metrics.json").write_text(json.dumps(evaluate(estimate, truth).to_dict()))
    if extra:
        gyroscope = AngularVelocities(truth.t_ns, truth.angular_velocity_at(truth.t_ns))
        known = (truth, gyroscope) if reference else (None, None)
        values = describe_reference(estimate, START_NS, davis240c(), *known)
        (path / "report_data.json").write_text(json.dumps(values))
    return path
