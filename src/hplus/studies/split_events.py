"""SplitEvents: the events of a file in statistics, some to learn from and some to predict.

Everything that is kept follows from the events, not from their order or the parts they came in:
counts are exact, a random share is drawn cell by cell after all were counted, samples are chosen by
a hash of each row, and rounded times are spread out at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus.grids.hats import read_only
from hplus.rates.accumulator import CellAccumulator
from hplus.rates.cell_counts import drawn_counts, drawn_members, uniforms
from hplus.rates.lattice import CellLattice, Codes
from hplus.rates.map_learning import JOINT_DEPTH
from hplus.rates.row_keys import both_keys, row_keys
from hplus.rates.statistic import Statistic, merged
from hplus.rates.weight_units import in_units
from hplus.studies.cell_draws import drawn_from_cells
from hplus.studies.event_samples import MAX_SAMPLE, DrawnEvents, EventSample
from hplus.studies.event_weights import WeightScale, scaled_weights
from hplus.studies.frames import Frame
from hplus.studies.splits import HELD, Split
from hplus.studies.time_spreads import spread_counts, spread_drawn
from hplus.windows import Product, Window

Statistics = tuple[Statistic, ...]
"""A statistic of each window that is learned separately."""

JOINT = -1
"""The number of the window of places and times together, after those learned separately."""

HELD_SALT = 0x9D2C
"""What is held out at random and what a fit draws for the same seed have nothing in common."""


class SplitEvents:
    """Events of a file, split into those to learn from, those held out and those in gaps.

    Of each there are the statistics, and of the first two a sample of the events themselves, with
    their times. Places and times are learned separately; `joint` has both, if times are folded
    into a cycle. Weights are counted in the unit of their `scale`, and the samples are drawn in
    proportion to them. Events are not `counted` if only the samples are wanted, unless these are
    drawn from counts.
    """

    def __init__(
        self,
        frame: Frame,
        split: Split,
        seed: int,
        scale: WeightScale | None = None,
        counted: bool = True,
    ) -> None:
        self.frame, self.split, self.seed, self.scale = frame, split, seed, scale
        self.windows: tuple[Window, ...] = (frame.window,)
        if frame.region is not None and frame.clock is not None:
            self.windows = (frame.region, frame.clock.window)
        self._counted = counted or self._alone
        joint = frame.window if len(self.windows) == 2 and frame.cycle else None
        self._joint_window = joint if isinstance(joint, Product) else None
        self.cells: dict[tuple[int, int], CellAccumulator] = {}
        self._absorbing: dict[tuple[int, int], CellAccumulator] = {}
        d = frame.window.dimension
        # of more rows than are kept, events are drawn from the cells of one window
        self.samples = {held: EventSample(d, MAX_SAMPLE, self._alone) for held in (False, True)}

    @property
    def _thinned(self) -> bool:
        """Is a random share held out of all cells, after all events were counted?"""
        return self._alone and not self.split.held and self.split.share > 0.0

    @property
    def _alone(self) -> bool:
        """Does the statistic of one window tell all of an event, its cycle and its trial too?"""
        return len(self.windows) == 1 and not self.frame.cycle and not self.frame.trial

    def add(
        self,
        X: Floats,
        seconds: Floats,
        weights: Floats | None = None,
        keys: Codes | None = None,
    ) -> None:
        """Events (n, d), their times (n,), what each one counts (n,), and a key of each (n,)."""
        for computed in ("_drawn", "_held_counts", "_halves"):
            self.__dict__.pop(computed, None)
        if keys is None:
            keys = row_keys(X, seconds)
        if weights is not None:
            keys = both_keys(keys, row_keys(weights[:, None]))
        part = np.zeros(len(X), dtype=np.int64)
        if not self._thinned:
            drawn_by = row_keys(seconds[:, None]) if self.split.by_trial else keys
            part = self.split.parts(seconds, uniforms(drawn_by))
        units = None
        if weights is not None and self.scale is not None:
            units = in_units(scaled_weights(weights, self.scale), len(X))
        low, high = (int(part.min()), int(part.max())) if len(part) else (0, -1)
        for k in range(low, high + 1) if self._counted else ():
            some = part == k
            if low == high:
                self._count(k, X, units, keys)
            elif some.any():
                self._count(k, X[some], None if units is None else units[some], keys[some])
        for held in (False, True):
            if low < high:
                chosen = part == HELD if held else part >= 0
                self.samples[held].add(X, seconds, weights, keys, chosen)
            elif low == HELD if held else low >= 0:
                self.samples[held].add(X, seconds, weights, keys)

    def _count(self, k: int, X: Floats, units: Ints | None, keys: Codes) -> None:
        """Count the events of one part."""
        ends = np.cumsum([window.dimension for window in self.windows])
        for i, columns in enumerate(np.split(X, ends[:-1], axis=1)):
            self._cell(k, i).add(columns, units)
        if self._joint_window is not None:
            clock = self.frame.clock
            assert clock is not None
            at = clock.moved(X[:, -1], uniforms(keys))
            self._cell(k, JOINT).add(np.column_stack([X[:, :-1], at]), units)

    def _cell(self, k: int, i: int) -> CellAccumulator:
        if (k, i) in self.cells:
            return self.cells[k, i]
        if (k, i) in self._absorbing:
            self.cells[k, i] = self._absorbing[k, i].another()
        else:
            window = self.windows[i] if i != JOINT else self._joint_window
            assert window is not None
            most = JOINT_DEPTH if i == JOINT else None
            self.cells[k, i] = CellAccumulator(window, most_depth=most)
        return self.cells[k, i]

    def absorb(self, other: SplitEvents) -> None:
        """The events of another part of the same file or files."""
        for key, cells in other.cells.items():
            self._cell(*key).absorb(cells)
        for held, sample in other.samples.items():
            self.samples[held].absorb(sample)

    def another(self) -> SplitEvents:
        """The same split of other events, which are to be absorbed."""
        found = SplitEvents(self.frame, self.split, self.seed, self.scale)
        found.samples = {held: sample.another() for held, sample in self.samples.items()}
        found._absorbing = self.cells
        return found

    def sizes(self) -> tuple[int, int]:
        """How many events there are to learn from, and to be predicted."""
        if self.scale is not None:
            return len(self.learned_sample.X), len(self.held_sample.X)
        return self.learned()[0].events, self.held[0].events

    @property
    def copies(self) -> float:
        """The share of events that are copies of others, of a sample; 0 if none was kept."""
        if self._alone and any(sample.halvings for sample in self.samples.values()):
            return 0.0
        counts = np.concatenate([sample.kept().counts for sample in self.samples.values()])
        return float(1.0 - len(counts) / max(counts.sum(), 1))

    @property
    def everything(self) -> Statistics:
        """The statistics of all events."""
        return self._spread(self._merged(lambda k: True))

    @property
    def held(self) -> Statistics:
        """The statistics of the events held out."""
        return self._spread(self._held())

    def learned(self, before: int | None = None) -> Statistics:
        """The statistics of the events to learn from, of all spans of time or the first ones."""
        return self._spread(self._learned(before))

    def _held(self) -> Statistics:
        return (self._halves[1],) if self._thinned else self._merged(lambda k: k == HELD)

    def _learned(self, before: int | None = None) -> Statistics:
        if self._thinned:
            return (self._halves[0],)
        return self._merged(lambda k: k >= 0 and (before is None or k < before))

    @cached_property
    def _halves(self) -> tuple[Statistic, Statistic]:
        """The events to learn from and those held out, if these are a random share."""
        (whole,), held = self._merged(lambda k: True), self._held_counts
        return whole.part(whole.counts - held), whole.part(held)

    def joint(self, before: int | None = None, *, everything: bool = False) -> Statistic | None:
        """The statistic of places and times together: as `learned`, or of all events."""
        found = [
            cells.statistic()
            for (k, i), cells in self.cells.items()
            if i == JOINT and (everything or (k >= 0 and (before is None or k < before)))
        ]
        return merged(found) if found else None

    @property
    def sampled(self) -> Floats:
        """The sample of all events but those in gaps, (n, d)."""
        return np.concatenate([self.learned_sample.X, self.held_sample.X])

    @property
    def learned_sample(self) -> DrawnEvents:
        """A sample of the events to learn from."""
        return self._drawn[0]

    @property
    def held_sample(self) -> DrawnEvents:
        """A sample of the events held out."""
        return self._drawn[1]

    @cached_property
    def _drawn(self) -> tuple[DrawnEvents, DrawnEvents]:
        """Samples to learn from and to be predicted, with rounded times spread out.

        Of more rows than are kept, events are drawn from their cells where these tell all of them:
        a row that occurs very often is neither missed nor drawn as a whole.
        """
        largest = 0.0 if self.scale is None else self.scale.largest
        clock, seed = self.frame.clock, self.seed
        if self._alone and any(sample.halvings for sample in self.samples.values()):
            unit = 1.0 if self.scale is None else self.scale.unit
            parts = (self._learned()[0], self._held()[0])
            learned, held = (
                drawn_from_cells(part, clock, seed, largest / unit, MAX_SAMPLE) for part in parts
            )
        else:
            learned, held = (self.samples[k].draw(seed, MAX_SAMPLE, largest) for k in (False, True))
            if self._thinned:
                which = self._members(learned)
                learned, held = learned.some(~which), learned.some(which)
        return spread_drawn(clock, learned), spread_drawn(clock, held)

    def _members(self, drawn: DrawnEvents) -> Bools:
        """Which events of a sample are among those that are held out of their cells."""
        (whole,) = self._merged(lambda k: True)
        lattice = CellLattice(whole.window)
        shift = np.uint64(lattice.dimension * (lattice.bits - whole.depth))
        cells = np.searchsorted(whole.codes, lattice.codes(drawn.X) >> shift)
        held, seed = read_only(self._held_counts), np.uint64(self.seed)
        return drawn_members(cells, read_only(drawn.keys), whole.counts, held, seed)

    @cached_property
    def _held_counts(self) -> Ints:
        """How many events of each cell are held out, if they are a random share."""
        (whole,) = self._merged(lambda k: True)
        shares = np.full(len(whole.codes), self.split.share)
        return drawn_counts(whole.codes, whole.counts, np.uint64(self.seed + HELD_SALT), shares)

    def _spread(self, found: Statistics) -> Statistics:
        """Statistics with rounded times spread out."""
        if self.frame.clock is None or not self.frame.clock.spread:
            return found
        return (*found[:-1], spread_counts(self.frame.clock, found[-1]))

    def _merged(self, wanted: Callable[[int], bool]) -> Statistics:
        return tuple(self._counted_in(i, wanted) for i in range(len(self.windows)))

    def _counted_in(self, i: int, wanted: Callable[[int], bool]) -> Statistic:
        """The events of the wanted parts in the cells of a window."""
        found = [cells.statistic() for (k, j), cells in self.cells.items() if i == j and wanted(k)]
        none = CellAccumulator(self.windows[i])
        return merged(found) if found else none.statistic()
