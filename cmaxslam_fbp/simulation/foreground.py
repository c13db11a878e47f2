"""A textured object that moves in front of the scene, for a scene that is not static."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.motions import HandheldMotion, Motion


@dataclass(frozen=True)
class ForegroundSettings:
    """A round object of angular `radius_deg` that wanders over the sky of the world frame."""

    radius_deg: float = 9.0
    peak_speed_deg_s: float = 80.0
    extent_deg: float = 25.0


@dataclass(frozen=True, eq=False)
class Foreground:
    """An opaque texture on a plane that faces the camera, carried about by `motion`.

    The object's axes are `R_wo = motion`; a direction of its frame meets the texture at `focal (x, y) / z +
    (size - 1) / 2`. `levels` is log intensity (size, size), `opacity` 0 to 1; the border is transparent.
    """

    motion: Motion
    levels: SingleArray
    opacity: SingleArray
    focal: float
    radius_rad: float


def make_foreground(
    settings: ForegroundSettings, duration_s: float, brightness: float, focal: float, blur_rad: float, seed: int
) -> Foreground:
    """Make a disc with a blotchy texture around the intensity `brightness`, of `focal` texels per radian."""
    import cv2

    if not 0 < settings.radius_deg <= 40:
        raise SimulationError(
            f"a foreground radius of {settings.radius_deg} deg is impossible; give one within (0, 40]"
        )
    radius = np.radians(settings.radius_deg)
    half = int(np.ceil(np.tan(radius) * focal + 4 * blur_rad * focal)) + 3
    size = 2 * half + 1
    grid = (np.arange(size) - half) / focal
    distance = np.arctan(np.hypot(grid[:, None], grid[None, :]))
    soft = max(blur_rad, 0.5 / focal)
    opacity = np.clip(0.5 - (distance - radius) / (2 * soft), 0, 1)
    rng = np.random.default_rng([seed, 0x466F7265])
    texture = np.zeros((size, size))
    for scale in (0.35, 0.12, 0.05):  # blotches, as parts of the radius
        layer = cv2.GaussianBlur(rng.standard_normal((size, size)), (0, 0), max(scale * radius * focal, 0.6))
        texture += layer / layer.std()
    levels = np.log(brightness) + 0.25 * texture
    if blur_rad > 0:
        levels = cv2.GaussianBlur(levels, (0, 0), blur_rad * focal)
    motion = HandheldMotion(duration_s, settings.peak_speed_deg_s, settings.extent_deg, seed + 1)
    reach = float(np.hypot(half, half) / focal)
    return Foreground(
        motion, levels.astype(np.float32), opacity.astype(np.float32), float(focal), float(np.arctan(reach))
    )
