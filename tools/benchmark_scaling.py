"""How time and error grow with the rate of events, the sensor, the length of a recording and the size of the map.

Each run is a process of its own, `cmaxslam-fbp run`, from its start to its report: wall and processor time, memory, and
the errors against the simulated truth. Recordings that are missing are simulated first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.events.passages import edge_passages
from cmaxslam_fbp.experiments.machine import describe_machine
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.report.plots import COLORS, as_png, new_figure, tidy


@dataclass(frozen=True)
class ScalingCase:
    """A recording and what to run on it; `law` is what it belongs to, `at` its place on the axis of that law."""

    law: str
    at: float
    recording: str
    simulation: tuple[str, ...]
    options: tuple[str, ...] = ()


def simulated(scene: str, camera: str, duration_s: float, speed_deg_s: float, seed: int) -> tuple[str, tuple[str, ...]]:
    """Return the name of a recording, and what `simulate` is to be told."""
    options = {"scene": scene, "camera": camera, "duration": duration_s, "peak-speed": speed_deg_s, "seed": seed}
    name = f"{scene}_{camera}_{duration_s:g}s_{speed_deg_s:g}deg_{seed}.bag"
    return name, tuple(text for key, value in options.items() for text in (f"--{key}", str(value)))


def cases(seed: int, quick: bool, long: bool) -> list[ScalingCase]:
    """Return what is measured."""
    length_s = 1.0 if quick else 5.0
    found = [
        ScalingCase("rate [Mev/s]", speed, *simulated("poster", "davis240c", length_s, speed, seed))
        for speed in ((350,) if quick else (20, 60, 180, 350, 900))
    ]
    large = [("genx320", 5.0, 350), ("dvxplorer", 4.0, 300), ("evk4", 2.0, 120), ("evk4", 1.5, 240)]
    for camera, duration_s, speed in [] if quick else large:
        found.append(ScalingCase("rate [Mev/s]", speed, *simulated("poster", camera, duration_s, speed, seed)))
        found.append(ScalingCase("shapes, by sensor", 0, *simulated("shapes", camera, duration_s, speed, seed)))
    for duration_s in (1, 2) if quick else (10, 60, 600) if long else (10, 60):
        found.append(ScalingCase("duration [s]", duration_s, *simulated("shapes", "davis240c", duration_s, 200, seed)))
    name, simulation = simulated("poster", "davis240c", length_s, 350, seed)
    for width in (512, 1024) if quick else (512, 1024, 2048, 4096):
        size = ("--set", f"backend.panorama_size=[{width}, {width // 2}]")
        found.append(ScalingCase("map columns", width, name, simulation, size))
    return found


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cmaxslam_fbp", *arguments]


def measure(case: ScalingCase, folder: Path, with_intensity: bool) -> dict[str, Any]:
    """Run one case in a process of its own."""
    recording, out = folder / case.recording, folder / "run"
    if not recording.exists():
        subprocess.run(program("simulate", str(recording), *case.simulation, "--quiet"), check=True)
    options = [*case.options, "--quiet", "--overwrite", *([] if with_intensity else ["--no-intensity"])]
    began = time.perf_counter()
    child = subprocess.Popen(program("run", str(recording), "--out", str(out), *options), stderr=subprocess.PIPE)
    assert child.stderr is not None
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    process_s = time.perf_counter() - began
    if status:
        raise SystemExit(f"{recording}: {errors.decode()}")
    run, metrics = (json.loads((out / name).read_text()) for name in ("run.json", "metrics.json"))
    duration_s = run["events"] / run["event_rate_ev_s"]
    return {
        "law": case.law,
        "at": run["event_rate_ev_s"] / 1e6 if case.law.startswith("rate") else case.at,
        "recording": recording.stem,
        "options": list(case.options),
        "mev_s": run["event_rate_ev_s"] / 1e6,
        "error_deg": metrics["absolute_best_fit_rms_deg"],
        "median_error_deg": metrics["absolute_best_fit_median_deg"],
        "real_time_factor": run["real_time_factor"],
        "process_real_time_factor": duration_s / process_s,
        "ns_per_event": 1e9 * run["wall_s"] / run["events"],
        "cpu_us_per_event": 1e6 * (usage.ru_utime + usage.ru_stime) / run["events"],
        "memory_mb": run["peak_memory_mb"],
        "passages_mev_s": passages_mev_s(recording),
        "busy": {name: stage["busy_share"] for name, stage in run["stages"].items() if stage["seconds"]},
    }


def passages_mev_s(path: Path) -> float:
    """Return how many million events one core turns into passages of edges in a second, all pixels looked at."""
    recording = open_recording(path)
    chunks, seconds = list(recording.chunks(0.5, 0.3)), []
    longest_ns = round(BackendConfig().passage_s * NS_PER_S)
    for _ in range(4):  # the first compiles
        began = time.thread_time()
        for _ in edge_passages(chunks, recording.sensor_size, longest_ns):
            pass
        seconds.append(time.thread_time() - began)
    return sum(map(len, chunks)) / min(seconds) / 1e6


def describe(row: dict[str, Any]) -> str:
    """Return one row as a line."""
    options = " ".join(row["options"][1:])
    busy = ", ".join(f"{name} {100 * share:.0f} %" for name, share in row["busy"].items())
    return (
        f"{row['law']:<17} {row['recording']:<36} {options:<37} {row['mev_s']:6.2f} Mev/s: {row['error_deg']:.3f} deg "
        f"(median {row['median_error_deg']:.3f}), {row['real_time_factor']:.2f} of real time (process "
        f"{row['process_real_time_factor']:.2f}), {row['ns_per_event']:.0f} ns and {row['cpu_us_per_event']:.2f} us of "
        f"processor time per event, {row['memory_mb']:.0f} MB; passages {row['passages_mev_s']:.0f} Mev/s on a core; "
        f"busy: {busy}"
    )


def plot(rows: list[dict[str, Any]]) -> bytes:
    """Return a PNG: for each law, time per event and error."""
    laws = [law for law in dict.fromkeys(row["law"] for row in rows) if law != "shapes, by sensor"]
    figure = new_figure(len(laws), panel_in=2.6)
    for axis, law in zip(figure.subplots(len(laws), 1, squeeze=False)[:, 0], laws, strict=True):
        chosen = sorted((row for row in rows if row["law"] == law), key=lambda row: row["at"])
        at = [row["at"] for row in chosen]
        axis.plot(at, [row["ns_per_event"] for row in chosen], "o-", color=COLORS[0])
        other = axis.twinx()
        other.plot(at, [row["error_deg"] for row in chosen], "s--", color=COLORS[1], label="RMS")
        other.plot(at, [row["median_error_deg"] for row in chosen], "s:", color=COLORS[1], label="median")
        other.legend(frameon=False)
        axis.set_xscale("log")
        axis.set_xticks(at, [f"{value:.4g}" for value in at], minor=False)
        axis.minorticks_off()
        for one, label, color in ((axis, "wall time per event [ns]", COLORS[0]), (other, "error [deg]", COLORS[1])):
            one.set_ylim(bottom=0)
            one.set_ylabel(label, color=color)
        axis.set_xlabel(law)
        tidy(axis)
    return as_png(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("benchmark_recordings"), help="where recordings are kept")
    parser.add_argument("--seed", type=int, default=61, help="of scenes and motions; nothing was chosen on 61")
    parser.add_argument("--quick", action="store_true", help="a few short ones")
    parser.add_argument("--long", action="store_true", help="also ten minutes")
    parser.add_argument("--intensity", action="store_true", help="with the brightness of the scene")
    parser.add_argument("--only", help="only the laws whose name begins so")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--plot", type=Path, help="draw them into this PNG")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(describe_machine())
    rows = []
    for case in cases(options.seed, options.quick, options.long):
        if case.law.startswith(options.only or ""):
            rows.append(measure(case, options.folder, options.intensity))
            print(describe(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    if options.plot:
        options.plot.write_bytes(plot(rows))


if __name__ == "__main__":
    main()
