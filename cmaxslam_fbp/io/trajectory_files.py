"""Text files with a line per time: poses (TUM, ECD ground truth, KITTI, EuRoC), inertial samples, velocities.

Files are read line by line: memory holds the numbers alone. Times are parsed digit by digit: a Unix stamp keeps its
nanoseconds, which a float64 of seconds would lose.
"""

from __future__ import annotations

import io
import math
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.errors import OutputError, TrajectoryError
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.nanoseconds import LARGEST_NS, NS_PER_S
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

if TYPE_CHECKING:
    from cmaxslam_fbp.frontend.estimate import VelocityEstimate

POSE_COLUMNS = ("t", "tx", "ty", "tz", "qx", "qy", "qz", "qw")
IMU_COLUMNS = ("t", "ax", "ay", "az", "gx", "gy", "gz")
TUM_VIE_IMU_COLUMNS = ("t", "gx", "gy", "gz", "ax", "ay", "az", "temperature")

# The digits of a unit of time in nanoseconds, and its name.
_UNITS = {"s": (9, "seconds"), "us": (3, "microseconds")}

_UNIT_TOLERANCE = 1e-2  # what RotationTrajectory accepts: files with two decimals still pass
_LONGEST_LINE = 10_000  # characters, most of them a comment
_MOST_SAMPLES = 30_000_000  # eight hours of an IMU, two gigabytes


def read_trajectory(path: str | os.PathLike[str], *, time_unit: str = "s") -> RotationTrajectory:
    """Read the orientations of a TUM file: lines `t tx ty tz qx qy qz qw`, `t` in s or us, `#` for comments.

    The ECD's `groundtruth.txt` has the same columns. A line that repeats the one before it is dropped.
    """
    with _opened(path) as file:
        return parse_trajectory(file, str(path), time_unit=time_unit)


def read_imu(path: str | os.PathLike[str]) -> ImuSamples:
    """Read an inertial text file: lines `t ax ay az gx gy gz`, in seconds, m/s^2 and rad/s."""
    with _opened(path) as file:
        return parse_imu(file, str(path))


def parse_trajectory(file: BinaryIO, source: str, *, time_unit: str = "s") -> RotationTrajectory:
    """Return the trajectory of an open TUM file, with times in s or us; `source` names it in errors."""
    t_ns, values, lines = _parse_samples(file, source, POSE_COLUMNS, time_unit)
    quaternions = values[:, 3:]
    bad = np.abs(np.linalg.norm(np.clip(quaternions, -2, 2), axis=1) - 1) >= _UNIT_TOLERANCE
    if bad.any():
        place = int(np.argmax(bad))
        raise TrajectoryError(
            f"{source}, line {lines[place]}: the quaternion {quaternions[place].tolist()} is not of unit "
            f"length; the columns must be {' '.join(POSE_COLUMNS)}"
        )
    try:
        return RotationTrajectory(t_ns, quaternions, values[:, :3].copy())
    except TrajectoryError as error:
        raise TrajectoryError(f"{source}: {error}") from None


def parse_imu(file: BinaryIO, source: str) -> ImuSamples:
    """Return the samples of an open inertial file; `source` names it in errors."""
    t_ns, values, _ = _parse_samples(file, source, IMU_COLUMNS)
    return ImuSamples(t_ns, values[:, 3:], values[:, :3])


def read_tum_vie_imu(path: Path) -> ImuSamples:
    """Read an `imu_data.txt` of TUM-VIE: microseconds, the gyroscope first."""
    with _opened(path) as file:
        t_ns, values, _ = _parse_samples(file, str(path), TUM_VIE_IMU_COLUMNS, "us")
    return ImuSamples(t_ns, values[:, :3], values[:, 3:6])


def write_trajectory(path: str | os.PathLike[str], trajectory: RotationTrajectory) -> None:
    """Write a TUM file: times with nine decimals (exact), positions with nine, quaternions with twelve.

    Positions that are not known are written as zero. The file appears whole or not at all.
    """
    lines = ["# t tx ty tz qx qy qz qw" + (" (orientation only)" if trajectory.positions_m is None else "")]
    lines += trajectory_lines(trajectory)
    write_file(Path(path), "\n".join(lines) + "\n")


def trajectory_lines(trajectory: RotationTrajectory) -> list[str]:
    """Return the lines of a TUM file, without line ends."""
    table = np.hstack([_positions(trajectory), trajectory.quaternions_xyzw]).tolist()
    return [
        f"{format_seconds(t_ns)} {px:.9f} {py:.9f} {pz:.9f} {x:.12f} {y:.12f} {z:.12f} {w:.12f}"
        for t_ns, (px, py, pz, x, y, z, w) in zip(trajectory.t_ns.tolist(), table, strict=True)
    ]


def _positions(trajectory: RotationTrajectory) -> FloatArray:
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


def imu_lines(imu: ImuSamples) -> list[str]:
    """Return the lines `t ax ay az gx gy gz` of an inertial text file, without line ends."""
    table = np.hstack([imu.linear_acceleration_m_s2, imu.angular_velocity_rad_s]).tolist()
    return [
        f"{format_seconds(t_ns)} " + " ".join(f"{value:.9f}" for value in row)
        for t_ns, row in zip(imu.t_ns.tolist(), table, strict=True)
    ]


