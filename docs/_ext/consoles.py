"""The commands on the pages: found, run in this process, and compared with what the page shows.

    python docs/_ext/consoles.py docs/jobs/*.md     writes what the commands print into the pages

A page whose first line is `<!-- slow -->` takes long: the tests run its commands with less effort
(and, after `<!-- slow: 1500 rows -->`, on so many rows) and then compare words, not numbers.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from itertools import islice
from math import isclose
from pathlib import Path

from click.testing import CliRunner

from hplus.cli.commands import hplus

FENCE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
SLOW = re.compile(r"<!-- slow(?:: (\d+) rows)? -->")
CHANGING = ("seconds", "made ")
"""Beginnings of lines that are never the same."""

LEARNED = (
    "model ", "delay ", "distance ", "scales ", "positions ", "variation ", "place and time ",
    "Events repeat nearby",
)  # fmt: skip
"""Beginnings of lines in which a fit of fewer events may use other words."""

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]\d+)?")
ROUNDING = 1e-2
"""Relative difference between machines: sums round differently in other BLAS kernels."""

CUT = "..."
"""Stands for lines that a page leaves out."""


@dataclass(frozen=True)
class Command:
    """A command as typed, the lines that the page shows after it, and where these are."""

    line: str
    shown: tuple[str, ...]
    start: int
    end: int

    @property
    def refused(self) -> bool:
        """Does the page show that it is refused?"""
        return bool(self.shown) and self.shown[0].startswith("Error:")


def commands(text: str) -> Iterator[Command]:
    """The commands of a page, in order."""
    for fence in FENCE.finditer(text):
        start = fence.start(1)
        for part in TYPED.finditer(fence[1]):
            line = part[1].replace("\\\n", " ")
            shown = tuple(part[2].splitlines())
            yield Command(line, shown, start + part.start(2), start + part.end(2))


def shown_only(text: str) -> Iterator[list[str]]:
    """The words after `hplus` of commands in bash blocks, which are shown and not run."""
    for fence in SHOWN.finditer(text):
        for line in fence[1].replace("\\\n", " ").splitlines():
            stages = _stages(shlex.split(line.partition(" > ")[0], comments=True))
            yield from (words[1:] for words in stages if words[:1] == ["hplus"])


class Shell:
    """A folder in which commands run; `rows` shortens the data that are handed out."""

    def __init__(self, folder: Path, rows: int | None = None) -> None:
        self.folder, self.rows = folder, rows

    def run(self, line: str, refused: bool = False) -> str:
        """What a command prints, with pipes and one `> FILE`; its exit code must be as shown."""
        words = shlex.split(line, comments=True)
        target = None
        if ">" in words:
            words, target = words[: words.index(">")], words[words.index(">") + 1]
        text = ""
        stages = _stages(words)
        for i, stage in enumerate(stages):
            last = i == len(stages) - 1 and target is None
            text = self._stage(stage, text, last, refused)
        if target is None:
            return text
        (self.folder / target).write_text(text)
        return ""

    def _stage(self, words: list[str], text: str, last: bool, refused: bool) -> str:
        name, *rest = words
        if name == "hplus":
            return self._hplus(rest, text, last, refused)
        if name == "cat":
            return (self.folder / rest[0]).read_text()
        if name == "head":
            number, *files = rest[1:] if rest[0] == "-n" else (rest[0][1:], *rest[1:])
            lines = (self.folder / files[0]).read_text() if files else text
            return "".join(islice(lines.splitlines(keepends=True), int(number)))
        raise ValueError(f"pages may use hplus, cat and head, got {name}.")

    def _hplus(self, words: list[str], text: str, last: bool, refused: bool) -> str:
        with chdir(self.folder), tempfile.TemporaryFile() as pipe:
            # a stream reads the file itself, not what Python makes of it
            pipe.write(text.encode())
            pipe.seek(0)
            result = CliRunner().invoke(hplus, words, input=pipe)
        if (result.exit_code != 0) != refused:
            raise AssertionError(f"hplus {shlex.join(words)}: {result.output}{result.exception!r}")
        if words[0] == "data" and self.rows:
            _shorten(self.folder / result.stderr.split()[1].rstrip("."), self.rows)
        return result.output if last else result.stdout


def _stages(words: list[str]) -> list[list[str]]:
    stages: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return stages


def _shorten(path: Path, rows: int) -> None:
    """Keep so many rows of a table, evenly spaced, so that they span what all of them span."""
    opened = {".gz": gzip.open, ".csv": open}.get(path.suffix)
    if opened is None:
        return
    with opened(path, "rt") as file:
        head, *lines = file
    with opened(path, "wt") as file:
        file.writelines([head, *lines[:: max(1, len(lines) // rows)]])


def missing(shown: tuple[str, ...], printed: str, exact: bool) -> list[str]:
    """Lines that a page shows and the command does not print; words alone unless `exact`."""
    lines = [line.rstrip() for line in printed.splitlines()]
    wanted = [s.rstrip() for s in shown if s.strip() and s != CUT and not s.startswith(CHANGING)]
    if exact:
        return [line for line in wanted if not any(_agree(line, other) for other in lines)]
    heads = [_words(line) for line in lines]
    # where a line is folded depends on its numbers
    wanted = [line for line in wanted if line[0] != " " and not line.startswith(LEARNED)]
    return [line for line in wanted if _words(line) not in heads]


def _agree(line: str, other: str) -> bool:
    """The same words, and numbers that differ by rounding at most: machines add differently."""
    if line == other:
        return True
    a, b = NUMBER.findall(line), NUMBER.findall(other)
    if NUMBER.sub("#", line) != NUMBER.sub("#", other) or len(a) != len(b):
        return False
    return all(isclose(float(x), float(y), rel_tol=ROUNDING) for x, y in zip(a, b, strict=True))


def _words(line: str) -> str:
    """The beginning of a line, up to its first number or the gap after a label."""
    return re.split(r"[+-]?\d|  ", line.strip(), maxsplit=1)[0].strip()


def slow(text: str) -> tuple[bool, int | None]:
    """Does a page take long, and how many rows are enough to try it?"""
    found = SLOW.match(text)
    return found is not None, int(found[1]) if found and found[1] else None


def rewritten(text: str, folder: Path) -> str:
    """The page with what its commands print now, cut where it was cut."""
    shell, pieces, at = Shell(folder), [], 0
    for command in commands(text):
        printed = [line.rstrip() for line in shell.run(command.line, command.refused).splitlines()]
        lines = _cut(printed, command.shown)
        pieces += [text[at : command.start], "".join(f"{line}\n" for line in lines)]
        at = command.end
    return "".join([*pieces, text[at:]])


def _cut(printed: list[str], shown: tuple[str, ...]) -> list[str]:
    """As many lines before and after `...` as the page has."""
    if CUT not in shown:
        return printed
    head = shown.index(CUT)
    tail = len(shown) - head - 1
    return [*printed[:head], CUT, *(printed[-tail:] if tail else [])]


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    for name in sys.argv[1:]:
        page = Path(name)
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(rewritten(page.read_text(), Path(folder)))
        print(f"wrote {name}")
