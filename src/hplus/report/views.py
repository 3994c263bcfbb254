"""The figures of a page and its table of hot spots, with what is said below them."""

from __future__ import annotations

from collections.abc import Sequence

from hplus.report import charts, maps
from hplus.report.facts import Facts
from hplus.report.markup import Markup, element, join, section
from hplus.report.ranking import SpotTable
from hplus.report.spots import Spots
from hplus.report.words import percent, rounded, times, whole


def figures(facts: Facts) -> Markup:
    """The map beside its hot spots, or the curve above its busiest intervals."""
    if facts.place is None:
        assert facts.curve is not None
        below = (
            section("Busiest intervals", _spots(facts.table), id_="spots"),
            section("How concentrated", _concentration(facts), id_="concentration"),
        )
        return join(
            section(facts.curve.heading, _curve(facts, "main-figure"), id_="rate"),
            element("div", *below, class_="split"),
        )
    both = element(
        "div",
        section("Where" if facts.place.one_ruler else "The rate", _map(facts), id_="rate"),
        element(
            "section",
            element("h2", "Hot spots"),
            _spots(facts.table),
            element("h3", "How concentrated", class_="next"),
            _concentration(facts),
            id="spots",
        ),
        class_="split",
    )
    if facts.curve is None:
        return both
    along = section(facts.curve.heading, _curve(facts, "course"), id_="along")
    return join(both, along, _parts(facts))


def _map(facts: Facts) -> Markup:
    assert facts.place is not None
    note, root = "Squares with a number are the hot spots in the table.", facts.place.surface.power
    if facts.place.events is not None:
        note += f" Dots are {whole(len(facts.place.events))} of the events."
    if root < 1.0:
        which = "square" if root == 0.5 else "fourth"
        note += f" Colours follow the {which} root of the rate, to tell quiet places apart."
    return element(
        "figure",
        maps.rate_map(facts.place, facts.table.spots),
        maps.colour_bar(facts.place),
        element(
            "figcaption",
            element("span", note),
            element("output", class_="readout", aria_live="off"),
        ),
        id="main-figure",
    )


def _concentration(facts: Facts) -> Markup:
    note = "The dashed line is a rate that is the same everywhere."
    chart = charts.concentration_chart(facts.concentration, facts.extent)
    return element("figure", chart, element("figcaption", note))


def _curve(facts: Facts, id_: str) -> Markup:
    assert facts.curve is not None
    note = "The line is the rate, the band its 90 % interval"
    if facts.curve.events is not None:
        note += ", and each stroke at the bottom an event" if facts.place is None else ""
    return element(
        "figure",
        charts.rate_curve(facts.curve, wide=True),
        charts.rate_curve(facts.curve, wide=False),
        element("figcaption", f"{note}."),
        id=id_,
    )


def _parts(facts: Facts) -> Markup | None:
    if not facts.parts:
        return None
    small = (
        element(
            "figure",
            maps.small_map(part),
            element(
                "figcaption",
                element("b", part.label),
                element("span", f"{percent(part.share)} of the events"),
            ),
        )
        for part in facts.parts
    )
    caption = element("p", "The same map for four parts, in the same colours.", class_="note")
    return element(
        "section",
        maps.small_window(facts.parts[0]),
        element("div", *small, class_="small"),
        caption,
    )


def _spots(table: SpotTable) -> Markup:
    """The ranked table; a script lets it be sorted."""
    spots = table.spots
    places = [*table.columns[:-1], "busiest at"] if spots.peak is not None else [*table.columns]
    seen = [] if spots.observed is None else ["seen"]
    counts = ["expected", "90 % interval", *seen, "× average"]
    head = element("tr", *(element("th", name, scope="col") for name in ("#", *places, *counts)))
    rows = [
        element(
            "tr",
            element("td", str(i + 1), class_="rank"),
            *_cells(table.places[i], places, "p"),
            *_cells(_numbers(spots, i), counts, "q"),
        )
        for i in range(len(table.places))
    ]
    period = f"another {table.period}" if table.period else "another period like this one"
    note = f"Events to expect in {table.size} in {period}; an interval holds nine counts of ten."
    body = element("table", element("thead", head), element("tbody", *rows))
    return join(element("div", body, class_="scroll"), element("p", note, class_="note"))


def _cells(texts: Sequence[str], names: Sequence[str], class_: str) -> list[Markup]:
    """Cells with their column's name, which a narrow page shows beside them."""
    return [
        element("td", text, class_=class_, data_label=name)
        for text, name in zip(texts, names, strict=True)
    ]


def _numbers(spots: Spots, i: int) -> list[str]:
    """What is said of one hot spot, in the order of the columns."""
    expected = float(spots.expected[i])
    interval = f"{whole(spots.fewest[i])} to {whole(spots.most[i])}"
    seen = [] if spots.observed is None else [whole(spots.observed[i])]
    ratio = times(float(spots.ratio[i]))
    return [rounded(expected, 3 if expected >= 100.0 else 2), interval, *seen, ratio]
