"""The same file in batch, and as a stream cut anywhere: the same points, the same drops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hplus import Interval
from hplus.files import lines, tables
from hplus.files.feeds import TableError
from hplus.files.tables import start_table
from hplus.studies.events import Tallied
from hplus.studies.frames import Frame
from hplus.studies.spans import Clock
from hplus.studies.streams import StreamStudy

FRAME = Frame(("x",), Interval(0, 1), None, Clock("at", 1.4e9, 2e9, "week"))

NUMBERS = ["0.5", "0.25", " 0.75 ", "1e-1", "2.5", "", "NA", "nan", "inf", "oops", "1_0", "+0.3"]
TIMES = [
    "2014-07-01 10:00", "2014-07-01T10:00:00.5", "03.07.2014 12:00", "2015/01/01", "2014-13-01",
    "2014-07-04T00:00:00+02:00", "2014-07-04T00:00:00Z", "7/5/2014", "never", "", "2001-01-01",
]  # fmt: skip
UNITS = [["20140702", "20151231"], ["1404208800", "1504208800"], ["1404208800000", "15e11"]]
"""Numbers that are times; all of a column have one unit, by which a file tells it."""

ODD_LINES = ["", "0.5", "0.5,2014-07-01,extra,cell", '"open,2014-07-01,c', 'a"b",never,2', "  "]


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


@st.composite
def files(draw):
    """A CSV file with good and bad cells and lines, some of them quoted."""
    times = st.sampled_from(TIMES + draw(st.sampled_from(UNITS)))
    row = st.tuples(st.sampled_from(NUMBERS), times, st.sampled_from(["a", 'b "c"', "é", "\r"]))
    plain, dressed = row.map(",".join), row.map(lambda cells: ",".join(map(quoted, cells)))
    drawn = draw(st.lists(st.one_of(plain, dressed, st.sampled_from(ODD_LINES)), max_size=30))
    return draw(st.sampled_from(["\n", "\r\n"])).join(["x,at,name", *drawn, ""]).encode()


class Kept:
    """Stands in for a model, and keeps what it is given."""

    def __init__(self):
        self.X = []

    def take(self, part, keys):
        self.X.extend(part.X.tolist())

    def partial_fit(self, X, times=None):
        self.X.extend(X.tolist())


def read_events(table, frame, kept):
    """What was read of a table whose events are kept."""
    read = Tallied(frame)
    read.read(table, kept.take)
    return read.reading(table.path)


def in_batch(data, frame=FRAME):
    kept = Kept()
    try:
        reading = read_events(start_table("file", data), frame, kept)
    except TableError:
        return [], None
    return kept.X, reading.dropped


def as_a_stream(data, cuts, frame=FRAME):
    study = StreamStudy(frame).begin()
    study.model_ = kept = Kept()
    for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True):
        study.take(data[a:b])
    dropped = Counter(study.dropped_)
    del dropped["empty line"]  # which in a file is no row
    return kept.X, dropped


def same(data, cuts, frame=FRAME):
    X, dropped = in_batch(data, frame)
    Z, reasons = as_a_stream(data, cuts, frame)
    assert X == Z
    assert dropped is None or dropped == reasons
    return X


@settings(max_examples=200, deadline=None)
@given(files(), st.data(), st.sampled_from([60, 2**23]))
def test_a_file_and_a_stream_cut_anywhere_give_the_same_points_and_drops(data, draw, block):
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=5)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "BLOCK_BYTES", block)
        same(data, cuts)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_decimal_commas_are_the_same_numbers_in_both(delimiter):
    cells = ["0,5", "0,250", "0.75", ",1", "oops", "2,5", "1e-1"]
    frame = Frame(("x",), Interval(0, 1))
    data = "\n".join([f"x{delimiter}y", *(f"{cell}{delimiter}1" for cell in cells), ""]).encode()
    for cut in range(0, len(data), 3):
        assert same(data, [cut], frame) == [[0.5], [0.25], [0.75], [0.1], [0.1]]


def test_json_lines_are_the_same_in_both():
    data = (
        b'{"x": 0.5, "at": "2014-07-01"}\n\n{"x": "0.7", "at": 1404208800}\n[]\n{"x"\n{"at": 1}\n'
    )
    for cut in range(0, len(data), 5):
        assert len(same(data, [cut])) == 1


def test_lines_that_are_too_long_are_dropped_from_both(monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 40)
    data = b"x\n0.5\n" + b"0" * 500 + b"\n0.25\n"
    for cut in range(0, len(data), 7):
        assert same(data, [cut], Frame(("x",), Interval(0, 1))) == [[0.5], [0.25]]


def test_the_last_line_of_a_file_needs_no_end(tmp_path):
    kept, path = Kept(), tmp_path / "open.csv"
    path.write_bytes(b"x\n0.5\n0.25")
    read_events(tables.open_table(str(path)), Frame(("x",), Interval(0, 1)), kept)
    assert kept.X == [[0.5], [0.25]]


def test_numbers_of_seconds_since_1970_are_all_in_the_unit_of_their_column(tmp_path):
    path = tmp_path / "old.csv"
    seconds = np.arange(-1e9, 1e9, 1e7)
    path.write_text("at\n" + "\n".join(f"{1000 * s:.0f}" for s in seconds) + "\n")
    kept = Kept()
    frame = Frame((), None, None, Clock("at", -2e9, 2e9))
    reading = read_events(tables.open_table(str(path)), frame, kept)
    assert reading.dropped == {}
    np.testing.assert_allclose(np.ravel(kept.X) * 86_400 - 2e9, seconds, atol=1e-3)
