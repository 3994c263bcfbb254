"""The live page: nothing but its own files, data as text, alerts that are acknowledged."""

import asyncio
import json
import re
import sys
from base64 import b64decode
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from asgi_kit import AppClient
from fastapi import FastAPI

from hplus import Box, Interval
from hplus.alerts.false_alarms import TYPICAL_CORRECTION
from hplus.serve.alert_log import AlertLog
from hplus.serve.disk import FolderDisk
from hplus.serve.live_app import live_app, watch_of
from hplus.serve.live_watch import LATE, LiveWatch
from hplus.serve.opening import opened_store
from hplus.serve.page_routes import (
    MOST_WAITING_PICTURES,
    POLICY,
    PageRoutes,
    add_page,
    page_files,
)
from hplus.serve.service import Model, RecentEvents, Service
from hplus.serve.tokens import read_tokens
from hplus.studies.frames import Frame
from hplus.studies.spans import Amount, Clock
from hplus.studies.stream_answers import answering
from hplus.studies.streams import StreamStudy

DAY = 86_400.0
PAGE = Path(sys.modules["hplus.serve.page_routes"].__file__).parent / "page"
WEEKLY = Clock("at", start=0.0, end=4.1e9, cycle="week")
FRAMES = {
    "plane": Frame(("x", "y"), Box((0, 0), (1, 1))),
    "line": Frame(("x",), Interval(0, 10, unit="m")),
    "plane and height": Frame(("x", "y", "z"), Box((0, 0, 0), (1, 1, 5))),
    "plane and time": Frame(("x", "y"), Box((0, 0), (1, 1)), clock=WEEKLY),
    "time": Frame((), None, clock=WEEKLY),
}

UNITS = {
    "plane": "events per unit of area per day",
    "line": "events per m per day",
    "plane and height": "events per unit of area per day",
    "plane and time": "events per unit of area per week",
    "time": "events per hour, in an average week",
}


def events(frame, n, seed=0, days=28.0):
    """Events of a frame with their times, in the order of time."""
    rng = np.random.default_rng(seed)
    seconds = np.sort(rng.uniform(0.0, days * DAY, n))
    parts = []
    if frame.region is not None:
        low, high = frame.region.bounds()
        parts.append(low + rng.beta(2.0, 3.0, (n, len(low))) * (high - low))
    if frame.clock is not None:
        parts.append(frame.clock.axis(seconds)[:, None])
    return np.hstack(parts), seconds


class Told:
    """Subscribers that remember what they were told."""

    def __init__(self):
        self.news = []

    def publish(self, event, data):
        self.news.append((event, data))


def learned(frame, n=2000, days=28.0):
    """A service that has learned from events, without threads."""
    study = StreamStudy(frame, "tree").begin()
    X, seconds = events(frame, n, days=days)
    study.learn_points(X, seconds)
    study.events_ = study.lines_ = n
    if frame.clock is None:
        study.exposure = Amount(days, "day")
    model = Model(1, answering(study), n, 0, 0.0, 0.0)
    return SimpleNamespace(
        frame=frame, model=model, events=n, subscribers=Told(), heard=None, clock=days * DAY
    )


@pytest.fixture(scope="module")
def services():
    return {name: learned(frame) for name, frame in FRAMES.items()}


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """No simulation of false alarms, which takes seconds."""
    monkeypatch.setattr("hplus.serve.live_watch.correction", lambda *_, **__: TYPICAL_CORRECTION)


@contextmanager
def watching(service, folder, **options):
    log = AlertLog(FolderDisk(folder))
    try:
        yield LiveWatch(service, log, options.pop("alarms", 1.0))
    finally:
        log.close()


def test_the_page_is_made_of_its_own_files_and_holds_no_script_or_style_of_its_own():
    html = (PAGE / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", html) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", html) == []
    named = re.findall(r'(?:src|href)="([^"#]+)"', html)
    assert named
    assert {f"/{name}" for name in named} <= set(page_files())
    for path, (body, _) in page_files().items():
        if "uplot" not in path:
            text = body.decode().replace("http://www.w3.org/2000/svg", "")
            assert not re.findall(
                r"https?://|innerHTML|outerHTML|insertAdjacent|document\.write", text
            )
    assert "MIT" in (PAGE / "uplot.LICENSE").read_text("utf-8")
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


