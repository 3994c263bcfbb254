"""What a fit learned, for fits of other events of the same kind."""

from __future__ import annotations

import warnings
from dataclasses import replace

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hplus._checks import Floats
from hplus.estimators.intensity import Intensity
from hplus.estimators.prior_parameters import Given
from hplus.rates.excitation.learned_places import LearnedPlace
from hplus.rates.grid_rate import GridRate
from hplus.rates.rate_models import Similar
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.trees.tree_rate import TreeRate


def similar_to(rate: Intensity) -> Similar:
    """What a fit learned, for the `priors` of a fit of other events of the same kind."""
    mixture = getattr(rate, "mixture_", ())
    return Similar(_ungrown(rate.rate_), rate.weights_, rate.positions_, rate.spectrum_, mixture)


def _ungrown(rate: GridRate | TreeRate | StackedRate) -> GridRate | TreeRate | StackedRate:
    """The same rate without what was computed from it: trees of millions of cells are large."""
    if isinstance(rate, StackedRate):
        return replace(rate, parts=tuple((w, replace(part)) for w, part in rate.parts))
    return replace(rate)


def learned_place(rate: Intensity, places: Floats, weights: Floats) -> LearnedPlace:
    """The rate of a background at places (n, 2) with weights (n,), as its estimator learns it."""

    def learned(priors: Given, places: Floats, weights: Floats) -> Intensity:
        with warnings.catch_warnings():
            # said once, of the background in the end
            warnings.filterwarnings("ignore", "Events are too crowded", ConvergenceWarning)
            return clone(rate).fit(places, sample_weight=weights, priors=priors)

    first = learned("auto", places, weights)
    similar = similar_to(first)
    return LearnedPlace(first.rate_, lambda *others: learned(similar, *others).rate_)
