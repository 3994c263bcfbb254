"""Sums of squares: compute, draw, and write `results.md` with its figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import experiments as ex
import likelihoods as lk
import numpy as np
import pictures as pic
import quantiles as qu
from matplotlib import rc_context
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1]))

from _pictures import STYLE
from _report import Section, place_of, share, write

HERE = Path(__file__).parent


def _figure(f: ex.Figure) -> Iterable[Any]:
    negative = share(ex.truth(ex.GRID) < 0.0), share(f.ridge < 0.0), share(f.ours < 0.0)
    errors = ex.error_of(f.ridge), ex.error_of(np.maximum(f.ridge, 0.0)), ex.error_of(f.ours)
    return f.scale, *negative, *errors, f.gap


def _cones(c: ex.ConeFits) -> Iterable[Any]:
    means = f"{c.objective.mean():.1f}", f"{c.error.mean():.3f}", float(c.seconds.mean())
    return c.scale, c.cone, *means, float(c.gap.max())


def _inequality(c: ex.Cases) -> Iterable[Any]:
    return c.n, c.cases, c.nonnegative, c.both, c.inequality


def _selection(c: ex.Choice) -> Iterable[Any]:
    return c.name, c.scale, c.penalty, f"{c.loss:.3f}", f"{ex.error_of(c.fit):.3f}"


def _noise(m: lk.NoiseModel) -> Iterable[Any]:
    values = (*m.held_out, m.held_out.mean(), m.fresh.mean())
    return m.name, *(f"{value:.3f}" for value in values)


def _density(m: lk.DensityModel) -> Iterable[Any]:
    lucky = f"{m.scores[m.alike].mean():.4f}" if m.alike.any() else ""
    values = m.scores.mean(), m.truth - m.scores.mean(), m.scores.max()
    return m.name, *(f"{value:.4f}" for value in values), share(m.scores >= -0.92), lucky


def _quantiles(q: qu.Quantiles) -> Iterable[Any]:
    negative = "" if q.data != "coal" else share(q.values.min(axis=1) < 0.0)
    crossings = f"{qu.crossings(q.values)} of {len(q.grid)}"
    return q.data, q.method, f"{q.loss:.4f}", crossings, negative


SECTIONS = (
    Section("figure", ex.figure_data,
            "σ | truth < 0 | ridge < 0 | hplus < 0 | error: ridge | max(ridge, 0) | hplus "
            "| relative gap", _figure, {"figure": pic.draw_figure}),
    Section("cones", ex.cones_data, "σ | cone | objective | error | CPU seconds | relative gap",
            _cones, {"cones": pic.draw_cones}),
    Section("inequality", ex.inequality_data,
            "n | cases | α ≥ 0 | eig(GA) ≥ 0 agrees | GA + AG ⪰ 0",
            _inequality, {"inequality": pic.draw_inequality}),
    Section("selection", ex.selection_data, "choice | σ | λ | held-out loss | error",
            _selection, {"selection": pic.draw_selection}),
    Section("noise", lk.noise_data,
            "model | draw 1 | 2 | 3 | 4 | 5 | mean | new points, mean",
            _noise, {"noise": pic.draw_noise}),
    Section("density", lk.density_data,
            "model | mean | truth minus mean | best draw | draws ≥ -0.92 "
            "| mean of draws like that of [marteau2020]",
            _density, {"density": pic.draw_density}),
    Section("quantiles", qu.quantiles_data,
            "data | quantiles learned | held-out loss | crossings on the grid | below zero",
            _quantiles, {"quantiles": pic.draw_quantiles}),
)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=place_of(HERE), help="output folder (default: in docs)"
    )
    with rc_context(STYLE), threadpool_limits(1):  # the matrices are small
        write(HERE, parser.parse_args().out, SECTIONS, {})
