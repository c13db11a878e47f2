"""Compiled evaluation of cumulative B-splines on SO(3): values, body rates, Jacobians."""

# mypy: disable-error-code="misc, no-untyped-def, no-untyped-call, untyped-decorator"
from __future__ import annotations

import math

import numpy as np

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.geometry.so3_kernels import (
    conjugate,
    load,
    multiply,
    rotate,
    so3_exp,
    so3_log,
    write_matrix,
    write_power_jacobian,
)


@compiled
def cumulative_basis(order, u):
    """Return the cumulative basis `(B~1, B~2, B~3)` and its derivatives by `u` in `[0, 1]`; two zeros for order 2."""
    if order == 2:
        return (u, 0.0, 0.0), (1.0, 0.0, 0.0)
    square = u * u
    cube = square * u
    values = (
        (5.0 + 3.0 * u - 3.0 * square + cube) / 6.0,
        (1.0 + 3.0 * u + 3.0 * square - 2.0 * cube) / 6.0,
        cube / 6.0,
    )
    return values, (0.5 * (1.0 - 2.0 * u + square), 0.5 + u - square, 0.5 * square)


@compiled
def evaluate(order, controls, start_ns, step_ns, t_ns, first, quaternions, rotations, rates_rad_s, jacobians):
    """Evaluate `R(t) = R_i prod_j exp(B~_j(u) d_j)`, `d_j = log(R_{i+j-1}^T R_{i+j})`, at times within the spline.

    An output of length zero is not computed. Sorted times are fastest: each segment's logarithms are taken once.

    Parameters
    ----------
    order : int
        2 (linear) or 4 (cubic).
    controls : (K, 4) float64
        Unit quaternions `xyzw` of the control rotations.
    start_ns, step_ns : int
        First valid time, and time between knots.
    t_ns : (N,) int64
        Times in `[start_ns, start_ns + (K - order + 1) step_ns]`: not checked.
    first : (N,) int64
        Out: the index `i` of the first control rotation that acts on each time.
    quaternions : (N, 4) or (0, 4) float64
        Out: `R(t)` as `xyzw`.
    rotations : (N, 3, 3) or (0, 3, 3) float64
        Out: `R(t)`.
    rates_rad_s : (N, 3) or (0, 3) float64
        Out: body rates, `R(t + dt) = R(t) exp(omega dt)`.
    jacobians : (N, order, 3, 3) or (0, order, 3, 3) float64
        Out: `J_k` with `R(t; exp(delta_k) R_k) = exp(sum_k J_k delta_k) R(t)` to first order.
    """
    last = len(controls) - order
    body = np.empty((order - 1, 3))
    world = np.empty((order - 1, 3))
    turn = np.empty((3, 3))
    gain = np.empty((3, 3))
    known = -1
    for n in range(len(t_ns)):
        elapsed = t_ns[n] - start_ns
        segment = min(elapsed // step_ns, last)
        u = (elapsed - segment * step_ns) / step_ns
        first[n] = segment
        if segment != known:
            known = segment
            for j in range(order - 1):
                p = load(controls, segment + j)
                d = so3_log(multiply(conjugate(p), load(controls, segment + j + 1)))
                D = rotate(p, d)
                body[j, 0], body[j, 1], body[j, 2] = d
                world[j, 0], world[j, 1], world[j, 2] = D
        values, slopes = cumulative_basis(order, u)
        q = load(controls, segment)
        rate = (0.0, 0.0, 0.0)
        if len(jacobians) > 0:
            jacobians[n] = 0.0
            for r in range(3):
                jacobians[n, 0, r, r] = 1.0
        for j in range(order - 1):
            b, slope = values[j], slopes[j]
            if len(jacobians) > 0:
                write_power_jacobian(world[j, 0], world[j, 1], world[j, 2], b, gain)
                write_matrix(multiply(q, conjugate(load(controls, segment + j))), turn)
                for r in range(3):
                    for c in range(3):
                        g = turn[r, 0] * gain[0, c] + turn[r, 1] * gain[1, c] + turn[r, 2] * gain[2, c]
                        jacobians[n, j, r, c] -= g
                        jacobians[n, j + 1, r, c] += g
            power = so3_exp(b * body[j, 0], b * body[j, 1], b * body[j, 2])
            carried = rotate(conjugate(power), rate)
            rate = (
                carried[0] + slope * body[j, 0],
                carried[1] + slope * body[j, 1],
                carried[2] + slope * body[j, 2],
            )
            # Only B~1 reaches 1, at the end of a segment: there the next control rotation itself gives the same bits as
            # the start of the next segment, so that a spline which grows keeps its value at its former end.
            q = load(controls, segment + 1) if b == 1.0 else multiply(q, power)
        if len(quaternions) > 0:
            quaternions[n, 0], quaternions[n, 1], quaternions[n, 2], quaternions[n, 3] = q
        if len(rotations) > 0:
            write_matrix(q, rotations[n])
        if len(rates_rad_s) > 0:
            for r in range(3):
                rates_rad_s[n, r] = rate[r] * 1e9 / step_ns


@compiled
def perturb(controls, first, deltas):
    """Turn control rotations on the left in place, `R_k <- exp(delta_k) R_k`: deltas (M, 3) from index `first` on."""
    for m in range(len(deltas)):
        q = multiply(so3_exp(deltas[m, 0], deltas[m, 1], deltas[m, 2]), load(controls, first + m))
        length = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
        for c in range(4):
            controls[first + m, c] = q[c] / length
