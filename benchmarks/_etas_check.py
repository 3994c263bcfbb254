"""Checks of benchmarks/_etas.py on simulated data, where the truth is known.

    python benchmarks/_etas_check.py [sets]

Slopes against differences, the mass in the box and the time integral against draws, parameters in
standard errors, likelihood beside the truth's on training and on fresh data, forecast counts.
"""

from __future__ import annotations

import sys
import time
from dataclasses import astuple

import numpy as np
from _etas import (
    EtasFit,
    EtasParams,
    Likelihood,
    compensator,
    fit_etas,
    forecast_times,
    gutenberg_richter,
    kernel_background,
    log_rates,
    mass_inside,
    omori_integral,
    simulate_etas,
    uniform_background,
)

BOX = (0.0, 600.0, -100.0, 300.0)
WARM_UP, DAYS = 500.0, 4000.0
OFFSPRING = 0.35
TRUTH = EtasParams(0.6, OFFSPRING * 0.15 / 0.02, 1.4, 0.02, 1.15, 20.0, 0.6, 1.8, 4.0)
MAGNITUDES = gutenberg_richter(2.3, 4.0, 8.5)


def truth(background):
    return EtasFit(TRUTH, np.empty(0), background, np.nan, BOX)


def per_event(fit, events, start, end):
    """Log-likelihood per event of start < t <= end, one event ahead; the time and place parts."""
    late = (events[0] > start) & (events[0] <= end)
    rate, in_time = log_rates(fit, events[:3, late], events)
    total, n = compensator(fit, events, start, end), late.sum()
    return (rate.sum() - total) / n, (in_time.sum() - total) / n, (rate - in_time).mean()


def check_slopes(events):
    """The slopes of the likelihood against central differences: the largest relative error."""
    f, P, h = Likelihood(events, WARM_UP, DAYS, BOX, 4.0), TRUTH, 1e-5
    u = uniform_background(BOX).density(*f.targets[1:])
    slope = f(P, f.triggered(P), u)[1]
    for k, exact in enumerate(slope):
        ends = [P.at(P.vector() + sign * h * np.eye(8)[k]) for sign in (-1.0, 1.0)]
        low, high = (f(Q, f.triggered(Q), u)[0] for Q in ends)
        error = abs((high - low) / (2.0 * h) - exact) / max(1.0, abs(exact))
        assert error < 1e-4, f"slope {k}: {exact}, {(high - low) / (2.0 * h)}"


def check_integrals(rng):
    """Mass in the box against draws; the time integral against its closed form."""
    x, y = np.array([5.0, 300.0, 599.9, 1.0]), np.array([299.0, 0.0, 100.0, -99.0])
    dm, n = np.array([0.0, 4.0, 3.0, 1.0]), 1_000_000
    exact = mass_inside(TRUTH, x, y, dm, BOX)[0]
    for k in range(4):
        d = TRUTH.D * np.exp(TRUTH.gamma * dm[k])
        r = np.sqrt(d * ((1.0 - rng.random(n)) ** (-1.0 / (TRUTH.q - 1.0)) - 1.0))
        angle = rng.uniform(0.0, 2.0 * np.pi, n)
        px, py = x[k] + r * np.cos(angle), y[k] + r * np.sin(angle)
        drawn = np.mean((px >= BOX[0]) & (px <= BOX[1]) & (py >= BOX[2]) & (py <= BOX[3]))
        assert abs(drawn - exact[k]) < 4.0 * np.sqrt(0.25 / n), (k, drawn, exact[k])
    a, b, e = np.array([0.0, 3.0]), np.array([4000.0, 50.0]), 1.0 - TRUTH.p
    closed = TRUTH.c / e * ((1.0 + b / TRUTH.c) ** e - (1.0 + a / TRUTH.c) ** e)
    np.testing.assert_allclose(omori_integral(TRUTH, a, b)[0], closed, rtol=1e-9)


