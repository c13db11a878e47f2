"""One run of a batch: a plain function of plain values, which works wherever the package is installed."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.io.run_folder import run_folder
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.output import OUTPUTS, RUN, RunState
from cmaxslam_fbp.pipeline.painting import paint
from cmaxslam_fbp.pipeline.saving import RunSaver
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.report.map_picture import draw_map, encode_png, used_part
from cmaxslam_fbp.report.page import REPORT
from cmaxslam_fbp.rows.row import Values
from cmaxslam_fbp.rows.sources import source_digest

METRICS, THUMBNAIL = "metrics.json", "thumbnail.png"

_THUMBNAIL_PX = 240
_compiled: set[str] = set()  # the stages for which this process has compiled everything


def run(settings: Mapping[str, Any], out: Path) -> Values:
    """Run the SLAM on a recording into a folder of its own; return the figures of the run and its errors.

    The values `run` and `metrics` are what `run.json` and `metrics.json` hold.
    """
    began, cpu_began = time.perf_counter(), time.process_time()
    _forget_peak_memory()
    config = Config.model_validate(settings["config"] | {"recording": settings["options"]})
    recording = open_recording(settings["input"], **config.recording.model_dump())
    _compile(config, recording.require_camera())
    folder = out / settings["folder"]
    with run_folder(folder, overwrite=True, files={*OUTPUTS, THUMBNAIL}):
        origin = settings["input"], settings["input_sha256"]  # the batch has taken the digest
        saver = RunSaver(folder, config, recording, list(settings["command"]), lambda: origin)
        try:
            result = Slam(config).run(
                recording,
                start_s=settings["start_s"],
                duration_s=settings["duration_s"],
                refine=settings["refine"],
                on_step=saver.on_step,
            )
        except Exception as error:
            saver.break_off(RunState.FAILED, f"{type(error).__name__}: {error}")
            raise
        if config.intensity.enabled and not result.interrupted:
            result = paint(result, recording.require_camera(), config)
        problems = saver.finish(result, "")
        write_file(folder / THUMBNAIL, encode_png(draw_thumbnail(result.panorama), compression=9))
    if result.interrupted:
        raise KeyboardInterrupt
    return {
        "files": [f"{settings['folder']}/{name}" for name in (RUN, REPORT, THUMBNAIL)],
        "folder": settings["folder"],
        "run": _json(folder / RUN),
        "metrics": _json(folder / METRICS),
        "problems": problems,
        "seconds": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu_began,
        "host": socket.gethostname(),
        "sources_sha256": source_digest(Path(__file__)),
    }


def draw_thumbnail(panorama: SingleArray) -> npt.NDArray[np.uint8]:
    """Return the part of a map that has events as a small grey picture."""
    left, top, right, bottom = used_part(panorama, margin=0.01)
    part = panorama[top:bottom, left:right]
    height, width = part.shape
    scale = min(_THUMBNAIL_PX / max(width, height), 1.0)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    return draw_map(np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), np.float32))


def _compile(config: Config, camera: Camera) -> None:
    """Compile what a configuration needs, once in the life of this process: its time is not that of a run."""
    stages = "".join(part.model_dump_json() for part in (config.frontend, config.backend, config.intensity))
    if stages not in _compiled:
        warm_up(config, camera)
        _compiled.add(stages)


def _json(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None


def _forget_peak_memory() -> None:
    """Let the system measure this process's largest memory anew: a worker does one run after the other."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
