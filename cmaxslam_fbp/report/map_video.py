"""A video of the map as it grows, with the camera's field of view and path."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import cv2
import numpy as np

from cmaxslam_fbp.arrays import FloatArray, Picture, SingleArray
from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.io.atomic_files import in_the_making
from cmaxslam_fbp.report.map_picture import colour_map, cut_at_sides, draw_lines, outline_on_map

PATH_BGR, TEXT_BGR = (235, 99, 37), (70, 60, 50)
_MOST_WIDTH = 1920  # what every player takes


class MapVideo:
    """Writes frames into an `.mp4` file, which appears whole when the context is left, or not at all after an error.

    Parameters
    ----------
    path : Path
        Ends in `.mp4`.
    border : (K, 3) float64, optional
        The sensor's border as directions in the camera frame; without it only the path is drawn.
    rate_hz : float
        Frames per second of the video.

    Examples
    --------
    >>> with MapVideo(Path("map.mp4"), field_of_view(camera)) as video:          # doctest: +SKIP
    ...     video.add(panorama, R_wc, t_s)
    """

    def __init__(self, path: Path, border: FloatArray | None = None, rate_hz: float = 10.0) -> None:
        if path.suffix != ".mp4":
            raise OutputError(f"the video {path} must end in .mp4")
        self.path = path
        self._border, self._rate_hz = border, rate_hz
        self._file = ExitStack()
        self._writer: cv2.VideoWriter | None = None
        self._size = 0, 0
        self._axes: list[FloatArray] = []

    def __enter__(self) -> MapVideo:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def add(self, panorama: SingleArray, R_wc: FloatArray, t_s: float) -> None:
        """Append a frame: the map as it is (height, width), the camera's orientation (3, 3), and the time."""
        self.add_picture(colour_map(panorama), R_wc, t_s)

    def add_picture(self, picture: Picture, R_wc: FloatArray, t_s: float) -> None:
        """Append a frame that shows any panorama (height, width, 3), blue-green-red."""
        if self._writer is None:
            self._open(picture.shape[:2])
        width, height = self._size
        if picture.shape[1] != width:
            picture = np.asarray(cv2.resize(picture, self._size, interpolation=cv2.INTER_AREA), np.uint8)
        picture = np.ascontiguousarray(picture)
        self._axes.append(R_wc[:, 2].copy())
        path = Equirectangular(width, height).project(np.array(self._axes))
        draw_lines(picture, cut_at_sides(path, width), PATH_BGR, 1)
        if self._border is not None:
            draw_lines(picture, outline_on_map(self._border, R_wc, width, height))
        place = 12, height - 14
        cv2.putText(picture, f"{t_s:.2f} s", place, cv2.FONT_HERSHEY_SIMPLEX, 0.6, TEXT_BGR, 1, cv2.LINE_AA)
        assert self._writer is not None
        self._writer.write(picture)

    def _open(self, shape: tuple[int, ...]) -> None:
        """Start the file with frames of the map's size, even in both directions as the format wants it."""
        height, width = shape
        scale = min(1.0, _MOST_WIDTH / width)
        self._size = max(2 * round(scale * width / 2), 2), max(2 * round(scale * height / 2), 2)
        code = cv2.VideoWriter.fourcc(*"mp4v")
        temporary = self._file.enter_context(in_the_making(self.path, ending=".mp4"))
        self._writer = cv2.VideoWriter(str(temporary), code, self._rate_hz, self._size)
        self._file.callback(self._writer.release)
        if not self._writer.isOpened():
            raise OutputError(
                f"cannot write the video {self.path}: the folder is missing, or OpenCV has no mp4 encoder"
            )
