"""Some pixels of the sensor, all of whose events are taken: what one saw, its neighbours saw too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.intensity.gradient_kernels import keep_chosen

# Steps of the plane's most even sequence of points (of the root of x^3 = x + 1): any part of it is spread evenly.
_STEP_X, _STEP_Y = 0.7548776662466927, 0.5698402909980532


class PixelChoice:
    """Keeps the events of a share of the pixels.

    Parameters
    ----------
    usable : (height, width) bool
        Pixels that may be chosen.
    share : float
        Of the pixels, from 0 to 1; they are spread evenly.
    """

    def __init__(self, usable: npt.NDArray[np.bool_], share: float) -> None:
        height, width = usable.shape
        places = np.arange(width) * _STEP_X + (np.arange(height) * _STEP_Y)[:, None]
        self.chosen = usable & (np.mod(places, 1, out=places) < share)

    def __call__(self, events: Events) -> Events:
        """Return the events of the chosen pixels."""
        if self.chosen.all():
            return events
        t_ns, x, y, p = (np.empty_like(column) for column in (events.t_ns, events.x, events.y, events.p))
        kept = Events(t_ns, x, y, p)  # type: ignore[arg-type]
        return kept[: self.write(events, kept)]

    def write(self, events: Events, kept: Events) -> int:
        """Write the events of the chosen pixels to others, of which there are as many; return their number."""
        chosen = self.chosen.view(np.uint8)
        columns = (kept.t_ns, kept.x, kept.y, kept.p)
        return int(keep_chosen(events.t_ns, events.x, events.y, events.p, chosen, *columns))
