"""Randomly changed model files: each raises a one-sentence error, or loads and can be used.

    python benchmarks/mutations.py [--n 100000] [--quick] [--seed 0] [--workers 2]

Small models of every kind are saved, changed (bytes, safetensors headers, and content with matching
checksums) and loaded in processes that may use 1 s of CPU time and 512 MiB per file. The outcome
must be a model or a one-line ValueError; another exception, a crash, a hang or too much memory is a
fault. A model that loads must predict, count and continue learning, or raise an exception. Needs
Linux. Exits with code 1 if there is a fault.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import json
import mmap
import resource
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from _measure import finish, header, parser, row
from _mutate import Content, mutated, opened, shortened

from hplus import (
    Box,
    Gaussian,
    Intensity,
    Interval,
    KernelRegressor,
    Polygon,
    SoSRegressor,
    load,
    save,
)
from hplus.cli.commands import hplus
from hplus.studies.event_study import EventStudy
from hplus.studies.frames import Frame
from hplus.studies.quantity_study import QuantityStudy
from hplus.studies.spans import Clock
from hplus.studies.streams import StreamStudy
from hplus.windows import Window

SECONDS = 1.0
"""CPU time allowed for loading a file, and for using the model."""

STUCK = 30.0
"""Seconds without progress after which a process that ignores its alarm is killed."""

MEGABYTES = 512
"""Memory that a process may use in total, including the library."""

QUICK = 3000
"""Number of files with --quick."""

THIN = 0.05
"""The height of windows in the plane, small so that grids and files are small."""

FAULTS = ("another exception", "not one line", "crash", "hang", "too much memory")


class Outcome(NamedTuple):
    """The outcome for the i-th file."""

    i: int
    kind: str
    model: str
    what: str
    detail: str
    megabytes: float = 0.0
    seconds: float = 0.0


class TooLong(BaseException):
    """The alarm of a process; not an Exception, so that no `except Exception` catches it."""


def good_files(folder: Path, makers: dict[str, Callable[[Path], Any]]) -> dict[str, Content]:
    """The contents of saved models of some kinds."""
    rng, events, path = np.random.RandomState(1), folder / "events.csv", folder / "good.hplus"
    stamps = np.datetime64("2026-03-02") + (rng.rand(80) * 86_400 * 14).astype("m8[s]")
    rows = zip(PLANE[:, 0], PLANE[:, 1], stamps, strict=True)
    events.write_text("x,y,t\n" + "".join(f"{x},{y},{t}\n" for x, y, t in rows))
    found = {}
    for name, make in makers.items():
        model = make(events)
        if hasattr(model, "made_with_"):
            model.made_with_ = {"command": "hplus fit", "seconds": 1.0, "seed": 0}
        save(model, path)
        found[name] = shortened(opened(path.read_bytes()))
    return found


def _study(columns: str, window: Window, clock: Clock | None = None) -> Callable[[Path], Any]:
    frame = Frame(tuple(columns.split()), window, clock=clock)
    return lambda events: EventStudy(frame).fit(str(events))


def _quantities(events: Path) -> QuantityStudy:
    rng = np.random.RandomState(0)
    table = {"hour": rng.randint(0, 24, 60).astype(float), "day": rng.choice(["a", "b"], 60)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return QuantityStudy(random_state=0).fit(table, rng.poisson(3.0, 60))


PLANE = np.random.RandomState(0).rand(80, 2) ** 2 * (1.0, THIN)
LINE, STRIP = Interval(0, 1, unit="km"), Box((0, 0), (1, THIN), unit="km")
DAYS = Clock("t", 1772409600.0, 1772409600.0 + 14 * 86_400, "day")

SMALL: dict[str, Callable[[Path], Any]] = {
    "stream study": lambda events: StreamStudy(Frame(("x", "y"), STRIP)).take(events.read_bytes()),
    "stream study, atoms": lambda events: StreamStudy(
        Frame(("x", "y"), STRIP), "spppot", budget=12
    ).take(events.read_bytes()),
    "intensity": lambda _: Intensity(LINE, Gaussian(0.2), 1.0).fit(PLANE[:, :1]),
    "kernel regressor": lambda _: KernelRegressor(2.0 * Gaussian(0.3), landmarks=8).fit(
        PLANE, PLANE[:, 0]
    ),
    "sum of squares": lambda _: SoSRegressor(Gaussian(0.3)).fit(PLANE[:, :1], PLANE[:, 0]),
}
"""Models by name that are quick to fit, from a file of events."""

MODELS: dict[str, Callable[[Path], Any]] = {
    **SMALL,
    "intensity, polygon": lambda _: Intensity(Polygon([[0, 0], [1, 0], [1, THIN], [0, THIN]])).fit(
        PLANE
    ),
    "quantity study": _quantities,
    "event study, line": _study("x", LINE),
    "event study, plane": _study("x y", STRIP),
    "event study, place × time": _study("x y", STRIP, DAYS),
}
"""Models of every kind."""


def ask(model: Any, path: Path, info: bool) -> None:
    """Use the model as people use models of this kind."""
    if info and isinstance(model, EventStudy | QuantityStudy | StreamStudy):
        hplus.main(["info", str(path), "--json"], standalone_mode=False)
    if isinstance(model, QuantityStudy):
        model.predict_interval({"hour": [3.0, 9.0], "day": ["a", "new"]})
        model.effect("hour")
    elif isinstance(model, StreamStudy):
        model.model_.predict(np.full((3, 2), 0.02))
        model.model_.expected_count(Box((0, 0), (0.5, THIN)))
        model.take(b"0.5,0.02,\n0.1,0.04,\n" * 20)
    elif isinstance(model, EventStudy | Intensity):
        _ask_rate(model.model_ if isinstance(model, EventStudy) else model)
    elif hasattr(model, "predict"):
        d = getattr(model, "n_features_in_", 1)
        model.predict(np.full((3, d if d in (1, 2, 3) else 1), 0.5))
        model.integral(Interval(0.0, 0.5)) if hasattr(model, "integral") else None


def _ask_rate(rate: Any) -> None:
    d = rate.window.dimension
    X = np.full((3, d), 0.02)
    rate.predict(X)
    rate.predict_interval(X)
    part = Interval(0, 0.5) if d == 1 else Box((0, 0), (0.5, THIN))
    rate.expected_count(part * Interval(0, 0.5) if d == 3 else part)
    rate.count_interval(rate.window)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after this much CPU time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _late(*_: Any) -> None:
    raise TooLong


def peak_since(work: Callable[[], Any]) -> float:
    """The peak memory of the process during `work`, beyond what it used before, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = _status("VmRSS:")
    work()
    return _status("VmHWM:") - before


