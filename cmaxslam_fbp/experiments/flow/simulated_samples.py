"""Samples of simulated recordings, whose flow is known exactly: rotations, planes, objects that move before them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.experiments.flow.samples import FlowSample, make_sample, pack_samples
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.rows.row import Row, Values
from cmaxslam_fbp.simulation import (
    SENSORS,
    ForegroundSettings,
    PlanarSettings,
    PlanarSimulation,
    Simulation,
    SimulationSettings,
    dense_flow,
)

STRETCH_S = 0.04
MOTIONS = ("rotation", "plane", "foreground")
SCENES = ("poster", "boxes", "shapes")
SENSOR_NAMES = ("ideal", "davis")
_FIRST_S = 0.7  # a simulated hand starts at rest
_PEAK_SPEED_DEG_S, _PEAK_SPEED_M_S = 90.0, 1.6  # up to about 12 pixels per stretch
_DISC = ForegroundSettings(radius_deg=11.0, peak_speed_deg_s=120.0, extent_deg=20.0)


def recording_rows(first_seed: int, count: int, samples: int) -> list[Row]:
    """Return the rows that make the samples of recordings: every motion before every scene, with both sensors."""
    rows = []
    for number in range(count):
        described = {
            "motion": MOTIONS[number % 3],
            "scene": SCENES[(number // 3) % 3],
            "sensor": SENSOR_NAMES[(number // 9 + number) % 2],
            "seed": first_seed + number,
            "samples": samples,
        }
        rows.append(Row(f"simulating flow {described['seed']}", simulate_samples, described))
    return rows


def simulate_samples(described: Mapping[str, Any], out: Path) -> Values:
    """Simulate a recording and keep stretches of it as samples; return where they are, and a digest of them."""
    samples = samples_of(_recording(described), described["samples"])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **pack_samples(samples))  # type: ignore[arg-type]
    name = "flow/samples/{motion}-{scene}-{sensor}-{seed}-{samples}.npz".format(**described)
    write_file(out / name, buffer.getvalue(), make_folder=True)
    return {
        "files": [name],
        "path": name,
        "identity": hashlib.sha256(buffer.getvalue()).hexdigest(),
        "events": sum(len(sample) for sample in samples),
        "mean_flow_px": float(np.mean([np.linalg.norm(s.flow_px, axis=0)[s.is_valid].mean() for s in samples])),
        **{name: described[name] for name in ("motion", "scene", "sensor", "seed")},
    }


def samples_of(recording: Simulation | PlanarSimulation, count: int) -> list[FlowSample]:
    """Return samples of a simulated recording, at even distances from where it has left its rest."""
    events = Events.concatenate(recording.chunks())
    samples = []
    for start_s in np.linspace(_FIRST_S, recording.duration_s - STRETCH_S, count):
        first_ns, last_ns = (recording.start_ns + round(1e9 * t) for t in (start_s, start_s + STRETCH_S))
        dense = dense_flow(recording, start_s, start_s + STRETCH_S)
        samples.append(make_sample(events, first_ns, last_ns, dense.flow_px, dense.is_valid))
    return samples


def _recording(described: Mapping[str, Any]) -> Simulation | PlanarSimulation:
    common: dict[str, Any] = {
        "scene": described["scene"],
        "sensor": SENSORS[described["sensor"]],
        "seed": described["seed"],
        "duration_s": _FIRST_S + 0.12 * described["samples"],
    }
    if described["motion"] == "plane":
        return PlanarSimulation(PlanarSettings(peak_speed_m_s=_PEAK_SPEED_M_S, extent_m=0.5, **common))
    front = _DISC if described["motion"] == "foreground" else None
    return Simulation(SimulationSettings(peak_speed_deg_s=_PEAK_SPEED_DEG_S, foreground=front, **common))
