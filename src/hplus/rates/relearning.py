"""The rate of events, most of which a similar rate was learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hplus.rates.every_scale import Observed
from hplus.rates.grid_rate import GridRate
from hplus.rates.log_gaussian import SmoothFit
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.trees.tree_base import TreeBase
from hplus.rates.trees.tree_rate import TreeRate


def relearned(
    observed: Observed, begin: Callable[[], SmoothFit], like: GridRate | StackedRate
) -> tuple[GridRate, StackedRate | None]:
    """The smooth rate and the rate at every scale, with the weights and trees of a similar rate.

    If only trees have weight, nobody asks the smooth rate, and it is the similar one: fitting it
    to all events would take most of the time.
    """
    if isinstance(like, GridRate):
        return _refined_like(begin(), like).rate(), None
    if only_trees(like):
        return like.smooth, _grown_again(observed, like.smooth, like)
    relative = _refined_like(begin(), like.smooth).rate()
    smooth = replace(relative, function=observed.times_plain(relative.function))
    return relative, _grown_again(observed, smooth, like)


def _refined_like(fit: SmoothFit, like: GridRate) -> SmoothFit:
    """The fit on a grid that is as fine as that of a similar rate."""
    while fit.level.grid.size < like.function.grid.size and fit.place > 0:
        fit = fit.finer()
    return fit


def _grown_again(observed: Observed, smooth: GridRate, like: StackedRate) -> StackedRate:
    """All parts of a similar rate, learned from these events and on this smooth rate."""
    on_smooth = TreeBase(smooth.function, smooth)

    def again(part: GridRate | TreeRate) -> GridRate | TreeRate:
        if isinstance(part, GridRate):
            return smooth
        base = on_smooth if _is_on_smooth(part) else None
        return observed.trees(observed.all_cells, base, part.clustering)

    return StackedRate(smooth, tuple((w, again(part)) for w, part in like.parts))


def only_trees(rate: GridRate | TreeRate | StackedRate) -> bool:
    """Has nothing that depends on a smooth rate any weight?"""
    parts = rate.parts if isinstance(rate, StackedRate) else ((1.0, rate),)
    return all(isinstance(part, TreeRate) and not _is_on_smooth(part) for _, part in parts)


def _is_on_smooth(part: TreeRate) -> bool:
    """Are these trees relative to the smooth rate, and not to what was observed?"""
    return part.base is not None and part.base.uncertain is not None
