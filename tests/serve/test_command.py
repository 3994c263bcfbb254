"""hplus serve on the command line: what it refuses, and that kill -9 loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from serving_kit import FRAME, Client, running, until

from hplus.cli.commands import hplus
from hplus.serve.opening import opened_store
from hplus.studies.streams import StreamStudy

WORDS = ("serve", "--columns", "x,y", "--window", "0,0,1,1", "--port", "0")


def run(*words, code, env=None):
    done = CliRunner().invoke(hplus, words, env=env)
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_other_machines_are_let_in_with_tokens_only(tmp_path, host):
    said = run(*WORDS, "--state", str(tmp_path / "s"), "--host", host, code=2)
    assert "which needs tokens" in said
    assert not (tmp_path / "s").exists()


def test_what_is_missing_is_said_in_one_sentence(tmp_path, monkeypatch):
    state = ("--state", str(tmp_path / "s"))
    assert "--window" in run("serve", "--columns", "x,y", *state, code=2)
    assert "--cycle" in run(*WORDS, "--time", "at", *state, code=2)
    assert "20 ASCII" in run(*WORDS, *state, code=2, env={"HPLUS_READ_TOKEN": "short"})
    with running(tmp_path / "s"):
        pass
    other = ("serve", "--columns", "x,y", "--window", "0,0,2,2", *state)
    with running(tmp_path / "t") as client:
        client.post('{"x": 0.1, "y": 0.2}\n')
        taken = (*WORDS[:-1], str(client.port), *state)
        assert f"cannot listen on 127.0.0.1 port {client.port}" in run(*taken, code=5)
        assert "another one is using it" in run(*WORDS, "--state", str(tmp_path / "t"), code=2)
    said = run(*other[:-1], str(tmp_path / "t"), code=2)
    assert "holds a stream with window 0,0,1,1, not 0,0,2,2: give" in said
    no_file = str(tmp_path / "tokens")
    said = run(*WORDS, *state, "--token-file", no_file, code=2)
    assert f"the token file {no_file} cannot be read: no such file or directory." in said
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "hplus[serve]" in run(*WORDS, *state, code=6)


def test_streams_and_services_share_one_state(tmp_path):
    state, lines = str(tmp_path / "s"), tmp_path / "lines.jsonl"
    with running(state) as client:
        client.post('{"x": 0.1, "y": 0.2}\n{"x": 0.3, "y": 0.4}\n', "?source=a&sequence=1")
    lines.write_text('{"x": 0.5, "y": 0.6}\n')
    frame = ("--columns", "x,y", "--window", "0,0,1,1", "--state", state)
    assert "--live" in run("stream", str(lines), *frame, code=2)
    done = CliRunner().invoke(hplus, ("stream", "-", "--live", *frame), lines.read_bytes())
    assert done.exit_code == 0, done.output
    with running(state) as client:
        assert client.service.events == 3
        _, found = client.post('{"x": 0.1, "y": 0.2}\n', "?source=a&sequence=1")
        assert found["duplicate"]
        client.post('{"x": 0.7, "y": 0.8}\n')
    said = run("merge", state, state, "-o", str(tmp_path / "both.hplus"), "--json", code=0)
    assert json.loads(said)["events"] == 8
    said = run("fit", str(lines), "--update", state, "--json", code=0)
    assert json.loads(said)["events"] == 5


def test_a_service_that_is_killed_has_what_it_acknowledged(tmp_path):
    with open(tmp_path / "said", "w") as said:
        command = [
            sys.executable,
            "-m",
            "hplus",
            *WORDS[:-1],
            "8641",
            "--state",
            str(tmp_path / "s"),
        ]
        server = subprocess.Popen(command, stderr=said, env=os.environ)
        try:
            client, acked = Client(None, 8641), 0
            until(lambda: answers(client), 60)
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                query = f"?source=a&sequence={acked}"
                acked += client.post('{"x": 0.1, "y": 0.2}\n', query)[0] == 200
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()
    with opened_store(tmp_path / "s", StreamStudy(FRAME).begin()) as store:
        assert store.machine.study.events_ == acked > 0


def answers(client):
    try:
        return client.ask("GET", "/healthz")[0] == 200
    except OSError:
        return False
