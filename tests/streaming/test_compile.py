"""The engine is compiled once, with a message, and the next process finds it on disk."""

import os
import subprocess
import sys

SCRIPT = """
import time
import numpy as np
from hplus import Gaussian, StreamingRegressor
from hplus.streaming.engine import run
X = np.linspace(0.0, 1.0, 200).reshape(100, 2)
start = time.process_time()
StreamingRegressor(Gaussian(1.0)).partial_fit(X, X[:, 0])
seconds = time.process_time() - start
print(seconds, sum(run.stats.cache_hits.values()), sum(run.stats.cache_misses.values()))
"""


def first_call(cache):
    """Seconds of work, cache hits and misses of a process's first call, and what it said."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    seconds, hits, misses = map(float, done.stdout.split())
    return seconds, hits, misses, done.stderr


def test_the_second_process_finds_the_engine_compiled(tmp_path):
    _, hits, misses, said = first_call(tmp_path)
    assert (hits, misses) == (0, 1)
    assert "hplus is compiling its streaming engine" in said
    seconds, hits, misses, _ = first_call(tmp_path)
    assert (hits, misses) == (1, 0)
    assert seconds < 1.0
