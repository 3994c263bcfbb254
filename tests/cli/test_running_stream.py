"""A stream that runs answers every command, from the folder of its snapshots."""

import json
import subprocess
import sys
from datetime import datetime, timedelta

import numpy as np
import pytest
from click.testing import CliRunner

from hplus import load, save
from hplus.cli.commands import hplus
from hplus.storage.slots import SLOTS, load_newest, newest_file
from hplus.studies.streams import StreamStudy

FRAME = ["--time", "at", "--from", "2026-01-05", "--cycle", "week", "--forget", "8w"]


def rows(n=300):
    hours = 500.0 * np.random.RandomState(0).rand(n)
    times = (datetime(2026, 1, 5) + timedelta(hours=float(h)) for h in hours)
    return "".join(f"{t.isoformat(timespec='seconds')}\n" for t in times)


def asked(*words, code=0):
    found = CliRunner().invoke(hplus, list(map(str, words)))
    assert found.exit_code == code, found.output
    return found.stdout if code == 0 else " ".join(found.stderr.split())


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The folder of a stream that has saved a snapshot and waits for more lines, and its events."""
    folder = tmp_path_factory.mktemp("running")
    events = folder / "events.csv"
    events.write_text("at\n" + rows())
    words = [sys.executable, "-m", "hplus", "stream", "-", *FRAME, "--json"]
    words += ["--state", str(folder / "state"), "--seconds", "0.1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as process:
        process.stdin.write(events.read_text())
        process.stdin.flush()
        while json.loads(process.stdout.readline())["events"] < 300:
            pass
        yield folder / "state", events
        assert process.poll() is None
        process.stdin.close()
        process.stdout.read()
        assert process.wait() == 0


def test_every_command_answers_while_a_stream_runs(running, tmp_path):
    state, events = running
    assert json.loads(asked("info", state, "--json"))["events"] == 300
    week = json.loads(asked("expect", state, "--for", "7d", "--json"))
    assert "does not keep the dates" in week["basis"]
    assert week["regions"][0]["expected"] == pytest.approx(300 / 500 * 168, rel=0.15)
    assert len(asked("expect", state, "--grid", "4", "--for", "1d").splitlines()) == 5
    rates = asked("predict", state, events).splitlines()
    assert len(rates) == 301
    assert rates[0] == "at,rate,low,high"
    assert json.loads(asked("check", state, events, "--json"))["events"] == 300
    assert asked("sample", state, "--for", "7d", "--seed", "1").startswith("path,at\n1,2026")
    asked("report", state, events, "-o", tmp_path / "page.html")
    assert "events per week" in (tmp_path / "page.html").read_text()


def test_a_model_file_of_a_stream_answers_like_its_state(running, tmp_path):
    save(load(newest_file(running[0])), tmp_path / "model.hplus")
    words = ["--grid", "3", "--for", "1d"]
    from_file = asked("expect", tmp_path / "model.hplus", *words)
    assert from_file == asked("expect", running[0], *words)


def test_what_is_missing_is_said_in_a_sentence(running, tmp_path):
    state, _ = running
    assert "does not keep the events" in asked("check", state, code=2)
    assert "without any: give that of a stream" in asked("info", tmp_path, code=4)
    steps = StreamStudy(load(newest_file(state)).frame, "spppot").begin()
    assert steps.take(b"at\n2026-01-07\n").events_ == 1

    save(steps, tmp_path / "steps.hplus")
    assert "a stream answers if" in asked("expect", tmp_path / "steps.hplus", code=2)


def test_the_newest_of_two_snapshots_that_can_be_read_is_used(running, tmp_path):
    for slot, lines in zip(SLOTS, (5, 3), strict=True):
        study = load(newest_file(running[0])).begin()
        study.take(("at\n" + rows(lines)).encode())

        save(study, tmp_path / slot, summary=study.facts())
    assert newest_file(tmp_path).name == SLOTS[0]
    assert load_newest(tmp_path).events_ == 5
    flipped = bytearray((tmp_path / SLOTS[0]).read_bytes())
    flipped[-1] ^= 1  # in the counts
    (tmp_path / SLOTS[0]).write_bytes(flipped)
    assert load_newest(tmp_path).events_ == 3
    (tmp_path / SLOTS[0]).write_bytes(b"torn")
    assert newest_file(tmp_path).name == SLOTS[1]
