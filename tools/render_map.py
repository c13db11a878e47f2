"""Draw the map of a run: a part of it, in colours, with the field of view, or as a camera sees it in some direction."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import CmaxSlamError, OutputError
from cmaxslam_fbp.report.map_picture import (
    COLOUR_MAPS,
    GAMMA,
    colour_map,
    draw_lines,
    look,
    outline_in_view,
    outline_on_map,
    used_part,
    view_camera,
)
from cmaxslam_fbp.report.run_files import RunFiles


def draw(options: argparse.Namespace) -> np.ndarray:
    """Return the picture (height, width, 3)."""
    files = RunFiles.read(options.run)
    border, height, width = files.field_of_view(), *files.panorama.shape
    picture = colour_map(files.panorama, options.colours, options.gamma)
    camera = None
    if options.at is not None:
        if border is None:
            raise OutputError(f"{options.run} does not tell the field of view: run cmaxslam-fbp run again")
        t_ns = np.clip(files.start_ns + round(1e9 * options.at), files.trajectory.start_ns, files.trajectory.end_ns)
        camera = files.trajectory.rotation_at(int(t_ns)).as_matrix()
    if options.view:
        yaw, pitch, field = options.view
        view = view_camera(options.width or 800, round(0.75 * (options.width or 800)), field)
        turn = Rotation.from_euler("YX", [yaw, pitch], degrees=True).as_matrix()
        picture = look(picture, turn, view)
        if camera is not None and border is not None:
            draw_lines(picture, outline_in_view(border, camera, turn, view))
        return picture
    left, top, right, bottom = used_part(files.panorama) if options.fit else options.crop or (0, 0, width, height)
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        raise OutputError(
            f"the part {left} {top} {right} {bottom} does not lie in the map of {width} x {height} pixels"
        )
    scale = (options.width or right - left) / (right - left)
    part = picture[top:bottom, left:right]
    if scale != 1:
        smooth = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
        part = np.asarray(cv2.resize(part, None, fx=scale, fy=scale, interpolation=smooth), np.uint8)
    part = np.ascontiguousarray(part)
    if camera is not None and border is not None:
        lines = outline_on_map(border, camera, width, height)
        draw_lines(part, [scale * (line - (left, top) + 0.5) - 0.5 for line in lines])
    return part


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("out", type=Path, help="picture to write: .png, .jpg, ...")
    parser.add_argument("--colours", choices=COLOUR_MAPS, default="paper", help="dark on white by default")
    parser.add_argument("--gamma", type=float, default=GAMMA, help="below one, faint events are seen better")
    parser.add_argument("--width", type=int, help="of the picture in pixels")
    parser.add_argument("--at", type=float, metavar="S", help="draw the field of view at this time")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--fit", action="store_true", help="only the part of the map that has events")
    part.add_argument("--crop", nargs=4, type=int, metavar=("LEFT", "TOP", "RIGHT", "BOTTOM"), help="a part, in pixels")
    part.add_argument("--view", nargs=3, type=float, metavar=("YAW", "PITCH", "FIELD"), help="look there, in degrees")
    options = parser.parse_args()
    try:
        done, data = cv2.imencode(options.out.suffix, draw(options))
        options.out.write_bytes(data.tobytes() if done else b"")
    except (CmaxSlamError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except cv2.error:
        print(f"error: {options.out} must end in .png or .jpg", file=sys.stderr)
        return 1
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
