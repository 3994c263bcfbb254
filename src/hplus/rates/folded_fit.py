"""FoldedFit: a smooth rate of very many events, learned without one fold until all are needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hplus.positivity.exp import GridFunction
from hplus.rates.grid_rate import GridRate
from hplus.rates.levels import Level, descend
from hplus.rates.log_gaussian import (
    CoarseFit,
    SmoothFit,
    WithoutFold,
    begin,
    solved_for_leader,
)
from hplus.rates.posterior import average, modes_under
from hplus.rates.prior import Mixture


@dataclass(frozen=True)
class FoldedFit:
    """A fit to the events without a fold, on one of ever finer grids.

    Rates are compared by what they predict of the fold. Only the one that is kept is learned from
    all events, those of the level `finest`, and starts from this fit.
    """

    fold: int
    some: SmoothFit
    finest: Level
    seed: int

    def held_out(self) -> list[WithoutFold]:
        """The rate learned without the fold."""
        return [WithoutFold(self.fold, self.some.function())]

    def function(self) -> GridFunction:
        """The rate of the events without the fold."""
        return self.some.function()

    def refined(self) -> FoldedFit:
        """The fit on the first grid on which the rate hardly moves."""
        return replace(self, some=self.some.refined())

    def rate(self, draws: int | None = None) -> GridRate:
        """The rate of all events with its uncertainty, certified."""
        return self.of_all().rate(draws)

    def of_all(self) -> SmoothFit:
        """The fit to all events on the grids of this one."""
        some = self.some
        levels = descend(self.finest)[-len(some.levels) :]
        known = modes_under(levels[-1], some.coarse.known)
        averaged = partial(average, levels[-1], known, seed=self.seed)
        coarse = CoarseFit(levels[-1], [], known, some.coarse.draws, averaged)
        refined = some.place < len(levels) - 1
        parts = solved_for_leader(some.parts, levels[some.place]) if refined else known
        return SmoothFit(levels, coarse, some.place, parts, some.change)


def begin_without_fold(finest: Level, priors: Mixture, seed: int) -> FoldedFit | None:
    """A fit on the coarsest grid without the first fold; None if there is but one."""
    filled = np.flatnonzero(finest.filled())
    if len(filled) < 2:
        return None
    fold = int(filled[0])
    some = replace(finest, folds=np.delete(finest.folds, fold, axis=0))
    return FoldedFit(fold, begin(some, priors, seed), finest, seed)
