"""The application of a service: its addresses, behind the guard, with errors in one sentence."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import socket

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import hplus
from hplus.serve.bodies import GoneError
from hplus.serve.guard import PUBLIC, Guard
from hplus.serve.metrics import Metrics
from hplus.serve.parsing import BadBodyError
from hplus.serve.protocol import GuardedProtocol
from hplus.serve.routes import document, refusal, router_of
from hplus.serve.service import Service
from hplus.serve.tokens import NO_TOKENS, Tokens

KEEP_ALIVE_SECONDS, GRACE_SECONDS = 20, 3
"""How long an idle connection stays open, and answers may take when the service stops."""


def create_app(
    service: Service,
    tokens: Tokens = NO_TOKENS,
    public: tuple[str, ...] = PUBLIC,
) -> FastAPI:
    """The application of a service; more addresses can be added with `include_router`.

    `public` are paths that need no token. `app.state.service` is the service.
    """

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.subscribers.begin(asyncio.get_running_loop(), int(time.time() * 1000))
        yield

    app = FastAPI(
        title="hplus serve",
        version=hplus.__version__,
        summary="Events in, rates out.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=running,
    )
    app.state.service, metrics = service, Metrics(service)
    app.include_router(router_of(service))

    async def read_metrics() -> Response:
        """Metrics for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_api_route("/metrics", read_metrics)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(Guard, tokens=tokens, metrics=metrics, public=public)
    return app


async def _bad_body(_: Request, error: Exception) -> Response:
    assert isinstance(error, BadBodyError)
    return refusal(error.refused)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return document({"error": f"{first['loc'][-1]}: {first['msg']}."}, 422)


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return document({"error": f"{error.detail}."}, error.status_code, dict(error.headers or {}))


async def _gone(_: Request, error: Exception) -> Response:
    return Response(status_code=400)


async def _bug(_: Request, error: Exception) -> Response:
    return document({"error": "this is a bug in hplus: the log of the service says more."}, 500)


HANDLERS = {
    BadBodyError: _bad_body,
    GoneError: _gone,
    RequestValidationError: _invalid,
    HTTPException: _http,
    Exception: _bug,
}
"""How errors are answered, without traces."""


class HplusServer(uvicorn.Server):
    """A server that ends streams before it waits for connections to end."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop taking connections, and end those that are open."""
        self.service.subscribers.close()
        await super().shutdown(sockets)


def server_of(app: FastAPI) -> HplusServer:
    """A server for an application, with limits; run it with a socket that listens."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return HplusServer(config, app.state.service)
