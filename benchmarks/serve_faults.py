"""The store of hplus serve with faults of the disk: what was acknowledged is there, once.

    python benchmarks/serve_faults.py [--runs 100000] [--quick]

Seeded runs of the log, the snapshots and the deduplication that the service uses, on a disk in
memory: power is lost in any operation, what was not synced survives in part, writes are short,
syncs fail and drop what they should have written, the disk is full, clocks jump, and posts are
repeated and reordered. After each opening, the store must hold exactly what was acknowledged.
"""

from __future__ import annotations

import time
from collections import Counter

from _measure import finish, header, parser, row
from _serve_runs import run

QUICK = 2000
"""Runs with --quick."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=100_000)
    asked = options.parse_args()
    runs = QUICK if asked.quick else asked.runs
    found, wrong, began = Counter[str](), list[str](), time.process_time()
    for seed in range(runs):
        try:
            found.update(run(seed))
        except Exception as error:  # whatever it is, it is wrong
            wrong.append(f"seed {seed}: {type(error).__name__} {error}")
    header()
    row("runs", runs)
    row(
        "runs with a lost or doubled event, or a store that could not be opened", len(wrong), most=0
    )
    row("posts", found["posts"])
    row("posts repeated and recognised", found["again"])
    row("losses of power", found["crash"])
    row("processes killed", found["kill"])
    row("posts refused after an error of the disk", found["refused"])
    row("posts refused by a full disk", found["full"])
    row("milliseconds a run", 1e3 * (time.process_time() - began) / runs)
    print("\n".join(wrong[:20]))
    finish()


if __name__ == "__main__":
    main()
