"""The output of a running stream: JSON, sentences, or a live picture."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, Self

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from hplus._checks import Floats
from hplus.cli.writing import json_text
from hplus.studies.previews import Preview
from hplus.studies.stream_facts import left_out_of, rate_words_of
from hplus.studies.streams import StreamStudy
from hplus.wording import count, counted

BARS, SHADES = "▁▂▃▄▅▆▇█", " ░▒▓█"
MAP_COLUMNS, MAP_ROWS, MAX_BARS = 30, 10, 60
"""Size of a map, and of a line of bars, in characters."""

REFRESH = 0.25
"""Seconds from one picture to the next."""


class View(AbstractContextManager["View"]):
    """Shows the state of a stream: abstract."""

    def show(self, study: StreamStudy, preview: Preview, loss: float) -> None:
        """A snapshot was saved."""
        raise NotImplementedError

    def tick(self, study: StreamStudy) -> None:
        """Some time has passed."""

    def __exit__(self, *_: Any) -> None:
        """Nothing is held."""


def view_of(as_json: bool, *, safe: bool) -> View:
    """JSON if asked for, a picture on a terminal, else sentences; `safe` if snapshots are saved."""
    if as_json:
        return Objects()
    return Picture(safe) if sys.stdout.isatty() else Words(safe)


def facts(study: StreamStudy, loss: float) -> dict[str, Any]:
    """The state of a stream, as plain data."""
    return {
        "offset": study.offset_,
        "lines": study.lines_,
        "events": study.events_,
        "dropped": sum(study.dropped_.values()),
        "left_out": sum(left_out_of(study).values()),
        study.kept_in: study.atoms,
        "rate": study.rate,
        "loss": loss,
    }


class Objects(View):
    """A JSON object per line."""

    def show(self, study: StreamStudy, preview: Preview, loss: float) -> None:
        sys.stdout.write(json_text(facts(study, loss), None) + "\n")
        sys.stdout.flush()


class Words(View):
    """A sentence per line."""

    def __init__(self, safe: bool) -> None:
        self._end = "saved up to byte" if safe else "read up to byte"

    def show(self, study: StreamStudy, preview: Preview, loss: float) -> None:
        left = sum(left_out_of(study).values())
        said = [counted(study.events_), f"{count(sum(study.dropped_.values()))} dropped",
                *([f"{count(left)} left out"] if left else []),
                counted(study.atoms, study.kept_in[:-1]),
                f"rate {rate_words_of(study)}"]  # fmt: skip
        said += [f"loss {loss:.4f}"] if np.isfinite(loss) else []
        said += [f"{self._end} {study.offset_}"]
        sys.stdout.write(", ".join(said) + "\n")
        sys.stdout.flush()


class Picture(View):
    """A panel on the terminal: figures, their course, and where the rate is high."""

    def __init__(self, safe: bool) -> None:
        self._safe, self._console = safe, Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._speeds: deque[float] = deque(maxlen=MAX_BARS)
        self._losses: deque[float] = deque(maxlen=MAX_BARS)
        self._last, self._map, self._offset = (monotonic(), -1), Text(""), 0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._live.stop()

    def show(self, study: StreamStudy, preview: Preview, loss: float) -> None:
        if np.isfinite(loss):
            self._losses.append(loss)
        self._map, self._offset = Text("\n".join(picture(preview.shape))), study.offset_
        self._draw(study)

    def tick(self, study: StreamStudy) -> None:
        now, (then, events) = monotonic(), self._last
        if events < 0:
            self._last = now, study.events_
        elif now - then >= REFRESH:
            self._speeds.append((study.events_ - events) / (now - then))
            self._last = now, study.events_
            self._draw(study)

    def _draw(self, study: StreamStudy) -> None:
        speeds, losses = list(self._speeds), list(self._losses)
        speed = float(np.mean(speeds[-8:])) if speeds else 0.0
        pairs = {
            "events": f"{count(study.events_)}, {count(speed)} per second",
            "rate": rate_words_of(study),
            **({} if study.by_trees else {"atoms": count(study.atoms)}),
            "loss": f"{losses[-1]:.4f}" if losses else "",
            "dropped": ", ".join(f"{count(n)} {why}" for why, n in study.dropped_.items()) or "0",
            "saved" if self._safe else "read": f"{count(self._offset)} bytes",
        }
        table = Grid.grid(padding=(0, 2))
        for name, said in pairs.items():
            table.add_row(Text(name, style="dim"), Text(said))
        table.add_row(Text("per second", style="dim"), Text(bars(np.array(speeds[-MAP_COLUMNS:]))))
        table.add_row(Text("loss", style="dim"), Text(bars(np.array(losses[-MAP_COLUMNS:]))))
        if study.frame.window.dimension == 1:
            inside: Any = Group(table, self._map)
        else:
            inside = Grid.grid(padding=(0, 3))
            inside.add_row(table, self._map)
        title = f"hplus stream, {study.method}"
        self._live.update(Panel(inside, title=title, expand=False), refresh=True)


def picture(shape: Floats) -> list[str]:
    """A rate at the nodes of a grid in characters: bars on an axis, else shades on a map."""
    if shape.ndim == 1:
        return [bars(shape[_places(len(shape), MAX_BARS)])]
    plane = shape if shape.ndim == 2 else np.nan_to_num(shape).mean(axis=2)
    across, up = _places(plane.shape[0], MAP_COLUMNS), _places(plane.shape[1], MAP_ROWS)
    cells = np.nan_to_num(plane[np.ix_(across, up[::-1])].T)
    steps = np.sqrt(cells / max(cells.max(), 1e-300)) * (len(SHADES) - 1)
    return ["".join(SHADES[round(step)] for step in row) for row in steps]


def bars(values: Floats) -> str:
    """Numbers as bars, from the lowest (or 0) to the highest."""
    if len(values) == 0:
        return ""
    low, high = min(float(np.nanmin(values)), 0.0), float(np.nanmax(values))
    steps = (np.nan_to_num(values) - low) / max(high - low, 1e-300) * (len(BARS) - 1)
    return "".join(BARS[round(step)] for step in np.clip(steps, 0, len(BARS) - 1).tolist())


def _places(n: int, most: int) -> list[int]:
    """At most `most` of n places, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(int).tolist()
