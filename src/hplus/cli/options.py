"""Types of option values: names, numbers, amounts and grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hplus.files.conditions import Condition
from hplus.studies.spans import Amount

if TYPE_CHECKING:
    from hplus.studies.frames import Frame

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


def _typed_condition(ctx: click.Context, param: click.Parameter, text: str | None) -> str:
    """What was typed; an error if that is nothing, as an unset variable of a shell is."""
    return "" if text is None else Condition(text).text


where_option = click.option(
    "--where",
    callback=_typed_condition,
    metavar="CONDITION",
    help="Only rows for which this holds, for example \"mag >= 5 and region == 'north'\".",
)


def narrowed(frame: Frame, where: str) -> Frame:
    """A frame for those of its rows for which a condition holds too, if one was typed."""
    clock = frame.clock
    reading = ("UTC", "", "") if clock is None else (clock.zone, clock.column, clock.form)
    return frame.narrowed(Condition(where, *reading) if where else None)
