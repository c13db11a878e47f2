"""Sequences that resemble those of the ECD, in event rate, texture and speed, and of ECRot: made once, and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.experiments.settings import StudySettings
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.rows.row import Row, Values
from cmaxslam_fbp.rows.sources import source_digest
from cmaxslam_fbp.simulation import (
    SENSORS,
    ForegroundSettings,
    PlanarSettings,
    PlanarSimulation,
    RoomSettings,
    RoomSimulation,
    Simulation,
    SimulationSettings,
)
from cmaxslam_fbp.simulation.recording import SimulatedRecording

FOLDER = "sequences"
REAL_MOTION = "shapes_rotation_groundtruth.txt"

# Scene, contrast threshold, and how fast a foreground moves at most (0: there is none). The thresholds bring the rates
# near the ECD's over 60 s, which are 0.39 (shapes), 3.1 (boxes), 2.8 (poster) and 1.2 (dynamic) Mev/s for the
# rotations, and 0.29, 1.9, 1.7 and 0.6 for the translations.
_ROTATIONS = {
    "shapes": ("shapes", 0.3, 0),
    "poster": ("poster", 0.34, 0),
    "boxes": ("boxes", 0.34, 0),
    "dynamic": ("boxes", 0.46, 80),
}
_TRANSLATIONS = {
    "shapes": ("shapes", 0.25, 0),
    "poster": ("poster", 0.2, 0),
    "boxes": ("boxes", 0.18, 0),
    "dynamic": ("boxes", 0.33, 80),
}
# What the hand-held rotations show, in which room, how far its front wall is, and the speed of a foreground. At these
# distances the preset `cmax_slam` has about CMax-SLAM's published Abs, on poster with packets of 20,000 events
# (docs/reproduction.md). A faster foreground carries it away where the hand rests.
_ROOMS = {
    "shapes": ("shapes", "wall", 0.5, 0),
    "poster": ("poster", "wall", 0.5, 0),
    "boxes": ("boxes", "box", 0.5, 0),
    "dynamic": ("boxes", "box", 1.0, 20),
}
_DURATION_S, _QUICK_S = 30.0, 1.5
_PEAK_SPEED_DEG_S, _QUICK_PEAK_SPEED_DEG_S = 500.0, 250.0
_PEAK_SPEED_M_S = 1.5
_SPARE_S = 0.2  # of the real motion behind the end, for the spline through it
SEED = 0

# ECRot's DAVIS240C, as its calibration file has it: width, height, fx, fy, cx, cy; no distortion.
_ECROT_CAMERA = (240, 180, 200.0, 200.0, 120.0, 120.0)
_ECROT_CONTRAST = 0.5  # makes recordings of the photograph about as large as ECRot's, 264 MB
_ECROT_PEAK_SPEED_DEG_S = 350.0
_PLACES = ("trajectory", "panorama")


def simulation_row(name: str, settings: StudySettings) -> Row:
    """Return the row that simulates a sequence of a name like `boxes_rotation`, `_translation` or `_handheld`."""
    scene, _, motion = name.rpartition("_")
    described: dict[str, Any] = {"name": name, "seed": SEED, "duration_s": _QUICK_S if settings.quick else _DURATION_S}
    if motion == "handheld":
        names = ("scene", "room", "scene_distance_m", "foreground_deg_s")
        described |= dict(zip(names, _ROOMS[scene], strict=True)) | {"sensor": "davis"}
    else:
        table = _ROTATIONS if motion == "rotation" else _TRANSLATIONS
        described |= dict(zip(("scene", "contrast", "foreground_deg_s"), table[scene], strict=True))
    places: dict[str, str] = {}
    path = None if settings.quick else settings.real_file(REAL_MOTION)
    if motion == "translation":
        described["peak_speed_m_s"] = _PEAK_SPEED_M_S
    elif path is None:
        described["peak_speed_deg_s"] = _QUICK_PEAK_SPEED_DEG_S if settings.quick else _PEAK_SPEED_DEG_S
    else:
        real = read_trajectory(path)
        span_s = (real.end_ns - real.start_ns) / 1e9
        described["duration_s"] = min(_DURATION_S, float(np.floor(10 * (span_s - _SPARE_S)) / 10))
        described["trajectory_sha256"] = digest(path)
        places["trajectory"] = str(path.resolve())
    return Row(f"simulating {name}", simulate, described, places)


def panorama_row(name: str, panorama: Path | None, duration_s: float, seed: int) -> Row:
    """Return the row that turns ECRot's camera inside a photograph, or inside `boxes` where there is none."""
    described: dict[str, Any] = {
        "name": name,
        "scene": "boxes" if panorama is None else panorama.name,
        "camera": list(_ECROT_CAMERA),
        "contrast": _ECROT_CONTRAST,
        "foreground_deg_s": 0,
        "seed": seed,
        "duration_s": duration_s,
        "peak_speed_deg_s": _ECROT_PEAK_SPEED_DEG_S,
    }
    if panorama is None:
        return Row(f"simulating {name}", simulate, described)
    described["panorama_sha256"] = digest(panorama)
    return Row(f"simulating {name}", simulate, described, {"panorama": str(panorama.resolve())})


