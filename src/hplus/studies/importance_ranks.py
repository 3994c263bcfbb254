"""Columns in the order of what they matter, those that cannot be told apart together."""

from __future__ import annotations

import numpy as np

from hplus.storage.files import Json

TIED_ERRORS = 2.5
"""Differences up to this many of their standard errors may be chance."""


def ranks(facts: list[Json]) -> list[list[Json]]:
    """Facts in the order of their losses; those that cannot be told apart share a rank.

    That is, from the first of the rank. Errors of few folds vary, so their mean square is taken;
    models of earlier versions do not know errors.
    """
    found: list[list[Json]] = []
    squares = [float(fact.get("error", 0.0)) ** 2 for fact in facts]
    least = TIED_ERRORS * np.sqrt(2.0 * np.mean(squares)) if squares else 0.0
    for fact in facts:
        first = found[-1][0] if found else fact
        if found and first["lost"] - fact["lost"] <= least:
            found[-1].append(fact)
        else:
            found.append([fact])
    return [sorted(rank, key=lambda fact: str(fact["column"])) for rank in found]
