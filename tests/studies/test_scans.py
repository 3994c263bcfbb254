"""The same model whatever the parts: files, order, threads, checkpoints, merges, clusters."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone

from hplus import Box, EventStudy, load, save
from hplus.files import parquet as parquet_files
from hplus.files.feeds import TableError
from hplus.files.tables import as_table
from hplus.rates.statistic import Statistic
from hplus.studies import checkpoints
from hplus.studies.checkpoints import scan_with_checkpoints
from hplus.studies.event_summary import summary_of
from hplus.studies.event_weights import weight_scale
from hplus.studies.merging import merge_studies, update_study
from hplus.studies.plans import plan
from hplus.studies.scans import scan_events

RNG = np.random.default_rng(0)
N = 4000
PLACES = np.round(RNG.beta(2, 3, (N, 2)) * 8.0, 1)  # many repeated positions
DAYS = np.sort(RNG.integers(0, 70, N))
WHEN = np.datetime64("2026-01-05") + DAYS.astype("timedelta64[D]")
EVENTS = {"x": PLACES[:, 0], "y": PLACES[:, 1], "when": WHEN.astype("datetime64[ms]")}

FRAMES = {
    "places": {"columns": ("x", "y"), "window": (0, 0, 8, 8)},
    "times": {"time": "when", "start": "2026-01-05", "end": "2026-03-16"},
    "both": {
        "columns": ("x", "y"), "window": (0, 0, 8, 8), "time": "when", "start": "2026-01-05",
        "end": "2026-03-16", "cycle": "week",
    },
}  # fmt: skip


def written(path, rows, group=None):
    table = pa.table({name: column[rows] for name, column in EVENTS.items()})
    parquet.write_table(table, path, row_group_size=group)
    return str(path)


def as_files(folder, order, many, group=None):
    folder.mkdir()
    parts = np.array_split(order, many)
    return [written(folder / f"part-{i}.parquet", part, group) for i, part in enumerate(parts)]


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(parquet_files, "ROWS_PER_PART", 500)


@pytest.fixture(params=FRAMES)
def study(request):
    frame = plan(EVENTS, **FRAMES[request.param])
    return EventStudy(frame, model="tree", updatable=True)


def summary(study, source, jobs=None):
    scan = study.new_scan()
    scan_events(as_table(source), scan, jobs)
    return scan, summary_of(scan)


def drawn(scan):
    """What a fit gets of a scan."""
    events = scan.events
    return (
        *events.learned(), *events.held, *events.everything, events.joint(),
        events.learned_sample.X.tobytes(), events.held_sample.X.tobytes(),
    )  # fmt: skip


@pytest.mark.parametrize("few", [False, True], ids=["all rows kept", "a sample"])
def test_files_order_and_threads_change_nothing(study, tmp_path, small_parts, monkeypatch, few):
    if few:
        monkeypatch.setattr("hplus.studies.split_events.MAX_SAMPLE", 300)
    whole, once = summary(study, EVENTS)
    assert once.kept == N
    shuffled = np.random.default_rng(1).permutation(N)
    for i, (order, many, group, jobs) in enumerate(
        [(np.arange(N), 1, 300, 1), (shuffled, 2, 700, 4), (shuffled[::-1], 7, None, 2)]
    ):
        scan, found = summary(study, as_files(tmp_path / str(i), order, many, group), jobs)
        assert found == once
        assert drawn(scan) == drawn(whole)


def test_sums_of_weights_do_not_depend_on_the_order(tmp_path, small_parts):
    weighted = EVENTS | {"w": np.random.default_rng(3).gamma(0.3, 1.0, N) * 1e-3}
    frame = plan(weighted, **FRAMES["places"], weight="w")
    order = np.random.default_rng(4).permutation(N)
    moved = {name: column[order] for name, column in weighted.items()}
    scales = [weight_scale(as_table(table), frame) for table in (weighted, moved)]
    assert scales[0] == scales[1]
    w = weighted["w"]
    assert scales[0] == pytest.approx((np.sum(w**2) / np.sum(w), w.max(), np.sum(w)), rel=1e-12)
    assert scales[0].total == math.fsum(w)


def test_what_is_held_out_is_not_learned_from(study):
    scan, _ = summary(study, EVENTS)
    events = scan.events
    (learned, *_), (held, *_), (everything, *_) = events.learned(), events.held, events.everything
    assert learned.events + held.events == everything.events == N
    if study.frame.clock is None:
        assert abs(held.events - 0.2 * N) < 5 * np.sqrt(0.16 * N)
        assert Statistic.of(held.window, events.held_sample.X) == held
        assert Statistic.of(held.window, events.learned_sample.X) == learned
        # repeated positions are divided, not held out as a whole
        assert np.mean(np.isin(held.codes, learned.codes)) > 0.3


def document(path):
    """A model file without what says when and from what it was made."""
    raw = Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    text = json.loads(json.loads(raw[8 : 8 + size])["__metadata__"]["hplus"])
    for part in (text["model"]["fitted"], text):
        for name in ("made_with_", "summary", "sha256"):
            part.pop(name, None)
    text["model"]["fitted"]["reading_"]["fields"].pop("file")
    text["model"]["params"].pop("n_jobs")
    return text, raw[8 + size :]


def test_model_files_are_the_same_by_files_merge_and_update(tmp_path, small_parts):
    frame = plan(EVENTS, **FRAMES["places"])
    few = 1500
    order = np.random.default_rng(2).permutation(few)
    first, second, *_ = as_files(tmp_path / "halves", order, 2)

    def fitted(*sources, jobs=None):
        return EventStudy(frame, model="tree", updatable=True, n_jobs=jobs).fit(list(sources))

    found = [
        EventStudy(frame, model="tree", updatable=True).fit(
            {name: column[:few] for name, column in EVENTS.items()}
        ),
        fitted(first, second, jobs=2),
        merge_studies([fitted(second), fitted(first)]),
        update_study(fitted(first), second),
    ]
    for i, study in enumerate(found):
        save(study, tmp_path / f"{i}.hplus")
    documents = [document(tmp_path / f"{i}.hplus") for i in range(len(found))]
    assert all(one == documents[0] for one in documents[1:])
    assert load(tmp_path / "2.hplus").reading_.kept == few


def test_models_with_weights_are_merged_and_updated_to_that_of_all_events():
    weighted = EVENTS | {"w": 0.1 + np.random.default_rng(3).gamma(0.5, 1.0, N)}
    weighted["w"][:1900] *= 40.0  # so that the units of the parts differ
    halves = np.s_[:1900], np.s_[1900:]
    low, high = ({k: v[half] for k, v in weighted.items()} for half in halves)
    frame = plan(weighted, **FRAMES["places"], weight="w")
    asked = EventStudy(frame, model="tree", updatable=True, holdout=0.0)
    whole = clone(asked).fit(weighted)
    parts = [clone(asked).fit(part) for part in (low, high)]
    assert parts[0].weights_["unit"] > 10.0 * parts[1].weights_["unit"]
    for found in (merge_studies(parts), update_study(parts[1], low)):
        assert found.weights_ == pytest.approx(whole.weights_)
        assert found.reading_.kept == N
        np.testing.assert_allclose(found.predict(weighted), whole.predict(weighted), rtol=1e-3)


def test_models_that_do_not_belong_together_are_not_merged():
    frame = plan(EVENTS, **FRAMES["places"])
    first = EventStudy(frame, model="tree", updatable=True, holdout=0.0).fit(EVENTS)
    other = EventStudy(frame, model="tree", updatable=True, holdout=0.3).fit(EVENTS)
    plain = EventStudy(frame, model="tree", holdout=0.0).fit(EVENTS)
    with pytest.raises(ValueError, match=r"the same holdout to be merged, got 0\.0 and 0\.3"):
        merge_studies([first, other])
    with pytest.raises(ValueError, match="fit it with updatable="):
        update_study(plain, EVENTS)


def test_an_interrupted_scan_goes_on(study, tmp_path, small_parts, monkeypatch):
    files = as_files(tmp_path / "files", np.arange(N), 6)
    _, once = summary(study, files)
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", 0.0)
    read = []
    points = type(study.frame).points

    def stopping(self, chunk, *rest, **more):
        read.append(len(chunk))
        if len(read) == 5:
            raise KeyboardInterrupt
        return points(self, chunk, *rest, **more)

    folder = str(tmp_path / "scan")
    with monkeypatch.context() as patch:
        patch.setattr(type(study.frame), "points", stopping)
        with pytest.raises(KeyboardInterrupt):
            scan_with_checkpoints(as_table(files), study.new_scan(), folder)
    before = load(tmp_path / "scan" / "scan.hplus")
    assert 0 < before.kept < N
    scan = study.new_scan()
    scan_with_checkpoints(as_table(files), scan, folder)
    assert summary_of(scan) == once
    with pytest.raises(ValueError, match="no longer among the files"):
        scan_with_checkpoints(as_table(files[1:]), study.new_scan(), folder)
    study.random_state = 5
    with pytest.raises(ValueError, match="must be that of the same fit"):
        scan_with_checkpoints(as_table(files), study.new_scan(), folder)


def test_a_row_that_occurs_very_often_is_neither_missed_nor_drawn_as_a_whole(monkeypatch):
    monkeypatch.setattr("hplus.studies.split_events.MAX_SAMPLE", 2000)
    rng = np.random.default_rng(0)
    at = np.where(rng.random(40_000) < 0.5, 0.25, rng.random(40_000))
    scan, _ = summary(EventStudy(plan({"x": at}, ("x",), window=(0, 1))), {"x": at})
    for part, sample in (
        (scan.events.learned()[0], scan.events.learned_sample.X[:, 0]),
        (scan.events.held[0], scan.events.held_sample.X[:, 0]),
    ):
        assert 500 < len(sample) <= 2000 < part.events
        assert np.mean(np.abs(sample - 0.25) < 1e-9) == pytest.approx(0.5, abs=0.07)
        assert np.mean(sample > 0.6) == pytest.approx(0.2, abs=0.05)


def test_a_statistic_of_files_is_that_of_their_rows(tmp_path, small_parts):
    files = as_files(tmp_path / "files", np.arange(N), 3, 250)
    window = Box((0, 0), (8, 5))
    inside = window.contains(PLACES)
    expected = Statistic.of(window, PLACES[inside])
    for source in (files, str(tmp_path / "files"), str(tmp_path / "files" / "*.parquet")):
        assert Statistic.scan(source, window, ["x", "y"], n_jobs=2) == expected
    table = pa.table({"x": EVENTS["x"], "y": EVENTS["y"]})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(300))
    assert Statistic.scan(stream, window, ["x", "y"]) == expected
    weighted = Statistic.scan(files, window, ["x", "y"], weight="y", where="x > 1")
    rows = inside & (PLACES[:, 0] > 1)
    assert weighted == Statistic.of(window, PLACES[rows], PLACES[rows, 1])


def test_columns_of_folders_are_columns_of_their_files(tmp_path):
    for year, rows in ((2024, np.arange(100)), (2025, np.arange(100, 250))):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        written(folder / "part.parquet", rows)
    (tmp_path / "_SUCCESS").write_text("")
    window = Box((0, 0), (8, 8))
    for where, rows in (("year == 2025", slice(100, 250)), ("year == '2024' and x > 2", None)):
        rows = np.flatnonzero(PLACES[:100, 0] > 2) if rows is None else rows
        found = Statistic.scan(str(tmp_path), window, ["x", "y"], where=where)
        assert found == Statistic.of(window, PLACES[rows])


class TestBadParts:
    @pytest.fixture
    def folder(self, tmp_path):
        as_files(tmp_path / "files", np.arange(N), 3)
        return tmp_path / "files"

    def scanned(self, folder, skip=False):
        window = Box((0, 0), (8, 8))
        return Statistic.scan(str(folder), window, ["x", "y"], skip_bad=skip)

    @pytest.mark.parametrize(
        ("spoil", "said"),
        [
            (lambda path: path.write_bytes(b""), "is empty: a table needs a header"),
            (lambda path: path.write_bytes(path.read_bytes()[:-200]), "part-1.parquet cannot be"),
            (
                lambda path: parquet.write_table(pa.table({"x": [1.0], "z": [1.0]}), path),
                "column 'y' is not in .*part-1.parquet",
            ),
            (
                lambda path: parquet.write_table(pa.table({"x": ["a"], "y": [1.0]}), path),
                "column 'x' of .*part-1.parquet must hold numbers, as in the other files, got text",
            ),
        ],
        ids=["empty", "truncated", "other columns", "another type"],
    )
    def test_a_bad_file_is_named_or_skipped(self, folder, spoil, said):
        spoil(folder / "part-1.parquet")
        with pytest.raises(TableError, match=said):
            self.scanned(folder)
        assert self.scanned(folder, skip=True).events == len(PLACES) - len(
            np.array_split(np.arange(N), 3)[1]
        )

    def test_a_corrupt_row_group_is_named(self, tmp_path, small_parts):
        path = Path(written(tmp_path / "one.parquet", np.arange(N), 500))
        about = parquet.ParquetFile(path).metadata.row_group(3).column(0)
        raw = bytearray(path.read_bytes())
        start = about.dictionary_page_offset or about.data_page_offset
        raw[start : start + about.total_compressed_size] = b"\xff" * about.total_compressed_size
        path.write_bytes(raw)
        study = EventStudy(plan(EVENTS, **FRAMES["places"]), model="tree")
        with pytest.raises(TableError, match=r"row group 3 cannot be read.*1,500 rows of other"):
            study.fit(str(path))
        study.skip_bad = True
        reading = study.fit(str(path)).reading_
        assert reading.kept == N - 500
        assert "row group 3" in reading.skipped[0]

    def test_other_files_of_a_folder_are_left_alone(self, folder):
        (folder / "README").write_text("How these files came about.")
        with pytest.warns(UserWarning, match="left alone: README"):
            assert self.scanned(folder).events == N
        (folder / "old.csv").write_text("x,y\n1,2\n")
        with pytest.raises(TableError, match="one format, got CSV and Parquet"):
            self.scanned(folder)

    def test_a_pattern_that_matches_nothing_is_an_error(self, tmp_path):
        with pytest.raises(TableError, match="matches no file"):
            self.scanned(tmp_path / "*.parquet")
        with pytest.raises(TableError, match="must hold data files"):
            self.scanned(tmp_path)

    def test_a_file_counts_once(self, folder):
        path = str(folder / "part-0.parquet")
        with pytest.raises(TableError, match="must be named once"):
            as_table([path, str(folder / "*.parquet")])
