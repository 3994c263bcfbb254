"""hplus stream: the same model however bytes are cut, and nothing lost that was called safe."""

import gzip
import json
import os
import shutil
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hplus import Box, Interval, load
from hplus.cli.commands import hplus
from hplus.cli.live import BARS, SHADES, Picture, bars, picture
from hplus.cli.stream_run import NO_END
from hplus.files import feeds, lines
from hplus.files.feeds import TableError
from hplus.storage import files
from hplus.storage.documents import pack
from hplus.storage.slots import SLOTS, DamagedError
from hplus.studies.frames import Frame
from hplus.studies.plans import plan
from hplus.studies.previews import Preview
from hplus.studies.snapshots import Snapshots
from hplus.studies.spans import Amount, Clock
from hplus.studies.streams import StreamStudy

LINE = Frame(("x",), Interval(0, 1))
PLANE = Frame(("x", "y"), Box((0, 0), (1, 1)))
WEEK = Frame((), None, None, Clock("at", 1.4e9, 2e9, "week"))

ODD = (
    b"\xef\xbb\xbfid;x;name\r\n"
    b"1;0.5;a\r\n" b'2;0,25;"b ""c"";"\r\n' b'3;"0.75";\r\n'
    b"4;0.1\r\n" b"\r\n" b"5;NA;\r\n" b"6;abc;\r\n" b"7;2.5;\r\n"
    b'8;0.5;"open\r\n' b'a";0.1;"c\r\n'
    b"9;0.9;\xff\xfe\r\n" b"10;\xff;\r\n" b"11; 0.3 ;d\n" b"12;0.4;\rd\n" b"13;1e-1;e\n" b"14;0.2"
)  # fmt: skip
REASONS = {
    "broken line": 3,
    "empty line": 1,
    "not UTF-8 text": 1,
    "no x": 1,
    "x is not a number": 1,
}


def content(study):
    """All that is kept of a study."""
    arrays = {}
    document = pack(study, "", "", arrays)
    return document, {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.values()}


def events(n, seed=0, name="x,y"):
    rng = np.random.RandomState(seed)
    rows = [",".join(f"{v:.5f}" for v in row) for row in rng.rand(n, name.count(",") + 1) ** 2]
    return (name + "\n" + "\n".join(rows) + "\n").encode()


def one_byte_at_a_time(study, data):
    for i in range(len(data)):
        study.take(data[i : i + 1])
    return study


def run(*words, code=0):
    """The command in this process; the offsets that it printed, and what it said."""
    options = ["--columns", "x,y", "--window", "0,0,1,1", "--json"]
    found = CliRunner().invoke(hplus, ["stream", *map(str, words), *options])
    assert found.exit_code == code, found.output
    return [json.loads(line) for line in found.stdout.splitlines()], found.stderr


@pytest.fixture
def piped(monkeypatch):
    """Run the command on a pipe into which bytes were written, and which may stay open."""

    def go(data, *words, closed=True):
        out, into = os.pipe()
        os.write(into, data)
        if closed:
            os.close(into)
        with open(out, closefd=True) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            options = ["--columns", "x,y", "--window", "0,0,1,1", "--json"]
            code = hplus.main(["stream", "-", *map(str, words), *options], standalone_mode=False)
        if not closed:
            os.close(into)
        return code

    return go


@pytest.mark.parametrize("method", ["tree", "spppot", "refit"])
def test_lines_cut_at_every_byte_give_the_same_model_bit_for_bit(method):
    whole = StreamStudy(LINE, method).take(ODD)
    apart = one_byte_at_a_time(StreamStudy(LINE, method), ODD)
    assert content(whole) == content(apart)
    assert whole.events_ == 7
    for cut in range(0, len(ODD), 17):
        again = StreamStudy(LINE, method).take(ODD[:cut]).take(ODD[cut:])
        assert content(again) == content(whole)


def test_bad_lines_are_counted_by_reason_and_never_stop_the_stream():
    study = StreamStudy(LINE).take(ODD)
    assert study.dropped_ == REASONS
    assert study.left_out_ == {"outside the window": 1}
    assert study.lines_ == study.events_ + sum(REASONS.values()) + 1
    assert study.offset_ == ODD.rindex(b"\n") + 1