def clustered_background(rng):
    """A background with structure: kernels of 20 km around 30 places."""
    x, y = uniform_background(BOX).draw(30, rng)
    return kernel_background(x, y, np.ones(30), np.full(30, 20.0), BOX)[0]


def recovery(seed):
    """One set: fits with the background known and not, beside the truth. Also the set."""
    rng = np.random.default_rng(seed)
    background = clustered_background(rng)
    events = simulate_etas(TRUTH, BOX, 2.0 * DAYS, MAGNITUDES, rng, background)
    past = events[:, events[0] <= DAYS]
    fits = {
        "known": {"background": background},
        "kernels of 20 km": {"bandwidth": 20.0},
        "5th neighbour": {},
    }
    lines = [(name, *beside_truth(past, events, background, how)) for name, how in fits.items()]
    return lines, events, background


def beside_truth(past, events, background, how):
    """Seconds, errors in standard errors, gain over the truth in training and on fresh data."""
    began = time.perf_counter()
    fit = fit_etas(*past, WARM_UP, DAYS, BOX, 4.0, **how)
    seconds = time.perf_counter() - began
    z = (fit.params.vector() - TRUTH.vector()) / np.sqrt(np.diag(fit.covariance))
    gains = [
        np.subtract(*(per_event(model, events, start, end) for model in (fit, truth(background))))
        for start, end in ((WARM_UP, DAYS), (DAYS, 2.0 * DAYS))
    ]
    return seconds, z, gains[0][0], gains[1]


def counted(simulated, n_paths):
    """How many events there are in each path, (n_paths,)."""
    return np.bincount(simulated[1], minlength=n_paths)


def check_forecasts(events, background, rng):
    """Means of forecasts: at once after the largest event the compensator's, and without a
    history that of simulated catalogues."""
    fit, start, end = truth(background), events[0, events[3].argmax()], 5e-4
    known = events[:, events[0] <= start]
    counts = counted(forecast_times(fit, known, start, end, 200_000, rng, MAGNITUDES), 200_000)
    expected = compensator(fit, known, start, start + end)
    print(f"at once after the largest event: {counts.mean():.4f}, compensator {expected:.4f}")
    # secondary aftershocks add up to half a per cent
    assert abs(counts.mean() - expected) < 4.0 * counts.std() / np.sqrt(2e5) + 0.005 * expected
    empty = counted(forecast_times(fit, events[:, :0], 0.0, 30.0, 4000, rng, MAGNITUDES), 4000)
    fresh = [simulate_etas(TRUTH, BOX, 30.0, MAGNITUDES, rng, background) for _ in range(400)]
    n = np.array([a.shape[1] for a in fresh])
    print(f"30 days without a history: {empty.mean():.1f}, simulated {n.mean():.1f}")
    assert abs(empty.mean() - n.mean()) < 4.0 * np.sqrt(empty.var() / 4000 + n.var() / 400)


def main(sets: int) -> None:
    rng, errors = np.random.default_rng(0), []
    check_integrals(rng)
    print("truth", astuple(TRUTH))
    for seed in range(sets):
        lines, events, background = recovery(seed)
        if seed == 0:
            check_slopes(events[:, events[0] <= DAYS])
            check_forecasts(events, background, rng)
        for name, seconds, z, own, fresh in lines:
            print(
                f"{seed} {name:16s} n={events.shape[1]} {seconds:4.1f} s, z {np.round(z, 1)},",
                end=" ",
            )
            print("train {:+.4f}, fresh {:+.4f} = time {:+.4f} + space {:+.4f}".format(own, *fresh))
        _, _, z, own, fresh = lines[0]
        errors.append(z)
        assert own >= 0.0, "the truth is likelier than the maximum"
        assert abs(z).max() < 4.5, "a parameter is more than 4.5 standard errors off"
        assert fresh[0] > -0.02, "more than .02 nats an event below the truth"
    print("root mean square of z:", np.round(np.sqrt(np.mean(np.square(errors), axis=0)), 2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
