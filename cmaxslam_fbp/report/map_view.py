"""Views of the map: in colours, through a camera that looks in some direction, with the field of view drawn on it."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, Picture
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.report.map_picture import GAMMA, draw_map

COLOUR_MAPS = ("paper", "night", "viridis", "inferno", "magma")
OUTLINE_BGR = (15, 72, 224)


def colour_map(panorama: npt.NDArray[np.float32], name: str = "paper", gamma: float = GAMMA) -> Picture:
    """Return the map as a picture (height, width, 3), blue-green-red: dark on white, light on dark, or coloured."""
    grey = draw_map(panorama, gamma)
    if name == "paper":
        return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR), np.uint8)
    if name == "night":
        return np.asarray(cv2.cvtColor(255 - grey, cv2.COLOR_GRAY2BGR), np.uint8)
    if name not in COLOUR_MAPS:
        raise ValueError(f"the colour map {name} is not known; there are {', '.join(COLOUR_MAPS)}")
    return np.asarray(cv2.applyColorMap(255 - grey, getattr(cv2, f"COLORMAP_{name.upper()}")), np.uint8)


def used_part(panorama: npt.NDArray[np.float32], margin: float = 0.02) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the part that has events, with a margin in parts of the width."""
    height, width = panorama.shape
    rows, columns = np.flatnonzero((panorama > 0).any(axis=1)), np.flatnonzero((panorama > 0).any(axis=0))
    if len(rows) == 0:
        return 0, 0, width, height
    room = round(margin * width)
    left, top = max(int(columns[0]) - room, 0), max(int(rows[0]) - room, 0)
    return left, top, min(int(columns[-1]) + 1 + room, width), min(int(rows[-1]) + 1 + room, height)


def view_camera(width: int, height: int, field_deg: float) -> Camera:
    """Return an ideal camera that sees `field_deg` from its left edge to its right edge."""
    focal = width / 2 / np.tan(np.radians(field_deg) / 2)
    return Camera(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)


def look(picture: Picture, R_wv: FloatArray, view: Camera) -> Picture:
    """Return what a camera with the orientation `R_wv` (view to world) sees of a panorama around it."""
    height, width = picture.shape[:2]
    pixels = Equirectangular(width, height).project(view.bearings() @ R_wv.T).astype(np.float32)
    seen = cv2.remap(picture, pixels[..., 0], pixels[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    return np.asarray(seen, np.uint8)


def outline_on_map(border: FloatArray, R_wc: FloatArray, width: int, height: int) -> list[FloatArray]:
    """Return the lines of a field of view on a panorama: closed, and cut where they leave it at one side.

    `border` (K, 3) are directions in the camera frame. Each line is an array (N, 2) of pixels.
    """
    pixels = Equirectangular(width, height).project(np.vstack([border, border[:1]]) @ R_wc.T)
    return cut_at_sides(pixels, width)


def cut_at_sides(pixels: FloatArray, width: int) -> list[FloatArray]:
    """Return a line (N, 2) on a panorama as lines, cut where it leaves it at one side and comes back at the other."""
    cuts = np.flatnonzero(np.abs(np.diff(pixels[:, 0])) > width / 2) + 1
    return [piece for piece in np.split(pixels, cuts) if len(piece) > 1]


def outline_in_view(border: FloatArray, R_wc: FloatArray, R_wv: FloatArray, view: Camera) -> list[FloatArray]:
    """Return the lines of a field of view as a camera with the orientation `R_wv` sees them."""
    directions = np.vstack([border, border[:1]]) @ R_wc.T @ R_wv
    ahead = directions[:, 2] > 0.05
    pieces = np.split(directions, np.flatnonzero(np.diff(ahead)) + 1)
    return [view.project(piece) for piece in pieces if len(piece) > 1 and piece[0, 2] > 0.05]


def draw_lines(
    picture: Picture, lines: list[FloatArray], color: tuple[int, int, int] = OUTLINE_BGR, thickness: int = 2
) -> None:
    """Draw lines into a picture, smoothly."""
    for line in lines:
        points = np.rint(16 * line).astype(np.int32)  # sixteenths of a pixel
        cv2.polylines(picture, [points.reshape(-1, 1, 2)], False, color, thickness, cv2.LINE_AA, 4)
