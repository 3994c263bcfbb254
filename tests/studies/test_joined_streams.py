"""Streams merged and updated are the stream of all their events, bit for bit."""

import numpy as np
import pytest

from hplus import Box
from hplus.files.lines import WholeLines
from hplus.streaming.copies import copied
from hplus.studies.frames import Frame
from hplus.studies.joined_streams import merge_streams, update_stream
from hplus.studies.spans import Amount, Clock
from hplus.studies.streams import StreamStudy

PLACES = Frame(("x", "y"), Box((0, 0), (1, 1)))
TIMES = PLACES.replace(clock=Clock("at", 0.0, 4e9, cycle="day", step=3600.0))


def lines(n, seed):
    rng = np.random.default_rng(seed)
    rows = zip(rng.uniform(-0.1, 1.1, (n, 2)).tolist(), rng.uniform(0, 3000, n), strict=True)
    return "".join(f'{{"x": {x}, "y": {y}, "at": {t}}}\n' for (x, y), t in rows)


def stream(text, frame=PLACES, **settings):
    study = StreamStudy(frame, **settings).begin()
    return study.learn(WholeLines(text.encode(), len(text))) and study


def same(a, b):
    for name in ("events_", "lines_", "dropped_", "left_out_", "latest_", "fingerprint", "rate"):
        assert getattr(a, name) == getattr(b, name), name
    assert a.model_.statistic_ == b.model_.statistic_


@pytest.mark.parametrize(
    ("frame", "settings"),
    [(PLACES, {}), (TIMES, {}), (TIMES, {"forget": Amount(20.0, "h")})],
    ids=["places", "times", "forgetting"],
)
def test_merged_streams_are_the_stream_of_all_lines(frame, settings, tmp_path):
    parts = [lines(60, 0), lines(80, 1), lines(40, 2) + "broken\n"]
    whole = stream("".join(parts), frame, **settings)
    same(merge_streams([stream(part, frame, **settings) for part in parts]), whole)
    path = tmp_path / "more.jsonl"
    path.write_text(parts[1])
    kept = stream(parts[0], frame, **settings)
    same(update_stream(kept, str(path)), stream(parts[0] + parts[1], frame, **settings))
    same(kept, stream(parts[0], frame, **settings))


def test_a_copy_has_the_events_so_far_and_no_others():
    study = stream(lines(50, 0))
    known = copied(study.model_)
    before = study.model_.statistic_
    study.take(lines(30, 1).encode())
    assert known.statistic_ == before
    known.partial_fit([[0.5, 0.5]])
    assert known.statistic_.events == before.events + 1
    assert study.model_.statistic_.events == study.events_


def test_streams_that_cannot_be_joined_say_why():
    study = stream(lines(20, 0))
    other = stream(lines(20, 0), PLACES.replace(region=Box((0, 0), (2, 2))))
    with pytest.raises(ValueError, match="same settings to be merged, got window"):
        merge_streams([study, other])
    counted = stream(lines(20, 0), forget=Amount(100.0))
    with pytest.raises(ValueError, match="no common order"):
        merge_streams([counted, counted])
    with pytest.raises(ValueError, match="tree"):
        update_stream(StreamStudy(PLACES, method="pmd").begin(), "x.csv")