def format_seconds(t_ns: int) -> str:
    """Return nanoseconds as seconds with nine decimals, exactly."""
    seconds, nanoseconds = divmod(abs(t_ns), NS_PER_S)
    return f"{'-' if t_ns < 0 else ''}{seconds}.{nanoseconds:09d}"


def write_velocities(path: Path, estimates: Iterable[VelocityEstimate], names: Sequence[str]) -> None:
    """Write one line per estimate, with the recording's own times to the nanosecond.

    `names` are those of the P components of the velocities, with their units.
    """
    deviations = [f"std_{name}" for name in names]
    columns = ["t_s", *names, "score", "evaluations", "status", *deviations, "quality", "events"]
    lines = [",".join(columns), *(_velocity_line(estimate) for estimate in estimates)]
    write_file(path, "\n".join(lines) + "\n", make_folder=True)


def _velocity_line(estimate: VelocityEstimate) -> str:
    return ",".join(
        [
            format_seconds(estimate.t_ns),
            *(f"{value:.9f}" for value in estimate.velocity),
            f"{estimate.score:.9g}",
            str(estimate.evaluations),
            estimate.status.value,
            *(f"{value:.9f}" for value in estimate.standard_deviations),
            f"{estimate.quality:.6g}",
            str(estimate.events),
        ]
    )


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    if Path(path).exists() and not Path(path).is_file():
        raise TrajectoryError(f"{path}: cannot be read (not a file); give one with a line per sample")
    try:
        with Path(path).open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise TrajectoryError(f"{path}: no such file; check the path") from error
    except OSError as error:
        raise TrajectoryError(f"{path}: cannot be read ({error.strerror or error})") from error


def _lines(file: BinaryIO, source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers."""
    with io.TextIOWrapper(file, encoding="utf-8-sig") as text:
        for number in count(1):
            try:
                line = text.readline(_LONGEST_LINE + 1)
            except UnicodeDecodeError as error:
                raise TrajectoryError(f"{source}: is not a text file; give one with a line per sample") from error
            if not line:
                return
            if len(line) > _LONGEST_LINE:
                raise TrajectoryError(f"{source}, line {number}: is longer than {_LONGEST_LINE} characters")
            yield number, line


def _parse_samples(
    file: BinaryIO, source: str, columns: tuple[str, ...], time_unit: str = "s"
) -> tuple[IntArray, FloatArray, array[int]]:
    """Return increasing times (N,), the other columns (N, C - 1) and the line number of each sample.

    A sample that repeats the one before it is dropped.
    """
    t_ns, values, lines = array("q"), array("d"), array("q")  # an hour of samples as objects would take a gigabyte
    last_row: list[float] = []
    for number, line in _lines(file, source):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            if len(words) != len(columns):
                raise TrajectoryError(
                    f"{len(words)} columns instead of {len(columns)}; "
                    f"write them as {' '.join(columns)}, separated by spaces"
                )
            time, row = _parse_time(words[0], time_unit), [_parse_value(word) for word in words[1:]]
            if t_ns and time <= t_ns[-1]:
                if time == t_ns[-1] and row == last_row:
                    continue
                raise TrajectoryError(
                    f"the time {format_seconds(time)} does not come after {format_seconds(t_ns[-1])} "
                    f"(line {lines[-1]}); sort the lines by time and keep one per time"
                )
            if len(t_ns) == _MOST_SAMPLES:
                raise TrajectoryError(f"it has more than {_MOST_SAMPLES:,} samples; give a part of it")
        except TrajectoryError as error:
            raise TrajectoryError(f"{source}, line {number}: {error}") from None
        t_ns.append(time)
        values.extend(row)
        lines.append(number)
        last_row = row
    if not t_ns:
        raise TrajectoryError(f"{source}: holds no samples; write lines of {' '.join(columns)}")
    return np.frombuffer(t_ns, np.int64), np.frombuffer(values).reshape(len(t_ns), -1), lines


def _parse_time(stamp: str, time_unit: str) -> int:
    """Return a stamp in decimal seconds or microseconds as nanoseconds, rounded to the nearest."""
    digits, unit = _UNITS[time_unit]
    largest = LARGEST_NS // 10**digits
    try:
        time = Decimal(stamp)
        if time.is_finite() and not -largest < time < largest:  # before its exponent becomes digits
            raise TrajectoryError(
                f"the time {stamp} is too large for {unit}; if the file counts in nanoseconds, divide by 1e9"
            )
        # Decimals beyond the ninth are rounded; Decimal keeps 28 digits, a stamp has at most 19.
        return int(time.scaleb(digits).to_integral_value())
    except (ArithmeticError, ValueError):
        raise TrajectoryError(f"the time '{stamp}' is not a number; write {unit}") from None


def _parse_value(token: str) -> float:
    try:
        value = float(token)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TrajectoryError(f"'{token}' is not a finite number; remove or correct the line")
    return value
