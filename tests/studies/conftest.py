"""Studies of times learn their forecasts quickly."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def quickly(quick_outlooks):
    """All studies of a module."""
