"""Scenes: equirectangular panoramas of linear intensity, float32 (width / 2, width), drawn or loaded.

A direction (X, Y, Z) of the world (x right, y down, z forward) is seen at `x = w/2 + f atan2(X, Z)`,
`y = h/2 + f asin(Y / |P|)` with `f = w / 2 pi`; whole coordinates are pixel centres.
"""

from cmaxslam_fbp.simulation.scenes.boxes import draw_boxes
from cmaxslam_fbp.simulation.scenes.panorama_image import check_panorama, load_panorama
from cmaxslam_fbp.simulation.scenes.poster import draw_poster
from cmaxslam_fbp.simulation.scenes.shapes import draw_shapes

SCENES = {"shapes": draw_shapes, "boxes": draw_boxes, "poster": draw_poster}

__all__ = ["SCENES", "check_panorama", "draw_boxes", "draw_poster", "draw_shapes", "load_panorama"]
