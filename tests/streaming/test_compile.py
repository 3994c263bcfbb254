"""The engine is compiled once, with a message, and the next process finds it on disk."""

import os
import subprocess
import sys
import threading

import pytest

from hplus import Gaussian, StreamingRegressor
from hplus.streaming.engine import learner
from hplus.streaming.engine.loop import run

SCRIPT = """
import numpy as np
from hplus import Gaussian, StreamingRegressor
from hplus.streaming.engine.loop import run
X = np.linspace(0.0, 1.0, 200).reshape(100, 2)
StreamingRegressor(Gaussian(1.0)).partial_fit(X, X[:, 0])
print(sum(run.stats.cache_hits.values()), sum(run.stats.cache_misses.values()))
"""


def test_the_next_process_finds_the_engine_compiled():
    StreamingRegressor(Gaussian(1.0)).partial_fit([[0.0, 0.0]], [1.0])
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "0"]


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_first_call_that_takes_long_says_why(seconds, monkeypatch, capsys):
    said = threading.Event()

    def slow(rule, constants, state, X, *rest):
        """The engine, which takes until the message is there if one is due."""
        if len(X) == 0 and seconds == 0.0:
            said.wait(10.0)
        return run(rule, constants, state, X, *rest)

    def tell(*words, **how):
        print(*words, **how)
        said.set()

    monkeypatch.setattr(learner, "SILENT_SECONDS", seconds)
    monkeypatch.setattr(learner, "run", slow)
    monkeypatch.setattr(learner, "print", tell, raising=False)
    monkeypatch.setattr(learner.Compiler, "ready", False)
    StreamingRegressor(Gaussian(1.0)).partial_fit([[0.0, 0.0]], [1.0])
    assert learner.Compiler.ready
    assert ("hplus is compiling its streaming engine" in capsys.readouterr().err) == (seconds == 0)
