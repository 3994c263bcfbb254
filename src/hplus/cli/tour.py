"""hplus demo: Stephen Curry's shots, from the file to the report."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from hplus import datasets, save
from hplus.cli.base import check_writable, note, progress_bar
from hplus.cli.summary import count_row, made_with
from hplus.cli.writing import print_json, rows_as_csv, write_text
from hplus.display.page import write_report
from hplus.studies.event_study import EventStudy
from hplus.studies.events import sampled
from hplus.studies.expect import Expected, expect, named_regions
from hplus.studies.periods import time_asked
from hplus.studies.plans import plan
from hplus.studies.spans import Amount
from hplus.wording import count

COURT = (-25.0, -5.25, 25.0, 41.75)
"""The offensive half of the court, in feet from the hoop."""

GAMES = Amount(1067.0, "game")
"""Games in the seasons of the file in which he took a shot."""

COMMAND = (
    "hplus fit curry.csv.gz --columns x,y --window=-25,-5.25,25,41.75 --unit ft "
    "--exposure '1067 games' -o curry.hplus"
)


def tour(folder: str, as_json: bool) -> None:
    """Fit, query and report, and print what was found."""
    out = Path(folder)
    if not out.exists():
        out.mkdir(parents=True)
    files = {name: str(out / name) for name in ("curry.hplus", "zones.csv", "report.html")}
    for path in files.values():
        check_writable(path)
    shots, zones = str(out / "curry.csv.gz"), str(out / "court_zones.geojson")
    datasets.copy("curry", shots)
    datasets.copy("court_zones", zones)
    note("Learning where Stephen Curry shoots from, 17 seasons ...")
    began = perf_counter()
    study = EventStudy(plan(shots, ("x", "y"), window=COURT, unit="ft"), GAMES, n_jobs=-1)
    with progress_bar(as_json):
        study.fit(shots)
    study.made_with_ = made_with(began, 0, COMMAND)
    save(study, files["curry.hplus"], summary=study.facts())
    asked = named_regions(study.frame, zones)
    found = expect(study, asked, time_asked(study, Amount(10.0, "game")))
    write_text(files["zones.csv"], rows_as_csv([count_row(part) for part in found]))
    points = sampled(shots, study.frame).X
    write_report(study, files["report.html"], points, "Where Stephen Curry shoots from")
    findings = _findings(study, found)
    if as_json:
        print_json({"findings": findings, **files})
        return
    for i, sentence in enumerate(findings, start=1):
        note(f"{i}. {sentence}")
    note("")
    for what, path in zip(("Model", "Zones", "Report"), files.values(), strict=True):
        note(f"{what}: {path}")


def _findings(study: EventStudy, zones: list[Expected]) -> list[str]:
    """Three sentences about the fit."""
    held = study.holdout_
    assert held is not None
    shots = sum(part.expected for part in zones)
    threes = [part for part in zones if "three" in part.region.name]
    rim = next(part for part in zones if part.region.name == "at the rim")
    top = max(threes, key=lambda part: part.expected)
    share = sum(part.expected for part in threes) / shots
    assert rim.region.window is not None
    floor = rim.region.window.volume / study.frame.window.volume
    return [
        f"In ten games expect {count(shots)} shots, {share:.0%} of them threes. The busiest "
        f'zone for threes is "{top.region.name}", with {count(top.expected)} (90 % interval '
        f"{count(top.low)} to {count(top.high)}).",
        f"{rim.expected / shots:.0%} of the shots come from {floor:.1%} of the floor, at the rim.",
        f"On average, a held-out shot ({count(held.events)} of them) is {np.exp(held.gain):.1f} "
        f"times as likely as under a constant rate and {np.exp(held.over_kde):.2f} times as likely "
        "as under a kernel density estimate.",
    ]