def test_json_lines_are_the_same_events_as_csv():
    rows = [{"y": 1, "x": 0.5}, {"x": "0.25"}, {"x": None}, {"x": "\ud800"}, {"x": [1]}, {"z": 1}]
    data = "\n".join(json.dumps(row) for row in rows).encode() + b'\n{"x": 0.7}\n{"x"\n[]\n'
    study = StreamStudy(LINE).take(data)
    assert content(study) == content(one_byte_at_a_time(StreamStudy(LINE), data))
    plain = StreamStudy(LINE).take(b"x\n0.5\n0.25\n0.7\n")
    assert study.model_.statistic_ == plain.model_.statistic_
    assert study.dropped_ == {"broken line": 2, "no x": 2, "x is not a number": 2}


def test_numbers_with_two_readings_are_dropped_because_lines_are_read_alone():
    study = StreamStudy(LINE).take(b"x;b\n0,5;2,25\n0,500;x\n1,234;1\n1;\n0.25;1,234\n")
    assert study.events_ == 4
    assert study.dropped_ == {"a number such as 1,234 can be read in two ways": 1}


def test_times_mean_the_same_whatever_stands_beside_them():
    cells = ["2014-07-01 10:00", "never", "1404208800", "1404208800000", "20140702", ""]
    cells += ["03.07.2014 12:00", "2014-07-04T00:00:00+02:00", "7/5/2014", "2014-07-05T01"]
    data = "\n".join(["at,z", *(f"{cell},1" for cell in cells)]).encode() + b"\n"
    study = StreamStudy(WEEK).take(data)
    assert content(study) == content(one_byte_at_a_time(StreamStudy(WEEK), data))
    assert study.events_ == 4
    assert study.dropped_ == {
        "at is not a time": 2,
        "no at": 1,
        "at has a UTC offset, unlike the first": 3,
    }
    last = 1404522000.0  # 2014-07-05T01
    assert study.latest_ == last
    np.testing.assert_allclose(study.total_exposure.amount, (last - 1.4e9) / 604800, rtol=1e-12)
    np.testing.assert_allclose(study.rate, 4 / study.total_exposure.amount, rtol=1e-12)


def test_a_line_that_is_too_long_is_dropped_and_not_held(monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 40)
    data = b"x\n0.5\n" + b"0" * 38 + b".1\n" + b"0" * 500 + b"\n0.25\n" + b"0" * 41
    study = one_byte_at_a_time(StreamStudy(LINE), data)
    assert study.dropped_ == {"line longer than 1 MB": 1}
    assert content(study) == content(StreamStudy(LINE).take(data))
    cutter = lines.Lines()
    for _ in range(100):
        cutter.add(b"0" * 30)
        assert len(cutter._data) <= 40
    assert cutter.waiting == 3000


def test_exposure_and_forgetting_are_what_was_asked_for():
    data = events(200, name="x")
    assert StreamStudy(LINE, exposure=Amount(4.0, "game")).take(data).rate == 50.0
    assert 5.0 < StreamStudy(LINE, forget=Amount(10.0)).take(data).rate < 20.0
    with pytest.raises(ValueError, match="number of events"):
        StreamStudy(LINE, forget=Amount(8.0, "week")).begin()
    with pytest.raises(ValueError, match="left out with a cycle"):
        StreamStudy(WEEK, exposure=Amount(8.0, "week")).begin()


@pytest.mark.parametrize(("name", "calls"), [("_sync", 2), ("_rename", 1), ("_write", 3)])
def test_a_snapshot_that_fails_leaves_the_ones_before(tmp_path, monkeypatch, name, calls):
    data = events(60)
    for k in range(calls):
        folder = tmp_path / str(k)
        with Snapshots(folder) as snapshots:
            study = StreamStudy(PLANE).begin()
            for cut in (20, 40):
                snapshots.save(study.take(data[study.offset_ : data.index(b"\n", cut * 15) + 1]))
            before, count = content(study), [0]
            study.take(data[study.offset_ :])
            true = getattr(files, name)

            def broken(*arguments, true=true, count=count, k=k):
                count[0] += 1
                if count[0] == k + 1:
                    raise OSError(28, "No space left on device")
                return true(*arguments)

            with monkeypatch.context() as patch:
                patch.setattr(files, name, broken)
                with pytest.raises(OSError, match="No space"):
                    snapshots.save(study)
            found = content(snapshots.newest())
            replaced = name == "_sync" and k == 1  # the folder, when the file has its name
            assert found == (content(study) if replaced else before)
            assert not list(folder.glob(".hplus*"))


