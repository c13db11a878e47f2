"""Panoramas as pictures: the map of events, the brightness and the distances of the scene; and views of them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, Picture, SingleArray
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular

COLOUR_MAPS = ("paper", "night", "viridis", "inferno", "magma")
OUTLINE_BGR = (15, 72, 224)
GAMMA = 0.75
_GRATICULE_DEG, _GRATICULE_GREY = 30.0, 222
_BLACK_PERCENTILE = 98.0  # of the pixels that have events: those with more are all black
_DARK_PERCENT, _BRIGHT_PERCENT = 0.5, 99.5  # of the pixels of a brightness: beyond them all is black or white
_DISTANCE_RANGE = 0.7  # of the logarithm of the distance, on either side of the mean: half to double


def draw_map(panorama: SingleArray, gamma: float = GAMMA) -> Picture:
    """Return a grey picture (height, width): white without events, black where they are many.

    `255 (1 - min(I / I_max, 1)^gamma)`, with `I_max` exceeded by one in fifty of the pixels that have events.
    """
    picture = np.full(panorama.shape, 255, np.uint8)
    has_events = panorama > 0
    counts = panorama[has_events]  # a small part of a large map
    if len(counts):
        with np.errstate(over="ignore"):  # a damaged map may have any values
            strength = np.clip(counts / np.percentile(counts, _BLACK_PERCENTILE), 0, 1) ** gamma
        picture[has_events] = np.rint(255 * (1 - strength))
    return picture


def draw_graticule(picture: Picture) -> Picture:
    """Return a grey panorama with thin lines of equal longitude and latitude, which events cover."""
    height, width = picture.shape
    per_degree = width / 360
    drawn = picture.copy()
    columns = np.rint(np.arange(0, 360, _GRATICULE_DEG) * per_degree).astype(int)
    rows = np.rint(height / 2 + np.arange(-90 + _GRATICULE_DEG, 90, _GRATICULE_DEG) * per_degree).astype(int)
    rows = rows[(rows >= 0) & (rows < height)]
    drawn[:, columns] = np.minimum(drawn[:, columns], _GRATICULE_GREY)
    drawn[rows] = np.minimum(drawn[rows], _GRATICULE_GREY)
    return drawn


def grey_levels(log_intensity: SingleArray) -> Picture:
    """Return log intensity as grey levels (height, width), darkest to brightest; 0 where it is NaN.

    The logarithm itself is shown: it is how the eye, and the sensor, see a high dynamic range.
    """
    seen = np.isfinite(log_intensity)
    if not seen.any():
        return np.zeros(log_intensity.shape, np.uint8)
    dark, bright = np.percentile(log_intensity[seen], [_DARK_PERCENT, _BRIGHT_PERCENT])
    share = (np.where(seen, log_intensity, dark) - dark) / max(bright - dark, 1e-6)
    return np.rint(255 * np.clip(share, 0, 1)).astype(np.uint8)


def draw_brightness(log_intensity: SingleArray) -> Picture:
    """Return a picture (height, width, 4), blue-green-red-alpha, of log intensity; transparent where it is NaN."""
    alpha = np.where(np.isfinite(log_intensity), 255, 0).astype(np.uint8)
    return np.dstack([*[grey_levels(log_intensity)] * 3, alpha])


def draw_distances(distances: FloatArray) -> Picture:
    """Return a picture (rows, columns, 3), blue-green-red, of distances (rows, columns); NaN is white.

    The colour goes with the logarithm of the distance relative to its mean.
    """
    known = np.isfinite(distances)
    if not known.any():
        return np.full((*distances.shape, 3), 255, np.uint8)
    log = np.log(np.where(known, distances, 1.0))
    nearness = 0.5 - (log - log[known].mean()) / (2 * _DISTANCE_RANGE)
    levels = np.rint(255 * np.clip(nearness, 0, 1)).astype(np.uint8)
    coloured = np.asarray(cv2.applyColorMap(levels, cv2.COLORMAP_TURBO), np.uint8)
    return np.where(known[..., None], coloured, np.uint8(255))


def colour_map(panorama: SingleArray, name: str = "paper", gamma: float = GAMMA) -> Picture:
    """Return the map as a picture (height, width, 3), blue-green-red: dark on white, light on dark, or coloured."""
    grey = draw_map(panorama, gamma)
    if name == "paper":
        return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR), np.uint8)
    if name == "night":
        return np.asarray(cv2.cvtColor(255 - grey, cv2.COLOR_GRAY2BGR), np.uint8)
    if name not in COLOUR_MAPS:
        raise ValueError(f"the colour map {name} is not known; there are {', '.join(COLOUR_MAPS)}")
    return np.asarray(cv2.applyColorMap(255 - grey, getattr(cv2, f"COLORMAP_{name.upper()}")), np.uint8)


def used_part(panorama: SingleArray, margin: float = 0.02) -> tuple[int, int, int, int]:
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


def look(panorama: npt.NDArray[Any], R_wv: FloatArray, view: Camera) -> npt.NDArray[Any]:
    """Return what a camera with the orientation `R_wv` (view to world) sees of a panorama around it.

    That is a picture, or any image of float32: what is not known of it, NaN, is not known of the view.
    """
    height, width = panorama.shape[:2]
    pixels = Equirectangular(width, height).project(view.bearings() @ R_wv.T).astype(np.float32)
    seen = cv2.remap(panorama, pixels[..., 0], pixels[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    return np.asarray(seen, panorama.dtype)


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


def encode_png(picture: Picture, compression: int | None = None) -> bytes:
    """Return a picture, grey (height, width) or blue-green-red (height, width, 3), as the bytes of a PNG file."""
    options = [] if compression is None else [cv2.IMWRITE_PNG_COMPRESSION, compression]
    return bytes(cv2.imencode(".png", picture, options)[1].tobytes())
