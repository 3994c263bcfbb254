"""Memory of a service as the number of distinct places grows, up to its bound.

    python benchmarks/serve_places.py [--quick]

What hplus serve keeps and learns, without its server: events at ever new places, each of which
comes twice, and after every million a model with its trees. The former model is kept until the
next one is ready, as in the service.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from _measure import finish, header, parser, row

from hplus import Box
from hplus.serve.long_running import give_back_large_blocks
from hplus.serve.posted_study import StudyMachine
from hplus.serve.ready_trees import make_ready
from hplus.studies.event_study import EventStudy
from hplus.studies.frames import Frame
from hplus.studies.stream_answers import answering
from hplus.studies.streams import StreamStudy

PART, PARTS, QUICK_PART = 1_000_000, 12, 20_000
"""New places before each model, how many models, and new places with --quick."""

POST = 10_000
"""Events of a post."""


def most_megabytes() -> float:
    """The most memory that the process has held."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def post(study: StreamStudy, places: int, seed: int) -> None:
    """Events at new places, each of them twice."""
    X = np.clip(np.random.default_rng(seed).normal(0.5, 0.15, (places, 2)), 0.0, 1.0)
    for i in (*range(0, places, POST), *range(0, places, POST)):
        study.learn_points(X[i : i + POST].copy(), X[i : i + POST, 1].copy())
        study.events_ += POST


def main() -> None:
    quick = parser(__doc__).parse_args().quick
    give_back_large_blocks()
    machine = StudyMachine(StreamStudy(Frame(("x", "y"), Box((0, 0), (1, 1)))).begin())
    models = list[EventStudy]()
    header()
    for part in range(2 if quick else PARTS):
        post(machine.study, QUICK_PART if quick else PART, part)
        began = time.perf_counter()
        model = answering(machine.frozen().study)
        make_ready(model)
        took = time.perf_counter() - began
        models[:] = [model]
        cells = len(model.model_.rate_.statistic.codes)
        row(f"{machine.study.events_:,} events, {cells:,} cells: seconds to learn", took)
        row(f"{machine.study.events_:,} events: MB at the most so far", most_megabytes(), most=2048)
    finish()


if __name__ == "__main__":
    main()