@pytest.mark.parametrize("damage", ["torn", "flipped", "empty"])
def test_a_damaged_snapshot_falls_back_to_the_one_before(tmp_path, damage):
    data = events(60)
    with Snapshots(tmp_path) as snapshots:
        study = StreamStudy(PLANE).take(data[:300])
        snapshots.save(study)
        before, offset = content(study), study.offset_
        snapshots.save(study.take(data[300:]))
    newest = tmp_path / SLOTS[1]
    good = newest.read_bytes()
    flipped = good[:-100] + bytes([good[-100] ^ 1]) + good[-99:]
    newest.write_bytes({"torn": good[:-1], "flipped": flipped, "empty": b""}[damage])
    with Snapshots(tmp_path) as snapshots:
        with pytest.warns(UserWarning, match=f"at byte {offset}, is used instead"):
            kept = snapshots.newest()
        assert content(kept) == before
        snapshots.save(kept.take(data[offset:]))
        assert newest.read_bytes() == good  # the damaged one was replaced, not the good one
        (tmp_path / SLOTS[0]).write_bytes(b"x")
        newest.write_bytes(b"x")
        with pytest.raises(DamagedError, match="no snapshot"):
            snapshots.newest()


def test_a_folder_is_for_one_process_at_a_time(tmp_path):
    with Snapshots(tmp_path), pytest.raises(ValueError, match="one process at a time"):
        Snapshots(tmp_path)
    Snapshots(tmp_path).__exit__()


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_goes_on_as_if_it_had_never_stopped(tmp_path, packed):
    data, path, state = events(500), tmp_path / "events.csv", tmp_path / "state"

    def write(part):
        path.write_bytes(gzip.compress(part) if packed else part)

    write(data[:5001])
    told, said = run(path, "--state", state, "--every", "100")
    assert [line["events"] for line in told][:2] == [100, 200]
    assert told[-1]["offset"] == data[:5001].rindex(b"\n") + 1
    assert "incomplete line" in said
    write(data)
    told, said = run(path, "--state", state, "--every", "100", "-o", tmp_path / "model.hplus")
    assert "Resuming after" in said
    assert told[-1]["offset"] == len(data)
    with Snapshots(state) as snapshots:
        assert content(snapshots.newest()) == content(StreamStudy(PLANE).take(data))
    assert load(tmp_path / "model.hplus").events_ == 500
    assert run(path, "--state", state)[0] == []


def test_a_state_of_another_method_goes_on_with_it(tmp_path):
    data, path, state = events(60), tmp_path / "events.csv", tmp_path / "state"
    path.write_bytes(data[:400])
    run(path, "--state", state, "--method", "spppot", "--budget", "20")
    path.write_bytes(data)
    run(path, "--state", state, "--budget", "20")
    with Snapshots(state) as snapshots:
        kept = snapshots.newest()
    assert content(kept) == content(StreamStudy(PLANE, "spppot", 20).take(data))
    assert "left out for --method tree, got 20" in _flat(run(path, "--budget", "20", code=2))


def test_a_state_of_version_0_1_0_goes_on_and_can_be_looked_at(tmp_path):
    state, path, data = tmp_path / "state", tmp_path / "events.csv", events(30)
    state.mkdir()
    shutil.copy(Path(__file__).parents[1] / "stored" / "study_stream.hplus", state / SLOTS[0])
    before = load(state / SLOTS[0])
    path.write_bytes(before.header_.encode().ljust(before.offset_, b"\n") + data[4:])
    shown = CliRunner().invoke(hplus, ["info", str(state), "--json"])
    assert json.loads(shown.stdout)["events"] == before.events_ == 60
    run(path, "--state", state)
    with Snapshots(state) as snapshots:
        kept = snapshots.newest()
    assert (kept.method, kept.events_) == ("spppot", 90)
    assert content(kept) == content(before.take(data[4:]))


