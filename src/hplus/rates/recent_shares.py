"""RecentShares: parts of a window whose share of all events has changed, and what it is now.

Given the count of the whole, the mean count of a part in a block of time is share · total · f. The
factor f is drawn from a gamma distribution at the start and, with a small chance, anew in each
block: all that is known of the present one are the counts since the last change, and when that was
is a sum over all blocks [adams2007]. How often changes happen is chosen by how likely each count
is, given those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from scipy.special import gammaln, logsumexp, softmax

from hplus._checks import Floats, frozen_array, shown
from hplus._values import Value, value
from hplus.rates.cell_pieces import cuboid
from hplus.rates.cell_tables import (
    PlaceCells,
    count_table,
    observed_steps,
    place_cells,
    time_step_of,
)
from hplus.rates.fitted import FittedRate
from hplus.rates.local_dispersion import LocalDispersion
from hplus.rates.statistic import Statistic
from hplus.windows import Box, Interval, Window

SHARE_DEPTHS, MIN_PART_EVENTS = (5, 4, 3, 2, 1), 50.0
"""How often a window is halved along each axis, and how many events a part has on average."""

MAX_SHARE_BLOCKS, MIN_SHARE_BLOCKS = 96, 8
"""Blocks of time in which changes may begin."""

HAZARDS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
"""Chances of a change of one part in one block, one of which is chosen."""

NEW_FACTOR_SHAPE = 0.1
"""The shape of the gamma distribution of a new factor, whose mean is 1: small, as it may be any."""

MIN_CHANGE_GAIN = 1.0
"""Nats by which counts must be more likely with changes than without.

Of 380 simulated series of places with constant shares, three gained half of this, none as much.
"""

FACTOR_DRAWS, LEAST_CHANGE_CHANCE = 256, 0.02
"""Equally likely factors of a part; parts with a smaller chance of a change are left out."""

MOST_CHANGED_SHARE = 0.99
"""The share of all events of the parts that have changed, at most."""

MOST_GROWN = 0.5
"""The largest share of changed parts that tells how the total has changed."""

POINTS_OF_PART = 1024
"""Points that tell how much of a part lies in a polygon."""


@final
@value
class RecentShares(Value):
    """Equally likely shares of all events of the parts of a window that may have changed.

    A part has the bounds `lows` and `highs` (c, d); its `shares` (c, k) are 0 where it has not
    changed. What parts have gained, all that has not changed has lost in proportion. `hazard` is
    how often the share of a part changes in a unit of time. The largest shares changed at the time
    `since`, and the total by the factor `growth` if the rate of all other places stayed as it was.
    """

    lows: Floats
    highs: Floats
    shares: Floats
    hazard: float = 0.0
    since: float = 0.0
    growth: float = 1.0

    def __post_init__(self) -> None:
        for name in ("lows", "highs", "shares"):
            self._set(**{name: frozen_array(name, getattr(self, name))})
        if self.lows.shape != self.highs.shape or len(self.lows) != len(self.shares):
            raise ValueError(
                "lows, highs and shares must have a row for each part, got "
                f"{shown(self.lows)}, {shown(self.highs)} and {shown(self.shares)}."
            )

    def exposure(self, times: Floats) -> Floats:
        """The total at times (n, 1) relative to that before the change, (n,)."""
        return np.where(times[:, 0] < self.since, 1.0, self.growth)

    def after(self, time: float, ratios: Floats) -> Floats:
        """Ratios (r, k) a time later: 1 in the draws in which shares have changed again."""
        lasting = np.rint(np.exp(-self.hazard * time) * ratios.shape[1])
        return np.where(np.arange(ratios.shape[1]) < lasting, ratios, 1.0)

    def ratios(self, regions: Sequence[Window], window: Window, place: FittedRate) -> Floats:
        """Present shares of regions over those of the whole period, (r, k), given its rate."""
        own = np.maximum(place.integrals(regions), np.finfo(float).tiny)
        common = np.column_stack([_common(part, regions, window, place) for part in self._parts])
        gained, rest = self._gained(window, place)
        return rest + common / own[:, None] @ gained

    def at(self, X: Floats, window: Window, place: FittedRate) -> Floats:
        """The mean of the present rate at points (n, d) over that of the whole period, (n,)."""
        inside = ((X[:, None] >= self.lows) & (X[:, None] < self.highs)).all(axis=2)
        gained, rest = self._gained(window, place)
        return rest.mean() + inside @ gained.mean(axis=1)

    @property
    def chances(self) -> Floats:
        """The chance that the share of each part has changed, (c,)."""
        return np.mean(self.shares > 0.0, axis=1)

    def means(self, window: Window, place: FittedRate) -> tuple[Floats, Floats]:
        """Shares of the parts in the whole period, given its rate, and at present, (c,) each."""
        before = self._before(window, place)
        return before, np.where(self.shares > 0.0, self.shares, before[:, None]).mean(axis=1)

    @property
    def _parts(self) -> list[Box | Interval]:
        return [cuboid(a, b) for a, b in zip(self.lows, self.highs, strict=True)]

    def _before(self, window: Window, place: FittedRate) -> Floats:
        return place.integrals(self._parts) / float(place.integrals([window])[0])

    def _gained(self, window: Window, place: FittedRate) -> tuple[Floats, Floats]:
        """How much higher the ratios of parts are, (c, k), than that of all the rest, (k,)."""
        factors, rest = _balanced(self.shares, self._before(window, place))
        return np.where(factors > 0.0, factors - rest, 0.0), rest


def _balanced(shares: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Present shares (c, k) over those before (c,), and the same of all that has not changed."""
    before = np.maximum(before, np.finfo(float).tiny)
    present = shares * np.minimum(1.0, MOST_CHANGED_SHARE / np.maximum(shares.sum(axis=0), 1e-300))
    unchanged = np.maximum(1.0 - before @ (shares > 0.0), 1.0 - MOST_CHANGED_SHARE)
    return present / before[:, None], (1.0 - present.sum(axis=0)) / unchanged


