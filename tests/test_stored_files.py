"""Model files of version 0.1.0 still load, each in a fresh process, and predict the same."""

import json
import os
import subprocess
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

STORED = Path(__file__).parent / "stored"
EXPECTED = json.loads((STORED / "expected.json").read_text("utf-8"))

FORKING = """
import gc, importlib, json, os, sys
from contextlib import suppress
from functools import reduce

gc.disable()  # it would copy what the processes share
folder = sys.argv[1]
expected = json.load(open(os.path.join(folder, "expected.json")))

def predicted(name):
    from hplus.storage import load
    model = load(os.path.join(folder, name + ".hplus"))
    want = expected[name]
    return reduce(getattr, want["call"].split("."), model)(want["X"])

def packages_of_others():
    # a process that loads every file tells what it imported from other packages
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            for name in expected:
                predicted(name)
        finally:
            with os.fdopen(write, "w") as out:
                out.write(" ".join(m for m in sys.modules if m.partition(".")[0] != "hplus"))
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        return told.read().split()

for module in packages_of_others():
    with suppress(Exception):
        importlib.import_module(module)
os.wait()
import numba, numpy
numba.njit(lambda x: x)(0.0)  # what numba sets up before its first call
for name in expected:
    sys.stdout.flush()
    if os.fork() == 0:
        assert not any(module.split(".")[0] == "hplus" for module in sys.modules)
        print(json.dumps([name, numpy.asarray(predicted(name)).tolist()]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def predictions():
    """What each file predicts in a process that has imported nothing of hplus before."""
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, str(STORED)],
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(map(json.loads, done.stdout.splitlines())) | {"stderr": done.stderr}


def test_every_stored_file_has_its_predictions():
    assert {path.stem for path in STORED.glob("*.hplus")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_stored_file_loads_in_a_fresh_process_and_predicts_the_same(name, predictions):
    assert name in predictions, predictions["stderr"]
    np.testing.assert_allclose(predictions[name], EXPECTED[name]["y"], rtol=1e-9)


def test_a_stored_model_can_be_saved_again(tmp_path):
    from hplus import load, save

    for name, want in EXPECTED.items():
        save(load(STORED / f"{name}.hplus"), tmp_path / "again.hplus")
        model = load(tmp_path / "again.hplus")
        y = reduce(getattr, want["call"].split("."), model)(want["X"])
        np.testing.assert_allclose(y, want["y"], rtol=1e-9)
