"""`python -m hplus` is the command."""

import subprocess
import sys

from hplus import __version__


def test_the_package_runs_as_a_command():
    found = subprocess.run(
        [sys.executable, "-m", "hplus", "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout == f"hplus, version {__version__}\n"
