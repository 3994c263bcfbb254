"""From a study to a page: facts and charts in one HTML file that needs no other."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hplus import wording
from hplus._checks import Floats, shown
from hplus.display import (
    canvas,
    changing_charts,
    charts,
    excitation_charts,
    findings,
    map_charts,
    outlook_charts,
    spectrum_charts,
    zoom_figures,
)
from hplus.display.facts import gather
from hplus.files.extras import needed
from hplus.storage.files import replace_file
from hplus.studies.event_study import EventStudy

if TYPE_CHECKING:
    from jinja2 import Template


def report_html(
    study: EventStudy,
    events: Any = None,
    title: str | None = None,
    *,
    seconds: Floats | None = None,
) -> str:
    """The page of a fitted study as text.

    `events` (n, d) in the coordinates of the study's window are drawn as dots; without them the
    page shows what the study itself knows. `seconds` (n,) are their times, which tell whether
    events of a cycle come in bursts.
    """
    if not isinstance(study, EventStudy) or not hasattr(study, "model_"):
        raise TypeError(f"study must be a fitted EventStudy, got {shown(study)}.")
    known = None if events is None else study.model_.window.require("events", events)
    return page_template("page.html.j2").render(facts=gather(study, known, title, seconds))


def write_report(
    study: EventStudy,
    path: str | PathLike[str],
    events: Any = None,
    title: str | None = None,
    *,
    seconds: Floats | None = None,
) -> None:
    """Write the page of a fitted study; an existing file is replaced in one step."""
    replace_file(Path(path), [report_html(study, events, title, seconds=seconds).encode()])


@cache
def page_template(name: str) -> Template:
    """A page's template, in which everything that is not markup is escaped."""
    jinja2 = needed("jinja2", "cli", "A report")
    loader = jinja2.FunctionLoader(_file)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    maps = (changing_charts, map_charts, spectrum_charts, zoom_figures)
    modules = (canvas, charts, excitation_charts, *maps, findings, outlook_charts, wording)
    environment.globals |= {module.__name__.split(".")[-1]: module for module in modules}
    return environment.get_template(name)


def _file(name: str) -> str:
    return files("hplus.display").joinpath(name).read_text("utf-8")
