"""Types of option values: names, numbers, amounts and grids."""

from __future__ import annotations

import click

from hplus.studies.spans import Amount


def names_option(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def numbers_option(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"must be numbers separated by commas, got {text!r}.") from None


def amount_option(ctx: click.Context, param: click.Parameter, text: str | None) -> Amount | None:
    """An amount that looks like 365d."""
    if text is None:
        return None
    try:
        return Amount.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def shape_option(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> tuple[int, ...] | None:
    """Numbers of cells such as 20x20."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise click.BadParameter(f"must look like 20x20, got {text!r}.") from None
