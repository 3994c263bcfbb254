"""What every test may use: a seeded generator; hypothesis draws the same examples every time."""

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("house")


@pytest.fixture
def rng():
    return np.random.default_rng(0)
