"""The page: well formed, without any address, everything escaped, small, replaced in one step."""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest

from hplus import Box, EventStudy, plan
from hplus.display.canvas import shape
from hplus.display.colours import image_uri, png, ramp, text_bytes
from hplus.display.page import report_html, write_report
from hplus.display.provenance import rows_fact
from hplus.studies.events import Reading
from hplus.studies.frames import Frame

SHAPES = (
    "line", "calendar", "day", "plane", "strip", "polygon", "mixed", "solid", "tide", "week",
    "season",
)  # fmt: skip
every_shape = pytest.mark.parametrize("shape", SHAPES)
EVIL = "<img src=x onerror=alert(1)>\"'&"
VOID = {"meta", "br", "img", "link"}


class Reader(HTMLParser):
    """Tags opened and closed in order, ids, attributes and text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.tags, self.attributes, self.text = [], [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [given for name, given in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.text.append(data)

    @property
    def words(self):
        return " ".join(self.text).replace("\u00a0", " ")


@every_shape
def test_pages_are_well_formed_with_unique_ids_and_sections(shown, shape):
    page = shown(shape)
    read = Reader(page)
    assert page.startswith("<!doctype html>")
    assert read.open == []
    assert set(Counter(read.ids).values()) == {1}
    assert {"main-figure", "rate", "spots", "making", "origin", "glossary"} <= set(read.ids)
    used = set(re.findall(r"url\(#([\w-]+)\)", page))
    assert used <= set(read.ids)
    assert len(page.encode()) < 1_000_000


def test_a_map_is_a_picture_until_a_script_draws_it_at_every_scale(shown):
    read = Reader(shown("polygon"))
    given = dict(read.attributes)
    assert "image" in read.tags
    assert "canvas" not in read.tags
    assert {"data-cells", "data-outline", "data-dots", "data-spots"} <= given.keys()
    assert given["data-lonlat"].startswith("-74 40.5 40.6 ")
    assert "data-cells" not in dict(Reader(shown("line")).attributes)
    assert "zoomMap" not in shown("line")


def test_a_page_is_the_same_every_time(studied, shown):
    assert report_html(*studied("plane")) == shown("plane")


@every_shape
def test_pages_name_no_address(shown, shape):
    page = shown(shape)
    assert "http" not in page.replace("http-equiv", "")
    sources = [given for name, given in Reader(page).attributes if name in ("src", "href")]
    assert all(given.startswith("data:image/png;base64,") for given in sources)


@every_shape
def test_pages_can_be_made_without_events(studied, shape):
    read = Reader(report_html(studied(shape)[0]))
    assert "main-figure" in read.ids
    assert "actual" not in read.text


def test_numbers_are_never_shown_in_full_precision(shown):
    for name in SHAPES:
        words = Reader(shown(name)).words
        assert re.findall(r"\d\.\d{6,}", words) == []
        assert "nan" not in words.lower().split()


def test_rows_that_were_not_used_are_explained():
    assert rows_fact(Reading("f", 9, 9, {})).remark == "No row was dropped."
    chosen = rows_fact(Reading("f", 9, 7, {}, left_out={"outside the window": 2}))
    assert (chosen.text, chosen.remark) == ("9 read, 7 used", "Left out: 2 outside the window.")
    both = rows_fact(Reading("f", 9, 6, {"no x": 1}, left_out={"outside the window": 2}))
    assert both.remark == "Dropped: 1 no x. Left out: 2 outside the window."


def test_whatever_a_user_names_is_text(studied):
    study, X = studied("plane")
    evil = type(study)(Frame((EVIL, "y"), Box((0, 0), (40, 30), unit=EVIL)))
    vars(evil).update({k: v for k, v in vars(study).items() if k.endswith("_")})
    evil.reading_ = study.reading_.replace(file=EVIL, dropped={EVIL: 1})
    evil.made_with_ = {name: EVIL for name in study.made_with_ if name != "seconds"}
    evil.exposure_ = study.exposure_.replace(unit=EVIL)
    page = report_html(evil, X, title=EVIL)
    read = Reader(page)
    assert "<img" not in page
    assert "img" not in read.tags
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert EVIL in read.words
    assert page.count("<script>") == page.count("</script>") == 1
    assert page.count("<style>") == page.count("</style>") == 1


def test_the_policy_lets_nothing_in(shown):
    attributes = Reader(shown("line")).attributes
    policy = next(given for name, given in attributes if name == "content")
    assert policy.startswith("default-src 'none'")
    assert "img-src data:" in policy


def test_sections_that_nothing_is_known_about_are_left_out(studied, shown):
    with_holdout, without = (Reader(report_html(studied(s)[0])).ids for s in ("plane", "polygon"))
    assert {"fit", "prediction"} <= set(with_holdout)
    assert not {"fit", "prediction"} & set(without)
    assert "fit" in Reader(shown("polygon")).ids


def test_the_page_says_the_scores_in_words(shown):
    words = Reader(shown("plane")).words
    assert "1.5 times as likely as under a constant rate" in words
    assert "a gain of 0.43 ± 0.03 nats per event" in words
    assert "20 % better than a kernel density estimate" in words
    assert "hplus fit events.csv --columns x,y -o model.hplus" in words
    assert "Dropped: 4 no x and 3 outside the window" in words


def test_a_page_of_weights_counts_units_of_them_and_not_events(rng):
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, 60).astype("timedelta64[D]")
    table = {"x": 4.0 * rng.beta(2, 9, 60), "y": 4.0 * rng.beta(2, 9, 60), "when": days}
    table |= {"loss": rng.gamma(2.0, 50.0, 60)}
    frame = plan(table, ["x", "y"], window=(0, 0, 4, 4), time="when", start="2024-01-01",
                 end="2024-12-01", weight="loss")  # fmt: skip
    page = report_html(EventStudy(frame, model="tree", holdout=0.0).fit(table))
    assert "Expected units of loss in" in page
    assert "units of loss per week" in page
    for wrong in ("events per", "expected events", "number of events in"):
        assert wrong not in page
    assert "intervals. ." not in page


def test_a_map_without_a_pattern_has_no_hot_spots(rng):
    table = {"x": rng.uniform(0, 4, 300), "y": rng.uniform(0, 4, 300)}
    frame = plan(table, ["x", "y"], window=(0, 0, 4, 4), unit="km")
    study = EventStudy(frame, model="tree", holdout=0.0).fit(table)
    page = report_html(study)
    assert "no place is clearly busier than others" in page
    for wrong in ("numbered boxes", "× average</th>", 'class="spot"'):
        assert wrong not in page


def test_a_report_replaces_a_file_in_one_step(studied, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(*studied("line")[:1], path)
    assert path.read_text("utf-8") == report_html(studied("line")[0])
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_report_refuses_what_is_no_fitted_study_and_events_outside(studied):
    with pytest.raises(TypeError, match="study must be a fitted EventStudy, got 3"):
        report_html(3)
    with pytest.raises(TypeError, match="fitted"):
        report_html(type(studied("line")[0])(None))
    with pytest.raises(ValueError, match="events must lie in the window"):
        report_html(studied("line")[0], [[-5.0]])


def test_shapes_round_numbers_and_leave_out_what_is_none():
    drawn = shape("rect", None, shape("g"), x=1.234567, stroke_width=2.0, class_=None)
    assert drawn.attrib == {"x": "1.23", "stroke-width": "2"}
    assert [child.tag for child in drawn] == ["g"]


def test_lightness_rises_evenly_along_the_ramp():
    linear = ((ramp() / 255.0 + 0.055) / 1.055) ** 2.4
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    assert np.all(np.diff(luminance) > -1e-4)
    assert luminance[0] < 0.02
    assert luminance[-1] > 0.8


def test_an_image_can_be_read_back():
    index = np.arange(6, dtype=np.uint8).reshape(2, 3)
    data = png(index, ramp())
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (3, 2)
    start = data.index(b"IDAT") + 4
    raw = np.frombuffer(zlib.decompress(data[start : data.index(b"IEND") - 8]), np.uint8)
    assert np.array_equal(raw.reshape(2, 4)[:, 1:], index)
    assert image_uri(np.zeros((2, 2))).startswith("data:image/png;base64,")


def test_a_pixel_outside_the_window_is_told_apart_from_a_rate_of_zero():
    import base64

    assert list(base64.b64decode(text_bytes(np.array([[0.0, 1.0, np.nan]])))) == [1, 255, 0]