def _common(
    part: Box | Interval, regions: Sequence[Window], window: Window, place: FittedRate
) -> Floats:
    """The integral of a rate over what each region has in common with a part, (r,)."""
    found, low, high = np.zeros(len(regions)), *part.bounds()
    exact = [i for i, region in enumerate(regions) if isinstance(region, Box | Interval)]
    if exact:
        bounds = np.array([regions[i].bounds() for i in exact])
        lows, highs = np.maximum(bounds[:, 0], low), np.minimum(bounds[:, 1], high)
        some = np.flatnonzero((lows < highs).all(axis=1))
        cuboids = [cuboid(lows[i], highs[i]) for i in some]
        found[np.array(exact)[some]] = place.integrals(cuboids) if cuboids else 0.0
    others = [i for i in range(len(regions)) if i not in set(exact)]
    points = part.sample(POINTS_OF_PART, random_state=0) if others else np.zeros((0, len(low)))
    points = points[window.contains(points)]
    if len(points):
        weights = place.function(points)
        inside = np.array([regions[i].contains(points) @ weights for i in others])
        found[others] = float(place.integrals([part])[0]) * inside / weights.sum()
    return found


def learn_recent_shares(
    events: Statistic, span: float, law: LocalDispersion | None, random_state: int
) -> RecentShares | None:
    """The parts whose shares have changed, from events by place and time; None if none have.

    `law` tells how much more the counts of parts vary than by chance: that alone is no change.
    """
    cells = None if law is None else _parts_with_events(events)
    steps = observed_steps(events, span)
    size = max(-(-steps // MAX_SHARE_BLOCKS), 1)
    if law is None or cells is None or steps < MIN_SHARE_BLOCKS * size:
        return None
    counts = count_table(events, span, cells, size)
    shares = counts.sum(axis=1) / counts.sum()
    excess = law.excess(counts.mean(axis=1), size * time_step_of(events), shares)
    means = shares[:, None] * counts.sum(axis=0)
    # counts that vary φ times as much tell as much as 1/φ as many
    runs = run_chances(*(each / (1.0 + excess)[:, None] for each in (counts, means)))
    if runs is None:
        return None
    changed = 1.0 - runs.chances[:, 0] > LEAST_CHANGE_CHANCE
    drawn = _drawn(runs, np.random.default_rng(random_state))
    low, high = (bound[:-1] for bound in events.window.bounds())
    sides = events.lattice.cell_sides(cells.depth)[:-1]
    lows = low + cells.indices[changed] * sides
    highs, block = np.minimum(lows + sides, high), size * time_step_of(events)
    known = np.where(drawn > 0.0, shares[:, None] * drawn, shares[:, None]).mean(axis=1)
    first = 1 + int((np.abs(known - shares) @ runs.chances[:, 1:]).argmax())
    since = float(events.window.bounds()[1][-1]) - block * (counts.shape[1] - first)
    likely = runs.chances[:, 0] < 0.5
    growth = _growth(counts[likely, :first].sum() / counts[:, :first].sum(), known[likely].sum())
    found = (shares[:, None] * drawn)[changed]
    return RecentShares(lows, highs, found, runs.hazard / block, since, growth)


def _growth(before: float, now: float) -> float:
    """How much a total grows if some parts have other shares of it and the others stay as is.

    Not at all if these are more than half of all.
    """
    return float((1.0 - before) / (1.0 - now)) if max(before, now) <= MOST_GROWN else 1.0


def _parts_with_events(events: Statistic) -> PlaceCells | None:
    """The smallest parts of the window that hold enough events on average."""
    for depth in (d for d in SHARE_DEPTHS if d <= events.depth):
        cells = place_cells(events, depth)
        if 1 < len(cells) <= events.total / MIN_PART_EVENTS:
            return cells
    return None


class RunChances(NamedTuple):
    """Chances (c, b) that the present factor began in each block, and what is known of it.

    If it began in block r, it is a gamma variable of that shape and rate, (c, b) each; in block 0,
    it has never changed. `hazard` is the chance of a change in a block, and `gain` what changes add
    to the log likelihood.
    """

    chances: Floats
    shapes: Floats
    rates: Floats
    hazard: float
    gain: float


def run_chances(counts: Floats, means: Floats) -> RunChances | None:
    """When the factors of parts last changed, from counts and means (c, b); None if never."""
    many, blocks = counts.shape
    logs = np.full((len(HAZARDS), many, blocks), -np.inf)
    logs[:, :, 0] = 0.0
    with np.errstate(divide="ignore"):
        begins = np.log(HAZARDS)[:, None]
    stays = np.log1p(-np.array(HAZARDS))[:, None, None]
    shapes = rates = np.full((many, blocks), NEW_FACTOR_SHAPE)
    for t in range(blocks):
        if t:
            logs[:, :, t] = begins + logsumexp(logs[:, :, :t], axis=2)
            logs[:, :, :t] += stays
        n, m = counts[:, t, None], means[:, t, None]
        logs[:, :, : t + 1] += _log_chance(n, m, shapes[:, : t + 1], rates[:, : t + 1])
        so_far = np.arange(blocks) <= t
        shapes, rates = shapes + n * so_far, rates + m * so_far
    likelihoods = logsumexp(logs, axis=2).sum(axis=1)
    best = int(likelihoods.argmax())
    gain = float(likelihoods[best] - likelihoods[0])
    if gain < MIN_CHANGE_GAIN:
        return None
    return RunChances(softmax(logs[best], axis=1), shapes, rates, HAZARDS[best], gain)


def _log_chance(n: Floats, m: Floats, shape: Floats, rate: Floats) -> Floats:
    """log of the chance of a count n, Poisson with mean m times a gamma variable.

    Without log(mⁿ/n!), which is the same whatever the gamma variable.
    """
    return (
        gammaln(shape + n) - gammaln(shape) + shape * np.log(rate) - (shape + n) * np.log(rate + m)
    )


def _drawn(runs: RunChances, rng: np.random.Generator) -> Floats:
    """Equally likely present factors (c, k), 0 where a part has not changed."""
    ends = np.cumsum(runs.chances, axis=1)
    u = rng.random((len(ends), FACTOR_DRAWS)) * ends[:, -1:]
    began = np.array([np.searchsorted(e, x, side="right") for e, x in zip(ends, u, strict=True)])
    shapes, rates = (np.take_along_axis(each, began, axis=1) for each in (runs.shapes, runs.rates))
    return np.where(began > 0, rng.gamma(shapes) / rates, 0.0)
