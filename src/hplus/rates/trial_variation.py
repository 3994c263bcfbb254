"""TrialVariation: how much more counts vary from trial to trial than by chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
from scipy.special import gammaincinv, gammaln, softmax, xlog1py, xlogy

from hplus._checks import Floats, Ints, frozen_array
from hplus._values import Value, value
from hplus.rates.cell_tables import place_cells
from hplus.rates.local_dispersion import MAX_TABLE, LocalDispersion, dispersion_of_tables
from hplus.rates.statistic import Statistic

MIN_TRIALS = 5
"""With fewer trials, nothing can be said about how their counts vary."""

VARIANCES = np.logspace(-4.0, 1.0, 61)
"""Relative variances of the rate of a trial that are considered; all deviations are as likely."""

FACTOR_DRAWS = 512
"""Equally likely levels of trials to come."""

MIN_TRIAL_BITS = 14
"""Halvings of the axis of trials, at least, for different trials to be told apart."""


@final
@value
class TrialVariation(Value):
    """How the level of a rate varies over `trials` trials, and how much more its parts vary.

    A trial multiplies the rate by a gamma variable of mean 1, whose variance is one of `variances`
    (g,) with `probabilities` (g,). `local` is the extra variance of counts in parts of the window,
    given the total of the trial; None if it is not known.
    """

    trials: float
    variances: Floats
    probabilities: Floats
    local: LocalDispersion | None = None

    def __post_init__(self) -> None:
        names = ("variances", "probabilities")
        self._set(**{name: frozen_array(name, getattr(self, name)) for name in names})

    @property
    def variance(self) -> float:
        """The mean of the relative variance of the rate of a trial."""
        return float(self.variances @ self.probabilities)

    def factors(self, trials: float) -> Floats:
        """Equally likely factors of the mean count of so many trials to come, (k,).

        Products of two gamma variables: the level of these trials, and that of all trials, which is
        known from those observed only. A part of a trial has the level of all of it.
        """
        rng, ranks = np.random.default_rng(0), (np.arange(FACTOR_DRAWS) + 0.5) / FACTOR_DRAWS
        at = np.searchsorted(np.cumsum(self.probabilities), ranks).clip(max=len(self.variances) - 1)
        found = np.ones(FACTOR_DRAWS)
        for many in (max(trials, 1.0), self.trials):
            shapes = many / self.variances[at]
            found *= gammaincinv(shapes, rng.permutation(ranks)) / shapes
        return found / found.mean()


def learn_trial_variation(
    counts: Ints, trials: float, both: Statistic | None
) -> TrialVariation | None:
    """From the counts of trials with events, of so many trials in all, and events by place and
    trial (the last axis); None if there are too few trials to tell.

    The posterior of the variance φ of a negative binomial count with the mean m of all trials, if
    √φ is uniform: Σ ln Γ(y + 1/φ) - ln Γ(1/φ) + y ln(φm) - (y + 1/φ) ln(1 + φm) + ½ ln φ on a grid
    of ln φ.
    """
    if trials < MIN_TRIALS:
        return None
    values, often = np.unique(counts, return_counts=True)
    y, m = values[:, None].astype(float), counts.sum() / trials
    r, most = 1.0 / VARIANCES, VARIANCES * m
    own = gammaln(y + r) - gammaln(r) + xlogy(y, most) - xlog1py(y + r, most)
    empty = -(trials - len(counts)) * xlog1py(r, most)
    probabilities = softmax(often @ own + empty + 0.5 * np.log(VARIANCES))
    local = None if both is None else dispersion_of_tables(_tables(both), both.total)
    return TrialVariation(trials, VARIANCES, probabilities, local)


def _tables(both: Statistic) -> Iterator[Floats]:
    """Counts of cells of several sizes in each trial that has events, (c, b)."""
    if both.depth < MIN_TRIAL_BITS:
        return
    trial = np.unique(both.lattice.indices(both.codes)[:, -1], return_inverse=True)[1]
    many = int(trial.max()) + 1
    for depth in range(1, MAX_PLACE_DEPTH[both.window.dimension - 1] + 1):
        cells = place_cells(both, depth)
        if len(cells) * many > MAX_TABLE:
            return
        where = cells.row * many + trial
        table: Floats = np.zeros(len(cells) * many)
        np.add.at(table, where, both.masses)
        yield table.reshape(len(cells), many)


MAX_PLACE_DEPTH = {1: 7, 2: 5}
"""How finely places are told apart beside trials, by the number of their axes."""
