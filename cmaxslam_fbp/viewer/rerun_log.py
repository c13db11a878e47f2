"""A run as a Rerun recording (.rrd), and the Rerun viewer: the only module that imports rerun.

| entity | what |
| --- | --- |
| `world/camera` | the camera on its path, at 200 Hz; below it its image |
| `world/path/...` | where its optical axis has pointed, piece by piece |
| `events` | the recording's last events before the end of a window, blue where it became darker, red where brighter |
| `packet/before`, `packet/after` | the image of these events as they came, and with the motion undone |
| `map` | the panorama as it grows |
| `curves/...` | angular velocity, speed, contrast, match with the map, number of events |
| `tracking` | what became of each window |

All lies on one timeline, `recording`: seconds from the first event.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import MissingExtraError, OutputError
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.trajectory import RotationTrajectory

TIMELINE = "recording"
_POLARITY_COLORS = np.array([[37, 99, 235], [220, 38, 38]], np.uint8)


class RerunLog:
    """Writes what happens in a run into an .rrd file, as a context.

    Parameters
    ----------
    path : ends in .rrd
    camera : whose image plane is shown
    """

    def __init__(self, path: Path, camera: Camera) -> None:
        if path.suffix != ".rrd":
            raise OutputError(f"the Rerun recording {path} must end in .rrd")
        self._rerun = rr = _import_rerun()
        self._stream = rr.RecordingStream("cmaxslam_fbp")
        self._stream.set_log_time_enabled(False)
        self._stream.set_log_tick_enabled(False)
        self._pieces = 0
        try:
            self._stream.save(path, _layout(rr))
        except Exception as error:  # the library has errors of its own
            raise OutputError(f"{path} cannot be written: {error}") from error
        self._stream.log("world", rr.ViewCoordinates.RDF, static=True)
        view = camera.without_distortion()
        pinhole = rr.Pinhole(
            resolution=[view.width, view.height],
            focal_length=[view.fx, view.fy],
            principal_point=[view.cx, view.cy],
            image_plane_distance=1.0,
        )
        self._stream.log("world/camera/image", pinhole, static=True)

    def __enter__(self) -> RerunLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()
        self._stream.disconnect()

    def add_poses(self, poses: RotationTrajectory, start_ns: int) -> None:
        """Add poses that follow those before: the camera, its path, and its angular velocity."""
        rr = self._rerun
        times = [rr.TimeColumn(TIMELINE, duration=1e-9 * (poses.t_ns - start_ns))]
        places = np.zeros((len(poses), 3)) if poses.positions_m is None else poses.positions_m
        turns = rr.Transform3D.columns(quaternion=poses.quaternions_xyzw, translation=places)
        self._stream.send_columns("world/camera", times, turns)
        omega_deg_s = np.degrees(poses.angular_velocity_at(poses.t_ns))
        for axis, values in zip("xyz", omega_deg_s.T, strict=True):
            columns = rr.Scalars.columns(scalars=values)
            self._stream.send_columns(f"curves/angular_velocity_deg_s/{axis}", times, columns)
        self._stream.set_time(TIMELINE, duration=1e-9 * (poses.end_ns - start_ns))
        path = places + poses.rotations.apply([0.0, 0.0, 1.0])
        self._stream.log(f"world/path/{self._pieces:05d}", rr.LineStrips3D([path], colors=[37, 99, 235]))
        self._pieces += 1

    def add_window(
        self,
        t_s: float,
        *,
        tracking: str,
        events_px: FloatArray,
        polarities: npt.NDArray[np.uint8],
        pictures: Mapping[str, bytes],
        figures: Mapping[str, float | None],
    ) -> None:
        """Add a window at its time: events (N, 2) and (N,), pictures (PNG) by entity, figures by curve."""
        rr, log = self._rerun, self._stream.log
        self._stream.set_time(TIMELINE, duration=t_s)
        log("events", rr.Points2D(events_px, colors=_POLARITY_COLORS[polarities], radii=0.5))
        for entity, picture in pictures.items():
            log(entity, rr.EncodedImage(contents=picture, media_type="image/png"))
        for name, value in figures.items():
            if value is not None:
                log(f"curves/{name}", rr.Scalars(value))
        log("tracking", rr.TextLog(tracking))

    def add_map(self, t_s: float, picture: bytes) -> None:
        """Add the map, as the bytes of a PNG file."""
        self._stream.set_time(TIMELINE, duration=t_s)
        self._stream.log("map", self._rerun.EncodedImage(contents=picture, media_type="image/png"))


def open_viewer(path: Path) -> None:
    """Open a recording in the Rerun viewer; return when it is closed."""
    _import_rerun()
    done = subprocess.run([sys.executable, "-m", "rerun", str(path)])
    if done.returncode:
        raise OutputError(f"the Rerun viewer has ended with code {done.returncode}; it needs a display: rerun {path}")


def _layout(rr: Any) -> Any:
    """Return the views that the viewer opens with."""
    import rerun.blueprint as views

    left = views.Vertical(
        views.Spatial3DView(origin="world", name="camera"), views.Spatial2DView(origin="map", name="map")
    )
    right = views.Vertical(
        views.Spatial2DView(origin="events", name="events"),
        views.Spatial2DView(origin="packet/before", name="packet, as it came"),
        views.Spatial2DView(origin="packet/after", name="packet, motion undone"),
        views.TimeSeriesView(origin="curves/angular_velocity_deg_s", name="angular velocity"),
    )
    return views.Blueprint(views.Horizontal(left, right, column_shares=[3, 2]))


def _import_rerun() -> Any:
    try:
        import rerun
    except ImportError as error:
        if getattr(error, "name", None) != "rerun":
            raise OutputError(f"Rerun cannot be loaded: {error}") from error
        raise MissingExtraError("Rerun is not installed: pip install 'cmaxslam-fbp[rerun]'") from error
    return rerun
