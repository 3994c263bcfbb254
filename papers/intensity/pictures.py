"""The figures of the report: `draw_*` functions take the result of a `*_data` function."""

from __future__ import annotations

from typing import Any

import numpy as np
from _pictures import BLUE, GREEN, GREY, ORANGE, RED, OnCourt, draw_on_court
from experiments import LEVEL, Bands, Goodness, Shots, Simulated

from hplus.display import IntensityCurveDisplay, ResidualDisplay

COLOURS = {
    "exp": BLUE,
    "square": ORANGE,
    "sos": GREEN,
    "KDE": GREY,
    "adaptive KDE": "#b0a0c8",
    "K2IE": RED,
}
"""One colour for each model, in every figure."""


def title_of(fits: Simulated | Bands) -> str:
    """For example "Λ₂ × 10"."""
    times = "" if fits.truth.factor == 1.0 else f" $\\times$ {fits.truth.factor:g}"
    return f"$\\Lambda_{fits.truth.name[-1]}${times}"


def draw_errors(fits: list[Simulated], figure: Any) -> None:
    """Mean squared errors relative to the KDE's on the same data sets, ± two standard errors."""
    titles = list(dict.fromkeys(title_of(fit) for fit in fits))
    models = [name for name in COLOURS if name != "KDE"]
    kde = {title_of(fit): fit.error for fit in fits if fit.model == "KDE"}
    figure.set_size_inches(10, 0.75 * len(titles) + 1.8)
    ax = figure.subplots()
    ax.axvline(1.0, color=GREY, lw=1.5, zorder=0)
    for fit in fits:
        if fit.model != "KDE":
            base = kde[title_of(fit)][: len(fit.error)].mean()
            place = titles.index(title_of(fit)) + 0.15 * (models.index(fit.model) - 2.0)
            difference, error = fit.to_kde
            ax.errorbar(1.0 + difference / base, place, xerr=2.0 * error / base, fmt="o",
                        color=COLOURS[fit.model], ms=7, lw=1.6,
                        label=fit.model if title_of(fit) == titles[0] else None)  # fmt: skip
    ax.set_yticks(range(len(titles)), titles)
    ax.set_ylim(len(titles) - 0.5, -0.5)
    ax.set_xlabel("mean squared error / that of the KDE (bars: two standard errors of the pairs)")
    figure.legend(loc="outside upper center", ncols=len(models))


def draw_bands(rates: list[Bands], figure: Any) -> None:
    """The first data set of each rate: exp with its band, the other models as lines, the truth."""
    columns = min(3, len(rates))
    rows = len(rates) // columns
    figure.set_size_inches(4 * columns, 3.3 * rows + 0.6)
    panels = figure.subplots(rows, columns, squeeze=False)
    for ax, item in zip(panels.ravel(), rates, strict=True):
        _draw_rate(ax, item)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=8)


def _draw_rate(ax: Any, item: Bands) -> None:
    best = item.fits["exp"].first
    assert best.bounds is not None
    truth = item.truth.rate(best.x[:, None])
    ax.fill_between(best.x, *best.bounds, color=BLUE, alpha=0.18, lw=0, label="90 % band of exp")
    ax.plot(best.x, truth, "--", color="black", lw=1.4, label="truth")
    for name in ("KDE", "adaptive KDE", "K2IE", "sos", "square", "exp"):
        curve, main = item.fits[name].first, name == "exp"
        ax.plot(curve.x, curve.rate, color=COLOURS[name], lw=2.2 if main else 1.2, label=name)
    across = ax.get_xaxis_transform()
    ax.vlines(best.events[:, 0], 0.0, 0.03, color="black", lw=0.5, alpha=0.5, transform=across)
    ax.set(title=f"{title_of(item)}, {len(best.events)} events", xlim=(best.x[0], best.x[-1]))
    # a very wide band would hide the rest
    top = max(1.6 * truth.max(), *(1.05 * item.fits[name].first.rate.max() for name in COLOURS))
    ax.set_ylim(min(0.0, 1.1 * item.fits["K2IE"].first.rate.min()), top)
    ax.axhline(0.0, color="black", lw=0.6)


def draw_distance(models: list[Shots], figure: Any) -> None:
    """Normalised densities of the distance over a histogram by foot."""
    figure.set_size_inches(10, 4.8)
    ax, (x,) = figure.subplots(), models[0].places
    distances = models[0].X[:, 0]
    ax.hist(distances, np.arange(0, 51), density=True, color="black", alpha=0.1, label="shots")
    for model in models:
        style = "--" if "KDE" in model.model else "-"
        label = f"{model.model}, gain {model.gains.mean():.3f}"
        ax.plot(x, model.density, style, color=COLOURS[model.model], lw=1.8, label=label)
    ax.axvline(23.75, color="black", lw=0.8, ls=":")
    ax.annotate("three-point arc ", (23.75, 0.97), xycoords=("data", "axes fraction"), ha="right",
                va="top", fontsize=10)  # fmt: skip
    ax.set(xlabel="feet from the hoop", ylabel="density (1/ft)", xlim=(0, 40), ylim=(0, None))
    ax.set_title(f"How far Stephen Curry shot from, 2015-16, {len(distances):,} shots")
    ax.legend(loc="upper right")


def draw_court(models: list[Shots], figure: Any) -> None:
    """Normalised densities on the court."""
    maps = [OnCourt(f"{m.model}, gain {m.gains.mean():.2f}", m.places, m.density) for m in models]
    draw_on_court(maps, figure)


def draw_coal(checks: list[Goodness], figure: Any) -> None:
    """The rate of disasters with its band over counts by year, and the events in rescaled time."""
    figure.set_size_inches(12, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    coal = checks[0].coal
    years = np.arange(1851, 1964)
    left.hist(coal.X[:, 0], years, color="black", alpha=0.12, label="disasters a year")
    IntensityCurveDisplay.from_estimator(coal.model, coal.X, level=LEVEL, ax=left)
    left.set(xlabel="year", ylabel="disasters a year", ylim=(0.0, 6.9))
    left.set_title("191 British coal-mining disasters", loc="left")
    ResidualDisplay.from_check(coal.found, ax=right)
