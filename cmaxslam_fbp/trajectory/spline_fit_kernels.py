"""Compiled parts of the initialisation: integration of angular velocities, normal equations of a spline fit."""

# mypy: disable-error-code="misc, no-untyped-def, no-untyped-call, untyped-decorator"
from __future__ import annotations

import math

import numpy as np

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.geometry.so3_kernels import (
    conjugate,
    load,
    multiply,
    so3_exp,
    so3_log,
    write_left_jacobian_inverse,
    write_matrix,
)
from cmaxslam_fbp.trajectory.spline_kernels import evaluate


@compiled
def integrate(t_ns, omega_rad_s, quaternions):
    """Fill `quaternions[1:]` (M, 4) from its first row by `R <- R exp((omega_k + omega_{k+1}) / 2 dt)`."""
    for k in range(len(t_ns) - 1):
        half_s = 0.5e-9 * (t_ns[k + 1] - t_ns[k])
        q = multiply(
            load(quaternions, k),
            so3_exp(
                half_s * (omega_rad_s[k, 0] + omega_rad_s[k + 1, 0]),
                half_s * (omega_rad_s[k, 1] + omega_rad_s[k + 1, 1]),
                half_s * (omega_rad_s[k, 2] + omega_rad_s[k + 1, 2]),
            ),
        )
        length = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
        for c in range(4):
            quaternions[k + 1, c] = q[c] / length


@compiled
def _add_term(first, fixed, residual, blocks, count, weight, band, gradient):
    """Add `weight |e + sum_b A_b delta_{first+b}|^2 / 2`, blocks `A` (count, 3, 3), to the normal equations.

    `band[i - j, j]` holds the element `(i, j)`, `i >= j`, of the matrix; the leading `fixed` controls take no part.
    """
    for b in range(max(fixed - first, 0), count):
        for r in range(3):
            row = 3 * (first + b - fixed) + r
            total = 0.0
            for m in range(3):
                total += blocks[b, m, r] * residual[m]
            gradient[row] += weight * total
            for a in range(max(fixed - first, 0), b + 1):
                for c in range(3):
                    column = 3 * (first + a - fixed) + c
                    if column <= row:
                        product = 0.0
                        for m in range(3):
                            product += blocks[b, m, r] * blocks[a, m, c]
                        band[row - column, column] += weight * product


@compiled
def _write_step(controls, k, step, jacobian):
    """Write `d_k = log(R_k^T R_{k+1})` and `J_l(d_k)^-1 R_k^T`, by which it changes with `delta_{k+1} - delta_k`."""
    p = load(controls, k)
    d = so3_log(multiply(conjugate(p), load(controls, k + 1)))
    inverse = np.empty((3, 3))
    rotation = np.empty((3, 3))
    write_left_jacobian_inverse(d[0], d[1], d[2], inverse)
    write_matrix(conjugate(p), rotation)
    for r in range(3):
        step[r] = d[r]
        for c in range(3):
            jacobian[r, c] = (
                inverse[r, 0] * rotation[0, c] + inverse[r, 1] * rotation[1, c] + inverse[r, 2] * rotation[2, c]
            )


@compiled
def normal_equations(order, controls, start_ns, step_ns, t_ns, observed, fixed, stiffness, band, gradient):
    """Fill the Gauss-Newton equations of the fit and return its cost.

    The residuals are `e_n = log(R_n R(t_n)^T)` for the observed rotations `R_n`, whose length is the angle between
    the two; where the spline turns by `exp(eta)` on the left, `e` changes by `-J_r(e)^-1 eta`. The regulariser is
    `stiffness |d_{k+1} - d_k|^2` over the steps `d_k = log(R_k^T R_{k+1})` between neighbouring controls.

    Parameters
    ----------
    observed : (N, 4) float64
        Rotations at `t_ns`, as `xyzw`.
    fixed : int
        Number of leading controls that do not move.
    band : (3 max(order, 3), 3 (K - fixed)) float64
        Out: lower band of the matrix, as `solve_banded` takes it.
    gradient : (3 (K - fixed),) float64
        Out: the solution of `matrix delta = -gradient` is the step, `R_k <- exp(delta_k) R_k`.
    """
    band[:] = 0.0
    gradient[:] = 0.0
    count = len(t_ns)
    first = np.empty(count, np.int64)
    values = np.empty((count, 4))
    jacobians = np.empty((count, order, 3, 3))
    evaluate(
        order, controls, start_ns, step_ns, t_ns, first, values, np.empty((0, 3, 3)), np.empty((0, 3)), jacobians
    )  # fmt: skip
    cost = 0.0
    residual = np.empty(3)
    inverse = np.empty((3, 3))
    blocks = np.empty((max(order, 3), 3, 3))
    for n in range(count):
        e = so3_log(multiply(load(observed, n), conjugate(load(values, n))))
        write_left_jacobian_inverse(-e[0], -e[1], -e[2], inverse)
        for r in range(3):
            residual[r] = e[r]
            cost += e[r] * e[r]
        for b in range(order):
            for r in range(3):
                for c in range(3):
                    total = 0.0
                    for m in range(3):
                        total += inverse[r, m] * jacobians[n, b, m, c]
                    blocks[b, r, c] = -total
        _add_term(first[n], fixed, residual, blocks, order, 1.0, band, gradient)
    steps = np.empty((2, 3))
    changes = np.empty((2, 3, 3))
    _write_step(controls, 0, steps[1], changes[1])
    for k in range(len(controls) - 2):
        for r in range(3):  # not `changes[0] = changes[1]`: the words for arrays that do not fit would be compiled too
            steps[0, r] = steps[1, r]
            for c in range(3):
                changes[0, r, c] = changes[1, r, c]
        _write_step(controls, k + 1, steps[1], changes[1])
        for r in range(3):
            residual[r] = steps[1, r] - steps[0, r]
            cost += stiffness * residual[r] * residual[r]
            for c in range(3):
                blocks[0, r, c] = changes[0, r, c]
                blocks[1, r, c] = -changes[0, r, c] - changes[1, r, c]
                blocks[2, r, c] = changes[1, r, c]
        _add_term(k, fixed, residual, blocks, 3, stiffness, band, gradient)
    return cost


@compiled
def solve_banded(band, rhs):
    """Overwrite `rhs` (N,) with the `x` of `A x = rhs`, by the Cholesky factor of `A`, which overwrites `band`.

    `band[k, j]` is `A[j + k, j]` of a symmetric matrix; where that is not positive definite, the solution is NaN.
    """
    rows, count = band.shape
    for j in range(count):
        reach = min(rows, count - j)
        pivot = math.sqrt(band[0, j])
        for k in range(reach):
            band[k, j] /= pivot
        rhs[j] /= pivot
        for k in range(1, reach):
            rhs[j + k] -= band[k, j] * rhs[j]
            for m in range(k, reach):
                band[m - k, j + k] -= band[m, j] * band[k, j]
    for j in range(count - 1, -1, -1):
        for k in range(1, min(rows, count - j)):
            rhs[j] -= band[k, j] * rhs[j + k]
        rhs[j] /= band[0, j]
