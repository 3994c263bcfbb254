"""Files of many events: how long reading, counting and fitting take, and what memory they need.

    python benchmarks/scans.py --events 1e6 1e7            (made in a folder that is removed)
    python benchmarks/scans.py --events 1e8 --folder F     (made in F, or found there)
    python benchmarks/scans.py --only kills                (workers of a cluster killed, ten times)
    python benchmarks/scans.py --only same                 (one model, whatever files and threads)

The events are those of a simulated country: 2,000 towns, whose sizes follow a power law, and a
tenth of the events anywhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from _measure import best, finish, header, parser, row
from pyarrow import parquet

WIDTH, HEIGHT, TOWNS = 1000.0, 800.0, 2000
ROWS_AT_ONCE = 2**20
SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.float64())])
OPTIONS = ["--columns", "x,y", "--window", f"0,0,{WIDTH:.0f},{HEIGHT:.0f}"]


def country(n: int, seed: int = 1):
    """Events (m, 2) of a country in chunks, n in all."""
    rng = np.random.default_rng(seed)
    centres, sizes = rng.random((TOWNS, 2)) * [WIDTH, HEIGHT], np.exp(rng.normal(0.5, 1.0, TOWNS))
    shares = rng.pareto(1.2, TOWNS) + 0.05
    shares /= shares.sum()
    for first in range(0, n, ROWS_AT_ONCE):
        m = min(ROWS_AT_ONCE, n - first)
        town = rng.choice(TOWNS, m, p=shares)
        X = centres[town] + rng.normal(size=(m, 2)) * sizes[town, None]
        anywhere = rng.random(m) < 0.1
        X[anywhere] = rng.random((int(anywhere.sum()), 2)) * [WIDTH, HEIGHT]
        yield np.clip(X, 0.0, [WIDTH, HEIGHT])


def make(path: Path, n: int) -> Path:
    if not path.exists():
        with parquet.ParquetWriter(path, SCHEMA) as out:
            for X in country(n):
                out.write_table(pa.table([X[:, 0], X[:, 1]], schema=SCHEMA))
    return path


SCAN = """
import resource, sys, time
import pyarrow.dataset, pyarrow.parquet
from hplus import Box
from hplus.rates.statistic import Statistic
window, jobs = Box((0, 0), ({w}, {h})), int(sys.argv[2])
Statistic.of(window, [[1.0, 1.0]])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cpu, wall = time.process_time(), time.time()
found = Statistic.scan(sys.argv[1], window, ["x", "y"], n_jobs=jobs)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
own = found.codes.nbytes + found.counts.nbytes
print(time.time() - wall, time.process_time() - cpu)
print((after - before) / 1024, own / 2**20, found.depth)
"""

READ = """
import sys, time
from pyarrow import parquet
cpu, wall = time.process_time(), time.time()
for batch in parquet.ParquetFile(sys.argv[1]).iter_batches(2**17, columns=["x", "y"]):
    pass
print(time.time() - wall, time.process_time() - cpu)
"""


def measured(code: str, *words: str) -> list[float]:
    """What a program prints, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [float(word) for word in done.stdout.split()]


def scan(path: Path, n: int) -> None:
    wall, cpu = measured(READ, str(path))
    row(f"{n:.0e} events: reading and decoding alone, s (CPU s {cpu:.1f})", wall)
    code = SCAN.format(w=WIDTH, h=HEIGHT)
    for jobs in (1, 2):
        wall, cpu, megabytes, own, depth = measured(code, str(path), str(jobs))
        row(f"{n:.0e} events: Statistic.scan, {jobs} threads, s (CPU s {cpu:.1f})", wall)
        row(
            f"{n:.0e} events: memory beside the statistic of {own:.0f} MB at depth {depth:.0f}, MB",
            megabytes - own,
            most=300.0,
        )


def fit(path: Path, n: int, model: str) -> None:
    command = [sys.executable, "-m", "hplus", "fit", str(path), *OPTIONS, "--model", model]
    began = time.time()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, "-o", f"{folder}/m.hplus", "--json"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
    row(f"{n:.0e} events: hplus fit --model {model}, everything included, s", time.time() - began)


def binning() -> None:
    """Beside boost-histogram, on the same grid and with one thread; and without a limit."""
    import boost_histogram as bh

    from hplus import Box
    from hplus.rates.accumulator import CellAccumulator

    chunks = [np.ascontiguousarray(X) for X in country(2**23)]
    window, n = Box((0, 0), (WIDTH, HEIGHT)), 2**23

    def ours(depth=None):
        cells = CellAccumulator(window, most_depth=depth)
        for X in chunks:
            cells.add(X)
        return cells.statistic()

    def theirs(side):
        axes = [bh.axis.Regular(side, 0.0, WIDTH), bh.axis.Regular(side, 0.0, WIDTH)]
        grid = bh.Histogram(*axes, storage=bh.storage.Int64())
        for X in chunks:
            grid.fill(X[:, 0], X[:, 1])

    ours()
    for depth in (8, 10, 12):
        side = 2**depth
        seconds, other = best(lambda depth=depth: ours(depth))[0], best(lambda s=side: theirs(s))[0]
        row(f"binning in {side} x {side} cells: ours, ns an event", 1e9 * seconds / n)
        row(f"binning in {side} x {side} cells: boost-histogram, ns an event", 1e9 * other / n)
        row(f"binning in {side} x {side} cells: our speed as a share", other / seconds, least=0.5)
    seconds, found = best(ours)
    row(f"binning in the {len(found.codes):,} cells that differ, ns an event", 1e9 * seconds / n)