def test_what_does_not_belong_together_is_refused_with_a_code(tmp_path):
    data, path, state = events(100), tmp_path / "events.csv", tmp_path / "state"
    path.write_bytes(data)
    run(path, "--state", state)
    assert "method tree, not pmd" in _flat(run(path, "--state", state, "--method", "pmd", code=2))
    assert "forget none, not 5" in _flat(run(path, "--state", state, "--forget", "5", code=2))
    assert "must be a folder" in _flat(run(path, "--state", path, code=2))
    run(tmp_path / "none.csv", "--state", tmp_path / "new", code=3)
    assert not (tmp_path / "new").exists()
    path.write_bytes(data[:500])
    assert "bytes that were read before" in _flat(run(path, "--state", state, code=3))
    path.write_bytes(b"y,x" + data[3:])
    assert "must begin with the header 'x,y'" in _flat(run(path, "--state", state, code=3))
    with Snapshots(state):
        assert "one process at a time" in _flat(run(path, "--state", state, code=2))
    for slot in SLOTS:
        (state / slot).write_bytes(b"nothing")
    assert "can be read" in _flat(run(path, "--state", state, code=4))
    assert "No snapshots are saved" in _flat(run(path))


def _flat(found):
    return " ".join(found[1].split())


def test_a_pipe_sends_again_or_says_that_it_is_live(tmp_path, piped, capfd):
    data, state = events(120), tmp_path / "state"
    cut = data.index(b"\n", 700) + 1
    piped(data[:cut], "--state", state)
    piped(data, "--state", state)
    with Snapshots(state) as snapshots:
        whole = snapshots.newest()
        assert content(whole) == content(StreamStudy(PLANE).take(data))
    piped(data[cut:], "--state", state, "--live")
    with Snapshots(state) as snapshots:
        more = snapshots.newest()
    assert more.offset_ == len(data) + len(data) - cut
    assert content(more) == content(whole.take(data[cut:]))


def once_there(path, *acts):
    """Act in a thread when a file has appeared."""

    def wait():
        while not path.exists():
            time.sleep(0.01)
        for act in acts:
            act()

    threading.Thread(target=wait, daemon=True).start()


def test_a_signal_ends_a_live_stream_with_all_lines_safe(tmp_path, piped, capfd):
    data, state = events(50), tmp_path / "state"
    once_there(state / SLOTS[0], lambda: os.kill(os.getpid(), signal.SIGTERM))
    code = piped(data + b"0.5,", "--state", state, "--seconds", "0.05", closed=False)
    assert code == 130
    told = capfd.readouterr()
    assert json.loads(told.out.splitlines()[-1])["offset"] == len(data)
    assert "incomplete" not in told.err  # it would have gone on
    with Snapshots(state) as snapshots:
        assert content(snapshots.newest()) == content(StreamStudy(PLANE).take(data))


def test_quiet_lines_become_safe_and_a_file_can_be_followed(tmp_path, monkeypatch, capfd):
    data, path, state = events(30), tmp_path / "events.csv", tmp_path / "state"
    path.write_bytes(data[:205])
    monkeypatch.setattr(feeds, "PATIENCE", 0.01)

    def grow():
        with open(path, "ab") as file:
            file.write(data[205:])

    once_there(state / SLOTS[0], grow)
    once_there(state / SLOTS[1], lambda: os.kill(os.getpid(), signal.SIGINT))
    words = ["stream", str(path), "--columns", "x,y", "--window", "0,0,1,1", "--follow", "--json"]
    words += ["--state", str(state), "--seconds", "0.05"]
    assert hplus.main(words, standalone_mode=False) == 130
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["offset"] for line in told] == [data[:205].rindex(b"\n") + 1, len(data)]


