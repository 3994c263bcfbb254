"""fit's table, check and report say the same: no number has two values, no verdict two answers."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest

from hplus.cli.summary import fit_table
from hplus.wording import count, off_by, rounded, with_error

RNG = np.random.RandomState(0)
PERIOD = "--time when --from 2026-01-05 --to 2026-02-02"
PLACES = "--columns x,y --window 0,0,1,1"

STUDIES = {
    "line": ("--columns t --window 0,10", 200),
    "line with unit": ("--columns t --window 0,10 --unit s", 200),
    "exposure": ("--columns t --window 0,10 --unit m --exposure 82games", 200),
    "times": (f"{PERIOD} --model exp", 200),
    "cycle day": (f"{PERIOD} --cycle day", 200),
    "cycle week": (f"{PERIOD} --cycle week --model exp", 300),
    "places": (f"{PLACES} --unit km", 200),
    "places and cycle": (f"{PLACES} {PERIOD} --cycle day --model exp", 200),
    "polygon": ("--columns x,y --within shape.csv --model exp", 200),
    "longitude and latitude": ("--columns lon,lat --window=-74,40,-73,41", 200),
    "few events": ("--columns t --window 0,10", 20),
}

COUNTED_PER_UNIT = {"exposure", "cycle day", "cycle week", "places and cycle"}


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """Events with places, times and positions on a line."""
    folder = tmp_path_factory.mktemp("events")
    n = 300
    hours = RNG.gamma(9.0, 1.6, n) % 24 + 24 * RNG.randint(28, size=n)
    when = np.datetime64("2026-01-05T00:00:00") + (hours * 3600).astype("timedelta64[s]")
    x, y = RNG.beta(2, 4, (2, n)) * 0.98
    t = 10.0 * RNG.beta(2, 5, n)
    rows = (
        f"{a:.5f},{b},{c:.5f},{d:.5f},{c - 74.0:.5f},{d + 40.0:.5f}"
        for a, b, c, d in zip(t, when, x, y, strict=True)
    )
    lines = ["t,when,x,y,lon,lat", *rows]
    for most in (20, 200, 300):
        (folder / f"{most}.csv").write_text("\n".join(lines[: most + 1]) + "\n")
    (folder / "shape.csv").write_text("x,y\n0,0\n1,0\n1,0.6\n0.6,1\n0,1\n")
    return folder


def words_of(page):
    """The text of a page, with plain spaces."""
    body = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]+>", " ", body)).replace("\u00a0", " ")
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", STUDIES)
def test_fit_check_and_report_agree(name, events, run, monkeypatch, tmp_path, coarsely):
    words, most = STUDIES[name]
    monkeypatch.chdir(events)
    model, page, file = tmp_path / "m.hplus", tmp_path / "m.html", f"{most}.csv"
    with coarsely():
        found = json.loads(run("fit", file, *words.split(), "-o", model, "--json").stdout)
        checked = run("check", model, file)
        run("report", model, file, "-o", page)
        info = run("info", model).stdout
    text, held = words_of(page.read_text()), found["holdout"]
    table = {row: said.replace("\u00a0", " ") for row, said in fit_table(found).items()}

    assert f"{count(found['events'])} of {count(found['rows'])} rows in the file" in text
    assert table["events"].startswith(f"{count(found['events'])} of {count(found['rows'])} rows")
    peak = f"{rounded(found['peak']['rate'])} {found['rates']}".replace("\u00a0", " ")
    assert f"Highest rate {peak}" in text
    tile = re.search(r" Expected ([\d.,]+) events", text)
    assert (tile is None) == (name not in COUNTED_PER_UNIT)
    assert tile is None or table["expected"].startswith(f"{tile[1]} events")
    everywhere = found["peak"].keys() == {"rate"}
    assert everywhere or found["models"] != "constant"
    assert ("busiest at" in table) != everywhere
    assert everywhere or table["busiest at"].endswith(peak)
    assert ("No place or time is clearly busier" in text) == everywhere
    assert "was fitted to these events" in checked.stderr
    if held is None:
        assert name == "few events"
        assert "How well does it predict?" not in text
        return
    for score in ("gain", "over_kde"):
        said = with_error(held[score], held[f"{score}_error"]).replace("\u00a0", " ")
        assert f"{said} nats per event" in text
        row = table["vs constant" if score == "gain" else "vs KDE"]
        assert row.startswith(f"{held[score]:+.3f} ± {held[f'{score}_error']:.3f} nats")
    told = held["words"].replace("\u00a0", " ")
    assert told == table["held out"]
    assert f"Held out: {told}." in text
    assert all(f"{said[:1].upper()}{said[1:]}." in text for said in held["constant"])
    judged = table.get("does it fit?", "")
    assert bool(judged) == bool(held["faults"])
    misfit = bool(held["misfits"])
    assert ("Not in all respects: on" in text) == misfit == judged.startswith("not in all respects")
    assert judged.startswith("the rate fits, but") == (bool(held["faults"]) and not misfit)
    assert "those that were held out are checked" in checked.stderr
    verdict = checked.stdout.splitlines()[0]
    assert ("does not fit" in verdict) == misfit
    for fault in held["misfits"]:
        assert all(fault in said for said in (verdict, judged, text))
    size = off_by(held["relative_error"]).replace("\u00a0", " ")
    for said in (text, judged, verdict):
        assert (size in said.replace("\u00a0", " ")) == misfit
    assert f"{held['gain']:+.3f}" in info
