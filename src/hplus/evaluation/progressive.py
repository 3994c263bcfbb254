"""Progressive validation of a stream, which predicts before it learns, and regret."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hplus._checks import Floats, as_floats, check_finite, shown
from hplus.evaluation.scores import Rate

RowLoss = Callable[[NDArray[Any], NDArray[Any]], ArrayLike]
"""From targets and predictions to one number per row."""


class StreamingRate(Rate, Protocol):
    """A rate that learns from events as they come."""

    def partial_fit(self, X: Any) -> object:
        """Learn from events X (n, d)."""


class StreamingModel(Protocol):
    """A regressor or classifier that learns from rows as they come."""

    def partial_fit(self, X: Any, y: Any) -> object:
        """Learn from rows X (n, d) and targets y (n,)."""

    def predict(self, X: Any) -> NDArray[Any]:
        """One prediction per row, shape (n,)."""


class Progress(NamedTuple):
    """Losses of a stream, each predicted from the events before it."""

    losses: Floats
    """One for each event, shape (n,)."""

    @property
    def mean(self) -> float:
        """The progressive loss."""
        return float(self.losses.mean())

    @property
    def curve(self) -> Floats:
        """The mean of the first 1, 2, … losses, shape (n,)."""
        return np.cumsum(self.losses) / np.arange(1, len(self.losses) + 1)


def prequential(model: Any, stream: Iterable[Any], loss: RowLoss | None = None) -> Progress:
    """Progressive validation: a model predicts every chunk of a stream before it learns from it.

    Regressors and classifiers take pairs (X, y), rates take arrays X of events. Regressors and
    classifiers of hplus predict every row from the rows before it; other models, and rates, predict
    a chunk from the chunks before it. `loss(y, prediction)` returns one number per row; None means
    the squared error, 0 or 1 for a label, and -log(λ/∫λ) relative to a constant rate for a rate.
    A rate starts as constant; other models have no loss before they have learned anything.
    """
    rate = hasattr(model, "expected_count")
    if rate and loss is not None:
        raise ValueError(f"loss must be None for rate models, got {shown(loss)}.")
    losses = [
        _rate_losses(model, chunk) if rate else _losses(model, chunk, loss) for chunk in stream
    ]
    if not losses:
        raise ValueError("stream must contain at least one chunk, got none.")
    return Progress(np.concatenate(losses))


def regret(losses: ArrayLike, comparator: ArrayLike) -> Floats:
    """Cumulative losses minus those of a comparator on the same events, shape (n,)."""
    ours = check_finite("losses", as_floats("losses", losses))
    best = check_finite("comparator", as_floats("comparator", comparator))
    if ours.ndim != 1 or ours.shape != best.shape:
        raise ValueError(
            "losses and comparator must have one number for each event, got shapes "
            f"{ours.shape} and {best.shape}."
        )
    return np.cumsum(ours - best)


def _rate_losses(model: StreamingRate, X: Any) -> Floats:
    X = model.window.require("X", X)
    losses = np.zeros(len(X))
    if hasattr(model, "state_"):
        total = model.expected_count(model.window)
        losses = -np.log(model.predict(X) * model.window.volume / total)
    model.partial_fit(X)
    return losses


def _losses(model: StreamingModel, chunk: Any, loss: RowLoss | None) -> Floats:
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
