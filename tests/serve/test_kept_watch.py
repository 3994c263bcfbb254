"""A service that is started again goes on with the evidence of alerts, and with the alerts."""

from types import SimpleNamespace

import numpy as np
import pytest

from hplus import Interval
from hplus.alerts.false_alarms import TYPICAL_CORRECTION
from hplus.alerts.watch import WEEK
from hplus.serve.alert_log import AlertLog
from hplus.serve.cell_rates import CellRates
from hplus.serve.disk import FolderDisk
from hplus.serve.kept_watch import LONGEST_STOP, WATCH_FILE, KeptWatch
from hplus.serve.live_watch import RATES_SECONDS, LiveWatch
from hplus.serve.service import RecentEvents
from hplus.studies.frames import Frame

HOURLY, START = 64.0, 1e9
"""Events of an hour, one in each of 64 cells, and when the service is started."""


@pytest.fixture(autouse=True)
def constant(monkeypatch):
    """What is expected is known, and no false alarms are simulated."""
    weekly = np.full(64, HOURLY / 64 * WEEK / 3600.0)
    rates = CellRates(weekly, np.ones(1), None, 10 * WEEK)
    monkeypatch.setattr("hplus.serve.live_watch.cell_rates", lambda *_: rates)
    monkeypatch.setattr("hplus.serve.live_watch.correction", lambda *_, **__: TYPICAL_CORRECTION)


class Process:
    """A watch of events on a line by the clock, which is stepped by hand."""

    def __init__(self, folder, now, alarms=1.0):
        disk = FolderDisk(folder)
        model = SimpleNamespace(version=1, study=None, events=10_000)
        told = SimpleNamespace(publish=lambda *_: None)
        frame = Frame(("x",), Interval(0, 1))
        service = SimpleNamespace(frame=frame, model=model, subscribers=told, clock=0.0, heard=None)
        self.log, self.now = AlertLog(disk), now
        self.watch = LiveWatch(service, self.log, alarms, None, KeptWatch(disk))
        self.watch.resume(now)
        self.watch.step(now)

    def hour(self, burst=0):
        """An hour with as many events as expected everywhere, and more of them in one cell."""
        X = (np.arange(64) + 0.5) / 64
        for minute in range(60):
            self.now += 60.0
            more = (minute + 1) * burst // 60 - minute * burst // 60
            here = np.concatenate([X[minute::60], np.full(more, X[20])])[:, None]
            self.watch.hear(RecentEvents(1, self.now - 1.0, here, np.zeros(0)))
            self.watch.step(self.now)

    def alerts(self):
        return {alert["id"]: alert["end"] for alert in self.log.newest(10)}

    def end(self):
        self.watch.keep(self.now)
        self.log.close()
        return self.now


def test_an_alert_goes_on_after_a_restart_and_ends_in_time(tmp_path):
    first = Process(tmp_path, START)
    first.hour()
    first.hour(burst=30)
    assert first.alerts() == {"alert-1": None}
    evidence = first.watch.watch.evidence.copy()
    second = Process(tmp_path, first.end() + 600.0)
    assert second.watch.watch.evidence == pytest.approx(evidence)
    assert second.alerts() == {"alert-1": None}
    second.hour(burst=30)
    assert second.alerts() == {"alert-1": None}
    for _ in range(12):
        second.hour()
    assert list(second.alerts()) == ["alert-1"]
    assert second.alerts()["alert-1"] is not None
    second.hour(burst=30)
    assert list(second.alerts()) == ["alert-2", "alert-1"]
    second.end()


def test_evidence_before_a_restart_counts_after_it(tmp_path):
    first = Process(tmp_path, START)
    first.hour()
    first.hour(burst=6)
    assert first.alerts() == {}
    second = Process(tmp_path, first.end() + 5.0)
    second.hour(burst=6)
    assert second.alerts() == {"alert-1": None}
    second.end()
    (tmp_path / "new").mkdir()
    alone = Process(tmp_path / "new", START)
    alone.hour()
    alone.hour(burst=6)
    assert alone.alerts() == {}
    alone.end()


@pytest.mark.parametrize("change", ["alarms", "torn", "old", "another"])
def test_evidence_that_does_not_fit_ends_its_alerts(tmp_path, change):
    first = Process(tmp_path, START)
    first.hour()
    first.hour(burst=30)
    now, path = first.end(), tmp_path / WATCH_FILE
    if change == "torn":
        path.write_bytes(path.read_bytes()[:-100])
    if change == "another":
        np.savez(path, names=np.zeros(0))
    later = now + (2.0 * LONGEST_STOP if change == "old" else 5.0)
    second = Process(tmp_path, later, alarms=2.0 if change == "alarms" else 1.0)
    assert second.alerts()["alert-1"] is not None
    assert second.watch.watch.evidence.max() == 0.0
    second.end()


def test_evidence_is_kept_while_the_service_runs(tmp_path):
    first = Process(tmp_path, START)
    first.hour(burst=6)
    first.watch.service.model.version = 2
    first.now += RATES_SECONDS
    first.watch.step(first.now)
    kept = first.watch.watch.evidence.max()
    first.log.close()  # and nothing else, as if it had been killed
    second = Process(tmp_path, first.now)
    assert second.watch.watch.evidence.max() == pytest.approx(kept, rel=0.2)
    second.end()


def test_events_from_before_a_restart_that_come_after_it_are_no_burst(tmp_path):
    process = Process(tmp_path, START)
    X = np.full((50, 1), 0.3)
    process.watch.hear(RecentEvents(1, START - 60.0, X, np.zeros(0)))
    process.hour()
    assert process.alerts() == {}
    process.end()
