"""AlertLog: alerts, who has seen them and whom they were sent to, safe on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import RLock
from typing import final

from hplus.serve.disk import Disk, replace_whole, write_all
from hplus.storage.files import Json

ALERTS_FILE = "alerts.ndjson"
"""One line for each thing that happened to an alert."""

MOST_KEPT_ALERTS = 2000
"""Alerts that are kept when the file is written anew; older ones are dropped if they ended."""

OPENED, ENDED = "opened", "ended"
"""What happens to an alert, and is told to a webhook."""


@final
class AlertLog:
    """Alerts by their id, appended to a file that is synced before anyone is told.

    A last line that was not written to its end is left out. Every method may be called from any
    thread.
    """

    def __init__(self, disk: Disk, keep_outbox: bool = False) -> None:
        self._disk, self._lock, self.keep_outbox = disk, RLock(), keep_outbox
        self.alerts: dict[str, Json] = {}
        self.outbox: dict[str, Json] = {}
        if ALERTS_FILE in disk.names():
            for line in disk.read(ALERTS_FILE).split(b"\n")[:-1]:
                self._apply(json.loads(line))
        self._write_anew()
        self._handle = disk.open(ALERTS_FILE)

    def close(self) -> None:
        """Give up the file."""
        self._disk.close(self._handle)

    def newest(self, most: int) -> list[Json]:
        """The alerts, the newest first."""
        with self._lock:
            return [dict(alert) for alert in list(self.alerts.values())[: -most - 1 : -1]]

    def open_ids(self) -> list[str]:
        """Those that have not ended."""
        with self._lock:
            return [name for name, alert in self.alerts.items() if alert["end"] is None]

    def tell(self, alert: Json) -> bool:
        """Note an alert as it is now; was it new, or did it end?"""
        with self._lock:
            known = self.alerts.get(alert["id"])
            what = OPENED if known is None else ENDED if alert["end"] is not None else ""
            record: Json = {"alert": alert}
            if what and self.keep_outbox:
                record["message"] = f"{alert['id']}-{what}"
            self._append(record)
            return bool(what)

    def acknowledge(self, name: str, at: str) -> Json | None:
        """Note that someone has seen an alert; None if there is none of this id."""
        with self._lock:
            if name not in self.alerts:
                return None
            if self.alerts[name].get("acknowledged") is None:
                self._append({"acknowledged": name, "at": at})
            return dict(self.alerts[name])

    def waiting(self) -> tuple[str, Json] | None:
        """The oldest message that is to be sent, with its id."""
        with self._lock:
            return next(iter(self.outbox.items()), None)

    def delivered(self, message: str) -> None:
        """Note that a message has arrived."""
        with self._lock:
            self._append({"delivered": message})

    def _append(self, record: Json) -> None:
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        write_all(self._disk, self._handle, memoryview(line))
        self._disk.sync(self._handle)
        self._apply(record)

    def _apply(self, record: Json) -> None:
        if "alert" in record:
            alert = record["alert"]
            seen = self.alerts.get(alert["id"], {}).get("acknowledged")
            self.alerts[alert["id"]] = {**alert, "acknowledged": seen}
            if "message" in record:
                what = record["message"].rpartition("-")[2]
                self.outbox[record["message"]] = {"event": f"alert.{what}", "alert": alert}
        elif "acknowledged" in record:
            self.alerts[record["acknowledged"]]["acknowledged"] = record["at"]
        else:
            self.outbox.pop(record["delivered"], None)

    def _write_anew(self) -> None:
        """Replace the file with what is known, without what no longer matters."""
        ended = [name for name, alert in self.alerts.items() if alert["end"] is not None]
        for name in ended[: max(len(self.alerts) - MOST_KEPT_ALERTS, 0)]:
            del self.alerts[name]
        replace_whole(self._disk, ALERTS_FILE, map(memoryview, self._lines()))

    def _lines(self) -> list[bytes]:
        def line(record: Json) -> bytes:
            return json.dumps(record, separators=(",", ":")).encode() + b"\n"

        told = [line({"alert": alert}) for alert in self.alerts.values()]
        seen = [
            line({"acknowledged": name, "at": alert["acknowledged"]})
            for name, alert in self.alerts.items()
            if alert["acknowledged"] is not None
        ]
        return [*told, *seen, *self._outbox_lines(line)]

    def _outbox_lines(self, line: Callable[[Json], bytes]) -> list[bytes]:
        """Messages as they were, then the alerts as they are now, if they are still kept."""
        found: list[bytes] = []
        for message, body in self.outbox.items():
            found.append(line({"alert": body["alert"], "message": message}))
            if (now := self.alerts.get(body["alert"]["id"])) is not None:
                found.append(line({"alert": now}))
        return found
