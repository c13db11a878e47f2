"""Optimisers behind one interface; `choices.SOLVERS` has them by name."""

from __future__ import annotations

from cmaxslam_fbp.contrast.solvers.fletcher_reeves import FletcherReeves
from cmaxslam_fbp.contrast.solvers.newton import LATTICE_BINS, Newton
from cmaxslam_fbp.contrast.solvers.quasi_newton import QuasiNewton
from cmaxslam_fbp.contrast.solvers.scipy_solvers import Lbfgsb, TrustNcg
from cmaxslam_fbp.contrast.solvers.solver import Solver

__all__ = ["LATTICE_BINS", "FletcherReeves", "Lbfgsb", "Newton", "QuasiNewton", "Solver", "TrustNcg"]
