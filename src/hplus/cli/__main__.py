"""`python -m hplus.cli` is the command `hplus`."""

from hplus.cli import main

main()
