"""What a fit learned, for fits of other events of the same kind."""

from __future__ import annotations

from dataclasses import replace

from hplus.estimators.intensity import Intensity
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
