"""Whether the pattern of a rate, by place or by time, predicts later events.

A pattern is kept if it predicts later events better than a constant rate does. That is judged on
the time before the hold-out, so that the gain on the events held out is that of a rate chosen
without them; only a pattern that they refute is dropped after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, final

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus._threads import at_once
from hplus._values import Value, value
from hplus.estimators.intensity import Intensity
from hplus.evaluation import AdaptiveKDE, best_kde
from hplus.evaluation.scores import Rate
from hplus.rates.every_scale import are_very_many
from hplus.rates.positions import Positions, find_positions
from hplus.rates.statistic import Statistic
from hplus.studies.event_samples import DrawnEvents
from hplus.studies.frames import Frame
from hplus.studies.split_events import SplitEvents
from hplus.studies.splits import Span, StepExposure, step_exposure, time_blocks

MIN_LEARNED = 15
"""Events that a pattern must be learned from to be judged."""

JUDGED_STRETCHES = {"times": 2, "places": 1}
"""Stretches of time that are predicted by those before them; rates of places take longer."""

MOMENTS = 2**15
"""Moments of the time held out at which the rate is summed."""

Spans = Sequence[Span]


class Learn(Protocol):
    """Learns the rate of a factor, by its number, from its statistic."""

    @property
    def is_stepped(self) -> bool:
        """Does a rate that is not constant know the step of the events' positions?"""

    def __call__(
        self, i: int, statistic: Statistic, exposure: StepExposure | None, constant: bool
    ) -> Intensity:
        """The rate, constant if that is asked for."""


@final
@value
class JudgedPattern(Value):
    """Whether the rate of "places" or of "times" varies, or is constant as it did not predict.

    `gain` is that of the time before the hold-out, in nats per event, NaN if too little was there
    to judge by.
    """

    of: str
    kept: bool
    gain: float
    gain_error: float


class FactorScores(NamedTuple):
    """The rate of a factor and, for each held-out event X, log gains: its own and those of a KDE.

    `expected` is by how much their sums in blocks of time should differ from the mean, (k,).
    """

    model: Intensity
    X: Floats
    ours: Floats
    theirs: Floats
    kde: str
    pattern: JudgedPattern | None
    expected: Floats | None