def _status(name: str) -> float:
    text = Path("/proc/self/status").read_text()
    return int(text.partition(name)[2].split()[0]) / 1024


def tried(path: Path, info: bool) -> tuple[str, str]:
    """The outcome for one file and a detail; `info` also runs the command line."""
    try:
        with limited(SECONDS):
            model = load(path)
    except ValueError as error:
        said = str(error)
        neat = said.startswith(f"{path} cannot be loaded: ") and said.endswith(".")
        return ("rejected" if neat and "\n" not in said and len(said) < 500 else FAULTS[1]), said
    except TooLong:
        return "hang", "load"
    except BaseException as error:
        return "another exception", f"{type(error).__name__}: {error}"
    try:
        with limited(SECONDS):
            ask(model, path, info)
    except TooLong:
        return "hang", f"used, {type(model).__name__}"
    except Exception as error:
        return "loads, raises an error when used", f"{type(error).__name__}: {error}"
    except BaseException as error:
        return "another exception", f"used, {type(error).__name__}: {error}"
    return "loads and works", ""


def work(goods: dict[str, Content], todo: range, seed: int, folder: Path, at: mmap.mmap) -> None:
    """Try the files of `todo`; write outcomes to a file, and the current file number to `at`."""
    os.nice(5)
    signal.signal(signal.SIGPROF, _late)
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    path = folder / f"{os.getpid()}.hplus"
    _limit_memory(MEGABYTES)
    library = _status("VmRSS:")  # memory left over from changing files does not count
    names, contents = list(goods), list(goods.values())
    with open(folder / f"outcomes-{todo[0]}-{os.getpid()}", "w") as out, np.errstate(all="ignore"):
        for i in todo:
            at[:8] = i.to_bytes(8, "little")
            try:
                kind, which, data = mutated(contents, seed, i)
            except MemoryError:
                continue  # the change is too large to make; that says nothing about reading
            path.write_bytes(data)
            found = ["", ""]

            def one(found: list[str] = found, number: int = i) -> None:
                found[:] = tried(path, number % 4 == 0)

            before = time.process_time()
            megabytes = library + peak_since(one)
            seconds = time.process_time() - before
            if megabytes > MEGABYTES and found[0] not in FAULTS:
                found = ["too much memory", f"{megabytes:.0f} MiB; {found[0]}: {found[1]}"]
            outcome = Outcome(i, kind, names[which], found[0], found[1][:300], megabytes, seconds)
            out.write(json.dumps(outcome) + "\n")
            out.flush()


