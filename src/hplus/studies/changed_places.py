"""What a map gains since places have changed: later events are like those since then.

Events held out from before a change say nothing about the future, and those since then are few:
the rate that is used has learned from them, and the one that is scored has not. So these are scored
by the former, each as if it had not been learned from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus.estimators.intensity import Intensity
from hplus.evaluation.scores import Rate
from hplus.studies.factor_trials import log_gains

SMALLEST = float(np.finfo(float).tiny)
"""The rate at an event that was moved within the step of positions may be 0 without it."""

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

    def since(
        self, change: float, place: Intensity, kde: Rate
    ) -> tuple[Floats, Floats, Ints] | None:
        """Log gains of events since a change, of the rate and of a KDE, and their blocks.

        `place` and `kde` have learned from all events. None if there are too few on either side.
        """
        later = self.seconds >= change
        if min(later.sum(), np.sum(~later)) < MIN_ON_EACH_SIDE:
            return None
        X = self.X[later]
        learned = np.log(place.predict(X) / np.maximum(place.rate_.without(X), SMALLEST))
        ours = log_gains(place, X, None) - learned + (self.whole - self.by_place)[later]
        theirs = self.kde_whole - self.kde_by_place + self._of_kde(kde, later)
        return ours, theirs[later], self.blocks[later]

    def _of_kde(self, kde: Rate, later: Bools) -> Floats:
        """Log gains of a KDE, less what those of earlier events gain by being learned from."""
        gains = log_gains(kde, self.X, None)
        return gains - float(np.mean((gains - self.kde_by_place)[~later]))
