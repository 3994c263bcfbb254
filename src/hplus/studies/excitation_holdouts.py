"""How well a self-exciting rate predicts later events, each from those before it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np

from hplus._checks import Bools, Floats, Seed
from hplus._values import Value, value
from hplus.estimators.intensity import Intensity
from hplus.estimators.marks_and_types import largest_on_scale
from hplus.estimators.self_exciting import SelfExciting
from hplus.rates.positions import find_positions
from hplus.rates.statistic import Statistic
from hplus.studies.marked_events import MarkedEvents
from hplus.studies.splits import ERROR_BLOCKS
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
    events. Standard errors are those of blocks of time. Events of which the first part tells
    nothing, such as those of new types, are left out, and `words` say how many.
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
    """The hold-out of a model, which is fitted to the first part; None for too few events."""
    period, events = _period(model.window), spread_places(events, model.window)
    cut = period.high - share * period.volume
    early = events.X[:, -1] < cut
    kept = comparable(events, early, period.low)
    first, later = events.picked(early & kept), events.picked(~early & kept)
    inside = first.picked(first.X[:, -1] >= period.low)
    if len(inside.X) < FEWEST_LEARNED or len(later.X) < FEWEST_HELD:
        return None
    later = later.picked(np.argsort(later.X[:, -1], kind="stable"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said of the fit to all events
        model.set_params(window=learned_window(model.window, cut))
        model.fit(first.X, marks=first.marks, types=first.types)
    ours = ahead_scores(model, later, period.high)
    rivals = poisson_scores(inside, later, model, ours.edges)
    best = max(rivals, key=lambda theirs: theirs.total)
    words = (
        f"the last {quantity(period.high - cut, period.unit)}: {count(len(later.X))} events, each "
        f"predicted from those before it{_leaving_out(events, int(np.sum(~early & ~kept)))}"
    )
    over = [ours.gain_over(theirs) for theirs in (rivals[0], best)]
    return ExcitationHoldout(len(later.X), share, *over[0], *over[1], words)


def comparable(events: MarkedEvents, early: Bools, start: float) -> Bools:
    """The events that a rate can be learned from, if early, or else predict, (n,).

    Their types have early events since the start, and their marks are on the scale of early ones.
    """
    kept, since = np.ones(len(early), dtype=bool), events.X[:, -1] >= start
    while True:  # an event that is left out tells nothing about others
        known, fine = early & kept, kept.copy()
        if events.types is not None:
            fine &= np.isin(events.types, events.types[known & since])
        if events.marks is not None:
            fine &= events.marks <= largest_on_scale(events.marks[known])
        if np.array_equal(fine, kept):
            return kept
        kept = fine


def spread_places(events: MarkedEvents, window: Window) -> MarkedEvents:
    """The events with rounded and repeated places moved within their step.

    Below it, likelihoods say nothing: a second event at one address could be any number of times
    as likely.
    """
    if not isinstance(window, Product):
        return events
    region, places = window.left, events.X[:, :-1]
    positions = find_positions(Statistic.of(region, places))
    moved = positions.spread(region, places, np.random.RandomState(0))
    return events._replace(X=np.column_stack([moved, events.X[:, -1]]))


class AheadScores(NamedTuple):
    """log λ at events (n,) at times (n,), and ∫λ from each edge of time to the next, (b,)."""

    logs: Floats
    times: Floats
    spent: Floats
    edges: Floats

    @property
    def total(self) -> float:
        """The log-likelihood."""
        return float(self.logs.sum() - self.spent.sum())

    def gain_over(self, other: AheadScores) -> tuple[float, float]:
        """The mean difference of log-likelihoods per event, and its error from blocks of time."""
        logs, spent, n = self.logs - other.logs, self.spent - other.spent, len(self.logs)
        mean = float(logs.sum() - spent.sum()) / n
        single = float(np.std(logs, ddof=1) / np.sqrt(n))
        block = np.clip(
            np.searchsorted(self.edges, self.times, side="right") - 1, 0, len(spent) - 1
        )
        off = np.bincount(block, logs - mean, minlength=len(spent)) - spent
        k = len(spent)
        return mean, max(single, float(np.sqrt(k / (k - 1) * np.sum(off**2)) / n))


def ahead_scores(model: SelfExciting, later: MarkedEvents, end: float) -> AheadScores:
    """Scores of events after those that the model knows, in order of time, each before it happens.

    The model gets to know them.
    """
    window, edges = model.window, np.linspace(model.observed_until_, end, ERROR_BLOCKS + 1)
    model.update(later.X, until=end, marks=later.marks, types=later.types)
    spans = [Interval(a, b) for a, b in pairwise(edges.tolist())]
    regions = [window.left * span for span in spans] if isinstance(window, Product) else spans
    logs = np.log(model.predict(later.X, types=later.types))
    return AheadScores(logs, later.X[:, -1], np.asarray(model.expected_count(regions)), edges)


def poisson_scores(
    known: MarkedEvents, later: MarkedEvents, model: SelfExciting, edges: Floats
) -> list[AheadScores]:
    """Scores of Poisson rates learned from known events: constant, and by place."""
    window, span = model.window, _period(model.window).volume
    region = window.left if isinstance(window, Product) else None
    constant = constant_scores(known, span, later, region, edges)
    found = [constant]
    if region is not None:
        density = _densities(region, known, later, model.random_state)
        found.append(constant._replace(logs=constant.logs + np.log(density * region.volume)))
    return found


def constant_scores(
    known: MarkedEvents, span: float, later: MarkedEvents, region: Window | None, edges: Floats
) -> AheadScores:
    """Scores of a constant rate of each type, as known events had it in so much time.

    There are known events of every type.
    """
    counts = np.full(len(later.X), float(len(known.X)))
    if known.types is not None and later.types is not None:
        words, seen = np.unique(known.types, return_counts=True)
        counts = seen[np.searchsorted(words, later.types)].astype(float)
    logs = np.log(counts / span / (1.0 if region is None else region.volume))
    return AheadScores(logs, later.X[:, -1], len(known.X) / span * np.diff(edges), edges)


def _leaving_out(events: MarkedEvents, left_out: int) -> str:
    """How many later events are not comparable, and why; "" if all are."""
    reasons = ["of new types"] * (events.types is not None)
    reasons += ["with far larger marks"] * (events.marks is not None)
    return f", leaving out {count(left_out)} {' or '.join(reasons)}" if left_out else ""


def _densities(region: Window, known: MarkedEvents, later: MarkedEvents, seed: Seed) -> Floats:
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


def _density(region: Window, places: Floats, seed: Seed) -> Callable[[Floats], Floats]:
    rate = Intensity(region, random_state=seed).fit(places)
    total = float(rate.expected_count(region))
    return lambda X: np.asarray(rate.predict(X)) / total


def _period(window: Window) -> Interval:
    found = window.right if isinstance(window, Product) else window
    assert isinstance(found, Interval)
    return found
