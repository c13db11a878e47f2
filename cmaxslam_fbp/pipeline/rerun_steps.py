"""The steps of a run, drawn for Rerun."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.pipeline.step import Step
from cmaxslam_fbp.pipeline.streaming import SettledPoses
from cmaxslam_fbp.report.event_picture import EventPicture
from cmaxslam_fbp.report.map_picture import draw_map, encode_png
from cmaxslam_fbp.viewer.rerun_log import RerunLog

PACKET_S = 0.03  # of the recording before the end of each window
_MOST_EVENTS = 20_000  # that are drawn one by one
_MAP_EVERY_S = 0.5


class RerunSteps:
    """Gives the windows of a run to a Rerun recording: the last events of each, the map, the poses that settle."""

    def __init__(self, log: RerunLog, camera: Camera) -> None:
        self._log, self._picture, self._poses = log, EventPicture(camera), SettledPoses()
        self._map_due_s = 0.0

    def on_step(self, step: Step) -> None:
        """Add a window; the refinement is not shown."""
        if step.window is None:
            return
        first, *_ = stretches = step.stretches()
        if (poses := self._poses.new(step)) is not None:
            self._log.add_poses(poses, first.start_ns)
        events, last = step.events(), stretches[-1]
        events = events[last.covers(events.t_ns)]
        drawn = events[:: -(-len(events) // _MOST_EVENTS) or 1]
        pictures = {"packet/before": self._picture.count(events)}
        if len(events):
            turns = Rotation.from_matrix(last.rotations_at(events.t_ns))
            pictures["packet/after"] = self._picture.count(events, turns[-1].inv() * turns)
            pictures["world/camera/image"] = pictures["packet/after"]
        if step.recording_s >= self._map_due_s:
            pictures["map"] = step.panorama
            self._map_due_s = step.recording_s + _MAP_EVERY_S
        self._log.add_window(
            1e-9 * int(events.t_ns[-1] - first.start_ns) if len(events) else step.recording_s,
            tracking=f"{step.window.tracking.value} {step.window.reason}".strip(),
            events_px=np.column_stack([drawn.x, drawn.y]).astype(float),
            polarities=drawn.p,
            pictures={entity: _png(image) for entity, image in pictures.items()},
            figures={
                "speed_deg_s": step.speed_deg_s,
                "contrast": step.window.score,
                "match": step.window.match,
                "events": float(step.window.events),
            },
        )

    def finish(self, result: SlamResult) -> None:
        """Add the poses that are left at the end of a run, and the last map."""
        self._log.add_poses(self._poses.rest(result), result.start_ns)
        self._log.add_map(result.duration_s, _png(result.panorama))


def _png(image: SingleArray) -> bytes:
    return encode_png(draw_map(image), compression=1)
