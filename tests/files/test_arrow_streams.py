"""Streams of Arrow record batches in files and pipes."""

import io
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hplus.files import feeds
from hplus.files.feeds import TableError
from hplus.files.tables import open_table

ROWS = pa.table({"x": [0.5, None, 2.5, 3.0], "day": ["a", "b", "a", "c"]})


def written(new):
    out = io.BytesIO()
    with new(out, ROWS.schema) as stream:
        stream.write_table(ROWS, max_chunksize=3)
    return out.getvalue()


def values(table, name):
    return [cell for chunk in table.chunks([name]) for cell in chunk.columns[name].to_pylist()]


@pytest.mark.parametrize("new", [pa.ipc.new_stream, pa.ipc.new_file])
def test_record_batches_are_read_from_files_as_often_as_needed_and_from_a_pipe(
    new, tmp_path, monkeypatch
):
    (tmp_path / "rows.arrow").write_bytes(written(new))
    table = open_table(str(tmp_path / "rows.arrow"))
    assert table.kinds == {"x": "numbers", "day": "text"}
    for name in ("x", "day", "x"):
        assert values(table, name) == ROWS[name].to_pylist()
    stdin = SimpleNamespace(buffer=io.BytesIO(written(new)))
    monkeypatch.setattr(feeds.sys, "stdin", stdin)
    assert values(open_table("-"), "day") == ["a", "b", "a", "c"]


@pytest.mark.parametrize("kept", [6, 40, -300])
def test_a_stream_that_ends_too_early_is_an_error_that_names_the_file(kept, tmp_path):
    path = tmp_path / "cut.arrows"
    path.write_bytes(written(pa.ipc.new_stream)[:kept])
    with pytest.raises(TableError, match=r"cut.arrows cannot be read: .*\.$"):
        values(open_table(str(path)), "x")
