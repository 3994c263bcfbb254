"""The command line: each command is a thin layer over one call."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command `hplus`."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f"The command hplus needs {error.name}: pip install 'hplus[cli]'.\n")
        sys.exit(6)
    from hplus.cli.commands import hplus

    hplus(prog_name="hplus")
