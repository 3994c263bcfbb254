"""`python -m hplus` is the command `hplus`."""

from hplus.cli import main

if __name__ == "__main__":
    main()
