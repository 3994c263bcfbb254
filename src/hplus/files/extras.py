"""Optional packages, and how to install one that is missing."""

from __future__ import annotations

import importlib
from typing import Any


def arrow() -> Any:
    """pyarrow, which reads the files."""
    return needed("pyarrow", "cli", "Reading files")


def needed(package: str, extra: str, what: str) -> Any:
    """A package, or an ImportError that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{what} needs {package}, which is not installed: pip install 'hplus[{extra}]'."
        ) from error
