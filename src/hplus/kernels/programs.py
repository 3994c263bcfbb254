"""Kernel expressions as data: postfix programs that compiled loops evaluate.

A program consists of numbers, so that compiled loops take any kernel as an argument and their
machine code can be cached on disk.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints, check_count
from hplus.kernels import compiled as op
from hplus.kernels.base import Kernel, Product, Scaled, Sum
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
    heights = accumulate((step.code in op.PUSHES) - (step.code in op.JOINS) for step in steps)
    return Program(np.array(ops, dtype=np.int64), params, max(heights))


def compiled_gram(kernel: Kernel, X: Floats, Z: Floats) -> Floats | None:
    """k(X[i], Z[j]), shape (n, m), by compiled code; None if a part is a function of Python."""
    try:
        steps = program(kernel, X.shape[1])
    except (TypeError, ValueError, OverflowError):
        return None
    for points in (X, Z):
        kernel.diag(points)
    X, Z, K = np.ascontiguousarray(X), np.ascontiguousarray(Z), np.empty((len(X), len(Z)))
    op.fill_rows(steps.ops, steps.params, Z, X, steps.stack(len(Z)), K)
    return K


def instructions(kernel: Kernel, dimension: int) -> list[Instruction]:
    """The steps of a kernel in postfix order."""
    match kernel:
        case Sum(left, right) | Product(left, right):
            join = Instruction(op.ADD if isinstance(kernel, Sum) else op.MULTIPLY)
            return [*instructions(left, dimension), *instructions(right, dimension), join]
        case Scaled(factor, inner):
            return [*instructions(inner, dimension), Instruction(op.SCALE, (factor,))]
        case Gaussian() | Laplace() | Matern32() | Matern52() | RationalQuadratic():
            return _stationary(kernel, kernel.axes(dimension))
        case Leaf():
            return _leaf(kernel, kernel.axes(dimension))
    raise TypeError(f"kernel must be made of the kernels of hplus.kernels, got {kernel!r}.")


def _stationary(kernel: Stationary, axes: tuple[int, ...]) -> list[Instruction]:
    """The distance between points, times a factor, axis by axis; then a function of it."""
    code, factor = op.SQUARED_DIFFERENCE, 1.0
    match kernel:
        case Gaussian():
            steps = [Instruction(op.EXP, (0.5,))]
        case Laplace():
            code, steps = op.CITYBLOCK, [Instruction(op.EXP, (1.0,))]
        case Matern32():
            factor, steps = math.sqrt(3.0), [Instruction(op.MATERN32)]
        case Matern52():
            factor, steps = math.sqrt(5.0), [Instruction(op.MATERN52)]
        case RationalQuadratic(mixture=a):
            # (1 + q)^-a = exp(-a log1p(q)), q = r²/2a
            steps = [Instruction(op.LOG1P, (0.5 / a,)), Instruction(op.EXP, (a,))]
    rates = [factor / scale for scale in kernel.scales(len(axes))]
    pushes = [Instruction(code, (rate,), c) for rate, c in zip(rates, axes, strict=True)]
    return [*_joined(op.ADD, pushes), *steps]


def _leaf(kernel: Leaf, axes: tuple[int, ...]) -> list[Instruction]:
    """Every column that the kernel sees, pushed in the same way and joined."""
    match kernel:
        case Constant():
            return [Instruction(op.FILL, (kernel.value,))]
        case Linear():
            return _joined(op.ADD, [Instruction(op.DOT, (), c) for c in axes])
        case Polynomial():
            power = Instruction(op.POWER, (kernel.offset, float(kernel.degree)))
            return [*_joined(op.ADD, [Instruction(op.DOT, (), c) for c in axes]), power]
        case Nugget():
            return _joined(op.MULTIPLY, [Instruction(op.EQUAL, (), c) for c in axes])
        case Finite():
            kernel.index(np.zeros((1, len(axes))))  # an error for more than one column
            table = (float(len(kernel.matrix)), *kernel.matrix.ravel().tolist())
            return [Instruction(op.TABLE, table, axes[0])]
        case Periodic():
            # the head has 27 bits and the tail 26, so that integer multiples of both are exact
            mantissa, exponent = math.frexp(kernel.period)
            head = math.ldexp(int(mantissa * 2**27), exponent - 27)
            chord = (kernel.period, head, kernel.period - head, 2.0 / kernel.scale)
            pushes = [Instruction(op.CHORD, chord, c) for c in axes]
            return [*_joined(op.ADD, pushes), Instruction(op.EXP, (0.5,))]
    raise ValueError(
        f"kernel must not contain a Python callable (Scalar, Custom) to be compiled, got {kernel}."
    )


def _joined(join: int, pushes: list[Instruction]) -> list[Instruction]:
    return [pushes[0], *(step for push in pushes[1:] for step in (push, Instruction(join)))]
