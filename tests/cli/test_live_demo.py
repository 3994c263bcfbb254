"""The replay of hplus demo --live: all thefts, in order, when their time has come."""

from itertools import pairwise
from threading import Event

from hplus.cli import live_demo
from hplus.cli.live_demo import DatedLine, paced, thefts
from hplus.studies.spans import Amount


def test_the_thefts_are_in_the_order_of_time():
    header, rows = thefts()
    assert header == "datetime,lon,lat,place"
    assert len(rows) == 35_746
    assert all(a.seconds <= b.seconds for a, b in pairwise(rows))


def test_lines_are_posted_once_and_not_before_their_time(monkeypatch):
    monkeypatch.setattr(live_demo, "SECONDS_A_POST", 0.0)
    clock = iter(float(t) for t in range(100))
    lines = [DatedLine(1000.0 + 25.0 * i, f"line {i}") for i in range(9)]
    groups = list(paced(lines, 1000.0, 10.0, Event(), lambda: next(clock)))
    assert [row for group in groups for row in group] == lines
    assert [len(group) for group in groups] == [1] * 9


def test_a_replay_stops_when_asked_to():
    stopping = Event()
    stopping.set()
    assert list(paced([DatedLine(0.0, "line")], 0.0, 1.0, stopping)) == []


def test_the_service_of_a_replay_has_the_settings_of_one_that_runs_for_weeks(monkeypatch):
    prepared, told = [], []

    def run(server, sockets):
        told.append(server)
        sockets[0].close()

    monkeypatch.setattr("hplus.serve.long_running.prepare_process", prepared.append)
    monkeypatch.setattr("hplus.serve.app.HplusServer.run", run)
    live_demo.live_demo(Amount.parse("6h"), 0, opened=False)
    assert prepared == [server.service for server in told]
    assert len(prepared) == 1
