"""Bodies of posts: what they hold, line by line, is what hplus stream would learn."""

import gzip
import json

import numpy as np
import pytest

from hplus import Box
from hplus.files.conditions import Condition
from hplus.files.lines import WholeLines
from hplus.serve.parsing import (
    MOST_BODY_BYTES,
    MOST_LINE_BYTES,
    MOST_REPORTED,
    BadBodyError,
    decompressed,
    read_post,
)
from hplus.serve.posted_study import StudyMachine
from hplus.serve.posts import PostGroup, Rejected
from hplus.studies.frames import Frame
from hplus.studies.spans import Amount, Clock
from hplus.studies.streams import StreamStudy

FRAME = Frame(("x", "y"), Box((0, 0), (1, 1)))
TIMED = FRAME.replace(clock=Clock("at", 1.7e9, 1.8e9, cycle="week"))


def written(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_all_kinds_of_bodies_hold_the_same_events():
    X = np.random.default_rng(0).random((50, 2))
    rows = [{"x": x, "y": y} for x, y in X.tolist()]
    table = "y,other,x\n" + "".join(f"{y!r},a,{x!r}\n" for x, y in X.tolist())
    bodies = {
        "lines": written(rows),
        "json": json.dumps(rows).encode(),
        "csv": table.encode(),
    }
    for kind, body in bodies.items():
        post = read_post(body, kind, FRAME, "")
        np.testing.assert_array_equal(post.X, X)
        assert (post.lines, post.rejected, post.dropped) == (50, (), {})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"x": 0.5}', "no y"),
        ('{"x": 0.5, "y": "a"}', "y is not a number"),
        ('{"x": 0.5, "y": NaN}', "no y"),
        ('{"x": 0.5, "y": 1e999}', "y is not a number"),
        ('{"x": 0.5, "y": true}', "y is not a number"),
        ('{"x": 0.5, "y": [1]}', "y is not a number"),
        ('{"x": 0.5, "y": 1' + "0" * 400 + "}", "y is not a number"),
        ('{"x": 0.5, "y": 2}', "outside the window"),
        ('{"x": 0.5', "broken line"),
        ("[1, 2]", "broken line"),
        ("[" * 10_000, "broken line"),
        ("  ", "empty line"),
        ('{"x": "' + "a" * MOST_LINE_BYTES, "line longer than 64 KiB"),
        ("\ufffd", "broken line"),
    ],
)
def test_a_line_that_holds_no_event_is_rejected_with_its_number_and_a_reason(line, reason):
    body = written([{"x": 0.1, "y": 0.2}]) + line.encode() + b"\n" + written([{"x": 0, "y": 1}])
    post = read_post(body, "lines", FRAME, "")
    assert (len(post.X), post.lines, post.rejected) == (2, 3, (Rejected(2, reason),))
    assert post.dropped | post.left_out == {reason: 1}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0.5", "broken line"),
        ("0.5,0.5,0.5", "broken line"),
        ('"0.5,0.5', "broken line"),
        ("", "empty line"),
        ("0.5,", "no y"),
        ("0.5,a", "y is not a number"),
        ("0.5,7", "outside the window"),
        ("0.5," + "1" * MOST_LINE_BYTES, "line longer than 64 KiB"),
    ],
)
def test_a_line_of_csv_is_rejected_with_its_number_in_the_body(line, reason):
    body = f"x,y\n0.1,0.1\n{line}\n0.2,0.2".encode()
    post = read_post(body, "csv", FRAME, "")
    assert (len(post.X), post.lines) == (2, 3)
    assert [r.line for r in post.rejected] == [3]
    assert post.rejected[0].reason in (reason, "y is not a number")


def test_decimal_commas_are_read_unless_they_may_separate_thousands():
    post = read_post(b"x;y\n0,5;0,25\n1,234;0,5\n", "csv", FRAME, "")
    assert post.X.tolist() == [[0.5, 0.25]]
    assert post.rejected[0].line == 3


