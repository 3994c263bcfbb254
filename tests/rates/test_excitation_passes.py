"""Passes over pairs of events while a self-exciting rate is learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hplus import Box
from hplus.rates.excitation import excitation_fit
from hplus.rates.excitation.catalogue import in_order
from hplus.rates.excitation.excitation_fit import ObservedEvents, parts_of
from hplus.rates.excitation.excited_rate import rows_of
from hplus.rates.excitation.learned_excitation import Knots, first_fit
from hplus.rates.excitation.trigger import log_spaced


def small_catalogue(rng, n=60):
    times = np.sort(rng.uniform(0.0, 50.0, n))
    return in_order(times, rng.random((n, 2)), rng.exponential(1.0, n), np.zeros(n, dtype=int))


def small_fit(events):
    observed = ObservedEvents(events, events, 0.0, 50.0, Box([0, 0], [1, 1]), 1)
    knots = log_spaced(0.01, 10.0, 4.0), log_spaced(0.01, 0.5, 4.0)
    return observed, first_fit(observed, Knots(*knots))


def test_every_third_event_has_a_third_of_the_integrals(rng):
    observed, fit = small_fit(small_catalogue(rng))
    whole, some = parts_of(observed, fit, 0), parts_of(observed, fit, 0, every=3)
    np.testing.assert_array_equal(some.rows, whole.rows[::3])
    np.testing.assert_allclose(some.integrals, whole.integrals / 3.0)


def test_pairs_are_passed_over_again_only_if_trigger_or_marks_change(rng, monkeypatch):
    passes = []

    def counted(*given):
        passes.append(given)
        return rows_of(*given)

    monkeypatch.setattr(excitation_fit, "rows_of", counted)
    observed, fit = small_fit(small_catalogue(rng))
    first, again = (parts_of(observed, fit, 0) for _ in range(2))
    assert len(passes) == 1
    np.testing.assert_array_equal(first.rows, again.rows)
    wider = replace(fit, effects=fit.effects.replace(growth=0.3))
    assert not np.array_equal(parts_of(observed, wider, 0).rows, first.rows)
    assert len(passes) == 2
