"""Messages of the library, which name its arguments, in terms of command-line options."""

from __future__ import annotations

import re

import click

OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in ("columns", "window", "within", "unit", "time", "cycle", "exposure", "holdout",
                 "most_dropped", "lonlat", "forget", "budget", "level", "mark", "events",
                 "where", "weight", "trial", "by", "time_unit", "origin")
} | {"start": "--from", "end": "--to", "lasting": "--for", "zone": "--timezone",
     "form": "--time-format", "n_paths": "--paths", "types": "--type"}  # fmt: skip
"""The options that stand for arguments of the library, beside those of the command itself."""


def option_names() -> dict[str, str]:
    """The options of the current command, by the arguments that they stand for."""
    ctx = click.get_current_context(silent=True)
    command = ctx.command if ctx else None
    if ctx and isinstance(command, click.Group):
        command = command.get_command(ctx, ctx.invoked_subcommand or "")
    own = [p for p in (command.params if command else []) if isinstance(p, click.Option)]
    return OPTIONS | {str(p.name): max(p.opts, key=len) for p in own}


def as_options(text: str) -> str:
    """A message of the library, with options in place of arguments.

    "window=(0, 1), start='2026-01-01'" becomes "--window 0,1 --from 2026-01-01", and a sentence
    that begins with "start must", or another verb, begins with "--from must".
    """
    options = option_names()
    names = "|".join(options)
    value = r"\([^)]*\)|'[^']*'|\"[^\"]*\"|[\w+-]+(?:\.\w+)*"

    def option(found: re.Match[str]) -> str:
        name, said, comma = found.groups()
        if said is None:
            return options[name] + (comma or "")
        said = re.sub(r"[()'\" ]", "", said).rstrip(",")
        return f"{options[name]}{'=' if said.startswith('-') else ' '}{said}{' ' if comma else ''}"

    text = re.sub(rf"\bcolumns=({value}), lonlat=True", r"lonlat=\1", text)
    text = re.sub(rf"\b({names})=({value})?(, (?=\w+=[^\s:,]))?", option, text)
    return re.sub(
        rf"^({names})(?= (?:must|compares|joins|knows|tests|lists)\b)",
        lambda found: options[found[1]],
        text,
    )
