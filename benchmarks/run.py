"""Run the benchmarks, and write one page with their tables."""

from __future__ import annotations

import ast
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date as calendar
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from time import perf_counter
from typing import Any, NamedTuple

import click

from hplus import __version__
from hplus.cli.base import check_writable, json_option, note
from hplus.cli.writing import print_json, write_text

FOLDER, PAGE = Path(__file__).resolve().parent, "docs/benchmarks.md"

ABOUT = """# Benchmarks

`python benchmarks/run.py`, or `make bench`, runs the scripts in `benchmarks/` and writes this \
page. Figures with a bound show it beside them; a script that misses a bound names it.
"""


class Outcome(NamedTuple):
    """How a script ended, what it printed, and which bounds it missed."""

    status: str
    seconds: float = 0.0
    printed: str = ""
    missed: tuple[str, ...] = ()


NOT_RUN = Outcome("not run")

MAX_SECONDS = 7.0 * 86_400.0
"""Seconds after which a script without --limit is stopped."""


@click.command(
    epilog="""
\b
Examples:
  python benchmarks/run.py --quick
  python benchmarks/run.py intensity streaming --data data -o intensity.md

\b
Every script takes --data and --quick, prints Markdown tables and exits with code 1 if a figure
misses its bound; so does this one.
"""
)
@click.argument("names", nargs=-1)
@click.option("--data", metavar="FOLDER", help="Folder with data sets that do not come with hplus.")
@click.option("--quick", is_flag=True, help="Run only the parts that take seconds.")
@click.option("--limit", type=click.FloatRange(min=0.0), metavar="MINUTES",
              help="Stop a script after this long.")  # fmt: skip
@click.option("--date", metavar="DATE", help="Date to print on the page (default: today).")
@click.option("-o", "--output", metavar="FILE", help=f"File to write (default: {PAGE}).")
@json_option
def main(names: tuple[str, ...], output: str | None, as_json: bool, **options: Any) -> None:
    """Run the benchmarks, all or those in NAMES, and write one page with their tables."""
    scripts = _chosen(names)
    output = output or str(FOLDER.parent / PAGE)
    check_writable(output)
    data, quick = options["data"], options["quick"]
    if data and not Path(data).is_dir():
        raise click.UsageError(f"--data must be a folder, got {data}.")
    words = (["--quick"] if quick else []) + (["--data", str(Path(data).resolve())] if data else [])
    facts = machine(options["date"]) | {"options": _options_words(quick, bool(data))}
    runs = dict.fromkeys(_scripts(), NOT_RUN)
    for path in scripts:
        note(f"{path.stem} ...")
        runs[path] = run(path, words, options["limit"], lambda line: click.echo(line, err=as_json))
        note(f"{path.stem}: {_ending(runs[path])}\n")
        write_text(output, page(facts, runs))  # an interrupt keeps what is done
    if as_json:
        print_json({"page": output, "machine": facts, "scripts": [
            {"name": path.stem, **done._asdict(), "rows": rows(done.printed)}
            for path, done in runs.items()
        ]})  # fmt: skip
    else:
        note(f"Wrote {output}.")
    if any(done.status in ("missed", "failed", "stopped") for done in runs.values()):
        raise click.exceptions.Exit(1)


def _scripts() -> list[Path]:
    return sorted(path for path in FOLDER.glob("[a-z]*.py") if path.name != "run.py")


def _chosen(names: tuple[str, ...]) -> list[Path]:
    scripts = {path.stem: path for path in _scripts()}
    for name in names:
        if name not in scripts:
            raise click.UsageError(
                f"There is no benchmark {name!r}: choose from {', '.join(scripts)}."
            )
    return [scripts[name] for name in names or scripts]