def test_scripts_import_files_that_the_service_has():
    for path in PAGE.glob("*.js"):
        for name in re.findall(r'from "\./([\w.]+)"', path.read_text("utf-8")):
            assert f"/page/{name}" in page_files()


@pytest.mark.parametrize("name", FRAMES)
def test_the_page_is_answered_for_every_kind_of_window(services, tmp_path, name):
    service = services[name]
    with watching(service, tmp_path) as watch:
        X, seconds = events(service.frame, 50, seed=1)
        watch.hear(RecentEvents(1, 28 * DAY, X, seconds))
        app = live_app_of(watch)
        view = app.get("/v1/page/view").json()
        assert len(view["axes"]) == (2 if "plane" in name else 1)
        assert set(view["example"]) == set(service.frame.needed)
        picture = app.get("/v1/page/picture?width=20&height=10").json()
        assert picture["rates"] == UNITS[name]
        if "plane" in name:
            rates = np.frombuffer(b64decode(picture["values"]), "<f4")
            assert len(rates) == 200
            assert rates.min() > 0.0
            per_area = service.model.study.model_.rate_.integral()
            assert rates.mean() == pytest.approx(per_area, rel=0.1)  # on a plane of area 1
        else:
            assert np.all(np.array(picture["below"]) <= np.array(picture["above"]))
        if name in ("plane", "time"):
            spots = app.get("/v1/page/spots").json()["spots"]
            assert spots
            assert all(spot["expected"] > 0.0 for spot in spots)
        recent = app.get("/v1/page/recent").json()
        assert (recent["first"], recent["next"]) == (0, 50)
        watch.step(30 * DAY)
        history = app.get("/v1/page/history?span=week").json()
        assert sum(history["observed"]) <= 50
        assert history["hour"]["observed"] >= 0


def live_app_of(watch):
    """A client of the page alone, without the rest of a service."""
    app = FastAPI()
    add_page(app, watch, "<b>title</b>")
    return AppClient(app)


def test_what_a_picture_must_be_asked_for(services, tmp_path):
    with watching(services["plane"], tmp_path) as watch:
        app = live_app_of(watch)
        far = ("low=-inf,-inf", "high=1,inf", "low=-1e308,0&high=1e308,1", "low=nan,0")
        for query in ("low=a,b", "low=0", "low=1,1&high=0,0", "width=0", "width=100000", *far):
            assert app.get(f"/v1/page/picture?{query}").status_code == 422, query
        part = app.get("/v1/page/picture?low=0.2,0.2&high=0.4,0.3").json()
        assert part["low"] == [0.2, 0.2]


def test_a_burst_raises_an_alert_that_is_told_once_and_ends(services, tmp_path):
    service = services["plane and time"]
    service.subscribers.news.clear()
    with watching(service, tmp_path, alarms=0.5) as watch:
        X, seconds = events(service.frame, 700, seed=3, days=7.0)
        seconds = seconds + 28 * DAY
        burst = np.full((40, 3), 0.33)
        burst[:, 2] = service.frame.clock.axis(np.array([31 * DAY]))[0]
        watch.hear(RecentEvents(1, 0.0, X[:1], seconds[:1]))
        watch.step(0.0)
        for day in range(7):
            here = (seconds > (28 + day) * DAY) & (seconds <= (29 + day) * DAY)
            watch.hear(RecentEvents(1, 0.0, X[here], seconds[here]))
            if day == 3:
                times = 31 * DAY + np.linspace(0.0, 3600.0, 40)
                watch.hear(RecentEvents(1, 0.0, burst, times))
            watch.step(0.0)
        alerts = [a for a in watch.log.newest(10) if a["observed"] >= 40]
        assert len(alerts) == 1
        found = alerts[0]
        assert found["kind"] == "more"
        assert found["end"] is not None
        assert found["start"].startswith("1970-01-31T23") or found["start"].startswith(
            "1970-02-01T00"
        )
        assert found["place"]["x"][0] <= 0.33 <= found["place"]["x"][1]
        told = [data["id"] for event, data in service.subscribers.news if event == "alert"]
        assert told.count(found["id"]) == 2  # it began, and ended


