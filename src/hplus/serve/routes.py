"""The addresses of the service: events in, answers out."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hplus.serve import examples
from hplus.serve.answers import about, as_geojson, expect_answer, peaks_answer, rate_answer
from hplus.serve.bodies import BodyReader
from hplus.serve.ledger import Refused
from hplus.serve.parsing import KINDS, BadBodyError, read_post
from hplus.serve.posts import Post, listed
from hplus.serve.service import Model, Service
from hplus.serve.streaming_news import NewsResponse
from hplus.storage.files import Json
from hplus.wording import window_words

SMALL_BODY = 2**16
"""Bytes of a body that is read at once; larger ones are read by another thread."""

MOST_QUESTIONS = 64
"""Questions that wait for their answer at a time."""

MOST_ANSWERS = 64
"""Answers that are kept, in case the same is asked again of the same model."""

MOST_SOURCE_LETTERS, MOST_KEY_LETTERS, MOST_SEQUENCE = 200, 255, 2**62

Level = Annotated[float, Query(gt=0.0, lt=1.0, description="Probability of the intervals.")]


class Routes:
    """What each address does with a service."""

    def __init__(self, service: Service) -> None:
        self.service, self.bodies = service, BodyReader()
        self._one_large_body, self._one_question = asyncio.Lock(), asyncio.Lock()
        self._asking = 0
        self._answers: dict[tuple[int, tuple[object, ...]], bytes | memoryview] = {}

    async def post_events(self, request: Request) -> Response:
        """Take events; the answer says how many are on disk, and why others are not."""
        kind = KINDS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
        if kind is None:
            raise BadBodyError(415, f"Content-Type must be one of {', '.join(KINDS)}.")
        source, sequence, key = _retry_marks(request)
        body = await self.bodies.read(request)
        post = await self._read(body, kind)
        digest = hashlib.blake2b(body, digest_size=12).hexdigest() if key else ""
        post = post._replace(source=source, sequence=sequence, key=key, digest=digest)
        if len(post.X) == 0:
            said = {"error": "no line holds an event.", "rejected": listed(post.rejected)}
            return document(said, 422)
        answer = await asyncio.wrap_future(self.service.submit(post))
        if isinstance(answer, Refused):
            return refusal(answer)
        headers = {"Idempotency-Replayed": "true"} if answer.duplicate and key else {}
        return document(answer.document(), 200, headers)

    async def rate(self, request: Request, level: Level = 0.9) -> Response:
        """The rate at points: each column once for each point."""
        asked = {name: request.query_params.getlist(name) for name in request.query_params}
        key = ("rate", str(asked), level)
        return await self._answer(key, lambda model: rate_answer(model, asked, level))

    async def expect(
        self,
        lasting: Annotated[str, Query(alias="for", max_length=200, description=(
            "Lengths of the time to come, such as 1h,1d,7d."))] = "",
        grid: Annotated[str, Query(max_length=20, description="Cells, such as 20x20.")] = "",
        start: Annotated[str, Query(alias="from", max_length=40, description=(
            "When it begins; by default, after the latest event."))] = "",
        form: Annotated[str, Query(alias="format", pattern="^(json|geojson)$")] = "json",
        level: Level = 0.9,
    ) -> Response:  # fmt: skip
        """Counts to expect with intervals, in all of the window or in the cells of a grid."""
        return await self._expect((lasting, grid, start, level), None, form)

    async def expect_regions(
        self,
        request: Request,
        lasting: Annotated[str, Query(alias="for", max_length=200)] = "",
        start: Annotated[str, Query(alias="from", max_length=40)] = "",
        form: Annotated[str, Query(alias="format", pattern="^(json|geojson)$")] = "json",
        level: Level = 0.9,
    ) -> Response:
        """Counts to expect in the polygons of a GeoJSON body."""
        body = await self.bodies.read(request)
        try:
            regions = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadBodyError(422, f"the body is not GeoJSON: {str(error)[:100]}.") from error
        return await self._expect((lasting, "", start, level), regions, form)

    async def peaks(self) -> Response:
        """The busiest cells of the window, ranked, with counts to expect in each."""
        return await self._answer(("peaks",), peaks_answer)

    async def status(self) -> Response:
        """What is on disk, what the model knows, and what waits."""
        return document(status_of(self.service))

    async def stream(self, request: Request) -> Response:
        """Server-sent events: "status" first, then "events" and "model" as they come."""
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isdigit() and len(last) < 20 else None
        return NewsResponse(self.service.subscribers, status_of(self.service), after)

    async def healthz(self) -> Response:
        """The process runs."""
        return document({"status": "ok"})

    async def readyz(self) -> Response:
        """Posts are taken, and questions answered."""
        broken = self.service.store.broken
        return document({"status": broken or "ok"}, 503 if broken else 200)

    async def _read(self, body: bytes, kind: str) -> Post:
        frame, zone = self.service.frame, self.service.machine.zone
        if len(body) <= SMALL_BODY:
            return read_post(body, kind, frame, zone)
        async with self._one_large_body:
            return await asyncio.to_thread(read_post, body, kind, frame, zone)

    async def _expect(
        self, asked: tuple[str, str, str, float], regions: object, form: str
    ) -> Response:
        def answer(model: Model) -> Json:
            found = expect_answer(model, *asked, regions)
            return as_geojson(found) if form == "geojson" else found

        return await self._answer(("expect", asked, form, str(regions)), answer)

    async def _answer(self, key: tuple[object, ...], ask: Callable[[Model], Json]) -> Response:
        """Ask the newest model, one question at a time, in another thread; or answer as before."""
        model = self.service.model
        if model is None:
            return refusal(Refused(503, f"there is no model yet: {self.service.why_not}", 1))
        if self._asking >= MOST_QUESTIONS:
            return refusal(Refused(429, "too many questions wait: try again later.", 1))
        self._asking += 1
        try:
            return await self._asked(model, key, ask)
        finally:
            self._asking -= 1

    async def _asked(
        self, model: Model, key: tuple[object, ...], ask: Callable[[Model], Json]
    ) -> Response:
        async with self._one_question:
            known = self._answers.get((model.version, key))
            if known is not None:
                return Response(known, media_type="application/json")
            try:
                found = document(await asyncio.to_thread(ask, model))
            except (ValueError, OverflowError) as error:
                said = str(error).replace("lasting=", "for=").replace("start=", "from=")
                return document({"error": said}, 422)
            while len(self._answers) >= MOST_ANSWERS:
                del self._answers[next(iter(self._answers))]
            self._answers[model.version, key] = found.body
            return found


def status_of(service: Service) -> Json:
    """What is on disk, what the model knows, and what waits."""
    model, study, store = service.model, service.machine.study, service.store
    return {
        "events": study.events_,
        "offset": store.offset,
        "lines": study.lines_,
        "dropped": study.dropped_,
        "left_out": study.left_out_,
        "columns": study.frame.needed,
        "window": window_words(study.frame.window),
        "writable": not store.broken,
        "trouble": store.broken or service.trouble,
        "queued": service.queued,
        "unsaved_bytes": store.unsaved,
        "running_seconds": round(service.clock, 3),
        "model": None if model is None else about(model),
        "lag": study.events_ - (0 if model is None else model.events),
        "why_no_model": service.why_not if model is None else "",
        "versions": examples.versions(),
    }


def document(found: Json, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON."""
    body = json.dumps(found, separators=(",", ":"), allow_nan=False).encode()
    return Response(body, status, headers, "application/json")


