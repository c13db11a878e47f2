"""Rotational event-camera SLAM by contrast maximisation with functional backpropagation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from cmaxslam_fbp.config import load_config as load_config
    from cmaxslam_fbp.fbp import Binning as Binning
    from cmaxslam_fbp.io import open_recording as open_recording
    from cmaxslam_fbp.pipeline import Slam as Slam

# The public names; each module is imported when its name is first used, so that importing the package is quick.
_HOMES = {
    "Binning": "cmaxslam_fbp.fbp",
    "Slam": "cmaxslam_fbp.pipeline",
    "load_config": "cmaxslam_fbp.config",
    "open_recording": "cmaxslam_fbp.io",
}

__all__ = ["Binning", "Slam", "__version__", "load_config", "open_recording"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cmaxslam_fbp' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
