"""What commands write: text, rows as CSV or JSON, and JSON documents."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hplus.storage.files import replace_file


def write_text(path: str | None, text: str) -> None:
    """Write text to a file, all of it or nothing, or to the standard output."""
    if path is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        replace_file(Path(path).resolve(), [text.encode()])


def rows_as_csv(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> str:
    """Rows with equal keys as CSV; `names` are its columns, in case there are no rows."""
    out = io.StringIO()
    writer = csv.DictWriter(out, names or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write_rows(
    path: str | None, rows: Sequence[Mapping[str, Any]], as_json: bool, names: Sequence[str] = ()
) -> None:
    """Write rows with equal keys as CSV or JSON; `names` are the columns if there may be no row."""
    write_text(path, json_text(rows) + "\n" if as_json else rows_as_csv(rows, names))


def print_json(document: Any) -> None:
    """Print a document; what JSON cannot express is null."""
    write_text(None, json_text(document) + "\n")


def json_text(document: Any, indent: int | None = 2) -> str:
    """A document as JSON; NaN and infinities are null."""
    return json.dumps(_plain(document), indent=indent, ensure_ascii=False, allow_nan=False)


def _plain(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {str(key): _plain(item) for key, item in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(item) for item in part]
    if hasattr(part, "tolist"):
        return _plain(part.tolist())
    if isinstance(part, float) and not abs(part) < float("inf"):
        return None
    return part
