"""What the frontend says about one packet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from cmaxslam_fbp.arrays import FloatArray


class EstimateStatus(str, Enum):
    """How an estimate came about."""

    CONVERGED = "converged"
    """The optimiser converged from the predicted velocity."""
    RECOVERED = "recovered"
    """It converged after a search on coarser grids: at the first packet, or where the packet looked stuck."""
    ITERATION_LIMIT = "iteration_limit"
    """The best velocity when the optimiser ran out of evaluations."""
    STALLED = "stalled"
    """The best velocity when the optimiser found no better one, though the gradient is not zero."""
    STILL = "still"
    """Too few events per second for a camera that moves: zero velocity."""
    NO_EVIDENCE = "no_evidence"
    """The events agree no more than by chance, whatever the velocity: zero velocity."""
    TOO_FEW_EVENTS = "too_few_events"
    """Not enough events to say anything: zero velocity."""
    DEGENERATE = "degenerate"
    """Events that do not determine a velocity (one pixel, one instant, outside the grid): zero velocity."""

    @property
    def is_measured(self) -> bool:
        """Whether the velocity comes from the events, rather than from a rule."""
        return self in (
            EstimateStatus.CONVERGED,
            EstimateStatus.RECOVERED,
            EstimateStatus.ITERATION_LIMIT,
            EstimateStatus.STALLED,
        )


@dataclass(frozen=True, eq=False)
class VelocityEstimate:
    """The velocity of the camera over one packet of events.

    Attributes
    ----------
    t_ns : int
        The time that it is for.
    velocity : (P,) float64
        The camera's own, by the parameters of the motion model: angular in rad/s (body frame, comparable with a
        gyroscope), linear over the scene's depth, or whatever else the model has.
    covariance : (P, P) float64
        Of the velocity; always finite.
    score : float
        Of the image of warped events; zero where there is none.
    quality : float
        Variance of the image of warped events over that of the same events where they were: 1 where warping them
        gains nothing.
    evaluations, hessians : int
        How often the score (with or without gradient) and its second derivatives were computed, searches included.
    status : EstimateStatus
        How the estimate came about.
    events : int
        Number of events.
    seconds : float
        Computing time.
    """

    t_ns: int
    velocity: FloatArray
    covariance: FloatArray
    score: float
    quality: float
    evaluations: int
    hessians: int
    status: EstimateStatus
    events: int
    seconds: float

    @property
    def standard_deviations(self) -> FloatArray:
        """Of the components of the velocity, (P,)."""
        return np.sqrt(np.diagonal(self.covariance))
