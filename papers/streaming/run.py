"""Streams: compute, draw, and write `results.md` with its figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1]))

import budgets as bu
import charts as ch
import experiments as ex
import orders
import pictures as pic
import theorem as th
from _pictures import STYLE
from _report import Section, Sizes, place_of, share, write

HERE = Path(__file__).parent

QUICK: Sizes = {
    "curry": {"splits": 2, "methods": ("SPPPOT, log", "PMD", "Refit", ex.OFFLINE)},
    "court": {"splits": 2, "methods": ("SPPPOT", "PMD")},
    "negative": {"checks": 5},
    "outside": {"events": 1500, "checks": 6},
    "gradients": {"events": 2000, "checks": 12},
    "theorem": {"steps": (0.2, 0.1, 0.05), "shares": (0.05, 0.9), "events": 2000, "runs": 2},
    "atoms": {"tolerances": (0.04, 0.02, 0.01), "events": 2000},
    "updates": {},
    "regret": {"penalties": (1e-2, 1e-3), "events": 1500},
    "budgets": {"shuffles": 2},
    "tuning": {"steps": (0.1, 1.0), "decays": (0.0, 0.1), "events": 2000},
    "second": {"orders": 2, "checks": 4, "events": 600, "seasons": (2015,)},
}
"""Sizes that take a few seconds."""


def _fit(f: ex.Fit) -> Iterable[Any]:
    difference, error = f.to_offline
    beside = "" if f.name == ex.OFFLINE else f"{difference:+.4f} ± {error:.4f}"
    weights = "" if f.weights is None else f.weights
    return f.name, f"{f.losses.mean():.4f}", beside, weights, float(f.seconds)


def _below(b: ex.Below) -> Iterable[Any]:
    return b.name, b.atoms, float(b.f.min()), share(b.f < 0.0), b.impossible


def _outside(o: ex.Outside) -> Iterable[Any]:
    half = len(o.losses) // 2 - 1
    return o.name, o.weights, *(f"{loss:.3f}" for loss in (*o.losses[half], *o.losses[-1]))


def _gradient(g: th.PseudoGradient) -> Iterable[Any]:
    shares = g.inner / g.squared_norm
    below = f"{(g.inner < 0.0).sum()} of {len(g.inner)}"
    return g.name, float(g.inner.min()), below, *map(float, (shares.min(), np.median(shares)))


def _decay(d: th.Decay) -> Iterable[Any]:
    half_life = f"{d.half_life:.2g}" if np.isfinite(d.half_life) else "never"
    return d.step, d.share, half_life, d.radius, d.radius / d.step, f"{d.atoms:.0f}"


def _atoms(a: th.Atoms) -> Iterable[Any]:
    counts = " ".join(f"{count:.0f}" for count in a.atoms)
    return repr(a.kernel), a.dimension, counts, f"{a.slope:.2f}", a.dimension


def _update(u: th.Update) -> Iterable[Any]:
    weights = " ".join(f"{w:+.2f}" for w in u.weights)
    return u.point, f"{u.label:+d}", f"{u.before:+.3f}", weights


def _regret(r: bu.Regret) -> Iterable[Any]:
    ours, bound = float(r.regret[-1]), float(r.bound[-1])
    within = share(r.regret <= r.bound)
    return r.penalty, r.norm, r.hindsight, r.step, f"{ours:.0f}", f"{bound:.0f}", within


def _kept(k: bu.Kept) -> Iterable[Any]:
    if not len(k.accuracy):
        return k.data, k.name, "", "", "", ""
    progressive = f"{k.progressive.mean():.4f}" if len(k.progressive) else ""
    return k.data, k.name, f"{k.accuracy.mean():.4f}", progressive, f"{k.atoms:.0f}", k.seconds


def _tuned(t: bu.Tuned) -> Iterable[Any]:
    best = int(t.wrong.argmin())
    return t.decay, share(t.wrong[best]), float(t.steps[best]), share(t.wrong.max())


def _orders(o: orders.Orders) -> Iterable[Any]:
    losses = o.first[:, -1].mean(), o.second[:, -1].mean(), o.offline
    there = np.isfinite(o.reached)
    half, median = int((o.reached <= 0.5).sum()), float(np.median(o.reached))
    shown = share(median) if np.isfinite(median) else "not by the end"
    return o.stream, o.steps, int(o.events[-1]), *(f"{loss:.4f}" for loss in losses), shown, \
        f"{there.sum()} of {len(there)}", half  # fmt: skip


FITS = "method | test loss | difference from offline optimum | weights | CPU seconds"

SECTIONS = (
    Section("curry", ex.curry_data, FITS, _fit, {"curry": pic.draw_curry}),
    Section("court", ex.court_data, FITS, _fit, {"court": pic.draw_court}),
    Section("negative", ex.negative_data,
            "method | atoms | smallest f | share of window with f < 0 | training events with f ≤ 0",
            _below, {"negative": pic.draw_negative}),
    Section("outside", ex.outside_data,
            "method | weights | half-way: loss on old region | on new region "
            "| at the end: loss on old region | on new region",
            _outside, {"outside": pic.draw_outside}),
    Section("gradients", th.gradients_data,
            "pseudo-gradient | smallest <∇R, E g> | below zero "
            "| smallest share of ‖∇R‖² | median share",
            _gradient, {"gradients": ch.draw_gradients}),
    Section("theorem", th.theorem_data,
            "η | α = ε/η | η · events to first halving | radius | radius/η | atoms",
            _decay, {"theorem": ch.draw_theorem}),
    Section("atoms", th.atoms_data, "kernel | d | atoms, ε from large to small | slope | bound",
            _atoms, {"atoms": ch.draw_atoms}),
    Section("updates", th.updates_data, "x | y | f(x) before | weights after",
            _update, {"updates": ch.draw_updates}),
    Section("regret", bu.regret_data,
            "penalty | ‖f*‖ | mean loss of f* | step size | regret | bound | share within bound",
            _regret, {"regret": ch.draw_regret}),
    Section("budgets", bu.budgets_data,
            "data | budget | accuracy after the pass | during the pass | atoms | CPU seconds",
            _kept, {"budgets": ch.draw_budgets}),
    Section("tuning", bu.tuning_data, "decay λ | fewest wrong | at step size η | most wrong",
            _tuned, {"tuning": ch.draw_tuning}),
    Section("second", orders.second_data,
            "stream | function | events | first order, end | second order, end | batch fit "
            "| median share of events to reach it | reached | within half the events",
            _orders, {"second": pic.draw_second}),
)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=place_of(HERE), help="output folder (default: in docs)"
    )
    parser.add_argument("--data", type=Path, help="folder with a9a_train.csv.gz and a9a_test.csv")
    parser.add_argument("--quick", action="store_true", help="use small sizes")
    options = parser.parse_args()
    sizes = dict(QUICK) if options.quick else {}
    sizes["budgets"] = {**sizes.get("budgets", {}), "folder": options.data}
    with rc_context(STYLE), threadpool_limits(1):  # the matrices are small
        write(HERE, options.out, SECTIONS, sizes)
