"""Which files a path means: one file, those that a pattern matches, or the data files of a folder.

The folders of a partitioned data set say in their names what all rows in them share: the files in
`year=2024/` have a column `year` with the text "2024".
"""

from __future__ import annotations

import glob
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hplus.files.feeds import TableError

DATA_FORMATS = {
    ".parquet": "Parquet", ".pq": "Parquet", ".csv": "CSV", ".tsv": "CSV", ".txt": "CSV",
    ".json": "JSON", ".jsonl": "JSON", ".ndjson": "JSON", ".arrow": "Arrow", ".feather": "Arrow",
}  # fmt: skip
"""The format of a data file, by how its name ends."""

PACKED = (".gz", ".zst", ".bz2")
"""Endings of compressed files, after that of the format."""

PATTERN_SIGNS = "*?["


class DataFile(NamedTuple):
    """A file, and the columns that all of its rows share, by the names of its folders."""

    path: str
    shared: dict[str, str]


def data_files(source: str | Sequence[str]) -> list[DataFile]:
    """The files that a path, a pattern, a folder, or a list of these means, in order of name."""
    if not isinstance(source, str):
        found = [file for part in source for file in data_files(part)]
        if not found:
            raise TableError("a list of files must name at least one, got none.")
        return _once(found)
    if Path(source).is_dir():
        return _in_folder(Path(source))
    if any(sign in source for sign in PATTERN_SIGNS) and not Path(source).exists():
        paths = sorted(glob.glob(source, recursive=True))
        if not paths:
            raise TableError(f"{source} matches no file: check the pattern and the folder.")
        files = [path for path in paths if Path(path).is_file()]
        folders = [path for path in paths if Path(path).is_dir()]
        return _once([DataFile(path, _shared(Path(path))) for path in files]
                     or [file for path in folders for file in data_files(path)])  # fmt: skip
    return [DataFile(source, {})]


def is_many(source: str | Sequence[str]) -> bool:
    """Does it mean more than one file by its name: a list, a folder or a pattern?"""
    if not isinstance(source, str):
        return True
    signs = any(sign in source for sign in PATTERN_SIGNS)
    return Path(source).is_dir() or (signs and not Path(source).exists())


def format_of(path: Path) -> str:
    """The format of a data file by its name, "" if it is none."""
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return DATA_FORMATS.get(name.suffix.lower(), "")


def _in_folder(folder: Path) -> list[DataFile]:
    """The data files of a folder and its folders, all of one format; others are left alone."""
    try:
        inside = sorted(path for path in folder.rglob("*") if path.is_file())
    except PermissionError as error:
        raise TableError(f"{folder} cannot be read: permission denied.") from error
    seen = [path for path in inside if not _hidden(path.relative_to(folder))]
    formats = {path: format_of(path) for path in seen}
    kinds = sorted({kind for kind in formats.values() if kind})
    if not kinds:
        got = f"{len(seen)} with other names" if seen else "an empty folder"
        raise TableError(
            f"{folder} must hold data files, with names that end in .parquet, .csv or .jsonl, got "
            f"{got}: name the files, or a pattern such as '{folder}/*'."
        )
    if len(kinds) > 1:
        raise TableError(
            f"{folder} must hold data files of one format, got {' and '.join(kinds)}: choose with "
            f"a pattern such as '{folder}/*.parquet'."
        )
    others = [path.name for path, kind in formats.items() if not kind]
    if others:
        warnings.warn(
            f"{folder} has files that are no tables by their names, which are left alone: "
            f"{', '.join(others)[:100]}.",
            stacklevel=2,
        )
    chosen = [path for path, kind in formats.items() if kind]
    return [DataFile(str(path), _shared(path.relative_to(folder))) for path in chosen]


def _hidden(path: Path) -> bool:
    """Is it, or a folder of it, hidden or kept for something else than data, as _SUCCESS is?"""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _shared(path: Path) -> dict[str, str]:
    """Names and values of the folders that are called name=value."""
    pairs = (part.partition("=") for part in path.parts[:-1])
    return {name: value for name, sign, value in pairs if sign and name}


def _once(files: list[DataFile]) -> list[DataFile]:
    """The files, each of them once."""
    named = [str(Path(file.path).resolve()) for file in files]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise TableError(
            f"a file must be named once, got {twice} twice: its rows would count twice."
        )
    return files