def test_rows_that_a_condition_leaves_out_are_told_apart():
    frame = FRAME.replace(where=Condition("kind == 'a'"))
    rows = [{"x": 0.1, "y": 0.1, "kind": kind} for kind in "aba"]
    rows[2]["x"] = 5
    post = read_post(written(rows), "lines", frame, "")
    assert len(post.X) == 1
    assert [r.line for r in post.rejected] == [2, 3]
    assert post.rejected[1].reason == "outside the window"


def test_few_of_many_rejected_lines_are_listed_and_all_are_counted():
    post = read_post(b"x,y\n0,0\n" + b"5,5\n" * 1000, "csv", FRAME, "")
    assert len(post.rejected) == MOST_REPORTED
    assert post.left_out == {"outside the window": 1000}


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("json", b"{", 422),
        ("json", b"3", 422),
        ("json", b"[" * 100_000, 422),
        ("json", b"\xff\xfe", 422),
        ("json", b"[]", 422),
        ("lines", b"", 422),
        ("csv", b"", 422),
        ("csv", b"x,y\n", 422),
        ("csv", b"x,z\n1,2\n", 422),
        ("csv", b"x,x,y\n1,2,3\n", 422),
        ("csv", b"\x00\x00", 422),
        ("csv", b"a" * (MOST_LINE_BYTES + 1), 422),
        ("csv", b"0.1,0.2\n0.3,0.4\n", 422),
    ],
)
def test_a_body_that_holds_nothing_is_refused(kind, body, status):
    with pytest.raises(BadBodyError) as found:
        read_post(body, kind, FRAME, "")
    assert found.value.refused.status == status


def test_a_compressed_body_may_not_grow_beyond_what_a_body_may_have():
    assert decompressed(gzip.compress(b"a") + gzip.compress(b"b")) == b"ab"
    bomb = gzip.compress(bytes(MOST_BODY_BYTES + 1))
    assert len(bomb) < 20_000
    for bad, status in ((bomb, 413), (bomb[:100], 422), (b"x", 422), (bomb[:-4], 413)):
        with pytest.raises(BadBodyError) as found:
            decompressed(bad)
        assert found.value.refused.status == status


@pytest.mark.parametrize(
    ("exposure", "events", "days"),
    [
        (None, 0, 2.0),
        (Amount(1.0, "week"), 5, 9.0),
        (None, 5, None),
        (Amount(82.0, "game"), 5, None),
    ],
)
def test_time_that_the_service_runs_is_added_to_the_exposure(exposure, events, days):
    study = StreamStudy(FRAME, exposure=exposure).begin()
    study.events_ = events
    machine = StudyMachine(study)
    for clock in (86_400.0, 2 * 86_400.0):  # one day, and another after a restart
        machine.apply(PostGroup((), clock), machine.position + 1)
        frozen = machine.frozen()
        assert list(frozen.pieces())
        machine = StudyMachine(frozen.study)
    found = frozen.study.exposure
    assert found == exposure if days is None else found.to("day") == pytest.approx(days)


@pytest.mark.parametrize("frame", [FRAME, TIMED], ids=["places", "times"])
def test_posts_and_lines_of_a_stream_give_the_same_state_bit_for_bit(frame):
    rng = np.random.default_rng(1)
    rows = [
        {"x": x, "y": y, "at": f"2025-03-0{1 + i % 9}T0{i % 8}:00:00Z"}
        for i, (x, y) in enumerate(rng.uniform(-0.1, 1.1, (300, 2)).tolist())
    ]
    data = written(rows) + b"broken\n"
    stream = StreamStudy(frame).begin()
    stream.learn(WholeLines(data, len(data)))
    machine = StudyMachine(StreamStudy(frame).begin())
    for part in (data[: data.index(b"\n", 5000) + 1], data[data.index(b"\n", 5000) + 1 :]):
        post = read_post(part, "lines", frame, machine.zone)
        machine.apply(PostGroup((post,), 0.0), machine.position + 1)
    posted = machine.study
    assert posted.model_.statistic_ == stream.model_.statistic_
    for name in (
        "fingerprint",
        "events_",
        "lines_",
        "dropped_",
        "left_out_",
        "latest_",
        "offsets_",
    ):
        assert getattr(posted, name) == getattr(stream, name), name
