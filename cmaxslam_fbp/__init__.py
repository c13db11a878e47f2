"""Rotational event-camera SLAM by contrast maximisation with functional backpropagation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from cmaxslam_fbp.config import load_config as load_config
    from cmaxslam_fbp.events import Events as Events
    from cmaxslam_fbp.fbp import Binning as Binning
    from cmaxslam_fbp.geometry.camera import Camera as Camera
    from cmaxslam_fbp.io import open_recording as open_recording
    from cmaxslam_fbp.io.recording import Recording as Recording
    from cmaxslam_fbp.pipeline import Slam as Slam

# The public names; each module is imported when its name is first used, so that importing the package is quick.
_HOMES = {
    "Binning": "cmaxslam_fbp.fbp",
    "Camera": "cmaxslam_fbp.geometry.camera",
    "Events": "cmaxslam_fbp.events",
    "Recording": "cmaxslam_fbp.io",
    "Slam": "cmaxslam_fbp.pipeline",
    "load_config": "cmaxslam_fbp.config",
    "open_recording": "cmaxslam_fbp.io",
}

__all__ = ["Binning", "Camera", "Events", "Recording", "Slam", "__version__", "load_config", "open_recording"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cmaxslam_fbp' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
