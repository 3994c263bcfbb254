"""Kernel expressions as data, evaluated over all atoms by one compiled function.

An expression becomes a postfix program made of numbers, so that compiled loops take any kernel
as an argument and their machine code is kept on disk from one process to the next.
"""

from __future__ import annotations

import math
from functools import singledispatch
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hplus._checks import Floats, Ints, check_count
from hplus.kernels.base import Kernel, Leaf, Product, Scaled, Sum
from hplus.kernels.stationary import (
    LONGEST,
    Gaussian,
    Laplace,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Stationary,
)
from hplus.kernels.structured import Constant, Finite, Linear, Nugget, Polynomial

# an instruction pushes a row of numbers, one for each atom; changes the top row; or joins two rows
SQUARED, CITYBLOCK, CHORD, DOT, EQUAL, TABLE, FILL = PUSHES = range(7)
EXP, MATERN32, MATERN52, LOG1P, POWER, SCALE = range(7, 13)
ADD, MULTIPLY = JOINS = range(13, 15)

# e^r = 1 + r + r²(1/2! + r/3! + …) for |r| <= log(2)/2, and sin πu for |u| <= 1/2
EXP_EVEN = tuple(1.0 / math.factorial(k) for k in range(12, 1, -2))
EXP_ODD = tuple(1.0 / math.factorial(k) for k in range(13, 2, -2))
SINE = tuple((-1) ** (k // 2) * math.pi**k / math.factorial(k) for k in range(21, 0, -2))
LOG2_HEAD, LOG2_TAIL = 0.6931471803691238, 1.9082149292705877e-10
NEAREST = 1.5 * 2.0**52
"""A number of moderate size plus this, minus this, is the nearest whole number."""

# contract allows fused multiply-adds and nothing else: infinities and NaN keep their meaning; and
# nothing is allocated, so that no array's references need counting
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}
NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled = njit(cache=True, nogil=True, **OPTIONS)
inner = njit(**OPTIONS, **NO_WRAPPERS)
"""For what only compiled code calls: it is compiled, and kept on disk, as a part of its caller."""
spliced = njit(inline="always", **OPTIONS, **NO_WRAPPERS)
"""For the parts of a long loop: their text becomes a part of it before it is compiled."""


class Program(NamedTuple):
    """A kernel on points of a known dimension, as arrays that compiled code takes.

    `ops` (instructions, 3) has rows (opcode, first parameter, column), `params` all parameters,
    and `depth` is the number of rows of the stack.
    """

    ops: Ints
    params: Floats
    depth: int

    def stack(self, atoms: int) -> Floats:
        """Room for `kernel_row` to work on that many atoms, shape (depth, atoms)."""
        return np.zeros((self.depth, atoms))


class Instruction(NamedTuple):
    """One step of a program; only a push reads a column of the points."""

    code: int
    params: tuple[float, ...] = ()
    column: int = 0


def program(kernel: Kernel, dimension: int) -> Program:
    """The postfix program of `kernel` for points with `dimension` columns.

    Compiled code trusts the points: let them pass `kernel.diag(X)` before.
    """
    steps = instructions(kernel, check_count("dimension", dimension))
    starts = accumulate((len(step.params) for step in steps), initial=0)
    ops = [(step.code, start, step.column) for step, start in zip(steps, starts, strict=False)]
    params = np.array([p for step in steps for p in step.params], dtype=np.float64)
    if not np.isfinite(params).all():
        raise OverflowError(f"kernel must have scales above 1e-307 to be compiled, got {kernel}.")
    heights = accumulate((step.code in PUSHES) - (step.code in JOINS) for step in steps)
    return Program(np.array(ops, dtype=np.int64), params, max(heights))


@singledispatch
def instructions(kernel: Kernel, dimension: int) -> list[Instruction]:
    """The steps of a kernel in postfix order, one rule for each class."""
    raise ValueError(
        f"kernel must be made of kernels that hold no Python callable to be compiled, got {kernel}."
    )


@instructions.register
def _(kernel: Sum | Product, dimension: int) -> list[Instruction]:
    left, right = instructions(kernel.left, dimension), instructions(kernel.right, dimension)
    return [*left, *right, Instruction(ADD if isinstance(kernel, Sum) else MULTIPLY)]


@instructions.register
def _(kernel: Scaled, dimension: int) -> list[Instruction]:
    return [*instructions(kernel.kernel, dimension), Instruction(SCALE, (kernel.factor,))]


@instructions.register
def _(kernel: Gaussian, dimension: int) -> list[Instruction]:
    return [*_distance(SQUARED, kernel, dimension), Instruction(EXP, (0.5,))]


@instructions.register
def _(kernel: Laplace, dimension: int) -> list[Instruction]:
    return [*_distance(CITYBLOCK, kernel, dimension), Instruction(EXP, (1.0,))]


@instructions.register
def _(kernel: Matern32, dimension: int) -> list[Instruction]:
    return [*_distance(SQUARED, kernel, dimension, math.sqrt(3.0)), Instruction(MATERN32)]


@instructions.register
def _(kernel: Matern52, dimension: int) -> list[Instruction]:
    return [*_distance(SQUARED, kernel, dimension, math.sqrt(5.0)), Instruction(MATERN52)]


@instructions.register
def _(kernel: RationalQuadratic, dimension: int) -> list[Instruction]:
    # (1 + q)^-a = exp(-a log1p(q)), q = r²/2a
    a = kernel.mixture
    steps = _distance(SQUARED, kernel, dimension)
    return [*steps, Instruction(LOG1P, (0.5 / a,)), Instruction(EXP, (a,))]


@instructions.register
def _(kernel: Periodic, dimension: int) -> list[Instruction]:
    # the head has 27 bits and the tail 26, so that whole multiples of both are exact
    mantissa, exponent = math.frexp(kernel.period)
    head = math.ldexp(int(mantissa * 2**27), exponent - 27)
    chord = (kernel.period, head, kernel.period - head, 2.0 / kernel.scale)
    return [*_columns(CHORD, ADD, kernel, dimension, chord), Instruction(EXP, (0.5,))]


@instructions.register
def _(kernel: Constant, dimension: int) -> list[Instruction]:
    kernel.axes(dimension)  # refuses columns that the points lack
    return [Instruction(FILL, (kernel.value,))]


@instructions.register
def _(kernel: Linear, dimension: int) -> list[Instruction]:
    return _columns(DOT, ADD, kernel, dimension)


@instructions.register
def _(kernel: Polynomial, dimension: int) -> list[Instruction]:
    power = Instruction(POWER, (kernel.offset, float(kernel.degree)))
    return [*_columns(DOT, ADD, kernel, dimension), power]


@instructions.register
def _(kernel: Nugget, dimension: int) -> list[Instruction]:
    return _columns(EQUAL, MULTIPLY, kernel, dimension)


@instructions.register
def _(kernel: Finite, dimension: int) -> list[Instruction]:
    kernel.index(np.zeros((1, len(kernel.axes(dimension)))))  # refuses more than one column
    table = (float(len(kernel.matrix)), *kernel.matrix.ravel().tolist())
    return _columns(TABLE, ADD, kernel, dimension, table)


def _distance(
    code: int, kernel: Stationary, dimension: int, factor: float = 1.0
) -> list[Instruction]:
    """Push the distance of points times factor/scale, axis by axis."""
    axes = kernel.axes(dimension)
    rates = [factor / scale for scale in kernel.scales(len(axes))]
    pushes = [Instruction(code, (rate,), c) for rate, c in zip(rates, axes, strict=True)]
    return _joined(ADD, pushes)


def _columns(
    code: int, join: int, kernel: Leaf, dimension: int, params: tuple[float, ...] = ()
) -> list[Instruction]:
    """Push every column that the kernel sees in the same way, and join them."""
    return _joined(join, [Instruction(code, params, c) for c in kernel.axes(dimension)])


def _joined(join: int, pushes: list[Instruction]) -> list[Instruction]:
    return [pushes[0], *(step for push in pushes[1:] for step in (push, Instruction(join)))]


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


@inner
def _push(code, params, first, centers, c, x, out):
    """A new row from column c of the centres and the number x of the point in that column."""
    if code == SQUARED:
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
            t = min(math.sqrt(out[i]), LONGEST)
            out[i] = (1.0 + t) * exp_nonpositive(-t)
    elif code == MATERN52:
        for i in range(len(out)):
            t = min(math.sqrt(out[i]), LONGEST)
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
    """matrix[z[i], x], from the rows of a matrix of that size one after the other."""
    for i in range(len(out)):
        inside = 0.0 <= z[i] < size and 0.0 <= x < size  # a wrong point is NaN, never a crash
        out[i] = matrix[int(z[i]) * size + int(x)] if inside else np.nan


@inner
def _chord(params, z, x, out):
    """(2 sin(π(z[i] - x)/period)/scale)², exact remainders however far the points are."""
    period, head, tail, factor = params
    largest = 0.0
    for i in range(len(out)):
        out[i] = z[i]
        largest = max(largest, abs(z[i]))
    if largest < 2.0**26 * period:
        for i in range(len(out)):
            # z - q·period for the nearest whole q: what _remainder gives, in vector instructions
            q = (out[i] / period + NEAREST) - NEAREST
            out[i] = (out[i] - q * head) - q * tail
    else:
        for i in range(len(out)):
            out[i] = _remainder(out[i], period)
    phase = _remainder(x, period)
    for i in range(len(out)):
        out[i] = (factor * _sin_pi((out[i] - phase) / period)) ** 2


@inner
def _remainder(x, period):
    """x - q·period for the nearest whole q, exactly."""
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

    The relative error is at most 1.6e-16 for x >= -708. Below, where numbers are subnormal, the
    error is at most 5e-324, down to 0 for x < -746; NaN stays NaN.
    """
    x = -746.0 if x < -746.0 else x
    # x = k·log 2 + r, |r| <= log(2)/2; the last bits of `shifted` are the whole number k
    shifted = x * (1.0 / math.log(2.0)) + NEAREST
    k = shifted - NEAREST
    r = (x - k * LOG2_HEAD) - k * LOG2_TAIL
    s = r * r
    e = 1.0 + (r + s * (_polynomial(EXP_EVEN, s) + r * _polynomial(EXP_ODD, s)))
    # 2^(k + 53), never subnormal, is its exponent's bits alone
    power = np.int64((np.float64(shifted).view(np.int64) + (1023 + 53)) << 52).view(np.float64)
    return e * power * 2.0**-53


@inner
def _polynomial(coefficients, x):
    """Horner's rule, from the highest power down."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total
