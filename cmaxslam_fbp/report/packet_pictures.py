"""One packet of events before and after its motion is undone: what contrast maximisation does, to be seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import Picture
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.report.event_picture import EventPicture
from cmaxslam_fbp.report.map_picture import draw_map
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory

BEFORE, AFTER = "packet_before.png", "packet_after.png"

_SEARCHED_S = 20.0  # a packet of the beginning will do: later ones cost the reading of all before them
_SPEED_RANK = 0.9
_TURN_DEG = 4.0  # turns by more smear the image before beyond recognition
_LONGEST_S = 0.05
_MOST_EVENTS = 60_000


def draw_packet(
    recording: Recording, camera: Camera, trajectory: RotationTrajectory, velocities: AngularVelocities | None = None
) -> tuple[Picture, Picture, dict[str, Any]] | None:
    """Draw the events of a fast moment, as they came and warped to its middle.

    They are warped by the one of the frontend's velocities that is nearest to the middle; where none are given, along
    the trajectory. Returns both pictures (height, width) and the figures of the packet; None where there are no events.
    """
    early = trajectory.t_ns[(trajectory.t_ns - trajectory.start_ns) <= _SEARCHED_S * 1e9][1:-1]
    if len(early) == 0:
        return None
    speeds = np.linalg.norm(trajectory.angular_velocity_at(early), axis=1)
    chosen = int(np.argsort(speeds)[int(_SPEED_RANK * (len(early) - 1))])
    middle_ns, speed_deg_s = int(early[chosen]), float(np.degrees(speeds[chosen]))
    half_ns = round(0.5e9 * min(_LONGEST_S, _TURN_DEG / max(speed_deg_s, 1e-3)))
    first_ns = max(middle_ns - half_ns, trajectory.start_ns)
    last_ns = min(middle_ns + half_ns, trajectory.end_ns)
    events = _read(recording, first_ns, last_ns)
    if len(events) == 0:
        return None
    picture = EventPicture(camera)
    if velocities is None:
        turns = trajectory.rotation_at(middle_ns).inv() * trajectory.rotation_at(events.t_ns)
    else:
        omega_rad_s = velocities.omega_rad_s[np.argmin(np.abs(velocities.t_ns - middle_ns))]
        turns = Rotation.from_rotvec((events.t_ns - middle_ns)[:, None] * 1e-9 * omega_rad_s)
    before, after = picture.count(events), picture.count(events, turns)
    figures = {
        "t_s": (middle_ns - trajectory.start_ns) / 1e9,
        "duration_s": (last_ns - first_ns) / 1e9,
        "events": len(events),
        "speed_deg_s": speed_deg_s,
        "contrast_before": float(before.var()),
        "contrast_after": float(after.var()),
    }
    return draw_map(before), draw_map(after), figures


def _read(recording: Recording, first_ns: int, last_ns: int) -> Events:
    """Return the events of a range, at most so many around its middle."""
    start_s = max((first_ns - recording.start_ns) / 1e9, 0.0)
    try:
        events = Events.concatenate(recording.chunks(start_s, (last_ns - first_ns) / 1e9)).between(first_ns, last_ns)
    except RecordingError:  # no event in the range
        return Events.empty()
    surplus = max(len(events) - _MOST_EVENTS, 0)
    return events[surplus // 2 : len(events) - (surplus - surplus // 2)]
