"""What every test may use: a seeded generator; hypothesis draws the same examples every time."""

import importlib
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("house", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("house")


def pytest_configure():
    """Machine code that is older than what it was made from goes: numba looks at one file only."""
    folder = Path(find_spec("hplus").origin).parent
    sources = [*folder.glob("streaming/*.py"), folder / "kernels/compiled.py"]
    newest = max(source.stat().st_mtime for source in sources)
    for kept in folder.glob("*/__pycache__/*.nb[ci]"):
        with suppress(FileNotFoundError):  # another worker was quicker
            if kept.stat().st_mtime < newest:
                kept.unlink()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def paper(request):
    """The module `run` of the paper in the folder PAPER that a test module names."""
    folder = request.module.PAPER
    with pytest.MonkeyPatch.context() as patch:
        for path in folder.glob("*.py"):  # papers may share the names of their modules
            patch.delitem(sys.modules, path.stem, raising=False)
        patch.syspath_prepend(folder)
        yield importlib.import_module("run")


@pytest.fixture(scope="module")
def data(request, paper):
    """What every section of the paper computes, on the sizes of the test module or quick ones."""
    sizes = getattr(request.module, "SMALL", None) or paper.QUICK
    with threadpool_limits(1):  # the matrices are small
        return {s.name: s.data(**sizes.get(s.name, {})) for s in paper.SECTIONS}
