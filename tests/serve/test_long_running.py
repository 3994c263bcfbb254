"""A process that serves for weeks gives memory back, and is not stopped to look for garbage."""

import platform
import subprocess
import sys

import pytest

HOLES = """
from types import SimpleNamespace
import numpy as np
from hplus.serve.long_running import prepare_process

def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

if PREPARED:
    prepare_process(SimpleNamespace())
np.ones(2**21)  # after a large block is freed, malloc keeps those of its size
before, blocks, kept = megabytes(), [], []
for _ in range(20):
    blocks.append(np.ones(2**18))
    kept.append(np.ones(2**10))  # lies after the block, which leaves a hole when it is freed
del blocks
print(megabytes() - before)
"""

GARBAGE = """
import gc
from types import SimpleNamespace
from hplus.serve.long_running import prepare_process

service = SimpleNamespace()
prepare_process(service)
print(gc.get_freeze_count())
more = [[] for _ in range(1000)]
service.learned(1)
print(gc.get_freeze_count())
service.learned(2)
more += [[] for _ in range(1000)]
service.learned(3)
print(gc.get_freeze_count())
"""


def printed(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return [float(line) for line in done.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_large_blocks_are_given_back_when_they_are_freed():
    assert printed(f"PREPARED = True{HOLES}")[0] < 5.0
    assert printed(f"PREPARED = False{HOLES}")[0] > 20.0  # or there is nothing to mend


def test_what_stays_is_not_looked_through_for_garbage():
    began, compiled, later = printed(GARBAGE)
    assert began > 1000
    assert compiled >= began + 1000
    assert later == compiled
