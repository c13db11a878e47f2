"""Optimisers behind one interface, by name."""

from __future__ import annotations

from cmaxslam_fbp.contrast.solvers.fletcher_reeves import FletcherReeves
from cmaxslam_fbp.contrast.solvers.lbfgsb import Lbfgsb
from cmaxslam_fbp.contrast.solvers.newton import LATTICE_BINS, Newton
from cmaxslam_fbp.contrast.solvers.quasi_newton import QuasiNewton
from cmaxslam_fbp.contrast.solvers.solver import Solver, SolverName
from cmaxslam_fbp.contrast.solvers.trust_ncg import TrustNcg

__all__ = [
    "LATTICE_BINS",
    "FletcherReeves",
    "Lbfgsb",
    "Newton",
    "QuasiNewton",
    "Solver",
    "SolverName",
    "TrustNcg",
    "solver_named",
]


def solver_named(name: SolverName) -> Solver:
    """Return the solver of that name, with its default settings."""
    solvers: dict[SolverName, type[Newton | Lbfgsb | TrustNcg | FletcherReeves | QuasiNewton]] = {
        "newton": Newton,
        "lbfgsb": Lbfgsb,
        "trust_ncg": TrustNcg,
        "fletcher_reeves": FletcherReeves,
        "quasi_newton": QuasiNewton,
    }
    if name not in solvers:
        raise ValueError(f"there is no solver '{name}'; choose one of {', '.join(solvers)}")
    return solvers[name]()
