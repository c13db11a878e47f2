"""What the events say about the gradient of the map: normal equations, summed in one pass over a recording."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity import gradient_kernels as kernels

# In pixels of the sensor. What is farther apart passed more than one edge; what is nearer came from noise.
_SHORTEST_PX, _LONGEST_PX = 0.06, 4.3


class GradientEquations:
    """Sums of what pairs of events say: `grad M(p).(p' - p'') = s C`, for two events of a pixel in a row.

    The pixel looked at `p''` when it made the first event, and at `p'` when it made the second, whose polarity is `s`;
    `p` lies midway. Meanwhile the log intensity changed by the threshold `C`, which is one for brighter and one for
    darker events. The least squares over all pairs are, for every cell between four pixels of the map, a matrix and a
    vector of its corners (`gradient_kernels`): memory does not grow with the recording.

    Parameters
    ----------
    camera : of the events
    projection : the map

    Attributes
    ----------
    cells : (height - 1, width, NUMBERS) float32
        The sums.
    events : [int, int]
        How many darker and brighter events there were, with a pair or without.
    """

    def __init__(self, camera: Camera, projection: Equirectangular) -> None:
        self.projection = projection
        self._sensor_width = camera.width
        scale = projection.focal_px / max(camera.fx, camera.fy)
        self._bounds = np.float32(_SHORTEST_PX * scale), np.float32(_LONGEST_PX * scale)
        rows = np.arange(projection.height) - projection.height / 2
        self._cosines: SingleArray = np.cos(rows / projection.focal_px).astype(np.float32)
        self._last: SingleArray = np.full((camera.width * camera.height, 2), -1, np.float32)
        self.cells: SingleArray = np.zeros((projection.height - 1, projection.width, kernels.NUMBERS), np.float32)
        self.events = [0, 0]

    def add(self, events: Events, points: SingleArray) -> None:
        """Add events, ordered by time and after all before, that fell on `points` (N, 2), row and column of the map."""
        kernels.add_pairs(
            points.reshape(-1), events.x, events.y, events.p, self._sensor_width, self._cosines,
            np.float32(self.projection.width), *self._bounds, self._last, self.cells,
        )  # fmt: skip
        brighter = int(np.count_nonzero(events.p))
        self.events[0] += len(events) - brighter
        self.events[1] += brighter

    def forget(self) -> None:
        """Let no event that comes have a pair before it: the trajectory has a gap here."""
        self._last.fill(-1)

    @property
    def threshold_ratio(self) -> float:
        """The threshold of brighter over that of darker events: `N_darker / N_brighter`.

        A camera that looks at the same things again and again makes the intensity rise as much as it falls,
        `C_brighter N_brighter = C_darker N_darker`.
        """
        darker, brighter = self.events
        return darker / brighter if darker and brighter else 1.0
