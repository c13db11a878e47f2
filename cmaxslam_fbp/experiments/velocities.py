"""The studies of velocities: the paper's tables of angular and linear velocities, and its two ablations."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cmaxslam_fbp.experiments import paper_figures as paper
from cmaxslam_fbp.experiments.methods import (
    OUR_METHOD,
    OURS,
    RECONSTRUCTION_METHODS,
    SURROGATE_METHODS,
    VELOCITY_METHODS,
)
from cmaxslam_fbp.experiments.paper_figures import SCORES
from cmaxslam_fbp.experiments.sequences import ROTATIONS, TRANSLATIONS
from cmaxslam_fbp.experiments.velocity_tables import VelocityStudy, write_velocities
from cmaxslam_fbp.experiments.velocity_trial import velocity_row
from cmaxslam_fbp.experiments.workbench import Workbench

_QUICK_SCENES = ("boxes", "shapes")
_METHODS = {**VELOCITY_METHODS, OURS: OUR_METHOD}

ANGULAR = VelocityStudy("angular", "Angular velocity", ROTATIONS, "rotation", "deg/s", 2, _METHODS, paper.ANGULAR)
LINEAR = VelocityStudy("linear", "Linear velocity", TRANSLATIONS, "translation", "m/s", 3, _METHODS, paper.LINEAR)
RECONSTRUCTION = VelocityStudy(
    "reconstruction",
    "Reconstruction kernels, rect binning, L-BFGS-B",
    ROTATIONS,
    "rotation",
    "deg/s",
    2,
    RECONSTRUCTION_METHODS,
    paper.RECONSTRUCTION,
)
SURROGATES = VelocityStudy(
    "surrogates",
    "Heuristic surrogate gradients, rect binning, L-BFGS-B",
    ROTATIONS,
    "rotation",
    "deg/s",
    2,
    SURROGATE_METHODS,
    paper.SURROGATES,
)


def run_velocities(study: VelocityStudy, bench: Workbench) -> list[Path]:
    """Run a study of velocities; return what was written."""
    names = [name for name in study.names if not bench.settings.quick or name.partition("_")[0] in _QUICK_SCENES]
    sequences = bench.sequences(names)
    packets = bench.packets(sequences, study.model)
    methods = study.methods
    keys = [(score, method, one.scene) for score in SCORES for method in methods for one in sequences]
    by_scene = {one.scene: (one, values) for one, values in zip(sequences, packets, strict=True)}
    rows = [velocity_row(*by_scene[scene], methods[method], score, study.model) for score, method, scene in keys]
    results = dict(zip(keys, bench.run(rows), strict=True))
    return write_velocities(study, bench, sequences, packets, results)


run_angular, run_linear = partial(run_velocities, ANGULAR), partial(run_velocities, LINEAR)
run_reconstruction, run_surrogates = partial(run_velocities, RECONSTRUCTION), partial(run_velocities, SURROGATES)
