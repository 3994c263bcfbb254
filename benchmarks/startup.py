"""Start-up: CPU seconds of a fresh process until hplus is imported, or a command has answered.

The lines for NumPy and scikit-learn are for comparison. Estimators need scikit-learn, which takes
most of the time that they take to import; kernels, windows and `hplus info` do without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _measure import finish, header, parser, row

PROGRAM = "from hplus.cli import main; main()"

IMPORTS = {
    "import numpy": float("inf"),
    "import sklearn": float("inf"),
    "import hplus": 0.1,
    "from hplus import Interval": float("inf"),
    "from hplus import Gaussian": float("inf"),
    "from hplus import load": float("inf"),
    "from hplus import Intensity": float("inf"),
}
"""Statements, with the most CPU seconds that they may take."""

COMMANDS = {
    "--help": 0.25,
    "--version": 0.25,
    "fit --help": float("inf"),
    "data": float("inf"),
    "info coal.hplus": 0.7,
    "expect coal.hplus": float("inf"),
}
"""Command lines of hplus, with the most CPU seconds that they may take."""


PREPARATION = (
    "data coal -o coal.csv",
    "fit coal.csv --columns date --window 1851,1963 -o coal.hplus",
)


def run(folder: Path, code: str, line: str = "") -> float:
    """The user and system time of a Python process that runs `code`, in seconds."""
    before = os.times()
    command = [sys.executable, "-c", code, *line.split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def main() -> None:
    repeats = 3 if parser(__doc__).parse_args().quick else 7
    header()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line in PREPARATION:
            run(folder, PROGRAM, line)
        for statement, most in IMPORTS.items():
            row(statement, min(run(folder, statement) for _ in range(repeats)), most=most)
        for line, most in COMMANDS.items():
            seconds = min(run(folder, PROGRAM, line) for _ in range(repeats))
            row(f"hplus {line}", seconds, most=most)
    finish()


if __name__ == "__main__":
    main()
