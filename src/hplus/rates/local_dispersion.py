"""LocalDispersion: how much more the counts of a place vary over time than independent events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, final

import numpy as np
from scipy.special import gammaincinv

from hplus._checks import Floats, frozen_array, shown
from hplus._values import Value, value
from hplus.rates.cell_tables import count_table, observed_steps, place_cells, time_step_of
from hplus.rates.statistic import Statistic
from hplus.windows import Interval

TOGETHER_DEPTH = 11
"""Depth of the cells of places and times: 2,048 blocks of time."""

PLACE_DEPTHS, USUAL_CELLS = range(1, 8), (1, 4, 16, 64)
"""Sizes of cells in which events are counted, and cells of time that are taken together."""

MIN_TABLE, MAX_TABLE = 8, 2**20
"""Blocks of a table of counts, at least, and cells times blocks, at most."""

MIN_EVENTS_TOGETHER = 100
"""With fewer events, nothing can be said about how their counts vary."""

KNOT_RATIO, FIRST_KNOT, TIME_KNOTS = 4.0, -5, 5
"""The law is known at means from 4⁻⁵ on and at times of 4⁻⁵ of the observation period on."""

CURVATURE, MIN_STIFFNESS, LAW_STEPS = 1.5, 1e-3, 60
"""How much the exponent of the law may change from knot to knot; steps to find it."""

FIRST_EXCESS, LEAST_EXCESS, LOG_EXCESSES = 0.1, 1e-3, (-12.0, 7.0)
"""Excesses where the search begins, and where nothing is known; bounds of their logarithms."""

LAW_ERROR = 0.15
"""The law is taken to be wrong by this fraction, whatever the number of events."""

SHAPE_STEP = 0.02
"""Shapes of gamma variables are rounded to this fraction, so that few of them are computed."""

MIN_DRAWS = 1024
"""Draws of a mean with local variation, at least."""


@final
@value
class LocalDispersion(Value):
    """The extra variance of counts to come in a part of the window, given that of the whole.

    A count with mean m, of a part that holds the share p of all events, over a time T has the
    variance m + m (1 - p) x. The excess x, 0 for independent events, is a function of m and T: its
    logarithms at `means` (a,) and `times` (b,) are `log_excess` (a, b), linear between them in the
    logarithms of m and T, and constant beyond.
    """

    means: Floats
    times: Floats
    log_excess: Floats

    def __post_init__(self) -> None:
        names = ("means", "times", "log_excess")
        arrays = {name: frozen_array(name, getattr(self, name)) for name in names}
        self._set(**arrays)
        knots = (self.means, self.times)
        if self.log_excess.shape != tuple(map(len, knots)) or any(
            len(k) < 2 or k.min() <= 0.0 or np.any(np.diff(k) <= 0.0) for k in knots
        ):
            raise ValueError(
                "means and times must be increasing numbers above 0, and log_excess must have a "
                f"row for each mean and a column for each time, got {shown(self.log_excess)}."
            )

    def excess(self, means: Floats, time: float, share: Floats | float = 0.0) -> Floats:
        """(1 - p) x for counts with these means over a time, shape (r,)."""
        low = self.means[0]
        m, t = (_hats(k, v) for k, v in ((self.means, np.maximum(means, low)), (self.times, time)))
        return np.clip(1.0 - share, 0.0, 1.0) * np.exp(m @ self.log_excess @ t[0])

    def varied(
        self,
        draws: Floats,
        time: float,
        shares: Floats,
        repeats: float = 1.0,
        most: Floats | None = None,
    ) -> Floats:
        """Draws (r, k) of mean counts, each times a gamma variable: counts become mixtures.

        Poisson with such a mean is negative binomial. Counts may be sums over independent repeats.
        None exceeds `most` (k,), the draws of the whole that they are parts of.
        """
        means = draws.mean(axis=1)
        excess = self.excess(means / repeats, time, shares)
        count = draws.shape[1] * -(-MIN_DRAWS // draws.shape[1])
        # each quantile of the gamma variable is used once, with draws in a random order
        order = np.random.default_rng(0).permutation(count) % draws.shape[1]
        found, some = draws[:, order], np.flatnonzero(excess * means > 0.0)
        shapes = means[some] / excess[some]
        kinds, kind = np.unique(np.rint(np.log(shapes) / SHAPE_STEP), return_inverse=True)
        found[some] *= _gamma_quantiles(np.exp(SHAPE_STEP * kinds), count)[kind]
        return found if most is None else np.minimum(found, most[order])


def _hats(knots: Floats, at: Floats | float) -> Floats:
    """Hat functions of the logarithms of knots at numbers, constant beyond them, (n, knots)."""
    place = np.interp(np.log(np.atleast_1d(at)), np.log(knots), np.arange(len(knots)))
    return np.maximum(1.0 - np.abs(place[:, None] - np.arange(len(knots))), 0.0)


def _gamma_quantiles(shapes: Floats, count: int) -> Floats:
    """Equally likely values of gamma variables with mean 1, shape (s, count)."""
    u = (np.arange(count) + 0.5) / count
    found = gammaincinv(shapes[:, None], u)
    return found / np.maximum(found.mean(axis=1, keepdims=True), np.finfo(float).tiny)


class Excess(NamedTuple):
    """The excess of cells of one size: mean count, length of a block, excess, its error."""

    mean: float
    time: float
    excess: float
    error: float


def shared_axis(start: float, end: float, lengths: Sequence[float]) -> Interval:
    """An axis of time that ends at `end` and whose cells are as long as one of the lengths.

    2¹¹ cells of the first length that is long enough begin before `start`.
    """
    many, span = 2**TOGETHER_DEPTH, end - start
    length = next((length for length in sorted(lengths) if many * length >= span), span / many)
    return Interval(end - many * length, end)


def together(events: Statistic) -> Statistic:
    """Events by place and time, in cells that are coarse enough to be compared."""
    return events.coarsened(min(events.depth, TOGETHER_DEPTH))


def learn_local_dispersion(
    events: Statistic, span: float, lengths: Sequence[float]
) -> LocalDispersion | None:
    """The law of the excess, from events by place and time (the last axis); None if too few.

    Counts of cells in later blocks of time are compared with what the cell's share of all earlier
    events expects, given the total of the block, for several sizes of cells and those lengths of
    blocks that are whole numbers of cells of time. `span` is how long was observed, until the end
    of the axis of time.
    """
    if events.events < MIN_EVENTS_TOGETHER:
        return None
    found = list(_excesses(events, span, lengths))
    return _law(found, events.total, span) if found else None


def dispersion_of_tables(tables: Iterable[Floats], events: float) -> LocalDispersion | None:
    """The same law from tables of counts (c, b), of cells of one size in repeated observations."""
    fit = (t for t in tables if t.shape[1] >= MIN_TABLE and 1 < len(t) <= MAX_TABLE // t.shape[1])
    found = [excess for table in fit if (excess := _of_table(table, 1.0)) is not None]
    return _law(found, events, 1.0) if found and events >= MIN_EVENTS_TOGETHER else None


def _excesses(events: Statistic, span: float, lengths: Sequence[float]) -> Iterator[Excess]:
    steps, step = observed_steps(events, span), time_step_of(events)
    sizes = {round(k) for k in np.array(lengths) / step if abs(k - round(k)) < 1e-6 * k}
    for depth in (d for d in PLACE_DEPTHS if d <= events.depth):
        cells = place_cells(events, depth)
        for size in sorted(sizes | set(USUAL_CELLS)):
            blocks = steps // max(size, 1)
            if size < 1 or blocks < MIN_TABLE or not 1 < len(cells) <= MAX_TABLE // blocks:
                continue
            found = _of_table(count_table(events, span, cells, size), size * step)
            if found is not None:
                yield found


def _of_table(counts: Floats, time: float) -> Excess | None:
    """The excess in a table of cells × blocks, whose later half is predicted block by block.

    None if nothing can vary there: without events, or with all of them in one cell.
    """
    before: Floats = np.cumsum(counts, axis=1) - counts
    later = slice(counts.shape[1] // 2, None)
    n, past = counts[:, later], before[:, later]
    total, earlier = n.sum(axis=0), np.maximum(past.sum(axis=0), 1.0)
    share = (counts.sum(axis=1) / counts.sum())[:, None]
    mean, own = share * total, 1.0 - share
    # chance in the count, and in the share that is known from earlier events
    chance = mean * own * (1.0 + total / earlier)
    held = float((mean * own).sum())
    if not held > 0.0:
        return None
    excess = float((((n - total * past / earlier) ** 2) - chance).sum()) / held
    error = float(np.sqrt((chance + 2.0 * chance**2).sum())) / held
    return Excess(float((mean**2).sum() / mean.sum()), time, excess, error)


def _law(found: list[Excess], events: float, span: float) -> LocalDispersion:
    """The law that suits the excesses, by least squares with a penalty on its curvature.

    Excesses are known up to chance, and the law up to a fraction of it: so steps are Newton's for
    weights that follow it.
    """
    mean, time, excess, error = np.array(found).T
    means = KNOT_RATIO ** np.arange(FIRST_KNOT, np.ceil(np.log(events) / np.log(KNOT_RATIO)) + 1)
    times = span * KNOT_RATIO ** np.arange(-TIME_KNOTS, 1.0)
    m, t = _hats(means, mean), _hats(times, time)
    H = (m[:, :, None] * t[:, None, :]).reshape(len(found), -1)
    D = np.vstack([
        np.kron(_second_differences(len(means)), np.eye(len(times))),
        np.kron(np.eye(len(means)), _second_differences(len(times))),
    ])  # fmt: skip
    stiff = D.T @ D / CURVATURE**2 + MIN_STIFFNESS * np.eye(H.shape[1])
    u = np.full(H.shape[1], np.log(FIRST_EXCESS))
    for _ in range(LAW_STEPS):
        law = np.exp(H @ u)
        J = H * law[:, None]
        w = 1.0 / ((error * (1.0 + law)) ** 2 + (LAW_ERROR * law) ** 2)
        slope = J.T @ (w * (excess - law)) - stiff @ (u - np.log(LEAST_EXCESS))
        step = np.linalg.solve(J.T @ (w[:, None] * J) + stiff, slope)
        u = np.clip(u + step / max(1.0, float(np.abs(step).max())), *LOG_EXCESSES)
    return LocalDispersion(means, times, u.reshape(len(means), len(times)))


def _second_differences(n: int) -> Floats:
    """The matrix (n - 2, n) of second differences."""
    return np.diff(np.eye(n), 2, axis=0)
