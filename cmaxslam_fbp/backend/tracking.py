"""What became of a window: whether it matches the map as windows usually do."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend import panorama_kernels as kernels

_REMEMBERED = 30  # windows whose match is the usual one
_DOUBTFUL = 0.75  # part of the usual match below which a window is worth a second try
_FEWEST = 5  # before so many, nothing is usual
_MIN_OVERLAP = 0.3  # of the window's events: with fewer on the known map its match says nothing


class Tracking(str, Enum):
    """What became of a window."""

    TRACKED = "tracked"
    """It agrees with the map, and is in it."""
    FOUND_AGAIN = "found again"
    """After a loss or a time without events it was found by a search over the whole map, and is in it."""
    STILL = "still"
    """Too few events, or they agree no more than by chance: the frontend's motion stands, the map is left alone."""
    LOST = "lost"
    """It does not match the map: the frontend's motion stands, and the map is left alone."""
    NOT_A_ROTATION = "not a rotation"
    """It agrees with the map, and is in it, but no rotation explains how the image moves."""

    @property
    def is_in_map(self) -> bool:
        """Whether the window's events are in the map."""
        return self in (Tracking.TRACKED, Tracking.FOUND_AGAIN, Tracking.NOT_A_ROTATION)


TOO_FEW_EVENTS = "too few events for a camera that moves"
BY_CHANCE = "the events agree no more than by chance"


@dataclass(frozen=True)
class WindowReport:
    """Figures of one window.

    Attributes
    ----------
    start_ns, end_ns, events : the window
    tracking : what became of it
    score, match : its contrast, and the correlation of its image with the map before it (None: no map there)
    evaluations, seconds : what it took
    reason : why it is not simply tracked, in words
    covariance : (3, 3) in rad^2 of the orientation in the middle of the window, for turns in the body frame; None where
        it is not in the map
    """

    start_ns: int
    end_ns: int
    events: int
    tracking: Tracking
    score: float = 0.0
    match: float | None = None
    evaluations: int = 0
    seconds: float = 0.0
    reason: str = ""
    covariance: FloatArray | None = field(default=None, compare=False, repr=False)


def correlation(window: SingleArray, known: SingleArray, visits: npt.NDArray[np.uint16]) -> float | None:
    """Return the correlation coefficient of `sqrt(window)` with `sqrt(known / visits)` where there are visits, or None.

    Events per visit compare places that were seen often with those that were seen once; roots of counts have the same
    variance everywhere, so that a few bright edges do not decide alone. None stands for a window most of which lies
    where there is no map yet.
    """
    moments = np.empty(6)
    kernels.sum_moments(window.reshape(-1), known.reshape(-1), visits.reshape(-1), moments)
    count, a, b, aa, bb, ab = moments.tolist()
    if aa == 0 or aa < _MIN_OVERLAP * float(window.sum(dtype=np.float64)):
        return None
    norm = float(np.sqrt(max(aa - a * a / count, 0.0) * max(bb - b * b / count, 0.0)))
    return (ab - a * b / count) / norm if norm > 0 else None


class TrackingMonitor:
    """Remembers how well windows usually match the map, and tells when one does not.

    Parameters
    ----------
    lost_correlation : part of the usual correlation below which tracking is lost; 0: no match is judged
    lost_step_rad : turn against the prediction above which it is lost, whatever the match
    """

    def __init__(self, lost_correlation: float, lost_step_rad: float) -> None:
        self._lost_correlation = lost_correlation
        self._lost_step_rad = lost_step_rad
        self._usual: deque[float] = deque(maxlen=_REMEMBERED)

    @property
    def least_match(self) -> float | None:
        """The least match of a window that is not lost; None before anything is usual, or where none is ever lost."""
        if len(self._usual) < _FEWEST or self._lost_correlation == 0:
            return None
        return self._lost_correlation * float(np.median(self._usual))

    def is_lost(self, match: float | None, step_rad: float) -> bool:
        """Tell whether a window with this match, and this turn against its prediction, has lost the map."""
        least = self.least_match
        if least is None:
            return False
        return step_rad > self._lost_step_rad or (match is not None and match < least)

    def is_doubtful(self, match: float | None) -> bool:
        """Tell whether a match is so much below the usual one that the window may fit better elsewhere."""
        if match is None or self.least_match is None:
            return False
        return match < _DOUBTFUL * float(np.median(self._usual))

    def accept(self, match: float | None) -> None:
        """Remember the match of a window that is tracked."""
        if match is not None:
            self._usual.append(match)
