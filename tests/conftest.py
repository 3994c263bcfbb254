"""What every test may use: a seeded generator; hypothesis draws the same examples every time."""

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

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
