"""Watch: counts of a stream against what was expected, and the alerts that follow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import final

import numpy as np

from hplus._checks import Floats, Ints, check_positive
from hplus._values import Value, value
from hplus.alerts.change_evidence import OWN_FACTOR_SHAPE, gather, gather_many
from hplus.alerts.overlapping_blocks import OverlappingBlocks

WEEK = 604_800.0
"""Seconds of a week."""

FACTORS = np.array([1.4, 2.0, 3.5, 8.0, 0.5, 0.2])
"""What a rate may be multiplied by when it changes."""

PRIOR_CHANCES = np.array([0.2, 0.3, 0.2, 0.1, 0.1, 0.1])
"""How likely each of these is beforehand."""

OPEN_NUMBERS = 9
"""Numbers that are saved of an episode that goes on."""

SHARE_OF_CELLS = 0.75
"""The share of false alarms that single cells may raise."""

CLOSING_DROP = math.log(100.0)
"""An alert ends when the likelihood ratio has dropped to a hundredth of its peak."""


@final
@value
class Episode(Value):
    """A place and a time at which counts were outside what was expected.

    `start` and `end` are seconds; `end` is NaN while it goes on. `low` and `high` are the corners
    of the place in shares of the window, `weeks` how often, by chance, an episode like it occurs.
    """

    number: int
    start: float
    found: float
    end: float
    low: tuple[float, ...]
    high: tuple[float, ...]
    observed: float
    expected: float
    weeks: float

    @property
    def is_excess(self) -> bool:
        """Were there more events than expected?"""
        return self.observed > self.expected


@final
class _Open:
    """An episode that goes on: the place and factor of its peak so far."""

    def __init__(self, number: int, found: float) -> None:
        self.number, self.found = number, found
        self.place, self.factor, self.peak, self.score = -1, 0, 0.0, 0.0
        self.seen = (0.0, 0.0, 0.0)

    def row(self) -> list[float]:
        """All of it as numbers."""
        peak = [self.place, self.factor, self.peak, self.score]
        return [self.number, self.found, *peak, *self.seen]

    @classmethod
    def of_row(cls, row: list[float]) -> _Open:
        """The episode that `row` made numbers of."""
        held = cls(int(row[0]), row[1])
        held.place, held.factor, held.peak, held.score = int(row[2]), int(row[3]), row[4], row[5]
        held.seen = (row[6], row[7], row[8])
        return held


@final
class Watch:
    """Looks at blocks of all sizes at once, and keeps to a rate of false alarms.

    Parameters
    ----------
    blocks : OverlappingBlocks
    weekly : array, one number for each cell
        Events expected in a week.
    alarms_per_week : float
        How many false alarms a week are accepted.
    memory : float, default=inf
        Half-life, in seconds, of the counts from which the own level of a place is learned.
    learned : float, default=inf
        Seconds of observation from which `weekly` was learned; infinite if it is known exactly.
    correction : float, default=1.0
        Ratio of the false alarms to the number that theory allows; see `calibrated`.
    """

    def __init__(
        self,
        blocks: OverlappingBlocks,
        weekly: Floats,
        alarms_per_week: float,
        *,
        memory: float = math.inf,
        learned: float = math.inf,
        correction: float = 1.0,
    ) -> None:
        self.blocks, self.memory = blocks, memory
        self.alarms_per_week = check_positive("alarms_per_week", alarms_per_week)
        self.rates = blocks.sums(weekly)
        places, factors = len(self.rates), len(FACTORS)
        self._correction = correction
        self.thresholds = correction / alarms_per_week / shares_of_alarms(blocks, self.rates)
        weeks = min(learned, memory / math.log(2.0)) / WEEK
        own = OWN_FACTOR_SHAPE + np.minimum(self.rates * weeks, 1e9)
        self.known = np.stack([own, own], axis=1)
        self.evidence = np.zeros((places, factors))
        self.scores = np.zeros((places, factors))
        self.since = np.zeros((places, factors, 3))
        self.now, self.found = math.nan, 0
        self._open: list[_Open] = []

    @property
    def whole(self) -> tuple[float, float]:
        """Of the whole window: the shape of its factor, and its mean."""
        a, b = self.known[-1].tolist()
        return a, a / b

    def advance(self, until: float, counts: Floats, means: Floats) -> list[Episode]:
        """Add a tick with counts and expected counts (cells, ...), and return what has changed."""
        if math.isnan(self.now):
            self.since[:, :, 0] = until
        step = 0.0 if math.isnan(self.now) else until - self.now
        self.now = until
        gather(
            self.blocks.sums(counts),
            self.blocks.sums(means),
            FACTORS,
            2.0 ** (-step / self.memory),
            until,
            self.known,
            self.evidence,
            self.scores,
            self.since,
        )
        return self._episodes()

    def run(self, tick: float, per_tick: Ints, cells: Ints, means: Floats) -> list[Episode]:
        """Many ticks of equal length and means, as `advance` would add them one by one.

        The events are in `cells`, in their order, `per_tick` of them in each tick. Rates are
        known exactly.
        """
        starts, places, told = *self.blocks.places_of_cells, list[Episode]()
        sums, done, first = self.blocks.sums(means), 0, 0
        self.now = 0.0 if math.isnan(self.now) else self.now
        while done < len(per_tick):
            before, open_ones = done, self._open
            held = np.array([[o.place, o.factor] for o in open_ones], np.int64).reshape(-1, 2)
            floors = np.array([o.score - CLOSING_DROP for o in open_ones])
            done, first = gather_many(
                done, per_tick, cells, first, starts, places, sums, FACTORS, PRIOR_CHANCES,
                self._limits(), held, floors, tick, self.now, self.evidence, self.scores,
                self.since,
            )  # fmt: skip
            self.now += (done - before) * tick
            told += self._episodes()
        return told

    def _limits(self) -> Floats:
        """The evidence at each place from which on an episode begins, or has a new peak."""
        limits = self.thresholds.copy()
        for held in reversed(self._open):
            here = self.blocks.overlaps(held.place)
            limits[here] = self.thresholds[here] * held.peak
        return limits

    def saved(self) -> dict[str, Floats]:
        """All that a watch of the same blocks needs to go on."""
        rows = [held.row() for held in self._open]
        return {
            "weekly": self.rates[: self.blocks.cells**self.blocks.dimension],
            "known": self.known,
            "evidence": self.evidence,
            "scores": self.scores,
            "since": self.since,
            "settings": np.array([self.alarms_per_week, self._correction, *FACTORS]),
            "progress": np.array([self.now, self.found]),
            "open": np.array(rows).reshape(len(rows), OPEN_NUMBERS),
        }

    @classmethod
    def restored(
        cls,
        blocks: OverlappingBlocks,
        saved: Mapping[str, Floats],
        alarms_per_week: float,
        memory: float,
    ) -> Watch | None:
        """The watch that was saved; None if it was one of other blocks or settings."""
        asked, correction, *factors = saved["settings"].tolist()
        same = asked == alarms_per_week and factors == FACTORS.tolist()
        if not same or saved["weekly"].size != blocks.cells**blocks.dimension:
            return None
        watch = cls(blocks, saved["weekly"], asked, memory=memory, correction=correction)
        for name in ("known", "evidence", "scores", "since"):
            part = getattr(watch, name)
            if saved[name].shape != part.shape:
                return None
            part[...] = saved[name]
        watch.now, watch.found = float(saved["progress"][0]), int(saved["progress"][1])
        watch._open = [_Open.of_row(row) for row in saved["open"].tolist()]
        return watch

    @property
    def going_on(self) -> list[int]:
        """The numbers of the episodes that have not ended."""
        return [held.number for held in self._open]

    def expect(self, weekly: Floats) -> None:
        """Expect other numbers of events in a week; the level of each place stays what it is."""
        rates = self.blocks.sums(weekly)
        ratio = np.where(
            (rates > 0.0) & (self.rates > 0.0), rates / np.maximum(self.rates, 1e-300), 1.0
        )
        self.known[:, 1] = OWN_FACTOR_SHAPE + (self.known[:, 1] - OWN_FACTOR_SHAPE) * ratio
        self.rates = rates
        self.thresholds = (
            self._correction / self.alarms_per_week / shares_of_alarms(self.blocks, rates)
        )

    def _episodes(self) -> list[Episode]:
        total = self.evidence @ PRIOR_CHANCES / self.thresholds
        crossed = np.flatnonzero(total >= 1.0)
        changed = []
        for place in crossed[np.argsort(-total[crossed])].tolist():
            held = next((o for o in self._open if self._same(o, place)), None)
            if held is None:
                self.found += 1
                held = _Open(self.found, self.now)
                self._open.append(held)
            if total[place] > held.peak:
                self._move(held, place, float(total[place]))
                changed.append(held)
        told = [self._told(o, math.nan) for o in self._open if o in changed]
        return told + [self._close(o) for o in list(self._open) if self._is_over(o)]

    def _same(self, held: _Open, place: int) -> bool:
        return bool(self.blocks.overlaps(held.place)[place])

    def _move(self, held: _Open, place: int, peak: float) -> None:
        held.place, held.peak = place, peak
        held.factor = int(np.argmax(self.scores[place]))
        held.score = float(self.scores[place, held.factor])
        held.seen = tuple(self.since[place, held.factor].tolist())

    def _is_over(self, held: _Open) -> bool:
        return self.scores[held.place, held.factor] <= held.score - CLOSING_DROP

    def _close(self, held: _Open) -> Episode:
        """The end of an episode: its places start again."""
        self._open.remove(held)
        here = self.blocks.overlaps(held.place)
        self.evidence[here] = 0.0
        self.scores[here] = 0.0
        self.since[here] = (self.now, 0.0, 0.0)
        return self._told(held, self.now)

    def _told(self, held: _Open, end: float) -> Episode:
        low, high = (corner[held.place] / self.blocks.cells for corner in self.blocks.corners)
        start, observed, expected = held.seen
        weeks = held.peak / self.alarms_per_week
        place = tuple(low.tolist()), tuple(high.tolist())
        return Episode(held.number, start, held.found, end, *place, observed, expected, weeks)


def shares_of_alarms(blocks: OverlappingBlocks, rates: Floats) -> Floats:
    """The share of false alarms per expected event that each block is allowed, (places,).

    Most of them are for single cells, where evidence comes most slowly, and the rest is divided
    evenly between the other levels; within a level, for each block as many as events are expected
    in it.
    """
    totals = np.bincount(blocks.levels, rates)
    shares = np.full(len(totals), (1.0 - SHARE_OF_CELLS) / max(len(totals) - 1, 1))
    shares[0] = SHARE_OF_CELLS if len(totals) > 1 else 1.0
    return np.asarray((shares / np.maximum(totals, 1e-300))[blocks.levels])
