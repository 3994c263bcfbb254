"""How well a self-exciting rate predicts later events, each from those before it."""

from __future__ import annotations

import warnings
from typing import Any, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.estimators.intensity import Intensity
from hplus.estimators.self_exciting import SelfExciting
from hplus.studies.factor_trials import block_error
from hplus.studies.marked_events import MarkedEvents
from hplus.studies.splits import time_blocks
from hplus.windows import Interval, Product, Window
from hplus.wording import count, quantity

FEWEST_LEARNED, FEWEST_HELD = 30, 2
"""Events to learn from, and held out, without which there is no hold-out."""

MIN_TYPE_EVENTS = 30
"""Events of a type from which it has a map of its own."""


@final
@value
class ExcitationHoldout(Value):
    """How well the last part of the observation period was predicted, one event ahead.

    By a rate learned from the first part, without learning anew. `gain` is the mean difference of
    log-likelihoods from those of a constant rate, in nats per event, and `over_poisson` that from
    the Poisson rate, constant or by place, that predicts them best. All are learned from the same
    events. Standard errors are those of blocks of time.
    """

    events: int
    share: float
    gain: float
    gain_error: float
    over_poisson: float
    over_poisson_error: float
    words: str


def learned_window(window: Window, end: float) -> Window:
    """A window of times, or of places and times, that ends earlier."""
    if isinstance(window, Product):
        return window.left * learned_window(window.right, end)
    assert isinstance(window, Interval)
    return Interval(window.low, end, unit=window.unit)


def predicted_ahead(
    model: SelfExciting, events: MarkedEvents, share: float
) -> ExcitationHoldout | None:
    """The hold-out of a model that is not fitted; None if there are too few events."""
    period = _period(model.window)
    cut = period.high - share * period.volume
    early = events.X[:, -1] < cut
    first, later = events.picked(early), events.picked(~early)
    inside = first.picked(first.X[:, -1] >= period.low)
    if len(inside.X) < FEWEST_LEARNED or len(later.X) < FEWEST_HELD:
        return None
    later = later.picked(np.argsort(later.X[:, -1], kind="stable"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said of the fit to all events
        model.set_params(window=learned_window(model.window, cut))
        model.fit(first.X, marks=first.marks, types=first.types)
    scores = ahead_scores(model, later, period.high)
    times = later.X[:, -1]
    blocks = time_blocks(times, ((cut, period.high),), "")
    spent = np.diff(times, prepend=cut)
    spent[-1] += period.high - times[-1]
    rivals = poisson_scores(inside, later, model, spent)
    best = max(rivals, key=np.sum)
    words = (
        f"the last {quantity(period.high - cut, period.unit)}: {count(len(times))} events, each "
        "predicted from those before it"
    )
    over = [block_error(scores - theirs, blocks) for theirs in (rivals[0], best)]
    return ExcitationHoldout(len(times), share, *over[0], *over[1], words)


def ahead_scores(model: SelfExciting, later: MarkedEvents, end: float) -> Floats:
    """log λ - ∫λ since the event before, (n,), of events after those that the model knows.

    The model gets to know them. The last score has ∫λ up to the end.
    """
    begin, times, n = model.observed_until_, later.X[:, -1], len(later.X)
    before = _expected(model, begin, times[0])
    model.update(later.X, until=end, marks=later.marks, types=later.types)
    spent = np.diff(model.rescaled_times()[-n:], prepend=np.nan)
    spent[0] = before
    spent[-1] += _expected(model, times[-1], end)
    return np.log(model.predict(later.X, types=later.types)) - spent


def _expected(model: SelfExciting, low: float, high: float) -> float:
    """∫λ over the whole region from low to high, given what the model knows."""
    if not high > low:
        return 0.0
    span = Interval(low, high)
    window = model.window
    return float(model.expected_count(window.left * span if isinstance(window, Product) else span))


def poisson_scores(
    known: MarkedEvents, later: MarkedEvents, model: SelfExciting, spent: Floats
) -> list[Floats]:
    """Scores (n,) of Poisson rates learned from known events: constant, and by place."""
    window, span = model.window, _period(model.window).volume
    region = window.left if isinstance(window, Product) else None
    total = len(known.X) / span
    levels = np.full(len(later.X), total)
    if known.types is not None and later.types is not None:
        # a type that was never seen counts as half an event
        seen = {word: max(np.sum(known.types == word), 0.5) for word in np.unique(later.types)}
        levels = np.array([seen[word] for word in later.types]) / span
    constant = np.log(levels / (1.0 if region is None else region.volume)) - total * spent
    if region is None:
        return [constant]
    density = _densities(region, known, later, model.random_state)
    return [constant, np.log(levels * density) - total * spent]


def _densities(region: Window, known: MarkedEvents, later: MarkedEvents, seed: Any) -> Floats:
    """The density of places at later events, (n,), learned by type where there are enough."""
    everything = _density(region, known.X[:, :-1], seed)
    found = everything(later.X[:, :-1])
    if known.types is None or later.types is None:
        return found
    for word in np.unique(later.types):
        own = known.types == word
        if MIN_TYPE_EVENTS <= own.sum() < len(own):
            at = later.types == word
            found[at] = _density(region, known.X[own, :-1], seed)(later.X[at, :-1])
    return found


def _density(region: Window, places: Floats, seed: Any) -> Any:
    rate = Intensity(region, random_state=seed).fit(places)
    total = float(rate.expected_count(region))
    return lambda X: np.asarray(rate.predict(X)) / total


def _period(window: Window) -> Interval:
    found = window.right if isinstance(window, Product) else window
    assert isinstance(found, Interval)
    return found
