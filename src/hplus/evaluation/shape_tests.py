"""Tests of the shape of a rate: counts by place, after thinning, and by predicted rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hplus._checks import check_count, shown
from hplus.evaluation.cell_variation import TimeBlocks
from hplus.evaluation.rescaling import Rescaling
from hplus.evaluation.residuals import (
    Predicted,
    Quadrats,
    Thinned,
    Tiling,
    calibration,
    count_limits,
    quadrat_shape,
    thin_to_level,
)
from hplus.evaluation.verdicts import Check
from hplus.windows import Window

QuadratCounts = int | Sequence[int] | None
"""The number of quadrats, for all axes or for each; None for as many as the events allow."""


LINE_PARTS = 4
"""Parts of a line whose counts tell how much time rescaling must allow for."""


def quadrat_counts(quadrats: QuadratCounts, count: float, dimension: int) -> tuple[int, ...]:
    """The number of quadrats on each axis, given or as large as the events allow."""
    if quadrats is None:
        return quadrat_shape(count, dimension)
    given = np.atleast_1d(np.asarray(quadrats, dtype=object)).tolist()
    sizes = tuple(check_count("quadrats", size) for size in given)
    if len(sizes) not in (1, dimension):
        raise ValueError(
            f"quadrats must be one number or {dimension}, one for each axis, got {shown(quadrats)}."
        )
    return sizes * (dimension if len(sizes) == 1 else 1)


class ShapeTests(NamedTuple):
    """Events and nodes of a window with what a rate predicts there, and the quadrats asked for."""

    window: Window
    events: Predicted
    nodes: Predicted
    given: QuadratCounts

    def tables(self, rng: np.random.RandomState) -> dict[str, Any]:
        """Quadrats, thinned events and calibration, for independent events, as parts of a check."""
        kept, level, high = thin_to_level(self.events, self.nodes, rng)
        points, nodes = self.events.X[kept], self.nodes
        expected = len(kept) * level * high.sum() / nodes.intensities.sum()
        uniform = self._tiling(expected).quadrats(points, nodes.X[high], np.ones(high.sum()))
        return {
            "quadrats": self._quadrats(1.0),
            "thinned": Thinned(points, level, uniform),
            "calibration": calibration(self.events, nodes),
        }

    def allowing(self, found: Check, blocks: TimeBlocks) -> Check:
        """The same tests of events that are not independent: n of them are n/φ that are.

        φ is the variance of a count over its mean, as it was in blocks of time. Fewer events are
        counted in larger quadrats, in which φ may be larger.
        """
        X, n = self.events.X, len(self.events.X)
        more = blocks.variation(self._tiling(n), X)
        more = max(more, blocks.variation(self._tiling(n / more), X))
        low, high = count_limits(found.calibration.expected, more)
        return found.replace(
            quadrats=self._quadrats(more),
            thinned=self._thinned(found.thinned, more),
            calibration=found.calibration.replace(low=low, high=high, variation=more),
            rescaling=self._rescaling(found.rescaling, blocks, more),
        )

    def _rescaling(
        self, found: Rescaling | None, blocks: TimeBlocks, variation: float
    ) -> Rescaling | None:
        """Time rescaling, which compares long parts of the line: bursts count as a whole."""
        if found is None:
            return None
        parts = Tiling(self.window, (LINE_PARTS,))
        return found.varying(max(variation, blocks.variation(parts, self.events.X)))

    def _tiling(self, count: float) -> Tiling:
        return Tiling(self.window, quadrat_counts(self.given, count, self.window.dimension))

    def _quadrats(self, variation: float) -> Quadrats:
        X, nodes = self.events.X, self.nodes
        found = self._tiling(len(X) / variation).quadrats(X, nodes.X, nodes.intensities)
        return found.replace(variation=variation)

    def _thinned(self, found: Thinned, variation: float) -> Thinned:
        """Thinned events, of whose excess of pairs only the square of their share is left."""
        share = len(found.points) / len(self.events.X)
        high = self.nodes.intensities >= found.level
        less = 1.0 + share * (variation - 1.0)
        tiling = self._tiling(found.quadrats.expected.sum() / less)
        uniform = tiling.quadrats(found.points, self.nodes.X[high], np.ones(high.sum()))
        return found.replace(quadrats=uniform.replace(variation=less))
