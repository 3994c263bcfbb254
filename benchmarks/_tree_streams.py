"""Streams by trees: the batch fit from a stream, events and lines per second, memory, answers."""

from __future__ import annotations

import csv
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from _measure import best, peak_megabytes, row

from hplus import Box, Intensity, StreamingIntensity

SQUARE = Box((0, 0), (1, 1))
LINES = 1_000_000
FRAME = ["--columns", "lon,lat", "--window=4,44,16,56"]
TIMES = ["--time", "at", "--from", "2026-01-05", "--cycle", "week", "--forget", "8w"]

QUESTIONS: dict[str, list[str]] = {
    "info": [],
    "expect": ["--grid", "10x10", "--for", "7d"],
    "predict": ["points.csv"],
    "sample": ["--for", "1h"],
    "check": ["points.csv"],
    "report": ["-o", "page.html"],
}
"""What a running stream is asked."""


def cities(n: int, seed: int = 0) -> np.ndarray:
    """Events in 200 cities, of a width of 0.02 degrees."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(7).uniform([5.0, 45.0], [15.0, 55.0], (200, 2))
    return centers[rng.integers(200, size=n)] + rng.normal(0.0, 0.02, (n, 2))


def write_lines(path: Path, n: int) -> None:
    """A CSV of events in time order."""
    seconds = np.sort(np.random.default_rng(1).integers(0, 200 * 86_400, n))
    times = (np.datetime64("2026-01-05T00:00:00") + seconds.astype("timedelta64[s]")).astype(str)
    rows = zip(cities(n).tolist(), times.tolist(), strict=True)
    with open(path, "w") as file:
        file.write("id,lon,lat,at\n")
        file.writelines(f"{i},{x:.6f},{y:.6f},{at}\n" for i, ((x, y), at) in enumerate(rows))


def learning() -> None:
    """Events per second, one by one and in a chunk."""
    X = np.random.default_rng(0).beta(2.0, 5.0, (200_000, 2))
    model = StreamingIntensity(SQUARE, method="tree").partial_fit(X)
    seconds, _ = best(lambda: [model.learn_one(x) for x in X[:50_000]], 3)
    row("trees: learn_one, events/s", 50_000 / seconds, least=60e3)
    seconds, _ = best(lambda: model.partial_fit(X), 3)
    row("trees: partial_fit, events/s", len(X) / seconds)
    times = np.linspace(0.0, 100.0, len(X))
    fading = StreamingIntensity(SQUARE, method="tree", forget=8.0)
    seconds, _ = best(lambda: fading.partial_fit(X, times=times), 3)
    row("trees with a half-life: partial_fit, events/s", len(X) / seconds)


def ten_million() -> tuple[float, float, int]:
    """Ten million events at distinct places: CPU seconds, peak memory in MB, cells."""
    model, start, before = StreamingIntensity(SQUARE, method="tree"), time.process_time(), 0.0
    for part in range(20):
        X = np.random.default_rng(part).beta(2.0, 5.0, (500_000, 2))
        before = before or peak_megabytes()
        model.partial_fit(X)
    cells = model.n_atoms_
    return time.process_time() - start, peak_megabytes() - before, cells


def stream_words(state: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "hplus", "stream", "-", *FRAME, *more, "--state", str(state)]


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lines_per_second(folder: Path) -> None:
    """Lines of CSV from a pipe, without the start of the process."""
    path = folder / "lines.csv"
    write_lines(path, LINES)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    for name, more in (("places", []), ("places and times, forgetting", TIMES)):
        seconds = []
        for lines in (10, LINES):
            text = b"".join(path.read_bytes().splitlines(keepends=True)[: lines + 1])
            times = []
            for repeat in range(3):
                before, state = children_seconds(), folder / f"{name}-{lines}-{repeat}"
                words = stream_words(state, *more)
                subprocess.run(words, input=text, capture_output=True, check=True, env=environment)
                times.append(children_seconds() - before)
            seconds.append(min(times))
        rate = (LINES - 10) / (seconds[1] - seconds[0])
        row(f"hplus stream, {name}: lines/s of CSV from a pipe", rate, least=200e3)


@contextmanager
def running(folder: Path, events: int) -> Iterator[Path]:
    """The state of a stream that has learned from events and waits for more."""
    path, state = folder / "running.csv", folder / "running"
    write_lines(path, events)
    words = [*stream_words(state, *TIMES, "--json"), "--seconds", "0.1"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(path.read_bytes())
        process.stdin.flush()
        while json.loads(process.stdout.readline())["events"] < events:
            pass
        yield state
        assert process.poll() is None, "the stream must still be running"
        process.stdin.close()
        process.stdout.read()


def answers(folder: Path, events: int = 100_000) -> None:
    """CPU seconds of every command on the state of a stream while it runs."""
    write_lines(folder / "points.csv", 1000)
    with running(folder, events) as state:
        for name, more in QUESTIONS.items():
            words = [sys.executable, "-m", "hplus", name, str(state), *more]
            before = children_seconds()
            subprocess.run(words, cwd=folder, capture_output=True, check=True)
            taken = children_seconds() - before
            row(f"a stream of {events:,} events that runs: seconds of hplus {name}", taken)


def read_columns(path: Path, *names: str) -> np.ndarray:
    with gzip.open(path, "rt") as file:
        return np.array([[float(r[n]) for n in names] for r in csv.DictReader(file)])


def real_sets(folder: Path) -> None:
    """Places sorted by longitude and earthquakes in time: the stream and the batch fit."""
    places = read_columns(folder / "places_world_geonames.csv.gz", "lon", "lat")
    quakes = read_columns(folder / "earthquakes_japan_1990_2020.csv.gz", "x_km", "y_km")
    low, high = quakes.min(axis=0) - 1.0, quakes.max(axis=0) + 1.0
    for name, window, X in (
        (
            "places by longitude",
            Box((-180, -90), (180, 90), unit="°"),
            places[np.argsort(places[:, 0])],
        ),
        ("Japan's earthquakes in time", Box(tuple(low), tuple(high)), quakes),
    ):
        held = np.random.default_rng(0).random(len(X)) < 0.2
        batch = Intensity(window, model="tree").fit(X[~held])
        stream = StreamingIntensity(window, method="tree")
        for part in np.array_split(X[~held], 57):
            stream.partial_fit(part)
        scores = stream.score(X[held]), batch.score(X[held])
        row(f"{name}: score of the stream on a fifth held out", scores[0])
        row(f"{name}: difference from the batch fit", abs(scores[0] - scores[1]), most=0.0)


def trees(folder: Path | None, quick: bool, alone: Callable[[Any], Any]) -> None:
    """All rows on streams by trees; `alone` runs work in its own process."""
    learning()
    with TemporaryDirectory() as scratch:
        lines_per_second(Path(scratch))
        if not quick:
            answers(Path(scratch))
    if not quick:
        seconds, extra, cells = alone(ten_million)
        what = f"trees, 10,000,000 events in {seconds:.0f} s, {cells:,} cells: extra memory, MB"
        row(what, extra, most=1000.0)
    if folder is not None and not quick:
        real_sets(folder)
