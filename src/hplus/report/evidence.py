"""The sections that say whether a rate fits, and how well it predicts."""

from __future__ import annotations

import math
from typing import Any

from hplus.plotting.residuals import RescaledTimes
from hplus.report.charts import Score, calibration_chart, rescaled_chart, score_bars
from hplus.report.facts import Facts, Fit
from hplus.report.findings import beside_kde
from hplus.report.maps import residual_map
from hplus.report.markup import Markup, element, join, section
from hplus.report.words import counted, percent, sentence, times, whole, with_error


def evidence(facts: Facts) -> Markup:
    """Does it fit, and how well does it predict?"""
    parts = []
    if facts.fit is not None:
        parts.append(
            section(
                "Does it fit?",
                element("p", verdict(facts.fit), class_="verdict"),
                element("div", _calibration(facts.fit), _residuals(facts), class_="pair"),
                id_="fit",
            )
        )
    if facts.holdout is not None:
        parts.append(
            section("How well does it predict?", _prediction(facts.holdout), id_="prediction")
        )
    return join(*parts)


def verdict(fit: Fit) -> str:
    """One sentence on whether the rate fits."""
    inside, bins = int(fit.calibration.inside.sum()), len(fit.calibration.inside)
    count = f"{inside} of {counted(bins, 'bin')}"
    where = "held out" if fit.held_out else "it was fitted to, which flatters it"
    if fit.faults:
        return (
            f"Not everywhere: {sentence(fit.faults)} found fault on {whole(fit.count)} events "
            f"{where}; {count} lie within their limits."
        )
    return (
        f"Yes: no check finds fault with its shape on {whole(fit.count)} events {where}, and "
        f"{count} lie within their limits."
    )


def _calibration(fit: Fit) -> Markup:
    note = (
        "Observed against expected rates from where the rate is low to where it is high. Bars are "
        "limits that hold nine counts out of ten if the rate is right."
    )
    return element(
        "figure",
        element("h3", "Observed against expected"),
        calibration_chart(fit.calibration),
        element("figcaption", note),
    )


def _residuals(facts: Facts) -> Markup:
    """On a line events against expected events, elsewhere a map."""
    assert facts.fit is not None
    residuals = facts.fit.residuals
    if isinstance(residuals, RescaledTimes):
        title, chart = "Events against expected events", rescaled_chart(residuals)
        note = "If the rate is right, the line stays within the band 19 times out of 20."
    else:
        assert facts.place is not None
        title, chart = "Where it is off", residual_map(residuals, facts.place)
        note = (
            "Red boxes had more events than expected, blue ones fewer, in standard deviations: "
            "beyond ±2 is rare, beyond ±3 needs a look."
        )
    return element("figure", element("h3", title), chart, element("figcaption", note))


def _prediction(holdout: Any) -> Markup:
    scores = [
        Score("This rate", holdout.gain, holdout.gain_error),
        Score("Kernel density estimate", holdout.kde_gain, 0.0),
        Score("Constant rate", 0.0, 0.0),
    ]
    words = (
        f"{whole(holdout.events)} events ({percent(holdout.share)}) were held out. To the rate "
        f"learned from the others, each is {times(math.exp(holdout.gain))} times as "
        f"likely as to a constant rate: a gain of "
        f"{with_error(holdout.gain, holdout.gain_error)} nats per event."
    )
    difference = with_error(holdout.over_kde, holdout.over_kde_error)
    against = f"{beside_kde(holdout)} The difference is {difference} nats per event."
    text = element("div", element("p", words), element("p", against))
    chart = element(
        "figure",
        score_bars(scores),
        element("figcaption", "Gain over a constant rate; whiskers are one standard error."),
    )
    return element("div", text, chart, class_="pair text")
