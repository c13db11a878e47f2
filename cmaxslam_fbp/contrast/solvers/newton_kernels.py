"""Compiled algebra of small symmetric matrices: what Newton's method and its kin do between two evaluations.

NumPy's own functions take tens of microseconds for it, as long as a value of the score.
"""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.compiling import compiled


def make_positive(model: FloatArray, least: float) -> tuple[FloatArray, FloatArray, bool]:
    """Return the model with positive eigenvalues, its inverse, and whether there are any: not all zero, all finite.

    Negative eigenvalues change their sign; those below `least` times the largest are raised to that.
    """
    if not np.isfinite(model.sum()):
        return model, model, False
    # Compiled code that has a decomposition takes SciPy with it, which is slow to import.
    return _compose(model, *np.linalg.eigh(model), least)


@compiled
def _compose(model, values, vectors, least):
    size = len(values)
    steepest = max(abs(values[0]), abs(values[size - 1]))  # they are in order
    if steepest == 0:
        return model, model, False
    is_changed = values[0] < least * steepest
    positive, inverse = np.zeros((size, size)), np.zeros((size, size))
    for k in range(size):
        value = max(abs(values[k]), least * steepest) if is_changed else values[k]
        for a in range(size):
            for b in range(size):
                product = vectors[a, k] * vectors[b, k]
                positive[a, b] += value * product
                inverse[a, b] += product / value
    return (positive if is_changed else model), inverse, True


@compiled
def updated(model, step, change, damping):
    """Return the BFGS update of the model `A` after a step along which minus the gradient changed by `change`.

    Powell's damping keeps it positive: where the curvature along the step is less than a part of the model's,
    that part stands for it.
    """
    size = len(step)
    along = np.zeros(size)
    for a in range(size):
        for b in range(size):
            along[a] += model[a, b] * step[b]
    expected = found = 0.0
    for a in range(size):
        expected += step[a] * along[a]
        found += step[a] * change[a]
    mix = 1.0
    if found < damping * expected:
        mix = (1 - damping) * expected / (expected - found)
        found = mix * found + (1 - mix) * expected
    result = np.empty((size, size))
    for a in range(size):
        one = mix * change[a] + (1 - mix) * along[a]
        for b in range(size):
            other = mix * change[b] + (1 - mix) * along[b]
            result[a, b] = model[a, b] - along[a] * along[b] / expected + one * other / found
    return result
