"""Types of option values: names, numbers, amounts and grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from hplus.studies.spans import Amount

Callback = Callable[[click.Context, click.Parameter, str | None], Any]


def _callback(read: Callable[[str], Any], rule: str = "") -> Callback:
    """Reads what is typed; an error says the rule, or what `read` says."""

    def callback(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
        try:
            return None if text is None else read(text)
        except ValueError as error:
            said = f"{rule}, got {text!r}." if rule else str(error)
            raise click.BadParameter(said) from None

    return callback


names_option = _callback(
    lambda text: tuple(name.strip() for name in text.split(",") if name.strip())
)
numbers_option = _callback(
    lambda text: tuple(float(part) for part in text.split(",")),
    "must be numbers separated by commas",
)
amount_option = _callback(Amount.parse)
shape_option = _callback(
    lambda text: tuple(int(part) for part in text.lower().split("x")), "must look like 20x20"
)