def test_events_that_come_far_too_late_are_no_burst(services, tmp_path):
    service = services["plane and time"]
    with watching(service, tmp_path) as watch:
        X, seconds = events(service.frame, 200, seed=4, days=3.0)
        watch.hear(RecentEvents(1, 0.0, X[:1], seconds[:1] + 28 * DAY))
        watch.step(0.0)
        late = np.full(500, 28 * DAY - 2 * LATE)
        watch.hear(RecentEvents(1, 0.0, np.full((500, 3), 0.5), late))
        watch.hear(RecentEvents(1, 0.0, X, seconds + 28 * DAY))
        watch.step(0.0)
        assert [a for a in watch.log.newest(10) if a["observed"] > 100] == []


@pytest.mark.parametrize("name", FRAMES)
def test_a_service_without_events_says_so(tmp_path, name):
    service = SimpleNamespace(
        frame=FRAMES[name], model=None, events=0, subscribers=Told(), why_not="no events",
        heard=None, clock=0.0,
    )  # fmt: skip
    with watching(service, tmp_path) as watch:
        app = live_app_of(watch)
        assert app.get("/v1/page/picture").json() == {"empty": "no events"}
        assert app.get("/v1/page/history").json()["expected"] is None
        assert app.get("/v1/alerts").json()["alerts"] == []
        watch.step(1e9)


@pytest.mark.parametrize("name", FRAMES)
def test_events_are_not_piled_up_before_there_is_anything_to_expect(tmp_path, name):
    study = StreamStudy(FRAMES[name]).begin()
    with opened_store(tmp_path / "state", study) as store:
        service = Service(store, learns=False)
        with watching(service, tmp_path) as watch:
            for i in range(5):
                X, seconds = events(service.frame, 200, seed=i)
                watch.hear(RecentEvents(i, 28 * DAY, X, seconds))
                watch.step(1e9)
                assert [len(part) for part in watch._pending] == [0, 0]


def test_alerts_are_acknowledged_for_good_and_with_a_token(tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    tokens = tmp_path / "tokens"
    tokens.write_text("read the-read-token-0123456789\nwrite the-write-token-0123456789\n")
    tokens.chmod(0o600)
    read = {"Authorization": "Bearer the-read-token-0123456789", "Host": "localhost"}
    write = {"Authorization": "Bearer the-write-token-0123456789", "Host": "localhost"}
    study = StreamStudy(FRAMES["plane"]).begin()
    with opened_store(tmp_path / "state", study) as store:
        service = Service(store, learns=False)
        watch = watch_of(service, tmp_path / "state")
        watch.log.tell({"id": "alert-1", "end": None, "place": {evil: [0, 1]}, "found": "now"})
        app = AppClient(live_app(watch, read_tokens(str(tokens)), evil))
        page = app.get("/")
        assert page.status_code == 200
        assert page.headers["content-security-policy"] == POLICY
        assert evil not in page.text
        assert app.get("/page/live.js").headers["content-type"].startswith("text/javascript")
        for path in ("/v1/alerts", "/v1/page/view", "/v1/page/recent"):
            assert app.get(path).status_code == 401
        assert app.get("/v1/page/view", headers=read).json()["title"] == evil
        path, kind = "/v1/alerts/alert-1/acknowledge", {"Content-Type": "application/json"}
        assert app.post(path, headers=kind).status_code == 401
        assert app.post(path, headers=read | kind).status_code == 403
        assert app.post(path, headers=write).status_code == 415
        assert app.post(path, headers=write | kind).json()["acknowledged"]
        assert app.post("/v1/alerts/x/acknowledge", headers=write | kind).status_code == 404
        watch.log.close()
        again = watch_of(service, tmp_path / "state")
        again.start()
        (alert,) = again.log.newest(5)
        assert alert["acknowledged"] is not None
        assert alert["end"] == "now"  # the evidence of the former process is gone
        assert json.dumps(alert).count(evil) == 1
        again.stop()
        service.store.close()


def test_no_more_pictures_wait_than_can_be_drawn_soon(services, tmp_path):
    with watching(services["plane"], tmp_path) as watch:
        routes = PageRoutes(watch, "")

        async def ask_many():
            asked = [
                routes.picture(width=2 + i, height=2) for i in range(MOST_WAITING_PICTURES + 5)
            ]
            return [answer.status_code for answer in await asyncio.gather(*asked)]

        found = asyncio.run(ask_many())
    assert found.count(429) == 5
    assert found.count(200) == MOST_WAITING_PICTURES
