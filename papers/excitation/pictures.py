"""The figures of the report: `draw_*` functions take the result of a `*_data` function."""

from __future__ import annotations

from typing import Any

import numpy as np
from _pictures import BLUE, GREEN, GREY, ORANGE, RED
from experiments import Bin, Future, InPlace, Progress, Recovered
from fits import ETAS

FIT_COLOURS = (BLUE, ORANGE)


def draw_triggers(items: list[Recovered], figure: Any) -> None:
    """The true trigger and both estimates from the first data set, by name and branching ratio."""
    names = list(dict.fromkeys(item.name for item in items))
    columns = len(items) // len(names)
    figure.set_size_inches(4 * columns, 2.7 * len(names) + 0.6)
    panels = figure.subplots(len(names), columns, squeeze=False, sharex=True)
    lags = np.geomspace(0.01, 10.0, 2001)
    for ax, item in zip(panels.ravel(), items, strict=True):
        smooth, rough = item.curves
        truth = item.truth(lags)
        ax.plot(lags, rough(lags), color=ORANGE, lw=1.2, label="without smoothing")
        ax.plot(lags, smooth(lags), color=BLUE, lw=2.2, label="smoothed")
        ax.plot(lags, truth, "--", color="black", lw=1.4, label="truth")
        ax.set(title=f"{item.name}, branching {item.branching:g}", xscale="log")
        ax.set(xlim=(lags[0], lags[-1]), ylim=(0.0, 1.6 * truth.max()))
    for ax in panels[-1]:
        ax.set_xlabel("lag")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def draw_etas(items: list[InPlace], figure: Any) -> None:
    """The trigger by lag and by distance, and the productivity, of the fits and in truth."""
    figure.set_size_inches(12, 4.2)
    by_lag, by_distance, by_mark = figure.subplots(1, 3)
    fits = [item for item in items if item.model is not None]
    lags, far, marks = np.geomspace(1e-3, 500.0, 500), np.geomspace(0.1, 50.0, 500), _marks(fits)
    for item, colour, width in zip(fits, FIT_COLOURS, (3.5, 1.6), strict=False):
        style: Any = {"color": colour, "label": item.name, "lw": width}
        trigger, effects = item.model.trigger_, item.model.effects_
        by_lag.plot(lags, _shown(trigger.by_lag(lags)), **style)
        by_distance.plot(far, _shown(trigger.by_distance(far)), **style)
        by_mark.plot(marks, trigger.integral()[0, 0] * effects.productivity(marks), **style)
    truth: Any = {"color": "black", "label": "truth", "lw": 1.4, "ls": "--"}
    by_lag.plot(lags, ETAS.branching * ETAS.by_lag(lags), **truth)
    center = fits[0].model.effects_.center
    by_distance.plot(far, ETAS.branching * ETAS.by_distance(far, center), **truth)
    by_mark.plot(marks, ETAS.offspring(marks), **truth)
    by_lag.set(xscale="log", yscale="log", xlabel="days", title="rate added per day, by lag")
    by_distance.set(xscale="log", yscale="log", xlabel="km")
    by_distance.set_title("events triggered per km², by distance")
    by_mark.set(yscale="log", xlabel="magnitude", title="events triggered directly")
    by_lag.legend()


def _marks(fits: list[InPlace]) -> Any:
    marks = fits[0].model.history_.marks
    return np.linspace(marks.min(), marks.max(), 200)


def _shown(values: Any) -> Any:
    """Values without zeros, which have no logarithm."""
    return np.where(values > 0.0, values, np.nan)


def draw_certificate(items: list[Progress], figure: Any) -> None:
    """The certified gap and the true distance from the optimum, by step."""
    problems = list(dict.fromkeys(item.problem for item in items))
    figure.set_size_inches(11, 4.4)
    panels = figure.subplots(1, len(problems), sharey=True, squeeze=False)[0]
    for ax, problem in zip(panels, problems, strict=True):
        for solver, colour in (("EM", ORANGE), ("barrier", BLUE)):
            own = [i for i in items if i.problem == problem and i.solver == solver]
            steps = [i.steps for i in own]
            ax.plot(steps, [i.gap for i in own], "o-", color=colour, ms=5,
                    label=f"{solver}, certified gap")  # fmt: skip
            missing = [i.missing if i.missing > 1e-10 else np.nan for i in own]
            ax.plot(steps, missing, ".--", color=colour, lw=1.2,
                    label=f"{solver}, true distance")  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="steps", title=problem)
        ax.axhline(1e-4, color=GREY, lw=1.0, ls=":")
    panels[0].set(ylabel="nats per event from the optimum")
    panels[-1].annotate("promised", (1.0, 1e-4), xytext=(0, 3), textcoords="offset points",
                        color=GREY, fontsize=10)  # fmt: skip
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def draw_calibration(bins: list[Bin], figure: Any) -> None:
    """How often events were of the background, by how probable that was; ± two standard errors."""
    figure.set_size_inches(5.4, 5.2)
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], "--", color="black", lw=1.0)
    for k, (name, colour) in enumerate((("line", BLUE), ("place and time", GREEN))):
        some = [b for b in bins if b.counts[k] > 0]
        x, y = (np.array([getattr(b, of)[k] for b in some]) for of in ("predicted", "observed"))
        error = 2.0 * np.sqrt(x * (1.0 - x) / [b.counts[k] for b in some])
        ax.errorbar(x, y, error, fmt="o", color=colour, ms=6, lw=1.4, label=name)
    ax.set(xlabel="probability of being a background event", ylabel="share that were", aspect=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.legend(loc="upper left")


def draw_forecasts(items: list[Future], figure: Any) -> None:
    """Distribution functions of the counts: true, forecast, and Poisson."""
    moments = list(dict.fromkeys(item.moment for item in items))
    rows = len(items) // len(moments)
    figure.set_size_inches(4 * len(moments), 2.9 * rows + 0.5)
    panels = figure.subplots(rows, len(moments), sharey=True, squeeze=False)
    for ax, item in zip(panels.T.ravel(), items, strict=True):
        top = np.quantile(np.concatenate([item.truth, item.forecast]), 0.99)
        kinds = (("truth", "black", 1.4), ("forecast", BLUE, 2.2), ("poisson", RED, 1.4))
        for kind, colour, width in kinds:
            counts = np.sort(getattr(item, kind))
            share = (np.arange(len(counts)) + 1) / len(counts)
            label = "Poisson" if kind == "poisson" else kind
            style = "--" if kind == "truth" else "-"
            ax.step(counts, share, style, where="post", color=colour, lw=width, label=label,
                    zorder=3 if kind == "truth" else 2)  # fmt: skip
        days = "day" if item.horizon == 1.0 else f"{item.horizon:g} days"
        ax.set(xlim=(-0.02 * top, top), title=f"{item.moment}: next {days}", ylim=(0, 1.02))
    for ax in panels[-1]:
        ax.set_xlabel("events")
    panels[0, 0].set_ylabel("share of paths")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
