"""Scalar rules of a stream: slopes of losses, links and step sizes, selected by codes; compiled.

Codes are integers, so that every combination runs through the same machine code.
"""

from __future__ import annotations

import math

from hplus.kernels.compiled import inner

# losses; PIECEWISE is linear on both sides of a tube around y, PROCESS is that of a Poisson process
SQUARED, PIECEWISE, HUBER, POISSON, HINGE, SQUARED_HINGE, LOGISTIC, PERCEPTRON, PROCESS = range(9)
# links: how the prediction f follows from a function z of the kernel's space
IDENTITY, EXPONENTIAL, RECIPROCAL = range(3)
# pseudo-gradients: the gradient in z, the gradient in f in its place, and signs
IN_Z, IN_F, SIGN = range(3)
# schedules: how the step size depends on the number of events
FIXED, ROOT, HARMONIC = range(3)

LEAST_RATE = 1e-3
"""-log f is continued linearly below this f where f may be negative."""

LONGEST_REACH = 1e100
"""The limit of a step where the loss sets none."""


@inner
def prediction(link, z, cap):
    """f as a function of z: z, e^z or 1/(1 - z); the last two stay within e^±cap."""
    if link == EXPONENTIAL:
        return math.exp(min(max(z, -cap), cap))
    if link == RECIPROCAL:
        return 1.0 / min(max(1.0 - z, math.exp(-cap)), math.exp(cap))
    return z


@inner
def link_slope(link, f):
    """df/dz."""
    if link == EXPONENTIAL:
        return f
    if link == RECIPROCAL:
        return f * f
    return 1.0


@inner
def slope(loss, low, high, width, y, f):
    """∂Φ(y, f)/∂f, the `slope` of the values in `hplus.losses`."""
    if loss == SQUARED:
        return 2.0 * (f - y)
    if loss == PIECEWISE:
        return high if f - y > width else (low if f - y < -width else 0.0)
    if loss == HUBER:
        return min(max(f - y, -width), width)
    if loss == POISSON:
        return 1.0 - y / f
    if loss == HINGE:
        return -y if y * f < 1.0 else 0.0
    if loss == SQUARED_HINGE:
        return -2.0 * y * max(1.0 - y * f, 0.0)
    if loss == LOGISTIC:
        return -y * _logistic(-y * f)
    if loss == PERCEPTRON:
        return -y if y * f <= 0.0 else 0.0
    return -1.0 / f


@inner
def _logistic(t):
    """1/(1 + e^-t) without overflow."""
    if t >= 0.0:
        return 1.0 / (1.0 + math.exp(-t))
    e = math.exp(t)
    return e / (1.0 + e)


@inner
def reach(loss, link, y, z, cap):
    """How far one step may move z at its event: to the best fit of y, or by 1 for a process."""
    if loss == PROCESS:
        return 0.5 * max(1.0 - z, 0.0) if link == RECIPROCAL else 1.0
    if link == EXPONENTIAL:
        return abs(math.log(max(y, math.exp(-cap))) - min(max(z, -cap), cap))
    return abs(y - z) if loss in (SQUARED, HUBER, SQUARED_HINGE) else LONGEST_REACH


@inner
def step_size(schedule, size, n):
    """The step size at the n-th event: size, size/√n, or size/n."""
    if schedule == ROOT:
        return size / math.sqrt(n)
    if schedule == HARMONIC:
        return size / n
    return size