def test_times_that_look_rounded_at_the_start_are_taken_as_they_are(tmp_path):
    path, state, whole = tmp_path / "a.csv", tmp_path / "state", tmp_path / "whole.hplus"
    stamps = np.datetime64("2026-01-05T00:00:00") + np.arange(800).astype("timedelta64[h]")
    stamps[60:] += np.timedelta64(7, "m")
    rows = [f"{t}\n" for t in stamps]
    words = ["stream", str(path), "--time", "at", "--from", "2026-01-05", "--cycle", "day"]
    words += ["--state", str(state), "-o", str(whole), "--json"]
    frames = []
    for seen in (60, 800):
        path.write_text("at\n" + "".join(rows[:seen]))
        found = CliRunner().invoke(hplus, words)
        assert found.exit_code == 0, found.output
        frames.append(plan(str(path), time="at", start="2026-01-05", end=NO_END, cycle="day"))
    assert [frame.clock.spread for frame in frames] == [3600.0, 60.0]
    study = StreamStudy(frames[0]).fit(str(path))
    assert study.settings() == load(whole).settings()
    Z = np.linspace(0.0, 24.0, 50)[:, None]
    np.testing.assert_array_equal(study.model_.predict(Z), load(whole).model_.predict(Z))


def test_a_header_without_the_columns_is_refused():
    with pytest.raises(TableError, match="column 'x' is not in"):
        StreamStudy(LINE).take(b"a,b\n1,2\n")


def test_pictures_are_darkest_where_the_rate_is_highest():
    shape = np.full((31, 31), 0.1)
    shape[25:, :6] = 9.0
    drawn = picture(shape)
    assert (len(drawn), len(drawn[0])) == (10, 30)
    assert drawn[-1][-1] == SHADES[-1]
    assert drawn[0][0] == drawn[0][-1] == drawn[-1][0] == SHADES[0]
    assert bars(np.array([0.0, 1.0, 0.5])) == BARS[0] + BARS[-1] + BARS[4]


@pytest.mark.parametrize(("frame", "method"), [(PLANE, "spppot"), (LINE, "pmd")])
def test_the_loss_is_that_of_the_model_as_it_was_before_the_events(frame, method):
    study = StreamStudy(frame, method).take(events(300))
    X = np.random.RandomState(1).rand(99, frame.window.dimension)
    preview = Preview(study.model_)
    preview.score_events(X)
    assert abs(preview.loss()) < 1e-12  # a constant rate, before the first look
    preview.update()
    preview.score_events(X)
    np.testing.assert_allclose(preview.loss(), -study.model_.score(X), atol=0.03)
    assert np.isnan(preview.loss())


def test_the_loss_of_trees_is_that_of_a_histogram_of_the_events_before():
    study = StreamStudy(LINE).take(events(4000, name="x"))
    X = np.random.RandomState(1).rand(500, 1)
    preview = Preview(study.model_)
    preview.update()
    for _ in range(2):  # events that were scored count after the next update only
        preview.score_events(X)
        np.testing.assert_allclose(preview.loss(), -study.model_.score(X), atol=0.1)
    before = np.mean(preview.shape[:60])
    preview.update()
    assert np.mean(preview.shape[:60]) < before


def test_a_stream_that_forgets_goes_on_with_what_is_left_of_its_events():
    study = StreamStudy(LINE, forget=Amount(10.0)).take(events(300, name="x"))
    preview = Preview(study.model_)
    assert preview._counts.sum() - preview.grid.size == pytest.approx(study.rate)


def test_a_terminal_shows_figures_and_a_map(capsys):
    study = StreamStudy(PLANE).take(events(300))
    preview = Preview(study.model_)
    preview.update()
    with Picture(safe=True) as view:
        view.tick(study)
        view.show(study, preview, -0.25)
    shown = capsys.readouterr().out
    assert f"{study.offset_:,} bytes" in shown
    assert "-0.2500" in shown
    assert SHADES[-1] in shown


def test_kills_at_random_instants_lose_nothing_that_was_said_to_be_safe(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import kills

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
        seen = kills.kill_streams(5, tmp_path)
        assert seen["kills"] == 5
        assert kills.kill_saves(5, tmp_path)["kills"] == 5
