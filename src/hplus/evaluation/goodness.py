"""Goodness of fit of a rate: the tests, on one set of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hplus._checks import Floats, Seed, as_floats, check_finite, check_positive, check_random_state
from hplus.evaluation.cell_variation import time_blocks
from hplus.evaluation.near_repeats import NearRepeats, near_repeats
from hplus.evaluation.rescaling import Rescaling, rescale_time
from hplus.evaluation.residuals import (
    Predicted,
    lattice,
)
from hplus.evaluation.scores import Rate
from hplus.evaluation.shape_tests import QuadratCounts, ShapeTests, quadrat_counts
from hplus.evaluation.time_order import (
    between,
    line_of_rate,
    order_unfollowed,
    time_order,
)
from hplus.evaluation.timelines import Timeline
from hplus.evaluation.verdicts import Check
from hplus.rates.exposure import OverWindow, check_exposures, values_at
from hplus.windows import Product, Window


def check(
    model: Rate,
    X: Any,
    *,
    exposure: OverWindow = 1.0,
    quadrats: QuadratCounts = None,
    random_state: Seed = 0,
    timeline: Timeline | None = None,
) -> Check:
    """Does a fitted rate fit the events X (n, d), and are they independent of each other?

    Time rescaling: ∫λE up to an event is uniform. Quadrats: observed and expected counts in boxes.
    Thinning: kept with probability level/λE, events are uniform where λE >= level. Calibration:
    observed and expected counts from where the rate is low to where it is high.

    Where the times of events are known, also: gaps in rescaled time are exponential (gaps) and
    independent (neighbours), counts in blocks of time vary as much as those of independent events
    (dispersion), and events close in place are not closer in time than others (near repeats).
    These look at short times only, so that a rate that changes slowly does not mislead them. If
    they find events that come together, the other tests allow for it: if counts in quadrats vary φ
    times as much over time as those of independent events, n events count as n/φ.

    The p-values are valid for events that were not used in the fit. For events that were, they are
    too large: a rejection still counts, but a rate that follows every event passes.

    Parameters
    ----------
    model : Rate
        Fitted, with `window`, `predict` and `expected_count`.
    X : array (n, d)
        Events in the model's window.
    exposure : float, function or array, default=1.0
        The exposure E behind the events X: a number, which changes nothing, a function of points,
        or an array over the window's bounding box.
    quadrats : int or tuple of int, default=None
        Number of boxes on each axis; None makes 2√n boxes or, for fewer than 100 events, n/5.
    random_state : int, RandomState or None, default=0
        Random seed of the thinning, of rounded times, which are spread, and of permutations.
    timeline : Timeline, default=None
        When events happened, for a window in which times are folded into a cycle; None takes the
        last axis of a line, or of a product of places and times.
    """
    window = model.window
    X, rng = window.require("X", X), check_random_state(random_state)
    if len(X) == 0:
        raise ValueError("X must contain at least one event, got none.")
    shape = quadrat_counts(quadrats, len(X), window.dimension)
    events, nodes = _predicted(model, X, lattice(window, shape), exposure)
    tests = ShapeTests(window, events, nodes, quadrats)
    tables = tests.tables(rng)
    line = line_of_rate(model, X, nodes, rng) if timeline is None else timeline.spread(rng)
    # a rate on a cycle cannot follow single events
    in_time = order_unfollowed if timeline is None else time_order
    found = Check(
        count=len(X),
        expected=float(model.expected_count(window)),
        rescaling=_rescaling(model, X, nodes) if window.dimension == 1 else None,
        order=None if line is None else in_time(line),
        repeats=None if line is None else _repeats(window, X, line, rng),
        **tables,
    )
    if line is None or not found.clustered:
        return found
    return tests.allowing(found, time_blocks(window, line))


def _predicted(
    model: Rate, X: Floats, nodes: Floats, exposure: OverWindow
) -> tuple[Predicted, Predicted]:
    """Rate and exposure at events and at nodes; an error unless both are above 0 at some node."""
    exposures = _exposures(exposure, model.window, X, nodes)
    rates = _rates(model, X), _rates(model, nodes)
    events, lattice = map(Predicted, (X, nodes), rates, exposures)
    if not np.any(lattice.intensities > 0.0):
        raise ValueError("model must predict a rate above 0 somewhere, got 0 everywhere.")
    return events, lattice


def _exposures(
    exposure: OverWindow, window: Window, X: Floats, nodes: Floats
) -> tuple[Floats, Floats]:
    """The exposure at events and nodes, relative to the largest, shapes (n,) and (q,)."""
    if not callable(exposure) and np.ndim(exposure) == 0:
        check_positive("exposure", exposure)
        return np.ones(len(X)), np.ones(len(nodes))
    at_events, at_nodes = (
        values_at("exposure", exposure, window.bounds(), points) for points in (X, nodes)
    )
    check_exposures(at_nodes)
    if not at_events.min() > 0.0:
        raise ValueError(
            f"exposure must be above 0 at every event, got {at_events.min():.6g} at one of "
            "them: correct the exposure or drop those events."
        )
    return at_events / at_nodes.max(), at_nodes / at_nodes.max()


def _rates(model: Rate, X: Floats) -> Floats:
    """λ(X[i]), shape (n,); an error unless finite and at least 0."""
    rates = check_finite("the predicted rate", as_floats("the predicted rate", model.predict(X)))
    if np.any(rates < 0.0):
        raise ValueError(f"the predicted rate must be at least 0, got {rates.min():.6g}.")
    return rates


def _repeats(
    window: Window, X: Floats, line: Timeline, rng: np.random.RandomState
) -> NearRepeats | None:
    """Near repeats of events X (n, d) whose last axis is time, if the others have one unit."""
    if not isinstance(window, Product) or len(set(window.left.axis_units)) > 1:
        return None
    return near_repeats(X[:, :-1], line, window.left.axis_units[0], rng)


def _rescaling(model: Rate, X: Floats, nodes: Predicted) -> Rescaling:
    """Time rescaling of events X (n, 1) on a line, by ∫λE over the intervals between them."""
    times = np.sort(X[:, 0])
    if np.all(nodes.exposures == 1.0):
        return rescale_time(between(model, times))
    low, high = model.window.bounds()
    edges = np.linspace(low[0], high[0], len(nodes.X) + 1)
    total = np.append(0.0, np.cumsum(nodes.intensities))
    return rescale_time(np.diff(np.interp(times, edges, total), prepend=0.0, append=total[-1]))
