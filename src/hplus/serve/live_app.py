"""The application of a service with its page and alerts."""

from __future__ import annotations

import os

from fastapi import FastAPI

from hplus.serve.alert_log import AlertLog
from hplus.serve.app import create_app
from hplus.serve.disk import FolderDisk
from hplus.serve.guard import PUBLIC
from hplus.serve.kept_watch import KeptWatch
from hplus.serve.live_watch import LiveWatch
from hplus.serve.page_routes import add_page, page_files
from hplus.serve.service import Service
from hplus.serve.tokens import NO_TOKENS, Tokens
from hplus.serve.webhook import Webhook


def watch_of(
    service: Service,
    folder: str | os.PathLike[str],
    alarms_per_week: float = 1.0,
    webhook: str = "",
    secret: str = "",
) -> LiveWatch:
    """What watches the events of a service; its alerts are kept in a folder.

    `webhook` is an address to which alerts are posted, signed with `secret`.
    """
    disk = FolderDisk(folder)
    log = AlertLog(disk, keep_outbox=bool(webhook))
    sender = Webhook(log, webhook, secret) if webhook else None
    return LiveWatch(service, log, alarms_per_week, sender, KeptWatch(disk))


def live_app(watch: LiveWatch, tokens: Tokens = NO_TOKENS, title: str = "") -> FastAPI:
    """The application of a service, with the live page at / and its alerts.

    The files of the page need no token: they hold no data.
    """
    app = create_app(watch.service, tokens, (*PUBLIC, *page_files()))
    add_page(app, watch, title)
    return app
