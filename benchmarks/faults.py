"""Dense catalogues of earthquakes on faults, simulated: events predicted one by one, beside ETAS.

    python benchmarks/faults.py [--quick] [--sets N] [--kind faults isotropic] [--seed N]

Background events lie on fourteen faults in a square of 100 km, and one in five anywhere; what they
trigger lies along the fault four times out of five, at the distances and lags of an ETAS model, and
places are known to .15 km. "isotropic" is that ETAS model with a constant background. Both rates
are learned from days 150 to 1050; the events of the next 450 days are predicted one by one, in nats
per event and split into time and place.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

from time import process_time

import numpy as np
from _etas import EtasParams, compensator, fit_etas, gutenberg_richter, log_rates
from _measure import finish, header, parser, row

from hplus import Box, Interval, SelfExciting

SIDE, START, NOW, END = 100.0, 150.0, 1050.0, 1500.0
LEAST, LARGEST = 2.0, 6.8
ETAS = EtasParams(1.0, 3.0, 1.6, 0.01, 1.12, 0.05, 1.0, 1.6, LEAST)
"""In km and days: about 3,600 events, half of them triggered."""

FAULTS, ALONG, SPREAD, OFF_FAULTS = 14, 0.8, 0.12, 0.2
"""How many faults, the share of offspring along them and by how many radians they are off, and the
share of the background anywhere."""

WIDTH, ERROR = 0.4, 0.15
"""How wide faults are and how well places are known, in km."""

MOST_LOSS = 0.02
"""How far below ETAS the self-exciting rate may be where ETAS is the truth, in nats per event."""

Floats = np.ndarray
Rng = np.random.Generator


def background(rng: Rng, on_faults: bool) -> tuple[Floats, Floats, Floats]:
    """Times, places and the strikes of the faults of events that no other one triggered."""
    centers = rng.uniform(10.0, 90.0, (FAULTS, 2))
    alike, strikes = rng.random(FAULTS) < 0.75, rng.uniform(0.0, np.pi, FAULTS)
    strikes = np.where(alike, np.radians(135.0) + 0.25 * rng.normal(size=FAULTS), strikes)
    lengths = rng.uniform(10.0, 60.0, FAULTS)
    activity = rng.gamma(1.0, 1.0, FAULTS) * lengths
    n = rng.poisson(ETAS.mu * END)
    fault = rng.choice(FAULTS, n, p=activity / activity.sum())
    on = (rng.random(n) > OFF_FAULTS) & on_faults
    along, off = rng.uniform(-0.5, 0.5, n) * lengths[fault], WIDTH * rng.normal(size=n)
    cos, sin = np.cos(strikes[fault]), np.sin(strikes[fault])
    lines = centers[fault] + np.column_stack([along * cos - off * sin, along * sin + off * cos])
    places = np.where(on[:, None], lines, rng.uniform(0.0, SIDE, (n, 2)))
    strike = np.where(on, strikes[fault], rng.uniform(0.0, np.pi, n))
    return rng.uniform(0.0, END, n), places, strike


def offspring(
    rng: Rng, t: Floats, xy: Floats, m: Floats, strike: Floats, along: float
) -> tuple[Floats, Floats, Floats]:
    """Times, places and strikes of what events trigger directly."""
    P, e = ETAS, 1.0 - ETAS.p
    most = np.expm1(e * np.log1p((END - t) / P.c))
    mean = P.K * np.exp(P.alpha * (m - P.m0)) * P.c * most / e
    parent = np.repeat(np.arange(len(t)), rng.poisson(mean))
    n = len(parent)
    lag = P.c * np.expm1(np.log1p(most[parent] * rng.random(n)) / e)
    d = P.D * np.exp(P.gamma * (m[parent] - P.m0))
    far = np.sqrt(d * np.expm1(-np.log1p(-rng.random(n)) / (P.q - 1.0)))
    turn = strike[parent] + np.pi * rng.integers(2, size=n) + SPREAD * rng.normal(size=n)
    angle = np.where(rng.random(n) < along, turn, rng.uniform(0.0, 2.0 * np.pi, n))
    places = xy[parent] + far[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return t[parent] + lag, places, strike[parent]


def simulated(rng: Rng, kind: str) -> tuple[Floats, Floats]:
    """Events (n, 3) in the order of time, and their magnitudes."""
    on_faults, magnitudes = kind == "faults", gutenberg_richter(2.3, LEAST, LARGEST)
    young, found = background(rng, on_faults), []
    while len(young[0]):
        t, xy, strike = young
        inside = np.all((xy >= 0.0) & (xy <= SIDE), axis=1)
        t, xy, strike = t[inside], xy[inside], strike[inside]
        m = magnitudes(len(t), rng)
        found.append((t, xy, m))
        young = offspring(rng, t, xy, m, strike, ALONG if on_faults else 0.0)
    t, xy, m = (np.concatenate(parts) for parts in zip(*found, strict=True))
    xy = np.clip(xy + ERROR * rng.normal(size=xy.shape), 0.01, SIDE - 0.01)
    order = np.argsort(t)
    return np.column_stack([xy, t])[order], np.round(m[order], 2)


def compared(X: Floats, m: Floats) -> tuple[float, float, SelfExciting]:
    """By how much SelfExciting is above ETAS in time and in place, and the former."""
    t, region, period = X[:, 2], Box([0.0, 0.0], [SIDE, SIDE], unit="km"), Interval(NOW, END)
    known, later = t < NOW, t >= NOW
    model = SelfExciting(region * Interval(START, NOW, unit="day")).fit(X[known], marks=m[known])
    n, given = int(later.sum()), model._given((X, m))
    own = model.log_likelihood(X[later], marks=m[later], period=period)
    in_time = given.integrals([(None, at - 1e-6, at) for at in t[later]]) / 1e-6
    own_time = np.log(in_time).sum() - given.integral(NOW, END)
    etas = fit_etas(
        t[known], X[known, 0], X[known, 1], m[known], START, NOW, (0.0, SIDE, 0.0, SIDE), LEAST
    )
    columns = (t, X[:, 0], X[:, 1], m)
    logs, logs_time = log_rates(etas, (t[later], X[later, 0], X[later, 1]), columns)
    total = compensator(etas, columns, NOW, END)
    time = own_time - (logs_time.sum() - total)
    return time / n, (own - (logs.sum() - total) - time) / n, model


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", type=int, default=5, help="simulations of each kind")
    options.add_argument("--kind", nargs="*", default=["faults", "isotropic"])
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    header()
    for kind in asked.kind:
        gains = []
        for k in range(1 if asked.quick else asked.sets):
            X, m = simulated(np.random.default_rng([20, asked.seed, k]), kind)
            began = process_time()
            time, place, model = compared(X, m)
            what = f"{kind}, set {k}: {len(X):,} events"
            row(f"{what}: SelfExciting less ETAS in time, nats an event", time)
            row(f"{what}: in place", place)
            row(f"{what}: strength of directions", model.direction_strength_)
            row(f"{what}: certified gap an event", model.solution_.gap / model.total_, 1e-4)
            row(f"{what}: CPU s of both", process_time() - began)
            gains.append(time + place)
        least = -MOST_LOSS if kind == "isotropic" else 0.0
        row(f"{kind}: SelfExciting less ETAS, mean", float(np.mean(gains)), least=least)
    finish()


if __name__ == "__main__":
    main()
