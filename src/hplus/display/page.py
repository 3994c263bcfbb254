"""From a study to a page: facts and charts in one HTML file that needs no other."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hplus import wording
from hplus._checks import shown
from hplus.display import charts, findings, map_charts
from hplus.display.canvas import Shape
from hplus.display.data.check_data import RescaledTimes
from hplus.display.facts import Facts, gather
from hplus.storage.files import replace_file
from hplus.studies.study import EventStudy
from hplus.tables.extras import needed

if TYPE_CHECKING:
    from jinja2 import Template


def report_html(study: EventStudy, events: Any = None, title: str | None = None) -> str:
    """The page of a fitted study as text.

    `events` (n, d) in the coordinates of the study's window are drawn as dots; without them the
    page shows what the study itself knows.
    """
    if not isinstance(study, EventStudy) or not hasattr(study, "model_"):
        raise TypeError(f"study must be a fitted EventStudy, got {shown(study)}.")
    window = study.model_.window
    seen = None if events is None else window.require("events", events)
    facts = gather(study, seen, title)
    return page_template().render(facts=facts, charts=drawn(facts))


def write_report(
    study: EventStudy, path: str | PathLike[str], events: Any = None, title: str | None = None
) -> None:
    """Write the page of a fitted study; an existing file is replaced in one step."""
    replace_file(Path(path), [report_html(study, events, title).encode()])


@cache
def page_template() -> Template:
    """The page's template, in which everything that is not markup is escaped."""
    jinja2 = needed("jinja2", "cli", "A report")
    loader = jinja2.FunctionLoader(lambda name: _file(name))
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"wording": wording, "findings": findings}
    return environment.get_template("page.html.j2")


def _file(name: str) -> str:
    return files("hplus.display").joinpath(name).read_text("utf-8")


def drawn(facts: Facts) -> dict[str, list[Shape]]:
    """The charts of a page by the figure they stand in; a figure may have several."""
    found = {"concentration": [charts.concentration_chart(facts.concentration, facts.extent)]}
    place, curve, fit, held = facts.place, facts.curve, facts.fit, facts.holdout
    if place is not None:
        found["map"] = [map_charts.rate_map(place, facts.table.spots), map_charts.colour_bar(place)]
    if curve is not None:
        found["curve"] = [charts.rate_chart(curve, wide=wide) for wide in (True, False)]
    if facts.parts:
        found["cut"] = [map_charts.small_window(facts.parts[0])]
        found["parts"] = [map_charts.small_map(part) for part in facts.parts]
    if fit is not None:
        found["calibration"] = [charts.calibration_chart(fit.calibration)]
        if isinstance(fit.residuals, RescaledTimes):
            found["rescaled"] = [charts.rescaled_chart(fit.residuals)]
        elif place is not None:
            found["residuals"] = [map_charts.residual_map(fit.residuals, place)]
    if held is not None:
        scores = [
            charts.Score("This model", held.gain, held.gain_error),
            charts.Score("Kernel density estimate", held.kde_gain, 0.0),
            charts.Score("Constant rate", 0.0, 0.0),
        ]
        found["scores"] = [charts.score_bars(scores)]
    return found
