"""Judging a stream as it goes: predict first, then learn; and what hindsight would have saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats, as_floats, check_finite


class Progress(NamedTuple):
    """Losses of a stream, each from the events before it."""

    losses: Floats
    """(n,): one for each event."""

    @property
    def mean(self) -> float:
        """The progressive loss."""
        return float(self.losses.mean())

    @property
    def curve(self) -> Floats:
        """The mean of the first 1, 2, … losses, shape (n,)."""
        return np.cumsum(self.losses) / np.arange(1, len(self.losses) + 1)


def prequential(
    model: Any, stream: Iterable[Any], loss: Callable[[Any, Any], Any] | None = None
) -> Progress:
    """Let a model predict every chunk of a stream before it learns from it.

    A regressor's or classifier's stream holds pairs (X, y), a rate's arrays X of events. Within a
    chunk a regressor and a classifier of hplus predict every row from the rows before it; others,
    and rates, predict a chunk from the chunks before it. `loss(y, prediction)` is given for each
    row; None is the squared error, the share of wrong labels for a classifier, and
    -log(λ/∫λ) for a rate, relative to the constant rate. Before anything was learned a rate is
    taken as constant, and rows of others are left out.
    """
    rate = hasattr(model, "expected_count")
    if rate and loss is not None:
        raise ValueError("loss is that of the process for a rate, got one: leave it out.")
    losses = [
        _rate_losses(model, chunk) if rate else _losses(model, chunk, loss) for chunk in stream
    ]
    if not losses:
        raise ValueError("stream must hold at least one chunk, got none.")
    return Progress(np.concatenate(losses))


def regret(losses: Any, comparator: Any) -> Floats:
    """Σ of the first 1, 2, … losses less those of a comparator on the same events, shape (n,)."""
    ours = check_finite("losses", as_floats("losses", losses))
    best = check_finite("comparator", as_floats("comparator", comparator))
    if ours.ndim != 1 or ours.shape != best.shape:
        raise ValueError(
            "losses and comparator must have one number for each event, got shapes "
            f"{ours.shape} and {best.shape}."
        )
    return np.cumsum(ours - best)


def _rate_losses(model: Any, X: Any) -> Floats:
    X = model.window.require("X", X)
    losses = np.zeros(len(X))
    if hasattr(model, "state_"):
        total = model.expected_count(model.window)
        losses = -np.log(model.predict(X) * model.window.volume / total)
    model.partial_fit(X)
    return losses


def _losses(model: Any, chunk: Any, loss: Callable[[Any, Any], Any] | None) -> Floats:
    X, y = chunk[0], np.asarray(chunk[1])
    if hasattr(model, "predict_then_learn"):
        predicted = model.predict_then_learn(X, y)
    elif hasattr(model, "n_features_in_"):
        predicted = model.predict(X)
        model.partial_fit(X, y)
    else:
        model.partial_fit(X, y)
        return np.zeros(0)
    if loss is not None:
        return np.asarray(loss(y, predicted), dtype=np.float64)
    labels = hasattr(model, "classes_")
    return (predicted != y).astype(np.float64) if labels else (predicted - y) ** 2
