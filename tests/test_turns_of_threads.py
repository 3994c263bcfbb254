"""Two tasks at the same time: what they return, and what they leave behind."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from hplus._threads import TURN_SECONDS, at_once


def test_two_tasks_take_short_turns_only_while_they_run(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    usual = sys.getswitchinterval()
    assert usual > TURN_SECONDS
    found = at_once(sys.getswitchinterval, threading.get_ident, 2)
    assert found[0] == pytest.approx(TURN_SECONDS)
    assert found[1] != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        at_once(lambda: 1 / 0, lambda: 1, 2)
    assert sys.getswitchinterval() == pytest.approx(usual)


@pytest.mark.parametrize(("cores", "n_jobs"), [({0}, 2), ({0, 1}, 1), ({0, 1}, None)])
def test_on_one_core_or_in_one_thread_turns_are_as_long_as_ever(cores, n_jobs, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores)
    usual = sys.getswitchinterval()
    found = at_once(sys.getswitchinterval, lambda: "other", n_jobs)
    assert found == (pytest.approx(usual), "other")