def refusal(refused: Refused) -> Response:
    """An answer that says why not."""
    retry = {"Retry-After": str(refused.retry_after)} if refused.retry_after else {}
    return document({"error": refused.reason}, refused.status, retry)


def _retry_marks(request: Request) -> tuple[str, int, str]:
    """The source and the sequence of a post, and its key, where they are given."""
    source, number = (request.query_params.get(name, "") for name in ("source", "sequence"))
    key = request.headers.get("idempotency-key", "")
    if bool(source) != bool(number):
        raise BadBodyError(422, "source and sequence belong together: give both or none.")
    if len(source) > MOST_SOURCE_LETTERS or len(key) > MOST_KEY_LETTERS:
        raise BadBodyError(
            422,
            f"source must have at most {MOST_SOURCE_LETTERS} characters and Idempotency-Key "
            f"{MOST_KEY_LETTERS}.",
        )
    if not number:
        return "", -1, key
    if not (number.isascii() and number.isdigit()) or int(number[:20]) >= MOST_SEQUENCE:
        raise BadBodyError(422, f"sequence must be a whole number from 0, got {number[:40]!r}.")
    return source, int(number), key


def router_of(service: Service) -> APIRouter:
    """The addresses of a service."""
    routes, router = Routes(service), APIRouter()
    router.add_api_route("/v1/events", routes.post_events, methods=["POST"], **examples.EVENTS)
    router.add_api_route("/v1/rate", routes.rate, **examples.RATE)
    router.add_api_route("/v1/expect", routes.expect, **examples.EXPECT)
    router.add_api_route(
        "/v1/expect", routes.expect_regions, methods=["POST"], **examples.EXPECT_REGIONS
    )
    router.add_api_route("/v1/peaks", routes.peaks, **examples.PEAKS)
    router.add_api_route("/v1/status", routes.status, **examples.STATUS)
    router.add_api_route(
        "/v1/stream", routes.stream, response_class=NewsResponse, **examples.STREAM
    )
    router.add_api_route("/healthz", routes.healthz)
    router.add_api_route("/readyz", routes.readyz)
    return router