def kills(folder: Path, n: int = 1_000_000, times: int = 10) -> None:
    """A worker killed while a cluster reads: what is kept of the events must be the same."""
    from distributed import Client, LocalCluster

    from hplus import EventStudy
    from hplus.files.tables import as_table
    from hplus.studies.clusters import summary_on_cluster
    from hplus.studies.event_summary import summary_of
    from hplus.studies.plans import plan
    from hplus.studies.scans import scan_events

    whole, files = np.concatenate(list(country(n))), []
    for i, X in enumerate(np.array_split(whole, 200)):
        files.append(str(folder / f"kill-{i}.parquet"))
        parquet.write_table(pa.table([X[:, 0], X[:, 1]], schema=SCHEMA), files[-1])
    frame = plan(files, ("x", "y"), window=(0, 0, WIDTH, HEIGHT))
    study, table = EventStudy(frame), as_table(files)
    alone = study.new_scan()
    scan_events(table, alone)
    expected, same, early = summary_of(alone), 0, 0
    for _ in range(times):
        workers = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with workers as cluster, Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))
            delayed = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -9 {victim}"])
            found = summary_on_cluster(study.new_scan(), table, client)
            early += delayed.poll() is not None
            delayed.wait()
            same += found == expected
    row("workers killed with kill -9 before the scan had ended", early)
    row(f"of {times} such scans, the same as without a cluster", same, least=times)


def same(folder: Path, n: int = 1_000_000) -> None:
    """The model file of the same events in 1, 2, 7 and 64 files, shuffled, by 1, 4 or more jobs."""
    from hplus import EventStudy, save
    from hplus.files.tables import as_table
    from hplus.studies.clusters import fit_on_cluster
    from hplus.studies.plans import plan

    whole, found = np.concatenate(list(country(n))), []
    shuffled = np.random.default_rng(0).permutation(n)
    for many, order, jobs in ((1, np.arange(n), 1), (2, shuffled, 4), (7, shuffled[::-1], 1),
                              (64, shuffled, 4), (64, np.arange(n), 0)):  # fmt: skip
        files = [str(folder / f"same-{many}-{i}.parquet") for i in range(many)]
        for file, rows in zip(files, np.array_split(order, many), strict=True):
            X = whole[rows]
            parquet.write_table(pa.table([X[:, 0], X[:, 1]], schema=SCHEMA), file)
        frame = plan(files, ("x", "y"), window=(0, 0, WIDTH, HEIGHT))
        study = EventStudy(frame, model="tree", n_jobs=jobs or 1, updatable=True)
        if jobs:
            study.fit(files)
        else:
            fit_on_cluster(study, as_table(files), "local")
        save(study, folder / "same.hplus")
        found.append(_kept(folder / "same.hplus"))
        row(f"{many} files, {jobs or 'Dask'} jobs: as in one file", found[-1] == found[0], least=1)


def _kept(path: Path) -> tuple[str, bytes]:
    """A model file without what says when, from what and how fast it was made."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    text = json.loads(json.loads(raw[8 : 8 + size])["__metadata__"]["hplus"])
    fitted, params = text["model"]["fitted"], text["model"]["params"]
    for part in (fitted, text):
        for name in ("made_with_", "summary", "sha256"):
            part.pop(name, None)
    fitted["reading_"]["fields"].pop("file")
    params.pop("n_jobs")
    return json.dumps(text, sort_keys=True), raw[8 + size :]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--events", nargs="*", type=float, default=[1e6, 1e7])
    options.add_argument("--folder", type=Path)
    options.add_argument("--only", choices=("scan", "fit", "binning", "kills", "same"))
    options.add_argument("--model", default="auto")
    given = options.parse_args()
    header()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if given.only in (None, "binning"):
            binning()
        for n in map(int, given.events if not given.quick else [1e6]):
            if given.only in (None, "scan", "fit"):
                path = make(folder / f"country-{n}.parquet", n)
            if given.only in (None, "scan"):
                scan(path, n)
            if given.only in (None, "fit"):
                fit(path, n, given.model)
        if given.only in (None, "kills") and not given.quick:
            kills(folder)
        if given.only in (None, "same") and not given.quick:
            same(folder)
    finish()


if __name__ == "__main__":
    main()
