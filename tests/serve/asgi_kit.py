"""A client that calls an application directly, without a server."""

import asyncio
import json
from types import SimpleNamespace


class AppClient:
    """Requests to an application, each in a loop of its own."""

    def __init__(self, app):
        self.app = app

    def get(self, path, headers=None):
        return self.ask("GET", path, headers)

    def post(self, path, headers=None):
        return self.ask("POST", path, headers)

    def ask(self, method, path, headers=None):
        """The answer: status_code, headers, text and json()."""
        name, _, query = path.partition("?")
        pairs = {"host": "localhost"} | {k.lower(): v for k, v in (headers or {}).items()}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "path": name, "raw_path": name.encode(), "query_string": query.encode(),
            "root_path": "", "scheme": "http", "client": ("127.0.0.1", 1), "server": ("x", 80),
            "headers": [(k.encode(), v.encode()) for k, v in pairs.items()],
        }  # fmt: skip
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        body = b"".join(m.get("body", b"") for m in sent[1:])
        return SimpleNamespace(
            status_code=sent[0]["status"],
            headers={k.decode().lower(): v.decode() for k, v in sent[0]["headers"]},
            text=body.decode(),
            json=lambda: json.loads(body),
        )
