"""What the description of the service (OpenAPI) shows for each address, and versions."""

from __future__ import annotations

import sys

from hplus.storage.files import Json

MODEL: Json = {"version": 12, "events": 48210, "offset": 1203344, "at": "2026-11-17T10:20:00Z"}

REJECTED: Json = {"accepted": 1, "rejected": [{"line": 2, "reason": "outside the window"}],
                  "offset": 1203344}  # fmt: skip

COUNT: Json = {"region": "all", "for": "1d", "expected": 120.5, "low": 101, "high": 141}


def _answer(example: Json, said: str) -> Json:
    shown = {"application/json": {"example": example}}
    return {"200": {"description": said, "content": shown}}


def _error(said: str) -> Json:
    shown = {"application/json": {"example": {"error": said}}}
    return {"description": said, "content": shown}


REFUSED: Json = {
    "401": _error("a token is needed: send Authorization: Bearer TOKEN."),
    "403": _error("this token is not for read: use another one."),
    "422": _error("for must have at most 24 lengths, got 30."),
    "503": _error("there is no model yet."),
}
"""How a question may be refused."""

EVENTS: Json = {
    "responses": _answer(REJECTED, "The events are on disk.")
    | REFUSED
    | {
        "413": _error("a body must have at most 8388608 bytes: send several posts."),
        "415": _error("Content-Type must be application/json, application/x-ndjson or text/csv."),
        "429": _error("too many posts wait: try again later."),
        "507": _error("the disk is full: nothing was taken."),
    },
    "openapi_extra": {
        "parameters": [
            {"name": "source", "in": "query", "schema": {"type": "string"},
             "description": "Who sends; with sequence, a retry is never counted twice."},
            {"name": "sequence", "in": "query", "schema": {"type": "integer"},
             "description": "The number of the post among those of its source, from 0."},
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"},
             "description": "The same for all retries of a post; remembered for 24 hours."},
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/x-ndjson": {"example": '{"x": 0.31, "y": 0.8}\n{"x": 2, "y": 0.1}\n'},
                "application/json": {"example": [{"x": 0.31, "y": 0.8}]},
                "text/csv": {"example": "x,y\n0.31,0.8\n"},
            },
        },
    },
}  # fmt: skip

RATE: Json = {
    "responses": _answer(
        {"model": MODEL, "rates": "events per unit of area per day", "level": 0.9,
         "points": [{"x": "0.31", "y": "0.8", "rate": 812.4, "low": 790.1, "high": 835.9}]},
        "Rates with intervals.",
    ) | REFUSED,
}  # fmt: skip

EXPECT: Json = {
    "responses": _answer({"model": MODEL, "level": 0.9, "counts": [COUNT]}, "Counts to expect.")
    | REFUSED
}

EXPECT_REGIONS: Json = EXPECT | {
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/geo+json": {
                    "example": {
                        "type": "Polygon",
                        "coordinates": [[[0, 0], [0.5, 0], [0.5, 0.5], [0, 0]]],
                    }
                }
            },
        }
    }
}

PEAKS: Json = {
    "responses": _answer(
        {"model": MODEL, "level": 0.9, "per": "day",
         "peaks": [{"x_low": 0.3, "x_high": 0.33, "y_low": 0.78, "y_high": 0.81, "expected": 3.1,
                    "low": 1, "high": 6, "times_average": 9.4}]},
        "The busiest cells.",
    ) | REFUSED,
}  # fmt: skip

STATUS: Json = {
    "responses": _answer(
        {"events": 48260, "offset": 1204800, "writable": True, "lag": 50, "model": MODEL},
        "What is on disk, and what the model knows.",
    )
    | {"401": REFUSED["401"], "403": REFUSED["403"]},
}

STREAM: Json = {
    "responses": {
        "200": {
            "description": "Server-sent events.",
            "content": {
                "text/event-stream": {
                    "example": 'id: 7\nevent: events\ndata: {"accepted":100,"events":48260}\n\n'
                }
            },
        },
        "401": REFUSED["401"],
        "403": REFUSED["403"],
    },
}


def versions() -> dict[str, str]:
    """The versions of what answers."""
    names = ("hplus", "numpy", "fastapi", "uvicorn")
    return {n: str(sys.modules[n].__version__) for n in names if n in sys.modules}
