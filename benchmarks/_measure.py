"""Shared by the benchmarks: options, timing, memory, and a table whose bounds are checked."""

from __future__ import annotations

import argparse
import resource
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def parser(about: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark takes, so that one command can run them all."""
    found = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    found.add_argument("--data", type=Path, help="folder with the data sets that are not bundled")
    found.add_argument("--quick", action="store_true", help="run only the parts that take seconds")
    return found


def best(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The shortest CPU time of `repeats` runs, in seconds, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return min(times), result


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def extra_megabytes(work: Callable[[], Any]) -> float:
    """The peak memory of `work`, beyond what was in use before."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


MISSED: list[str] = []


def row(what: str, figure: float, most: float = np.inf, least: float = -np.inf) -> None:
    """Print a measurement with its bounds, if any, and remember it if it misses one."""
    bounds = {f"at least {least:g}": least, f"at most {most:g}": most}
    shown = " and ".join(text for text, bound in bounds.items() if np.isfinite(bound))
    number = f"{figure:,}" if isinstance(figure, int) else f"{figure:.3g}"
    print(f"| {what} | {number} | {shown or '-'} |", flush=True)
    if not least <= figure <= most:
        MISSED.append(what)


def header() -> None:
    print("| measurement | value | bound |\n|---|---|---|")


def finish() -> None:
    """Exit with code 1 if a measurement missed its bound."""
    if MISSED:
        raise SystemExit("Missed: " + "; ".join(MISSED))
