"""`{command-line}`: every command of hplus with its arguments and options, as click knows them."""

from __future__ import annotations

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from hplus.cli.commands import hplus
from hplus.cli.doors import CODES


def usage(command: click.Command) -> str:
    """ "hplus fit [OPTIONS] FILE"."""
    return " ".join(["hplus", str(command.name), *command.collect_usage_pieces(_context(command))])


def option_rows(command: click.Command) -> list[tuple[str, str]]:
    """Each option as typed, and what it does."""
    options = (param for param in command.params if isinstance(param, click.Option))
    records = (option.get_help_record(_context(command)) for option in options)
    return [record for record in records if record is not None]


def paragraphs(text: str | None) -> list[str]:
    """The paragraphs of a help, each on one line; those that keep their lines are left out."""
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


def _context(command: click.Command) -> click.Context:
    return click.Context(command, info_name=f"hplus {command.name}")


class CommandLine(SphinxDirective):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        """Sections, in the order of the help."""
        return [self._section(command) for _, command in sorted(hplus.commands.items())]

    def _section(self, command: click.Command) -> nodes.section:
        name = str(command.name)
        section = nodes.section(ids=[f"hplus-{name}"], names=[f"hplus {name}"])
        section += nodes.title(text=f"hplus {name}")
        section += nodes.literal_block(text=usage(command), language="none")
        section += [nodes.paragraph(text=text) for text in paragraphs(command.help)]
        section += self._options(command)
        section += nodes.literal_block(text=examples(command), language="none")
        return section

    def _options(self, command: click.Command) -> nodes.definition_list:
        items = nodes.definition_list(classes=["options"])
        for option, said in option_rows(command):
            item = nodes.definition_list_item()
            item += nodes.term("", "", nodes.literal(text=option))
            item += nodes.definition("", nodes.paragraph(text=said))
            items += item
        return items


class ExitCodes(SphinxDirective):
    """A list of exit codes."""

    def run(self) -> list[nodes.Node]:
        """One item a code."""
        items = nodes.bullet_list()
        for code, said in ({0: "all went well"} | CODES).items():
            words = nodes.paragraph("", "", nodes.literal(text=str(code)), nodes.Text(f" {said}"))
            items += nodes.list_item("", words)
        return [items]


def setup(app):
    app.add_directive("exit-codes", ExitCodes)
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True}
