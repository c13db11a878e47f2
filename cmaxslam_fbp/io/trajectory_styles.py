"""Trajectories in the formats of other tools, beside TUM: KITTI and EuRoC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.trajectory import RotationTrajectory


def _positions(trajectory: RotationTrajectory) -> np.ndarray:
    return np.zeros((len(trajectory), 3)) if trajectory.positions_m is None else trajectory.positions_m


def kitti_text(trajectory: RotationTrajectory) -> str:
    """Return a line of the twelve numbers of `[R_wc | t]`, row by row, for each pose; KITTI has no times."""
    poses = np.concatenate([trajectory.rotations.as_matrix(), _positions(trajectory)[:, :, None]], axis=2)
    return "".join(" ".join(f"{value:.12f}" for value in row) + "\n" for row in poses.reshape(-1, 12).tolist())


def euroc_text(trajectory: RotationTrajectory) -> str:
    """Return EuRoC's table: nanoseconds, position, and the quaternion with its real part first."""
    x, y, z, w = trajectory.quaternions_xyzw.T
    table = np.column_stack([_positions(trajectory), w, x, y, z]).tolist()
    header = "#timestamp [ns],p_x [m],p_y [m],p_z [m],q_w [],q_x [],q_y [],q_z []\n"
    rows = zip(trajectory.t_ns.tolist(), table, strict=True)
    return header + "".join(f"{t_ns}," + ",".join(f"{value:.12f}" for value in row) + "\n" for t_ns, row in rows)


# The name of the file, and its text; a run has the TUM file in any case.
STYLES: dict[str, tuple[str, Callable[[RotationTrajectory], str]]] = {
    "kitti": ("trajectory_kitti.txt", kitti_text),
    "euroc": ("trajectory_euroc.csv", euroc_text),
}


def write_style(folder: Path, style: str, trajectory: RotationTrajectory, *, overwrite: bool = False) -> Path | None:
    """Write a trajectory in a style to the file of its name in a folder, and return it; None for tum."""
    if style == "tum":
        return None
    name, text = STYLES[style]
    path = folder / name
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already; move it away first")
    write_file(path, text(trajectory))
    return path
