"""The reference of the command line on docs/commands.md, from what click knows.

python docs/_ext/command_line.py     writes it into the page; a test checks that it is current
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from hplus.cli.commands import CODES, COMMANDS, subcommand

PAGE = Path(__file__).parents[1] / "commands.md"


def usage(command: click.Command) -> str:
    """ "hplus fit [OPTIONS] FILE"."""
    return " ".join(["hplus", str(command.name), *command.collect_usage_pieces(_context(command))])


def option_rows(command: click.Command) -> list[tuple[str, str]]:
    """Each option as typed, and what it does."""
    options = (param for param in command.params if isinstance(param, click.Option))
    records = (option.get_help_record(_context(command)) for option in options)
    return [(typed, " ".join(said.split())) for typed, said in filter(None, records)]


def paragraphs(text: str | None) -> list[str]:
    """The paragraphs of a help text, each on one line, without those that are preformatted."""
    parts = (text or "").split("\n\n")
    return [" ".join(part.split()) for part in parts if part.strip() and "\b" not in part]


def examples(command: click.Command) -> str:
    """The lines of its examples."""
    block = (command.epilog or "").partition("\b")[2]
    lines = block.strip("\n").splitlines()[1:]
    kept = []
    for line in lines:
        if line and not line.startswith("  "):
            break
        kept.append(line.removeprefix("  "))
    return "\n".join(kept).strip("\n")


def section(command: click.Command) -> str:
    """A command in Markdown: usage, help, options, examples."""
    options = [f"- `{option}`: {said}" for option, said in option_rows(command)]
    parts = [
        f"### hplus {command.name}",
        f"```text\n{usage(command)}\n```",
        *paragraphs(command.help),
        "\n".join(options),
        f"```bash\n{examples(command)}\n```",
    ]
    return "\n\n".join(parts)


def parts() -> dict[str, str]:
    """What is generated, by the name of its place on the page."""
    codes = {0: "success"} | CODES
    return {
        "exit codes": "\n".join(f"- `{code}`: {meaning}" for code, meaning in codes.items()),
        "commands": "\n\n".join(section(subcommand(name)) for name in sorted(COMMANDS)),
    }


def current(page: str) -> str:
    """The page with every generated part as it should be now."""
    for name, text in parts().items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{start}.*?{end}", re.DOTALL)
        page = pattern.sub(lambda _, new=f"{start}\n\n{text}\n\n{end}": new, page)
    return page


def _context(command: click.Command) -> click.Context:
    return click.Context(command, info_name=f"hplus {command.name}")


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text("utf-8")), "utf-8")
