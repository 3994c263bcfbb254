"""What all commands share: errors as one sentence and an exit code, options, output, progress."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from hplus import load
from hplus._progress import progress
from hplus.cli.arguments import as_options
from hplus.files.feeds import TableError
from hplus.wording import left_out_words

MAKERS = {
    "EventStudy": "hplus fit",
    "ExcitationStudy": "hplus fit --self-exciting",
    "GroupedStudy": "hplus fit --by",
    "QuantityStudy": "hplus regress",
    "StreamStudy": "hplus stream",
}
"""The command that makes a model of each kind."""

talk = Console(stderr=True, highlight=False, soft_wrap=True)
"""For messages; results go to the standard output."""


class CommandError(click.ClickException):
    """One sentence and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        talk.print(f"[bold red]Error:[/] {escape(self.message)}", markup=True)


@contextmanager
def command_errors() -> Iterator[None]:
    """Turn errors of the library into a `CommandError` that names options instead of arguments."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError:
        # whoever read the output has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise click.exceptions.Exit(0) from None
    except KeyboardInterrupt:
        raise CommandError("interrupted; no partial file was left behind.", 130) from None
    except Exception as error:
        if "HPLUS_DEBUG" in os.environ:
            raise
        raise CommandError(as_options(_sentence(error)), _code(error)) from error


def _code(error: BaseException) -> int:
    kinds: tuple[tuple[type[BaseException], int], ...] = (
        (TableError, 3),
        (ImportError, 6),
        (MemoryError, 7),
        (OSError, 5),
        (ValueError, 2),
        (TypeError, 2),
        (OverflowError, 2),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), 1)


def _sentence(error: BaseException) -> str:
    said = str(error).strip()
    if isinstance(error, MemoryError) and not said:
        return "not enough memory: read fewer rows or ask for a coarser grid."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file'} cannot be written: {error.strerror.lower()}."
    if _code(error) == 1:
        return (
            f"this is a bug in hplus ({type(error).__name__}: {said[:200]}): please report it, "
            "with the output of HPLUS_DEBUG=1."
        )
    return said


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Warnings as one line each, once."""
    shown = set()

    def show(message: Warning | str, *_: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            talk.print(f"[yellow]Note:[/] {escape(as_options(str(message)))}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def note(text: str) -> None:
    """Print a message, apart from the results."""
    talk.print(escape(text))


def note_dropped(dropped: Mapping[str, int], total: int, what: str = "rows") -> None:
    """Print how many rows were dropped, and why."""
    for reason, lost in dropped.items():
        note(f"{lost:,} of {total:,} {what} dropped: {reason}.")


def note_left_out(left_out: Mapping[str, int]) -> None:
    """Print how many rows were left out on purpose."""
    note(f"Left out: {left_out_words(left_out)}.") if left_out else None


class _Command(click.Command):
    """A command that says so if the value of an option was forgotten."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [param for param in self.params if isinstance(param, click.Option)]
        known = {name for option in options for name in option.opts}
        valued = {name: o for o in options if not (o.is_flag or o.count) for name in o.opts}
        for name, value in pairwise(args):
            if name in valued and value in known:
                wanted = valued[name].metavar or "a value"
                raise click.UsageError(f"{name} needs {wanted} before {value}.", ctx)
        return super().parse_args(ctx, args)


def command(*examples: str, more: str = "") -> Callable[[Callable[..., Any]], click.Command]:
    """A subcommand, the help of which ends with examples and `more`."""
    title = "Example:" if len(examples) == 1 else "Examples:"
    return click.command(
        cls=_Command, epilog="\n".join(["", "\b", title, *(f"  {e}" for e in examples), more])
    )


rows_output_option = click.option(
    "-o", "--output", metavar="FILE", help="File to write (default: the standard output)."
)
model_output_option = click.option(
    "-o", "--output", metavar="FILE", help="Model file to write, for example model.hplus."
)
seed_option = click.option(
    "--seed", "random_state", type=int, default=0, show_default=True, help="Random seed."
)
level_option = click.option(
    "--level", default=0.9, show_default=True, help="Confidence level of intervals."
)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
)
most_dropped_option = click.option(
    "--most-dropped",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="Largest share of rows that may be unusable.",
)


@contextmanager
def model_file(path: str) -> Iterator[None]:
    """Turn errors from reading a model file into a `CommandError`."""
    try:
        yield
    except FileNotFoundError as error:
        said = f"{path} does not exist: check the name and the folder."
        raise CommandError(str(error) if Path(path).is_dir() else said, 4) from error
    except IsADirectoryError as error:
        raise CommandError(f"{path} is a folder: name a file in it.", 4) from error
    except PermissionError as error:
        raise CommandError(f"{path} cannot be read: permission denied.", 4) from error
    except (OSError, ValueError) as error:
        raise CommandError(str(error), 4) from error


def model_path(path: str) -> str:
    """A model file, or that of the newest snapshot if the folder of a stream is given."""
    if not Path(path).is_dir():
        return path
    from hplus.storage.slots import newest_file

    with model_file(path):
        return str(newest_file(path))


def load_model(path: str, *kinds: str, group: str | None = None) -> Any:
    """Load a model from a file or from the state of a stream, which may be running.

    An error unless the name of its class is one of `kinds`; a stream learned by trees answers like
    an EventStudy, and so does a `group` of a GroupedStudy.
    """
    from hplus.storage.slots import load_newest

    with model_file(path):
        model = load_newest(path) if Path(path).is_dir() else load(path)
    kind = type(model).__name__
    if group is not None:
        from hplus.cli.grouped import group_of

        return group_of(model, path, group)
    if kind == "StreamStudy" and "EventStudy" in kinds and kind not in kinds:
        from hplus.studies.stream_answers import answering

        return answering(model)
    if kind == "GroupedStudy" and "EventStudy" in kinds and kind not in kinds:
        advice = f"choose one with --group, {', '.join(model.studies_):.100}"
        raise CommandError(f"{path} holds a model for each {model.by}: {advice}.", 2)
    if kinds and kind not in kinds:
        *others, last = dict.fromkeys(MAKERS[name] for name in kinds)
        makers = f"{', '.join(others)} or {last}" if others else last
        got = f"one made with {MAKERS[kind]}" if kind in MAKERS else f"a saved {kind}"
        raise CommandError(f"{path} must hold a model made with {makers}, got {got}.", 4)
    return model


def check_writable(path: str | None) -> None:
    """Fail before a long computation if its result could not be written."""
    if path is None:
        return
    folder = Path(path).resolve().parent
    if Path(path).is_dir():
        raise CommandError(f"{path} is a folder: name a file in it.", 5)
    if not folder.is_dir():
        raise CommandError(f"{path} cannot be written: the folder {folder} does not exist.", 5)
    if not os.access(folder, os.W_OK) or (Path(path).exists() and not os.access(path, os.W_OK)):
        raise CommandError(f"{path} cannot be written: permission denied.", 5)


def print_pairs(title: str, pairs: Mapping[str, str]) -> None:
    """Print a short table of names and values."""
    table = RichTable(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, said in pairs.items():
        table.add_row(name, escape(said))
    console = Console(highlight=False, soft_wrap=False)
    if title:
        console.print(f"[bold]{escape(title)}[/]")
    console.print(table)


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[None]:
    """A bar for each stage of a fit, on a terminal."""
    if quiet or not talk.is_terminal:
        yield
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=talk, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def hook(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        with progress(hook):
            yield
