"""The second derivatives of the packets before, as a first model of those of the next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.contrast.solution import Solution, Status

FloatArray = npt.NDArray[np.float64]


class CurvatureMemory:
    """Keeps the last Hessian of each grid, and scales it to a packet of another length.

    Velocities move events in proportion to the packet's length, so second derivatives with respect to them grow
    with its square. They are kept per bin moved, and only of solutions that converged.
    """

    def __init__(self) -> None:
        self._per_bin: dict[int, FloatArray] = {}

    def at(self, factor: int, unit: float) -> FloatArray | None:
        """Return the Hessian to expect on the grid of that factor where a bin is moved by the velocity `unit`."""
        kept = self._per_bin.get(factor)
        return None if kept is None else kept / unit**2

    def put(self, factor: int, unit: float, solution: Solution) -> None:
        """Keep the Hessian of a solution; one that did not converge makes it forget."""
        if solution.status is Status.CONVERGED and solution.hessian is not None:
            self._per_bin[factor] = solution.hessian * unit**2
        else:
            self._per_bin.pop(factor, None)
