"""The work of hplus serve: open the state, start the service, and run the server until it ends."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from hplus.cli.base import CommandError, note
from hplus.cli.fit import plan_arguments
from hplus.cli.stream_run import NO_END, stop_signals
from hplus.cli.writing import json_text
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition
from hplus.files.extras import needed
from hplus.storage.files import Json
from hplus.storage.slots import SLOTS, DamagedError, load_newest
from hplus.studies.frames import Frame
from hplus.studies.plans import plan
from hplus.studies.spans import moment
from hplus.studies.streams import StreamStudy
from hplus.wording import count

if TYPE_CHECKING:
    from hplus.serve.live_watch import LiveWatch
    from hplus.serve.service import Service
    from hplus.serve.store import Store
    from hplus.serve.tokens import Tokens

PACKAGES = ("fastapi", "uvicorn", "httptools", "prometheus_client")


def run_service(options: Json) -> None:
    """Serve until a signal comes; what was posted is then in a snapshot."""
    for package in PACKAGES:
        needed(package, "serve", "hplus serve")
    from hplus.serve.opening import SettingsError, opened_store
    from hplus.serve.segments import LogError
    from hplus.serve.tokens import read_tokens

    tokens = read_tokens(options["token_file"])
    if not tokens and not is_loopback(options["host"]):
        raise CommandError(
            f"--host {options['host']} lets other machines in, which needs tokens: give "
            "--token-file, or set HPLUS_WRITE_TOKEN and HPLUS_READ_TOKEN.",
            2,
        )
    try:
        with opened_store(options["state"], asked_study(options)) as store:
            _serve(store, tokens, options)
    except SettingsError as error:
        raise CommandError(str(error), 2) from error
    except (DamagedError, LogError) as error:
        raise CommandError(str(error), 4) from error


def _serve(store: Store, tokens: Tokens, options: Json) -> None:
    from hplus.serve.app import server_of
    from hplus.serve.live_app import live_app, watch_of
    from hplus.serve.service import Service

    service = Service(store, options["refresh"], options["snapshot"])
    secret = os.environ.get("HPLUS_WEBHOOK_SECRET", "")
    webhook = options["webhook"] or ""
    watch = watch_of(service, options["state"], options["alarms_per_week"], webhook, secret)
    listening = listener(options["host"], options["port"])
    server = server_of(live_app(watch, tokens, options["title"]))
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if options["as_json"]:
        known = {"state": options["state"], "events": service.events, "address": address}
        click.echo(json_text(known, indent=None))
    note(f"{options['state']} holds {count(service.events)} events. Listening on {address}.")
    with at_work(service, watch):
        server.run([listening])
    note(f"Stopped. {options['state']} holds {count(service.events)} events.")


@contextmanager
def at_work(service: Service, watch: LiveWatch) -> Iterator[None]:
    """A service and its watch in a process that is prepared for weeks, until a signal comes."""
    from hplus.serve.long_running import prepare_process

    prepare_process(service)
    service.start()
    watch.start()
    with stop_signals():  # which the server raises again when it has ended
        try:
            yield
        finally:
            watch.stop()
            service.stop()


def listener(host: str, port: int) -> socket.socket:
    """A socket that listens on an address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise CommandError(
            f"cannot listen on {host} port {port}: {(error.strerror or str(error)).lower()}. Give "
            "another --port or --host.",
            5,
        ) from error


def asked_study(options: Json) -> StreamStudy:
    """A new study as the options say; the start of observation is that of the state, or today."""
    words = plan_arguments(options)
    kept = _kept_frame(options["state"])
    if words["time"] and words["start"] is None:
        clock = None if kept is None else kept.clock
        words["start"] = str(datetime.now(UTC).date()) if clock is None else moment(clock.start)
    if words["cycle"] and words["end"] is None:
        words["end"] = NO_END
    if words["time"] and words["end"] is None:
        raise CommandError("--time needs --cycle day, --cycle week or --to, its last day.", 2)
    if words["columns"] and not (words["window"] or words["within"]):
        raise CommandError(
            "Missing --window or --within: where events can occur is never inferred.", 2
        )
    where = Condition(words["where"]).columns if words["where"] else ()
    names = [*words["columns"], *([words["time"]] if words["time"] else []), *where]
    table = Table("the posts", list(dict.fromkeys(names)), lambda *_: iter(()))
    return StreamStudy(plan(table, **words), "tree", None, options["forget"]).begin()


def _kept_frame(folder: str) -> Frame | None:
    """The frame of the study that is kept in a folder, if there is one that can be read."""
    from pathlib import Path

    if not any((Path(folder) / slot).exists() for slot in SLOTS):
        return None
    try:
        frame: Frame = load_newest(folder).frame
    except (OSError, ValueError):
        return None  # which is said when it is opened
    return frame


def is_loopback(host: str) -> bool:
    """Does an address lead to this machine alone?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
