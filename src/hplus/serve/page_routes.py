"""The live page, the addresses that it asks, and alerts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from importlib import resources
from typing import Annotated

import numpy as np
from fastapi import APIRouter, FastAPI, Query, Request, Response

from hplus._checks import Floats
from hplus.serve.ledger import Refused
from hplus.serve.live_watch import LiveWatch
from hplus.serve.page_answers import (
    MOST_PIXELS,
    history_answer,
    picture_answer,
    recent_answer,
    shown_window,
    spots_answer,
    view_answer,
)
from hplus.serve.routes import document, refusal
from hplus.serve.service import Model
from hplus.storage.files import Json
from hplus.studies.spans import moment

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own files, and nothing that is written in it."""

KINDS_OF_FILES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""The types of the files of the page."""

MOST_ALERTS = 200
"""Alerts that are listed at once."""

MOST_WAITING_PICTURES = 32
"""Pictures and lists of hot spots that are waited for at a time."""

Side = Annotated[int, Query(ge=1, le=MOST_PIXELS)]


def page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page by their addresses, with their types."""
    found: dict[str, tuple[bytes, str]] = {}
    for file in (resources.files("hplus.serve") / "page").iterdir():
        kind = KINDS_OF_FILES.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = (file.read_bytes(), kind)
    return found


class PageRoutes:
    """What the addresses of the page do."""

    def __init__(self, watch: LiveWatch, title: str) -> None:
        self.watch, self.service, self.title = watch, watch.service, title
        self._locks = {name: asyncio.Lock() for name in ("whole", "part", "spots")}
        self._waiting = 0
        self._known: dict[str, tuple[int, Json, str]] = {}

    async def view(self) -> Response:
        """Names, units and bounds of the axes."""
        return document(view_answer(self.service, self.watch, self.title))

    async def picture(self, low: str = "", high: str = "", width: Side = 160,
                      height: Side = 160) -> Response:  # fmt: skip
        """The rate in a part of the window."""
        bounds = self._bounds(low, high)
        if bounds is None:
            return document({"error": "low and high must be numbers such as 0,0, low below."}, 422)
        key = f"{bounds[0].tolist()} {bounds[1].tolist()} {width} {height}"
        return await self._ask(
            "part" if low or high else "whole",
            key,
            lambda model: picture_answer(model, *bounds, width, height),
        )

    async def recent(
        self, after: Annotated[int, Query(ge=0)] = 0,
        most: Annotated[int, Query(ge=1, le=100_000)] = 100_000,
    ) -> Response:  # fmt: skip
        """The newest events, from a number on."""
        return document(await asyncio.to_thread(recent_answer, self.watch, after, most))

    async def history(
        self, span: Annotated[str, Query(pattern="^(day|week)$")] = "day"
    ) -> Response:
        """Counts until now against what was expected."""
        return document(await asyncio.to_thread(history_answer, self.watch, span, time.time()))

    async def spots(self) -> Response:
        """The busiest places."""
        return await self._ask("spots", "", spots_answer)

    async def alerts(
        self, most: Annotated[int, Query(ge=1, le=MOST_ALERTS)] = MOST_ALERTS
    ) -> Response:
        """Alerts, the newest first, and whether they are raised."""
        found = {
            "alarms_per_week": self.watch.alarms_per_week,
            "state": self.watch.state,
            "alerts": self.watch.log.newest(most),
        }
        return document(found)

    async def acknowledge(self, name: str, request: Request) -> Response:
        """Note that someone has seen an alert."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # which no form of another site can send
            return document({"error": "Content-Type must be application/json."}, 415)
        at = f"{moment(time.time())}Z"
        alert = await asyncio.to_thread(self.watch.log.acknowledge, name, at)
        if alert is None:
            return document({"error": "there is no alert of this id."}, 404)
        self.service.subscribers.publish("alert", alert)
        return document(alert)

    async def _ask(self, what: str, key: str, ask: Callable[[Model], Json]) -> Response:
        """Ask the newest model, once for all who ask the same of it one after another."""
        model = self.service.model
        if model is None:
            return document({"empty": self.service.why_not})
        if self._waiting >= MOST_WAITING_PICTURES:
            return refusal(Refused(429, "too many pictures are asked for: try again later.", 1))
        self._waiting += 1
        try:
            async with self._locks[what]:
                version, found, asked = self._known.get(what, (0, {}, ""))
                if (version, asked) != (model.version, key):
                    found = await asyncio.to_thread(ask, model)
                    self._known[what] = (model.version, found, key)
                return document(found)
        finally:
            self._waiting -= 1

    def _bounds(self, low: str, high: str) -> tuple[Floats, Floats] | None:
        """The corners asked for, inside the window; None if they make no sense."""
        window = shown_window(self.service.frame)
        least, most = window.bounds()
        try:
            a = np.array([float(x) for x in low.split(",")]) if low else least
            b = np.array([float(x) for x in high.split(",")]) if high else most
        except ValueError:
            return None
        if a.shape != least.shape or b.shape != least.shape or not np.all(a < b):
            return None
        with np.errstate(over="ignore"):
            return (a, b) if np.all(np.isfinite(b - a)) else None


def add_page(app: FastAPI, watch: LiveWatch, title: str = "") -> None:
    """Add the page and alerts to an application."""
    routes, router = PageRoutes(watch, title), APIRouter()
    for path, (body, kind) in page_files().items():
        router.add_api_route(path, _file(body, kind), include_in_schema=False)
    for name in ("view", "picture", "recent", "history", "spots"):
        router.add_api_route(f"/v1/page/{name}", getattr(routes, name), include_in_schema=False)
    router.add_api_route("/v1/alerts", routes.alerts)
    router.add_api_route(
        "/v1/alerts/{name}/acknowledge", routes.acknowledge, methods=["POST"], status_code=200
    )
    app.include_router(router)


def _file(body: bytes, kind: str) -> Callable[[], Response]:
    headers = {"Content-Security-Policy": POLICY}

    def answer() -> Response:
        return Response(body, headers=headers, media_type=kind)

    return answer
