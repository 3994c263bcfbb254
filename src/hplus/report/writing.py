"""From a study to a page, and to a file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from hplus._checks import shown
from hplus.report.facts import gather
from hplus.report.page import page
from hplus.storage.files import replace_file
from hplus.studies.study import EventStudy


def report_html(study: Any, events: Any = None, title: str | None = None) -> str:
    """The page of a fitted study as text.

    `events` (n, d) in the coordinates of the study's window are drawn as dots; without them the
    page shows what the study itself knows.
    """
    if not isinstance(study, EventStudy) or not hasattr(study, "model_"):
        raise TypeError(f"study must be a fitted EventStudy, got {shown(study)}.")
    window = study.model_.window
    return page(gather(study, None if events is None else window.require("events", events), title))


def write_report(
    study: Any, path: str | PathLike[str], events: Any = None, title: str | None = None
) -> None:
    """Write the page of a fitted study; a file that is there is replaced in one step."""
    replace_file(Path(path), [report_html(study, events, title).encode()])