@dataclass(frozen=True)
class FactorTrial:
    """A rate that is learned by itself: of "places" or of "times", or of "" for all axes at once.

    `index` is its place among the statistics, and `start` its first column.
    """

    name: str
    index: int
    start: int
    frame: Frame
    events: SplitEvents
    learn: Learn
    rng: np.random.RandomState

    @property
    def may_be_constant(self) -> bool:
        """Can it be judged by later events?"""
        cycle_or_place = self.name == "places" or bool(self.frame.cycle)
        return bool(self.events.split.held) and self.name != "" and cycle_or_place

    def scores(self, learned: Spans, held: Spans, blocks: Ints) -> FactorScores:
        """Log gains of the events held out, after the choice of the pattern."""
        statistic = self.events.learned()[self.index]
        sample, others = self.events.held_sample, self.events.learned_sample
        pattern = self._chosen() if self.may_be_constant else None
        constant = pattern is not None and not pattern.kept

        def compared() -> tuple[Floats, Floats, str]:
            positions = self._positions(statistic, constant)
            X, Z = (self.columns(part.X, positions) for part in (sample, others))
            return X, *self._kde_gains(Z, X, learned, held)

        jobs = 2 if are_very_many(statistic.events) else 1
        learn = partial(self._learned, statistic, learned, constant)
        model, (X, theirs, kde) = at_once(learn, compared, jobs)
        ours = self._gains(model, X, held)
        mean, error = block_error(ours, blocks)
        if pattern is not None and pattern.kept and mean < -error:
            pattern = pattern.replace(kept=False)
            model, ours = self._learned(statistic, learned, True), np.zeros(len(X))
        expected = self._expected_sums(model, held, len(X)) if ours.any() else None
        return FactorScores(model, X, ours, theirs, kde, pattern, expected)

    def _expected_sums(self, model: Intensity, held: Spans, n: int) -> Floats | None:
        """n Σ p (g - Σ p g) over the moments of each block of time, (k,); None for places.

        p is the share of a moment in the rate, and g its log gain.
        """
        clock = self.frame.clock
        if self.name != "times" or clock is None:
            return None
        lengths = [b - a for a, b in held]
        steps = [max(round(MOMENTS * length / sum(lengths)), 1) for length in lengths]
        parts = zip(held, steps, strict=True)
        moments = [a + (b - a) * (np.arange(m) + 0.5) / m for (a, b), m in parts]
        seconds = np.concatenate(moments)
        X = clock.axis(seconds)[:, None]
        rates = model.predict(X)
        shares = rates / rates.sum()
        gains = np.where(shares > 0.0, self._gains(model, X, held), 0.0)
        blocks = time_blocks(seconds, held, self.frame.cycle)
        sums: Floats = np.bincount(blocks, shares * (gains - shares @ gains)).astype(float)
        return n * sums

    def _positions(self, statistic: Statistic, constant: bool) -> Positions | None:
        """The step of positions that a rate learns from."""
        return None if constant or not self.learn.is_stepped else find_positions(statistic)

    def columns(self, X: Floats, positions: Positions | None) -> Floats:
        """The columns of events (n, d), moved within the step of positions learned from.

        Below it likelihoods of different models say nothing.
        """
        window = self.events.windows[self.index]
        columns = X[:, self.start : self.start + window.dimension]
        return columns if positions is None else positions.spread(window, columns, self.rng)

    def _chosen(self) -> JudgedPattern:
        """Whether the pattern predicts the last stretches before the hold-out from those before."""
        spans, sample = self.events.split.learned, self.events.learned_sample
        part = self.events.split.parts(sample.seconds, np.ones(len(sample.seconds)))
        first = max(1, len(spans) - JUDGED_STRETCHES[self.name])
        scores, blocks = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
        for k in range(first, len(spans)):
            statistic, at = self.events.learned(before=k)[self.index], part == k
            if statistic.events >= MIN_LEARNED and at.any() and self._covered(spans[:k]):
                model = self._learned(statistic, spans[:k], False)
                X = self.columns(sample.X[at], self._positions(statistic, False))
                scores.append(self._gains(model, X, spans[k : k + 1]))
                found = time_blocks(sample.seconds[at], spans[k : k + 1], self.frame.cycle)
                blocks.append(found + 1000 * k)
        every = np.concatenate(scores)
        if len(every) < 2:
            return JudgedPattern(self.name, True, np.nan, np.nan)
        gain, error = block_error(every, np.concatenate(blocks))
        return JudgedPattern(self.name, gain > error, gain, error)

    def _covered(self, spans: Spans) -> bool:
        exposure = self._exposure(spans)
        return exposure is None or exposure.is_positive

    def _exposure(self, spans: Spans) -> StepExposure | None:
        """The exposure of times in some spans; None for places, or if it is constant."""
        clock = self.frame.clock
        if self.name != "times" or clock is None or not (clock.cycle or self.events.split.held):
            return None
        return step_exposure(clock, spans)

    def _learned(self, statistic: Statistic, spans: Spans, constant: bool) -> Intensity:
        return self.learn(self.index, statistic, self._exposure(spans), constant)

    def _gains(self, rate: Rate, X: Floats, held: Spans) -> Floats:
        return log_gains(rate, X, self._exposure(held))

    def _kde_gains(
        self, others: Floats, X: Floats, learned: Spans, held: Spans
    ) -> tuple[Floats, str]:
        """Those of a kernel density estimate with the same information, and which it was."""
        kde = best_kde(self.events.windows[self.index], others)
        which = "adaptive bandwidth" if isinstance(kde, AdaptiveKDE) else "fixed bandwidth"
        return log_gains(kde, X, self._exposure(held), self._exposure(learned)), which


def log_gains(
    rate: Rate, X: Floats, exposure: StepExposure | None, per: StepExposure | None = None
) -> Floats:
    """log(λ(x)∫E/∫λE) at each event, (n,), λ the rate, divided by the exposure `per` if given.

    Of an exposure `per` that is 0 somewhere only the rate itself can be used.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(rate.predict(X))
    if exposure is None:
        return logs - np.log(rate.expected_count(rate.window)) + np.log(rate.window.volume)
    weights = exposure
    if per is not None and per.is_positive:
        logs = logs - np.log(per.at(X[:, -1]))
        fine, exposure = per.refined(exposure.edges), exposure.refined(per.edges)
        weights = exposure.replace(amounts=np.divide(exposure.amounts, fine.amounts))
    counts = np.asarray(rate.expected_count(weights.pieces()))
    return logs - np.log(counts @ weights.amounts) + np.log(exposure.total)


def block_error(
    scores: Floats, blocks: Ints, expected: Floats | None = None
) -> tuple[float, float]:
    """The mean of scores (n,) and its standard error, from their sums over blocks (n,).

    Events of a block may depend on each other. Never less than the error of single scores. Of the
    deviation of a block's sum from the mean, what is `expected` (k,) is no error: busy blocks have
    other scores than quiet ones.
    """
    mean, n = float(np.mean(scores)), len(scores)
    single = float(np.std(scores, ddof=1) / np.sqrt(n))
    if expected is None:
        blocks = np.unique(blocks, return_inverse=True)[1]
        expected = np.zeros(int(blocks.max()) + 1)
    sums = np.bincount(blocks, scores - mean, len(expected)) - expected
    k = len(sums)
    together = np.sqrt(k / (k - 1) * np.sum(sums**2)) / n if k > 1 else 0.0
    return mean, max(single, float(together))


def seen(sample: DrawnEvents, exposure: StepExposure) -> Bools:
    """Which events lie where the axis of time was observed; spreading may have moved them, (n,)."""
    return exposure.at(sample.X[:, -1]) > 0.0
