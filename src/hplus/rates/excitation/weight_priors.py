"""What is expected of the weights of a self-exciting rate before events tell."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats, Reals
from hplus.rates.excitation.log_weights import LogPrior, first_differences, second_differences
from hplus.rates.excitation.trigger import Trigger

FIRST_STRENGTHS = (1000.0, 10.0, 10.0)
"""Of the trend, and of the trigger along lags and distances."""

FIRST_LIKENESS = 300.0
"""Of the deviations of types from what events of all types trigger: they begin alike."""

LEAST_BRANCHING = 0.05
"""The trigger of all types is taken for one of this branching ratio, at least."""


def priors_of_types(
    trigger: Trigger, counts: Floats, span: float, levels: int, alike: Trigger | None
) -> tuple[LogPrior, ...]:
    """The prior of each type: levels of its background, then its trigger weights.

    `counts` are the events of each type in a time `span`, and `alike` is the trigger of events of
    all types together: types deviate from it as far as they tell. Without it, half of the events
    are triggered, by a trigger that falls as power laws; or nearly so.
    """
    sources, _, few, _ = trigger.weights.shape
    logs = _half_triggered(trigger) if alike is None else _known_from_all(alike)[:few]
    shares = np.ones(len(counts)) if alike is None else counts / counts.sum()
    penalties, strengths = _penalties(trigger, levels, alike)
    return tuple(
        LogPrior(
            np.concatenate([
                np.full(levels, np.log(max(0.5 * count, 0.5) / span)),
                np.tile(logs.ravel() + np.log(share), sources),
            ]),
            penalties,
            strengths,
        )
        for count, share in zip(counts, shares, strict=True)
    )  # fmt: skip


def _penalties(
    trigger: Trigger, levels: int, alike: Trigger | None
) -> tuple[tuple[Floats, ...], Floats]:
    """Penalties of a trend, of a trigger that bends and of types that differ; first strengths."""
    S, _, L, D = trigger.weights.shape
    bends = np.kron(second_differences(L), np.eye(D))
    found = [
        padded(first_differences(levels), S * L * D, after=True),
        padded(np.kron(np.eye(S), bends), levels, after=False),
    ]
    if len(trigger.distances):
        along_distances = np.kron(np.eye(S * L), second_differences(D))
        found.append(padded(along_distances, levels, after=False))
    strengths = list(FIRST_STRENGTHS[: len(found)])
    if alike is not None:
        found.append(padded(np.eye(S * L * D) / (L * D), levels, after=False))
        strengths.append(FIRST_LIKENESS)
    return tuple(found), np.array(strengths)


def _half_triggered(trigger: Trigger) -> Floats:
    """Log weights (L, D) of power laws by which events of all types trigger half of them."""
    S, D = trigger.weights.shape[0], trigger.weights.shape[-1]
    found = -np.log(trigger.lags[:-1])[:, None] * np.ones(D)
    if len(trigger.distances):
        found = found - trigger.axes * np.log(trigger.distances[:-1])
    mass = trigger.lag_integrals @ np.exp(found) @ trigger.distance_integrals
    return np.asarray(found + np.log(0.5 / (S * mass)))


def _known_from_all(alike: Trigger) -> Floats:
    """Log weights (L, D) of the trigger of all types, which is not taken for nothing at all."""
    more = max(LEAST_BRANCHING / alike.branching(), 1.0)
    return np.asarray(np.log(more * alike.weights[0, 0]))


def padded(matrix: Reals, others: int, *, after: bool) -> Floats:
    """The matrix with zeros for other columns before or after it."""
    pad = (0, others) if after else (others, 0)
    return np.pad(matrix.astype(float), (pad, pad))
