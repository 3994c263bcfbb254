"""What a map gains since places have changed: later events are like those since then.

Events held out from before a change say nothing about the future, and those since then are few:
the rate that is used has learned from them, and the one that is scored has not. So these are scored
by the former, and what any event gains by being learned from is taken off: it is known from the
events held out before the change, which both rates can be asked about.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus.evaluation.scores import Rate
from hplus.studies.factor_trials import log_gains

MIN_ON_EACH_SIDE = 10
"""Events held out before and since a change, at least."""


class PlaceScores(NamedTuple):
    """Places of held-out events (n, d), their times, blocks and log gains, all (n,).

    Gains are those of places alone and of places and times, of a rate and of a KDE, learned without
    the events.
    """

    X: Floats
    seconds: Floats
    blocks: Ints
    by_place: Floats
    whole: Floats
    kde_by_place: Floats
    kde_whole: Floats

    def since(self, change: float, place: Rate, kde: Rate) -> tuple[Floats, Floats, Ints] | None:
        """Log gains of events since a change, of the rate and of a KDE, and their blocks.

        `place` and `kde` have learned from all events. None if there are too few on either side.
        """
        later = self.seconds >= change
        if min(later.sum(), np.sum(~later)) < MIN_ON_EACH_SIDE:
            return None
        found = [
            (whole - without + _unlearned(log_gains(rate, self.X, None), without, later))[later]
            for whole, without, rate in (
                (self.whole, self.by_place, place),
                (self.kde_whole, self.kde_by_place, kde),
            )
        ]
        return found[0], found[1], self.blocks[later]


def _unlearned(gains: Floats, without: Floats, later: Bools) -> Floats:
    """Gains less what those of earlier events gain by being learned from."""
    return gains - float(np.mean((gains - without)[~later]))
