"""A service that runs in threads of the test, and a client that says exactly what it sends."""

import http.client
import json
import re
import socket
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

from hplus import Box
from hplus.serve.app import create_app, server_of
from hplus.serve.opening import opened_store
from hplus.serve.service import Service
from hplus.serve.tokens import NO_TOKENS
from hplus.studies.frames import Frame
from hplus.studies.streams import StreamStudy

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

FRAME = Frame(("x", "y"), Box((0, 0), (1, 1)))
JSON_LINES = "application/x-ndjson"


class Client:
    """Requests to a service, each on a connection of its own."""

    def __init__(self, service, port):
        self.service, self.port = service, port

    def ask(self, method, path, body=None, **headers):
        """The status, the body from JSON if it is, and the headers of an answer."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            data = answer.read()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(data) if is_json else data.decode(), answer.headers

    def post(self, body, query="", **headers):
        """The status and the answer to a post of events."""
        headers.setdefault("Content_Type", JSON_LINES)
        return self.ask("POST", f"/v1/events{query}", body, **headers)[:2]

    def send(self, data, seconds=5.0):
        """All that is answered to raw bytes, until the connection is closed."""
        with closing(self.connected(seconds)) as connection:
            connection.sendall(data)
            return read_all(connection)

    def connected(self, seconds=5.0):
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)


def read_all(connection):
    """What comes on a connection until it is closed, or nothing comes for long."""
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except (TimeoutError, ConnectionResetError):
        pass
    return found


def statuses(data):
    """The statuses of answers in raw bytes."""
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


def until_text(connection, text):
    """What comes on a connection until some text does."""
    found = b""
    while text not in found:
        data = connection.recv(4096)
        assert data, found
        found += data
    return found


def until(happens, seconds=20.0):
    """Wait until something happens."""
    end = monotonic() + seconds
    while not (found := happens()):
        assert monotonic() < end, "it did not happen"
        sleep(0.01)
    return found


@contextmanager
def running(folder, tokens=NO_TOKENS, learns=False, frame=FRAME, **settings):
    """A client of a service that runs on a folder."""
    with opened_store(folder, StreamStudy(frame, **settings).begin()) as store:
        service = Service(store, 0.05, 0.3, learns)
        server = server_of(create_app(service, tokens))
        listening = socket.create_server(("127.0.0.1", 0))
        service.start()
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            until(lambda: server.started)
            yield Client(service, listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
            service.stop()
