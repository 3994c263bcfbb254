"""Kernel expressions as data: postfix programs that compiled loops evaluate.

A program consists of numbers, so that compiled loops take any kernel as an argument and their
machine code can be cached on disk.
"""

from __future__ import annotations

import math
from functools import singledispatch
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints, check_count
from hplus.kernels.base import Kernel, Product, Scaled, Sum
from hplus.kernels.compiled import (
    ADD,
    CHORD,
    CITYBLOCK,
    DOT,
    EQUAL,
    EXP,
    FILL,
    JOINS,
    LOG1P,
    MATERN32,
    MATERN52,
    MULTIPLY,
    POWER,
    PUSHES,
    SCALE,
    SQUARED,
    TABLE,
)
from hplus.kernels.leaf import Leaf
from hplus.kernels.stationary import (
    Gaussian,
    Laplace,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Stationary,
)
from hplus.kernels.structured import Constant, Finite, Linear, Nugget, Polynomial


class Program(NamedTuple):
    """A kernel on points of a known dimension, as arrays for compiled code.

    `ops` (instructions, 3) has rows (opcode, first parameter, column), `params` all parameters,
    and `depth` is the number of rows of the stack.
    """

    ops: Ints
    params: Floats
    depth: int

    def stack(self, atoms: int) -> Floats:
        """Working memory for `kernel_row` on that many atoms, shape (depth, atoms)."""
        return np.zeros((self.depth, atoms))


class Instruction(NamedTuple):
    """One step of a program; only a push reads a column of the points."""

    code: int
    params: tuple[float, ...] = ()
    column: int = 0


def program(kernel: Kernel, dimension: int) -> Program:
    """The postfix program of `kernel` for points with `dimension` columns.

    Compiled code does not check the points: check them with `kernel.diag(X)` first.
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
        f"kernel must not contain a Python callable (Scalar, Custom) to be compiled, got {kernel}."
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
    kernel.axes(dimension)  # an error for columns that the points lack
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
    kernel.index(np.zeros((1, len(kernel.axes(dimension)))))  # an error for more than one column
    table = (float(len(kernel.matrix)), *kernel.matrix.ravel().tolist())
    return _columns(TABLE, ADD, kernel, dimension, table)


def _distance(
    code: int, kernel: Stationary, dimension: int, factor: float = 1.0
) -> list[Instruction]:
    """Push the distance between points times factor/scale, axis by axis."""
    axes = kernel.axes(dimension)
    rates = [factor / scale for scale in kernel.scales(len(axes))]
    pushes = [Instruction(code, (rate,), c) for rate, c in zip(rates, axes, strict=True)]
    return _joined(ADD, pushes)


def _columns(
    code: int, join: int, kernel: Leaf, dimension: int, params: tuple[float, ...] = ()
) -> list[Instruction]:
    """Push every column that the kernel sees in the same way, and join the rows."""
    return _joined(join, [Instruction(code, params, c) for c in kernel.axes(dimension)])


def _joined(join: int, pushes: list[Instruction]) -> list[Instruction]:
    return [pushes[0], *(step for push in pushes[1:] for step in (push, Instruction(join)))]
