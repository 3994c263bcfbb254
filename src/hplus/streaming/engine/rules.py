"""The scalar rules of a stream: slopes of losses, links, sizes of steps; compiled, chosen by codes.

A code is a whole number, so that every combination runs through one machine code.
"""

from __future__ import annotations

import math

from hplus.kernels.compiled import inner

# losses; PIECEWISE is linear on both sides of a tube constants y, PROCESS the Poisson process's
SQUARED, PIECEWISE, HUBER, POISSON, HINGE, SQUARED_HINGE, LOGISTIC, PERCEPTRON, PROCESS = range(9)
# links: what the function z of the kernel's space is to the prediction f
IDENTITY, EXPONENTIAL, RECIPROCAL = range(3)
# pseudo-gradients: that of z, that of f in its place, and signs
IN_Z, IN_F, SIGN = range(3)
# how the size of a step depends on the number of events
FIXED, ROOT, HARMONIC = range(3)

LEAST = 1e-3
"""-log f is taken as linear for smaller f where f may be negative."""


FARTHEST = 1e100
"""Where a loss sets no end to a step, this does."""


@inner
def prediction(link, z, cap):
    """f where z is known: z, e^z or 1/(1 - z); the last two stay within e^±cap."""
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
    """∂Φ(y, f)/∂f, what the values in `hplus.losses` call slope."""
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
    """How far one step may carry z at its event: to where y fits best, or by one for a process."""
    if loss == PROCESS:
        return 0.5 * max(1.0 - z, 0.0) if link == RECIPROCAL else 1.0
    if link == EXPONENTIAL:
        return abs(math.log(max(y, math.exp(-cap))) - min(max(z, -cap), cap))
    if loss in (SQUARED, HUBER):
        return abs(y - z)
    return abs(y - z) if loss == SQUARED_HINGE else FARTHEST


@inner
def step_size(schedule, size, n):
    """The step at the n-th event: size, size/√n, or size/n."""
    if schedule == ROOT:
        return size / math.sqrt(n)
    if schedule == HARMONIC:
        return size / n
    return size
