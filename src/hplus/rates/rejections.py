"""Which of several tests reject a rate."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile


def rejected(p_values: Mapping[str, float], level: float) -> tuple[str, ...]:
    """The tests that reject by Holm's rule: any rejects a right rate with probability `level`."""
    ranked = sorted(p_values, key=p_values.__getitem__)
    n = len(ranked)
    small = takewhile(lambda i: (n - i) * p_values[ranked[i]] < level, range(n))
    names = {ranked[i] for i in small}
    return tuple(name for name in p_values if name in names)
