"""Fixtures of a service that runs in threads of the test."""

import pytest
from serving_kit import running

from hplus.serve.protocol import GuardedProtocol


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    """A client of a service without tokens and without a model."""
    with running(tmp_path_factory.mktemp("state")) as client:
        yield client


@pytest.fixture
def quick(monkeypatch):
    """Deadlines of a fifth of a second."""
    monkeypatch.setattr(GuardedProtocol, "head_seconds", 0.2)
    monkeypatch.setattr(GuardedProtocol, "body_seconds", 0.2)
