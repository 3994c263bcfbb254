"""A headless Chromium that is told what to do through a pipe, by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic, sleep
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
KEYS = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
        "Home": 36, "End": 35, " ": 32}  # fmt: skip


AS_THREE_AND_FOUR = """
import os, sys
from fcntl import F_DUPFD, fcntl
pair = [fcntl(int(number), F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(pair[0], 3)
os.dup2(pair[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Runs a command whose file descriptors 3 and 4 are those given, which Chromium talks through."""


def chromium() -> str | None:
    """The path of a Chromium, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a headless browser; `problems` and `requests` are what it has seen so far."""

    def __init__(self, width: int = 1280, height: int = 900, scale: float = 1.0) -> None:
        self._folder = tempfile.mkdtemp(prefix="hplus-browser-")
        (inner, self._to), (self._from, outer) = os.pipe(), os.pipe()
        words = [
            chromium() or "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
            "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", f"--user-data-dir={self._folder}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", AS_THREE_AND_FOUR, str(inner), str(outer), *words],
            pass_fds=(inner, outer), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(inner)
        os.close(outer)
        self._number, self._answers = 0, Queue[dict[str, Any]]()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._session = ""
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        found = self.tell("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.tell(f"{domain}.enable")
        self.resize(width, height, scale)

    def tell(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        end = monotonic() + 60.0
        while monotonic() < end:
            with suppress(Empty):
                found = self._answers.get(timeout=1.0)
                if found["id"] == number:
                    if "error" in found:
                        raise RuntimeError(f"{method}: {found['error']}")
                    return dict(found.get("result", {}))
        raise TimeoutError(method)

    def open(self, url: str) -> None:
        """Go to an address."""
        self.tell("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """What a script evaluates to."""
        found = self.tell(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = 20.0) -> float:
        """Seconds until a script evaluates to something true."""
        began = monotonic()
        while monotonic() < began + seconds:
            if self.run(script):
                return monotonic() - began
            sleep(0.02)
        raise TimeoutError(script)

    def press(self, key: str, times: int = 1) -> None:
        """Press a key."""
        known = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0].upper()))}
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        for _ in range(times):
            self.tell("Input.dispatchKeyEvent", type="keyDown", **known, **text)
            self.tell("Input.dispatchKeyEvent", type="keyUp", **known)

    def type(self, text: str) -> None:
        """Type text into what has the focus."""
        self.tell("Input.insertText", text=text)

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        """Be a screen of another size."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=width < 600)  # fmt: skip

    def prefer(self, theme: str) -> None:
        """Prefer "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.tell("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: str | os.PathLike[str], whole: bool = False) -> None:
        """Save a screenshot."""
        options: dict[str, Any] = {"captureBeyondViewport": whole}
        if whole:
            size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
            sides = {name: size[name] for name in ("width", "height")}
            options["clip"] = {"x": 0, "y": 0, "scale": 1, **sides}
        data = self.tell("Page.captureScreenshot", format="png", **options)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """End the browser."""
        with suppress(OSError, TimeoutError, RuntimeError):
            self._session = ""
            self.tell("Browser.close")
        self._process.kill()
        self._process.wait()
        self._reader.join()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self) -> None:
        rest = b""
        while data := os.read(self._from, 2**20):
            *whole, rest = (rest + data).split(b"\0")
            for text in whole:
                self._hear(json.loads(text))

    def _hear(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if "id" in message:
            self._answers.put(message)
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning"}:
            self.problems.append(json.dumps(params["args"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
