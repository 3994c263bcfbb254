"""Processes killed at random moments: nothing reported as safe is lost, no file is partial.

    python benchmarks/kills.py [--kills 200] [--quick]

`hplus stream` is killed repeatedly; each time its state is compared with an uninterrupted run, and
it resumes from there. Then a process that alternately saves two models to one file is killed: the
file must be one of the two. Child processes are forked after compilation, so that kills hit the
work and not the start-up.
"""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _measure import finish, header, parser, row

from hplus import Box, Interval, StreamingIntensity, load, save
from hplus.cli.commands import hplus
from hplus.storage.files import read_file
from hplus.studies.frames import Frame
from hplus.studies.snapshots import Snapshots
from hplus.studies.streams import StreamStudy

FRAME = Frame(("x", "y"), Box((0, 0), (1, 1)))
EVERY, LINES = 100, 20_000
LONGEST = 0.5
"""The longest time before a child is killed."""

QUICK = 20
"""Kills with --quick."""

WORDS = {
    "ends": "finished before the kill",
    "advances": "resumed from the saved state",
    "first": "found the old model",
    "second": "found the new model",
}


def write_events(path: Path, seed: int) -> bytes:
    """Write a CSV of events with some invalid lines."""
    rng = np.random.RandomState(seed)
    X = np.where(rng.rand(LINES, 1) < 0.5, 0.3 + 0.1 * rng.randn(LINES, 2), rng.rand(LINES, 2))
    lines = [f"{x:.6f},{y:.6f}" for x, y in X.tolist()]
    for i in rng.randint(LINES, size=LINES // 50):
        lines[i] = str(rng.choice(["", "0.5", "0.5,nan", "a,b", '"0.5,0.5', "0.5,0.5,0.5"]))
    data = ("x,y\n" + "\n".join(lines) + "\n").encode()
    path.write_bytes(data)
    return data


def killed(work: Callable[[], Any], seconds: float) -> bool:
    """Run `work` in a child and kill it after a while; return whether it was still running."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
        raise AssertionError("a child failed by itself")
    return os.WIFSIGNALED(status)


def stream_work(csv: Path, state: Path, said: Path) -> Callable[[], Any]:
    """Run the command with its output in the file `said`."""
    words = ["stream", str(csv), "--columns", "x,y", "--window", "0,0,1,1", "--json"]
    words += ["--every", str(EVERY), "--state", str(state)]

    def work() -> None:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        hplus.main(words, standalone_mode=False)

    return work


def content(path: Path) -> tuple[Any, Any]:
    """The contents of a model file: its document, and a checksum of each array."""
    document, _ = read_file(path)
    return document["model"], document["arrays"]


def promised(said: Path) -> int:
    """The last offset printed."""
    lines = said.read_text().split("\n")[:-1] if said.exists() else []
    return int(json.loads(lines[-1])["offset"]) if lines else 0


def check_state(state: Path, data: bytes, like: StreamStudy, said: Path) -> int:
    """The offset of the state a child left, which must equal that of `like` on the same lines."""
    with Snapshots(state) as snapshots, warnings.catch_warnings():
        warnings.simplefilter("error")  # no snapshot may be damaged, though one would do
        kept = snapshots.newest()
    offset = 0 if kept is None else kept.offset_
    assert offset >= promised(said), f"{promised(said)} was promised, {offset} is there"
    if kept is not None:
        like.take(data[like.offset_ : offset])
        files = [state.parent / name for name in ("kept.hplus", "like.hplus")]
        for study, file in zip((kept, like), files, strict=True):
            save(study, file)
        assert content(files[0]) == content(files[1]), f"the states at byte {offset} differ"
    return offset


def kill_streams(kills: int, folder: Path, seed: int = 0) -> dict[str, int]:
    """Kill `hplus stream` this many times, and count the outcomes."""
    rng, seen = random.Random(seed), {"kills": 0, "ends": 0, "advances": 0}
    rounds = 0
    warm_up()
    while seen["kills"] < kills:
        rounds += 1
        csv, state, said = (folder / f"{name}{rounds}" for name in ("csv", "state", "said"))
        data, like, offset = write_events(csv, seed + rounds), StreamStudy(FRAME), 0
        like.begin()
        while offset < len(data) and seen["kills"] < kills:
            was_killed = killed(stream_work(csv, state, said), LONGEST * rng.random())
            seen["kills" if was_killed else "ends"] += 1
            now = check_state(state, data, like, said)
            assert now >= offset, "what was safe before is gone"
            seen["advances"] += now > offset
            offset = now
            said.unlink(missing_ok=True)
    return seen


def kill_saves(kills: int, folder: Path, seed: int = 0) -> dict[str, int]:
    """Kill a process that alternately saves two models; the file must be one of them, complete."""
    rng, seen = random.Random(seed), {"kills": 0, "first": 0, "second": 0}
    X = np.random.RandomState(seed).rand(300, 1)
    models = [StreamingIntensity(Interval(0, 1)).fit(X[:n]) for n in (100, 300)]
    path, files = folder / "model.hplus", [folder / "first.hplus", folder / "second.hplus"]
    for model, file in zip(models, files, strict=True):
        save(model, file)
    wanted = [file.read_bytes() for file in files]
    save(models[0], path)

    def work() -> None:
        while True:
            for model in models[::-1]:
                save(model, path)

    while seen["kills"] < kills:
        seen["kills"] += killed(work, 0.1 * rng.random())
        found = path.read_bytes()
        assert found in wanted, "the file is neither the old model nor the new one"
        load(path)
        seen["first" if found == wanted[0] else "second"] += 1
    for left in folder.glob(".hplus-*.tmp"):
        left.unlink()
    return seen


def warm_up() -> None:
    """Compile, so that child processes need not."""
    StreamStudy(FRAME).take(b"x,y\n0.5,0.5\n")


def main() -> None:
    words = parser(__doc__)
    words.add_argument("--kills", type=int, default=200)
    words.add_argument("--seed", type=int, default=0)
    options = words.parse_args()
    kills = min(options.kills, QUICK) if options.quick else options.kills
    header()
    with tempfile.TemporaryDirectory() as folder:
        for what, kill in (("hplus stream", kill_streams), ("hplus.save", kill_saves)):
            seen = kill(kills, Path(folder), options.seed)
            row(f"{what}: kills without loss", seen.pop("kills"), least=kills)
            for name, number in seen.items():
                row(f"{what}: {WORDS[name]}", number)
    finish()


if __name__ == "__main__":
    main()