def _limit_memory(megabytes: int) -> None:
    """Limit memory beyond what is mapped now, so that a giant array raises an error."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = size + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class Worker:
    """A process working on its share of the files; it is replaced if it does not survive."""

    def __init__(self, goods: dict[str, Content], todo: range, seed: int, folder: Path) -> None:
        self.goods, self.todo, self.seed, self.folder = goods, todo, seed, folder
        self.lost: list[Outcome] = []
        self._start()

    def _start(self) -> None:
        self.at = mmap.mmap(-1, 8)
        self.at[:8] = self.todo[0].to_bytes(8, "little")
        self._last, self._since = -1, time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                work(self.goods, self.todo, self.seed, self.folder, self.at)
                code = 0
            finally:
                os._exit(code)

    def done(self) -> bool:
        """Whether its share is done; polled from time to time."""
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        now = int.from_bytes(self.at[:8], "little")
        if not ended:
            if now != self._last:
                self._last, self._since = now, time.monotonic()
            elif time.monotonic() - self._since > STUCK:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return self._lose(now, "hang", "it ignores its alarm")
            return False
        return status == 0 or self._lose(now, "crash", f"status {status}")

    def _lose(self, i: int, what: str, detail: str) -> bool:
        # not recreated here: workers forked later would inherit its memory
        self.lost.append(Outcome(i, "unknown", "unknown", what, detail))
        self.todo = self.todo[self.todo.index(i) + 1 :]
        if self.todo:
            self._start()
        return not self.todo


def outcomes(n: int, seed: int, workers: int, folder: Path, first: int = 0) -> list[Outcome]:
    """The outcomes of n changed files."""
    goods = good_files(folder, MODELS)
    for content in goods.values():  # compiles what is not compiled yet
        (folder / "good.hplus").write_bytes(content.data)
        with _quiet():
            ask(load(folder / "good.hplus"), folder / "good.hplus", info=True)
    shares = [range(first + w, first + n, workers) for w in range(workers)]
    crew = [Worker(goods, share, seed, folder) for share in shares if share]
    busy = list(crew)
    while busy:
        time.sleep(0.05)
        busy = [worker for worker in busy if not worker.done()]
    found = [outcome for worker in crew for outcome in worker.lost]
    for file in folder.glob("outcomes-*"):
        found += [Outcome(*json.loads(line)) for line in file.read_text().splitlines()]
    return sorted(found)


@contextmanager
def _quiet() -> Iterator[None]:
    kept, silence = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)


def show(found: list[Outcome]) -> None:
    """Print the table, and what is needed to reproduce each fault."""
    counts = Counter(outcome.what for outcome in found)
    header()
    row("changed files", len(found))
    for what in sorted(set(counts) - set(FAULTS)):
        row(what, counts[what])
    for what in FAULTS:
        row(what, counts[what], most=0)
    row("largest memory of a process, MiB", max(o.megabytes for o in found), most=MEGABYTES)
    row("longest CPU time, seconds", max(o.seconds for o in found), most=2 * SECONDS)
    print("\n| kind of change | files | rejected | loaded |\n|---|---|---|---|")
    for kind in dict.fromkeys(outcome.kind for outcome in found):
        whats = Counter(outcome.what for outcome in found if outcome.kind == kind)
        loads = sum(number for what, number in whats.items() if what.startswith("loads"))
        print(f"| {kind.replace('_', ' ')} | {whats.total()} | {whats['rejected']} | {loads} |")
    for outcome in [outcome for outcome in found if outcome.what in FAULTS][:50]:
        print(f"\nFile {outcome.i}, {outcome.kind} of {outcome.model}: {outcome.what}, "
              f"{outcome.detail}")  # fmt: skip


def main() -> None:
    words = parser(__doc__)
    words.add_argument("--n", type=int, default=100_000, help="number of files")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--first", type=int, default=0, help="the number of the first file")
    words.add_argument("--workers", type=int, default=2)
    options = words.parse_args()
    n = min(options.n, QUICK) if options.quick else options.n
    with TemporaryDirectory() as folder:
        show(outcomes(n, options.seed, options.workers, Path(folder), options.first))
    finish()


if __name__ == "__main__":
    main()