def run(path: Path, words: list[str], limit: float | None, show: Callable[[str], Any]) -> Outcome:
    """Run a script to its end, or for `limit` minutes; `show` is called with each line."""
    began, printed, most = perf_counter(), "", 60.0 * limit if limit else MAX_SECONDS
    command = [sys.executable, "-u", str(path), *words]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with TemporaryFile("w+") as errors, subprocess.Popen(command, stderr=errors, **pipes) as child:
        alarm = Timer(most, _stop, (child,))
        alarm.daemon = True
        alarm.start()
        try:
            for line in child.stdout or ():
                printed += line
                show(line.rstrip("\n"))
            code = child.wait()
        finally:
            alarm.cancel()
            _stop(child)
        errors.seek(0)
        said = errors.read().rstrip("\n")
    late = code == -signal.SIGKILL and perf_counter() - began >= most
    if code and not late:
        show(said)
    missed = re.search(r"^Missed: (.*)$", said, re.MULTILINE)
    parts = tuple(missed[1].split("; ")) if missed else ()
    return Outcome(_status(code, late, parts, printed), perf_counter() - began, printed, parts)


def _stop(child: subprocess.Popen[str]) -> None:
    """End a script and the processes that it started."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _status(code: int, late: bool, missed: tuple[str, ...], printed: str) -> str:
    if late:
        return "stopped"
    if code:
        return "missed" if missed else "failed"
    return "met" if rows(printed) else "not run"


def rows(printed: str) -> list[list[str]]:
    """The rows of all tables in a text, without their header rows."""
    found = []
    lines = [line.strip() for line in printed.splitlines()]
    for line, after in pairwise([*lines, ""]):
        if line.startswith("|") and not line.startswith("|--") and not after.startswith("|--"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def machine(date: str | None = None) -> dict[str, str]:
    """What the figures were measured with."""
    import numpy  # noqa: F401, since BLAS is known once it is loaded
    from threadpoolctl import threadpool_info

    blas = {
        f"{part['internal_api']} {part['version']}, {part['num_threads']} threads"
        for part in threadpool_info() if part["user_api"] == "blas"
    }  # fmt: skip
    return {
        "date": date or calendar.today().isoformat(),
        "hplus": __version__,
        "Python": platform.python_version(),
        **{name: version(name.lower()) for name in ("NumPy", "SciPy", "scikit-learn", "numba")},
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "BLAS": "; ".join(sorted(blas)) or "unknown",
        "load": f"{os.getloadavg()[0]:.1f} running processes in the minute before the start",
    }


def page(facts: dict[str, str], runs: dict[Path, Outcome]) -> str:
    """The page of all scripts, including those that were not run."""
    head = ["| machine | |", "|---|---|", *(f"| {name} | {what} |" for name, what in facts.items())]
    parts = [ABOUT, "\n".join(head), *(section(path, done) for path, done in runs.items())]
    folder = FOLDER.parent / "docs" / "papers"
    papers = [f"- {_title(path)}" for path in sorted(folder.glob("*/results.md"))]
    if papers:
        parts += ["## Papers", "`make papers` writes a page for each:", "\n".join(papers)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def section(path: Path, done: Outcome) -> str:
    """One script on the page."""
    about = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    lines = [line for line in done.printed.splitlines() if line.startswith("|") or not line]
    parts = [f"## {path.stem}", about.partition("\n")[0], f"{_capital(_ending(done))}.",
             "\n".join(lines).strip()]  # fmt: skip
    return "\n\n".join(part for part in parts if part)


def _ending(done: Outcome) -> str:
    said = done.printed.strip().rpartition("\n")[2]
    endings = {
        "met": "all bounds met",
        "missed": f"missed its bounds: {'; '.join(done.missed)}",
        "failed": "failed",
        "stopped": "stopped because it took too long; this is what it had printed",
        "not run": f"not run: {said.rstrip('.')}" if said else "not run",
    }
    return endings[done.status] + (f" ({done.seconds:.0f} s)" if done.status != "not run" else "")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _title(path: Path) -> str:
    first = path.read_text("utf-8").partition("\n")[0].lstrip("# ")
    return f"[{first}](papers/{path.parent.name}/results.md)"


def _options_words(quick: bool, data: bool) -> str:
    said = ["only the parts that take seconds"] * quick
    return ", ".join([*said, "with --data" if data else "without --data"])


if __name__ == "__main__":
    main()
