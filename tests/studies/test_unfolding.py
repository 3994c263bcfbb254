"""Events of a cycle in the order in which they happened."""

from __future__ import annotations

import numpy as np
import pytest

from hplus.studies.spans import Clock, seconds_of
from hplus.studies.unfolding import unfolded
from hplus.windows import Cycle

START, END = (seconds_of("", day) for day in ("2026-01-07 06:00", "2026-01-20 18:00"))
"""From a Wednesday morning to a Tuesday evening: neither end is that of a week."""


class Nights:
    """A rate of 3 from midnight to six in the morning, and 1 for the rest of the day."""

    window = Cycle(168.0, unit="h")

    def predict(self, X):
        return np.where(X[:, 0] % 24.0 < 6.0, 3.0, 1.0)


def clock(cycle="week"):
    return Clock("when", START, END, cycle=cycle)


def test_shares_are_those_of_the_rate_within_the_period_alone():
    line = unfolded(clock(), Nights(), np.linspace(START, END, 5))
    assert (line.nodes[0], line.nodes[-1]) == (START, END)
    assert (line.shares[0], line.shares[-1]) == (0.0, 1.0)
    # 18 hours of the first day, 12 whole days of 6·3 + 18 each, 18 hours of the last one
    total = 18.0 + 12 * 36.0 + 6 * 3.0 + 12.0
    hours = np.array([1.0, 18.0, 24.0, 42.0])
    np.testing.assert_allclose(
        line.share(START + 3600.0 * hours), np.array([1.0, 18.0, 36.0, 54.0]) / total, rtol=1e-9
    )


def test_a_span_or_events_outside_of_it_set_the_ends():
    later = (START + 5 * 86_400.0, END)
    line = unfolded(clock(), Nights(), np.array([later[0] + 10.0, END - 10.0]), later)
    assert (line.nodes[0], line.nodes[-1]) == later
    beyond = np.array([START, END + 86_400.0])
    line = unfolded(clock(), Nights(), beyond)
    assert (line.nodes[0], line.nodes[-1]) == tuple(beyond)


@pytest.mark.parametrize("seconds", [np.zeros(0), np.array([START + 60.0])])
def test_without_a_cycle_or_events_there_is_no_timeline(seconds):
    assert unfolded(clock(cycle=""), Nights(), seconds) is None
    assert unfolded(None, Nights(), seconds) is None
    assert (unfolded(clock(), Nights(), seconds) is None) == (len(seconds) == 0)
