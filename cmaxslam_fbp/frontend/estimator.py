"""The frontend: one velocity per packet of events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.choices import MODELS
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.contrast.solvers.solver import Status
from cmaxslam_fbp.errors import ConfigError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import Packet, packets_at_rate, packets_by_count
from cmaxslam_fbp.frontend.covariance import change_variance, velocity_covariance
from cmaxslam_fbp.frontend.estimate import EstimateStatus, VelocityEstimate
from cmaxslam_fbp.frontend.evidence import Evidence, Rest
from cmaxslam_fbp.frontend.maximiser import Maximum, PacketMaximiser
from cmaxslam_fbp.frontend.motion_models import MotionModel
from cmaxslam_fbp.frontend.packet_events import PacketEvents, PacketLookup
from cmaxslam_fbp.frontend.prediction import Prediction
from cmaxslam_fbp.frontend.warps import CAMERA_SIGN, Grid
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.nanoseconds import NS_PER_S

ENOUGH_OF_THINNED = 0.3  # of the usual numbers of events, where lone ones have been left out
_EVIDENCE_OF_THINNED = 2.5  # times the usual evidence is asked there: pure noise reached 21 deviations
_MIN_EVENTS = 100  # fewer say nothing
_STILL_INTERVALS = 10  # CMax-SLAM: a packet at a fixed rate that lasts longer than this has zero velocity
_PACKET_PX, _SLOWEST = 2.5, 3.0  # a packet lasts until the image has moved by this, or so many times its usual limit
_MIN_MOTION_BINS = 0.05  # the largest plausible speed must move events by at least this


class VelocityEstimator:
    """Estimates the camera's velocity from packets of events, one after the other.

    Each packet starts from the velocities before it, carried on. Where there are none, or the result looks wrong (not
    converged, or an image less sharp than before), a search on coarser grids looks for a better one.

    One estimator is for one thread; its compiled loops release the GIL. The same packets give the same bits.

    Parameters
    ----------
    camera : Camera
        With its calibration.
    config : FrontendConfig, optional
        All settings; the defaults are the paper's, with our optimiser.
    is_thinned : callable
        Tells whether lone events have been left out at a time in nanoseconds. Fewer are enough then, but must agree
        more: the noise that is left comes in clusters, which agree at any small velocity.

    Attributes
    ----------
    model : MotionModel
        What the velocities are of.

    Examples
    --------
    >>> estimator = VelocityEstimator(camera)                                # doctest: +SKIP
    >>> for estimate in estimator.run(recording.chunks()):                   # doctest: +SKIP
    ...     print(estimate.t_ns, estimate.velocity, estimate.status.value)
    """

    def __init__(
        self, camera: Camera, config: FrontendConfig | None = None, is_thinned: Callable[[int], bool] = lambda _: False
    ) -> None:
        self.camera, self.config, self._is_thinned = camera, config or FrontendConfig(), is_thinned
        if self.config.polarity == "signed" and self.config.score == "negative_binomial":
            raise ConfigError(
                "the score negative_binomial is for counts: use frontend.polarity=ignored, or frontend.score=variance"
            )
        self.model: MotionModel = MODELS[self.config.model]()
        self._grid = Grid.configured(camera, self.config)
        self._px_per_unit = camera.px_per_rad()[
            : self.model.parameter_count
        ]  # of angles; about so much of other models
        self._look_up = PacketLookup(camera, self.config.polarity)
        self._maximiser = PacketMaximiser(self.config, self.model, self._grid)
        self._evidence = Evidence(self._maximiser.pyramid, camera)
        self.reset()

    def reset(self) -> None:
        """Forget all packets so far: the next one is a cold start."""
        self._forget_motion()
        self._rest = Rest()

    def _forget_motion(self) -> None:
        self._maximiser.forget()
        self._prediction = Prediction()

    def packets(self, chunks: Iterable[Events]) -> Iterator[Packet]:
        """Cut a stream of events into packets, as configured."""
        if self.config.packets == "rate":
            interval_ns = round(self.config.interval_s * NS_PER_S)
            return packets_at_rate(
                chunks,
                self.config.events_per_packet,
                interval_ns,
                min_duration_ns=round(self.config.min_packet_s * NS_PER_S),
                max_duration_ns=None if self.config.max_packet_s is None else self._longest_packet_ns,
                min_count=self._fewest_events,
            )
        return packets_by_count(chunks, self.config.events_per_packet)

    def _fewest_events(self, t_ns: int) -> int:
        """Return how many events a packet is not cut below."""
        fewest = min(self.config.min_packet_events, self.config.events_per_packet)
        return max(round(ENOUGH_OF_THINNED * fewest), 1) if self._is_thinned(t_ns) else fewest

    def _longest_packet_ns(self, t_ns: int) -> int:
        """Return how long a packet may last: until something has moved by a few pixels at the last velocity.

        Where little moves and no velocity is known, it is the longer ones that tell motion from noise.
        """
        shortest_s = self.config.max_packet_s or 0.0
        velocity = self._prediction.last
        speed_px_s = 0.0 if velocity is None else float(np.linalg.norm(velocity * self._px_per_unit))
        if speed_px_s:
            moved_s = _PACKET_PX / speed_px_s
        else:
            moved_s = np.inf if self._is_thinned(t_ns) else 0.0
        return round(min(max(moved_s, shortest_s), _SLOWEST * shortest_s) * NS_PER_S)

    def run(self, chunks: Iterable[Events]) -> Iterator[VelocityEstimate]:
        """Yield one estimate per packet of a stream of events."""
        for packet in self.packets(chunks):
            yield self.estimate(packet)

    def estimate(self, packet: Packet) -> VelocityEstimate:
        """Return the velocity of one packet, which follows those before it."""
        began = time.perf_counter()
        status = self._rule(packet)
        if status is None and self._rest.goes_on(packet):
            status = EstimateStatus.NO_EVIDENCE
        if status is not None:
            estimate = self._without_motion(packet, status, began)
            # Events too few to measure a velocity must agree more than by chance where they are.
            if status is EstimateStatus.STILL and not self._shows_motion(
                packet, self._look_up(packet), estimate.velocity
            ):
                estimate = replace(estimate, status=EstimateStatus.NO_EVIDENCE)
            return estimate
        events = self._look_up(packet)
        if _MIN_MOTION_BINS * self._grid.speed_of_one_bin(events.reach_s) > self.config.max_speed:
            return self._without_motion(packet, EstimateStatus.DEGENERATE, began)
        maximum = self._maximiser.maximise(events, self._prediction.at(packet.t_ns))
        return self._conclude(packet, events, maximum, began)

    def _rule(self, packet: Packet) -> EstimateStatus | None:
        """Return the status of a packet that needs no optimisation."""
        count = len(packet.events)
        if count < _MIN_EVENTS:
            return EstimateStatus.TOO_FEW_EVENTS
        duration_s = packet.duration_s
        if duration_s == 0:
            return EstimateStatus.DEGENERATE
        enough = ENOUGH_OF_THINNED if self._is_thinned(packet.t_ns) else 1.0
        if count < enough * self.config.still_rate_ev_s * duration_s:
            return EstimateStatus.STILL
        if self.config.packets == "rate" and duration_s > _STILL_INTERVALS * self.config.interval_s:
            return EstimateStatus.STILL
        return None

    def _shows_motion(self, packet: Packet, points: PacketEvents, velocity: FloatArray, least: float = 0.0) -> bool:
        """Tell whether events agree more than by chance at a velocity; of the deviations a lower bound may be known."""
        wanted = self.config.min_evidence * (_EVIDENCE_OF_THINNED if self._is_thinned(packet.t_ns) else 1.0)
        return self._evidence.is_enough(packet.events, points, velocity, wanted, least)

    def _conclude(self, packet: Packet, points: PacketEvents, maximum: Maximum, began: float) -> VelocityEstimate:
        """Judge a maximum, remember it for the next packet, and return it as an estimate."""
        solution, largest = maximum.solution, self.config.max_speed
        covariance = velocity_covariance(maximum.hessian, maximum.gradient_scatter, largest)
        is_determined = float(np.trace(covariance)) < 0.9 * largest**2
        if not is_determined or not np.linalg.norm(solution.parameters) <= largest:
            return self._without_motion(packet, EstimateStatus.DEGENERATE, began, maximum)
        if self._evidence.can_tell(points.reach_s, largest) and not self._shows_motion(
            packet, points, solution.evaluated, maximum.least_evidence
        ):
            self._rest.begin(packet)
            return self._without_motion(packet, EstimateStatus.NO_EVIDENCE, began, maximum)
        self._rest.end()
        change = self._prediction.change_over(packet.t_ns, solution.parameters, packet.duration_s)
        covariance += change_variance(change, len(covariance)) * np.eye(len(covariance))
        status = EstimateStatus(solution.status.value)
        if maximum.is_recovered and status is EstimateStatus.CONVERGED:
            status = EstimateStatus.RECOVERED
        self._prediction.add(packet.t_ns, solution.parameters, continues=solution.status is Status.CONVERGED)
        return VelocityEstimate(
            t_ns=packet.t_ns,
            velocity=CAMERA_SIGN * solution.parameters,
            covariance=covariance,
            score=solution.score,
            quality=maximum.quality,
            evaluations=maximum.evaluations,
            hessians=maximum.hessians,
            status=status,
            events=len(packet.events),
            seconds=time.perf_counter() - began,
        )

    def _without_motion(
        self, packet: Packet, status: EstimateStatus, began: float, maximum: Maximum | None = None
    ) -> VelocityEstimate:
        """Return zero velocity: of a still camera known to a bin over the packet, otherwise not known."""
        self._forget_motion()
        still = np.zeros(self.model.parameter_count)
        deviation = self.config.max_speed
        if status in (EstimateStatus.STILL, EstimateStatus.NO_EVIDENCE):
            reach_s = max(abs(int(packet.events.t_ns[k]) - packet.t_ns) for k in (0, -1)) / NS_PER_S
            deviation = min(deviation, self._grid.speed_of_one_bin(reach_s))
            if status is EstimateStatus.STILL or not self._rest.wants_search:  # else the next one is a cold start
                self._prediction.add(packet.t_ns, still)
        return VelocityEstimate(
            t_ns=packet.t_ns,
            velocity=still,
            covariance=deviation**2 * np.eye(len(still)),
            score=0.0,
            quality=1.0,
            evaluations=0 if maximum is None else maximum.evaluations,
            hessians=0 if maximum is None else maximum.hessians,
            status=status,
            events=len(packet.events),
            seconds=time.perf_counter() - began,
        )
