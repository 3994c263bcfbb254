"""Trees of a model that are grown before anyone asks it, and few enough for a service."""

from __future__ import annotations

from dataclasses import replace

from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.rates.trees.growing import FEWEST_TREES
from hplus.rates.trees.tree_rate import TreeRate
from hplus.studies.event_study import EventStudy

MOST_SERVED_CELLS = 2**22
"""Occupied cells of all trees of a model, of 16 bytes each, as long as there are `FEWEST_TREES`:
a former model is kept until the next one is ready."""


def make_ready(study: EventStudy) -> None:
    """Let a study that was learned by trees answer at once."""
    rate = study.model_
    if isinstance(rate, SeparableIntensity):
        for part in (rate.place_, rate.time_):
            _grow(part)
        rate.join(rate.place_, rate.time_, rate.map_by_time_)
    else:
        _grow(rate)


def _grow(rate: Intensity) -> None:
    tree = rate.rate_
    assert isinstance(tree, TreeRate)
    most = max(MOST_SERVED_CELLS // max(len(tree.statistic.codes), 1), FEWEST_TREES)
    rate.rate_ = tree = replace(tree, trees=min(tree.trees, most))
    _ = tree.forest  # which is kept once it is grown
