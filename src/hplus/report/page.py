"""The page: facts in HTML, in one file that needs no other."""

from __future__ import annotations

from importlib.resources import files

from hplus.report.evidence import evidence
from hplus.report.facts import Facts
from hplus.report.making import Line
from hplus.report.markup import Markup, element, section
from hplus.report.views import figures

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'"

GLOSSARY = (
    (
        "Rate",
        "How many events to expect per unit of area or time, at every point. Summed over a region "
        "it gives the expected count there.",
    ),
    (
        "90 % interval",
        "Bounds that hold nine times out of ten. Those of a count include both what is not known "
        "about the rate and the chance in the count itself.",
    ),
    (
        "Gain",
        "How much better unseen events are predicted than by a rate that is the same everywhere, "
        "as the mean logarithm of how many times likelier each is (in nats; 0.69 is twice).",
    ),
)


def page(facts: Facts) -> str:
    """The whole page as text."""
    body = element(
        "main",
        _head(facts),
        _findings(facts),
        _tiles(facts),
        figures(facts),
        evidence(facts),
        _making(facts),
        _glossary(),
        element(
            "footer",
            element("p", "Made with hplus, which learns functions that cannot be negative."),
        ),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{facts.title}: {facts.source}"),
        element("style", Markup(_file("style.css"))),
    )
    script = element("script", Markup(_file("script.js")))
    return f"<!doctype html>\n{element('html', head, element('body', body, script), lang='en')}\n"


def _file(name: str) -> str:
    return files("hplus.report").joinpath(name).read_text("utf-8")


def _head(facts: Facts) -> Markup:
    return element(
        "header",
        element("p", "Rate report", element("span", facts.source), class_="eyebrow"),
        element("h1", facts.title),
        element("p", facts.about, class_="lede"),
    )


def _findings(facts: Facts) -> Markup:
    cards = (
        element("li", element("b", finding.number), element("span", finding.text))
        for finding in facts.findings
    )
    return element("ul", *cards, class_="findings", aria_label="Key findings")


def _tiles(facts: Facts) -> Markup:
    tiles = (
        element(
            "div",
            element("dt", tile.label),
            element("dd", tile.text, element("small", tile.remark) if tile.remark else None),
        )
        for tile in facts.tiles
    )
    return element("dl", *tiles, class_="tiles")


def _making(facts: Facts) -> Markup:
    command = element("pre", element("code", facts.command)) if facts.command else None
    return element(
        "div",
        section("How it was fitted", _lines(facts.making), id_="making"),
        section("To make it again", command, _lines(facts.origin), id_="origin"),
        class_="pair",
    )


def _lines(lines: tuple[Line, ...]) -> Markup:
    rows = (
        element(
            "div",
            element("dt", line.label),
            element("dd", line.text, element("small", line.remark) if line.remark else None),
        )
        for line in lines
    )
    return element("dl", *rows, class_="lines")


def _glossary() -> Markup:
    terms = (element("div", element("dt", term), element("dd", text)) for term, text in GLOSSARY)
    return section("Three terms", element("dl", *terms, class_="terms"), id_="glossary")
