"""The second derivatives of the packets before, as a first model of those of the next."""

from __future__ import annotations

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.solution import Solution, Status


class CurvatureMemory:
    """Keeps the last Hessian of each grid, and scales it to a packet of another length and number of events.

    Velocities move events in proportion to the packet's length, and squares of counts grow with the square of their
    number, so second derivatives grow with the squares of both (those of a likelihood with less than the second,
    which the first steps of an optimiser set right). Only solutions that converged are kept.
    """

    def __init__(self) -> None:
        self._kept: dict[int, FloatArray] = {}

    def at(self, factor: int, unit: float, count: int) -> FloatArray | None:
        """Return the Hessian to expect on the grid of that factor.

        There `unit` is the velocity that moves the packet's last event by one bin, and `count` the number of events.
        """
        kept = self._kept.get(factor)
        return None if kept is None else kept * (count / unit) ** 2

    def put(self, factor: int, unit: float, count: int, solution: Solution) -> None:
        """Keep the Hessian of a solution; one that did not converge makes it forget."""
        if solution.status is Status.CONVERGED and solution.hessian is not None:
            self._kept[factor] = solution.hessian * (unit / count) ** 2
        else:
            self._kept.pop(factor, None)
