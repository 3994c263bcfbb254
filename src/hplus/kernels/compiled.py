"""Compiled evaluation of a kernel at one point and all atoms, from a program of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from hplus.kernels.stationary import MAX_EXPONENT

# an instruction pushes a row of numbers, one per atom; changes the top row; or joins two rows
SQUARED_DIFFERENCE, CITYBLOCK, CHORD, DOT, EQUAL, TABLE, FILL = PUSHES = range(7)
EXP, MATERN32, MATERN52, LOG1P, POWER, SCALE = range(7, 13)
ADD, MULTIPLY = JOINS = range(13, 15)

# e^r = 1 + r + r²(1/2! + r/3! + …) for |r| <= log(2)/2, and sin πu for |u| <= 1/2
EXP_EVEN = tuple(1.0 / math.factorial(k) for k in range(12, 1, -2))
EXP_ODD = tuple(1.0 / math.factorial(k) for k in range(13, 2, -2))
SINE = tuple((-1) ** (k // 2) * math.pi**k / math.factorial(k) for k in range(21, 0, -2))
LOG2_HEAD, LOG2_TAIL = 0.6931471803691238, 1.9082149292705877e-10
ROUNDING_SHIFT = 1.5 * 2.0**52
"""Adding and then subtracting this rounds a number of moderate size to the nearest integer."""

# "contract" allows fused multiply-adds and nothing else, so infinities and NaN keep their meaning;
# nothing is allocated, so no references to arrays need counting
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}
NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled = njit(cache=True, nogil=True, **OPTIONS)
inner = njit(**OPTIONS, **NO_WRAPPERS)
"""For functions that only compiled code calls: compiled and cached as a part of the caller."""
spliced = njit(inline="always", **OPTIONS, **NO_WRAPPERS)
"""For the parts of a long loop: inlined into it before it is compiled."""


@compiled
def kernel_row(ops, params, centers, n, x, stack):
    """stack[0, i] = k(centers[i], x) for i < n; the rest of the stack is scratch.

    `centers` (capacity, d), `x` (d,), `stack` from `Program.stack(capacity)`.
    """
    top = -1
    for step in range(len(ops)):
        code, first, c = ops[step, 0], ops[step, 1], ops[step, 2]
        if code >= ADD:
            top -= 1
            _join(code, stack[top, :n], stack[top + 1, :n])
        elif code >= EXP:
            _change(code, params, first, stack[top, :n])
        else:
            top += 1
            _push(code, params, first, centers, c, x[c], stack[top, :n])


@compiled
def fill_rows(ops, params, centers, X, stack, K):
    """K[i, j] = k(centers[j], X[i]), shape (n, m): row by row, each of which stays in cache."""
    for i in range(len(X)):
        kernel_row(ops, params, centers, len(centers), X[i], stack)
        for j in range(len(centers)):
            K[i, j] = stack[0, j]


@inner
def _push(code, params, first, centers, c, x, out):
    """A new row from column c of the centers and the coordinate x of the point in that column."""
    if code == SQUARED_DIFFERENCE:
        for i in range(len(out)):
            out[i] = ((centers[i, c] - x) * params[first]) ** 2
    elif code == CITYBLOCK:
        for i in range(len(out)):
            out[i] = abs(centers[i, c] - x) * params[first]
    elif code == CHORD:
        _chord(params[first : first + 4], centers[:, c], x, out)
    elif code == DOT:
        for i in range(len(out)):
            out[i] = centers[i, c] * x
    elif code == EQUAL:
        for i in range(len(out)):
            out[i] = centers[i, c] == x
    elif code == TABLE:
        _look_up(int(params[first]), params[first + 1 :], centers[:, c], x, out)
    else:
        out[:] = params[first]


@inner
def _change(code, params, first, out):
    """A function of every number of a row."""
    if code == EXP:
        for i in range(len(out)):
            out[i] = exp_nonpositive(-params[first] * out[i])
    elif code == MATERN32:
        for i in range(len(out)):
            t = min(math.sqrt(out[i]), MAX_EXPONENT)
            out[i] = (1.0 + t) * exp_nonpositive(-t)
    elif code == MATERN52:
        for i in range(len(out)):
            t = min(math.sqrt(out[i]), MAX_EXPONENT)
            out[i] = (1.0 + t * (1.0 + t / 3.0)) * exp_nonpositive(-t)
    elif code == LOG1P:
        for i in range(len(out)):
            out[i] = math.log1p(params[first] * out[i])
    elif code == POWER:
        for i in range(len(out)):
            out[i] = (out[i] + params[first]) ** int(params[first + 1])
    else:
        for i in range(len(out)):
            out[i] *= params[first]


@inner
def _join(code, left, right):
    """The sum or the product of two rows, written over the left one."""
    if code == ADD:
        for i in range(len(left)):
            left[i] += right[i]
    else:
        for i in range(len(left)):
            left[i] *= right[i]


@inner
def _look_up(size, matrix, z, x, out):
    """matrix[z[i], x], where `matrix` holds the rows of a square matrix one after the other."""
    for i in range(len(out)):
        inside = 0.0 <= z[i] < size and 0.0 <= x < size  # a wrong point gives NaN, never a crash
        out[i] = matrix[int(z[i]) * size + int(x)] if inside else np.nan


@inner
def _chord(params, z, x, out):
    """(2 sin(π(z[i] - x)/period)/scale)², with exact remainders however far the points are."""
    period, head, tail, factor = params
    largest = 0.0
    for i in range(len(out)):
        out[i] = z[i]
        largest = max(largest, abs(z[i]))
    if largest < 2.0**26 * period:
        for i in range(len(out)):
            # z - q·period for the nearest integer q: as in _remainder, but in vector instructions
            q = (out[i] / period + ROUNDING_SHIFT) - ROUNDING_SHIFT
            out[i] = (out[i] - q * head) - q * tail
    else:
        for i in range(len(out)):
            out[i] = _remainder(out[i], period)
    phase = _remainder(x, period)
    for i in range(len(out)):
        out[i] = (factor * _sin_pi((out[i] - phase) / period)) ** 2


@inner
def _remainder(x, period):
    """x - q·period for the nearest integer q, exactly."""
    r = np.fmod(x, period)
    if abs(r) > 0.5 * period:
        r -= math.copysign(period, r)
    return r


@inner
def _sin_pi(u):
    """|sin πu| for |u| <= 1, to 3e-16."""
    v = min(abs(u), 1.0 - abs(u))
    return v * _polynomial(SINE, v * v)


@compiled
def exp_nonpositive(x):
    """exp(x) for x <= 0 without a branch, so that loops over it use vector instructions.

    The relative error is at most 1.6e-16 for x >= -708. Below that, where numbers are subnormal,
    the absolute error is at most 5e-324; the result is 0 for x < -746, and NaN for NaN.
    """
    x = -746.0 if x < -746.0 else x
    # x = k·log 2 + r, |r| <= log(2)/2; the last bits of `shifted` are the integer k
    shifted = x * (1.0 / math.log(2.0)) + ROUNDING_SHIFT
    k = shifted - ROUNDING_SHIFT
    r = (x - k * LOG2_HEAD) - k * LOG2_TAIL
    s = r * r
    e = 1.0 + (r + s * (_polynomial(EXP_EVEN, s) + r * _polynomial(EXP_ODD, s)))
    # 2^(k + 53) is never subnormal, so its bits are those of the exponent alone
    power = np.int64((np.float64(shifted).view(np.int64) + (1023 + 53)) << 52).view(np.float64)
    return e * power * 2.0**-53


@inner
def _polynomial(coefficients, x):
    """Horner's rule; coefficients from the highest power down."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total