def simulate(described: Mapping[str, Any], out: Path) -> Values:
    """Make the recording that the settings describe; return where it is and what it is like."""
    content = {name: value for name, value in described.items() if name not in _PLACES}
    sources = source_digest(Path(__file__))
    identity = hashlib.sha256(json.dumps([content, sources], sort_keys=True).encode()).hexdigest()[:12]
    name = f"{FOLDER}/{described['name']}-{identity}.bag"
    events = make_recording(_source(described), out / name)
    return {
        "files": [name],
        "path": name,
        "identity": identity,
        "events": events,
        "duration_s": described["duration_s"],
        "provenance": _provenance(described, events / described["duration_s"]),
    }


def make_recording(source: SimulatedRecording, path: Path) -> int:
    """Write a simulated recording, in place of an earlier one; return its number of events.

    Ctrl-C leaves nothing of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    written = write_recording(source, source.chunks(), path, overwrite=True)
    if written.interrupted:
        path.unlink(missing_ok=True)
        raise KeyboardInterrupt
    return written.events


def _source(described: Mapping[str, Any]) -> SimulatedRecording:
    contrast = {name: described["contrast"] for name in ("contrast_on", "contrast_off") if "contrast" in described}
    speed_deg_s = described["foreground_deg_s"]
    common: dict[str, Any] = {
        "scene": Path(described["panorama"]) if "panorama" in described else described["scene"],
        "duration_s": described["duration_s"],
        "seed": described["seed"],
        "sensor": replace(SENSORS[described.get("sensor", "ideal")], **contrast),
        "foreground": ForegroundSettings(peak_speed_deg_s=speed_deg_s) if speed_deg_s else None,
    }
    if "camera" in described:
        common["camera"] = Camera(*described["camera"])
    if "peak_speed_m_s" in described:
        return PlanarSimulation(PlanarSettings(peak_speed_m_s=described["peak_speed_m_s"], **common))
    if "trajectory" in described:
        motion = read_trajectory(described["trajectory"])
        last_ns = motion.start_ns + round((described["duration_s"] + _SPARE_S) * 1e9)
        common["trajectory"] = motion.between(motion.start_ns, last_ns + 1)
    else:
        common["peak_speed_deg_s"] = described["peak_speed_deg_s"]
    if "room" in described:
        place = {name: described[name] for name in ("room", "scene_distance_m")}
        return RoomSimulation(RoomSettings(**common, **place))
    return Simulation(SimulationSettings(**common))


def _provenance(described: Mapping[str, Any], rate_ev_s: float) -> str:
    """Return one line on what the data is."""
    if "peak_speed_m_s" in described:
        motion = f"random hand-held translation up to {described['peak_speed_m_s']:g} m/s before a plane at 1 m"
    else:
        motion = f"random hand-held rotation up to {described.get('peak_speed_deg_s', 0):g} deg/s"
        if "trajectory" in described:
            motion = "turned along the real motion of shapes_rotation"
        if "room" in described:
            room, distance_m = described["room"], described["scene_distance_m"]
            place = "before a wall" if room == "wall" else f"in a {room} whose front is"
            motion += f" and moved with it, {place} {distance_m:g} m away"
    speed_deg_s = described["foreground_deg_s"]
    scene = described["scene"] + (f" with a moving foreground (up to {speed_deg_s:g} deg/s)" if speed_deg_s else "")
    sensor = f"contrast threshold {described['contrast']:g}" if "contrast" in described else described["sensor"]
    return (
        f"simulated {scene}, {motion}, {described['duration_s']:g} s, {rate_ev_s / 1e6:.2f} Mev/s, {sensor}, "
        f"seed {described['seed']}"
    )
