"""Links: how the prediction f follows from a function z of the kernel's space."""

from __future__ import annotations

from typing import Any, final

from hplus._checks import check_choice, check_positive
from hplus._values import Value, as_value, value


@final
@value
class Identity(Value):
    """f = z, of either sign."""


@final
@value
class Log(Value):
    """f = e^z, positive.

    Parameters
    ----------
    gradient : "log" or "mirror"
        Take steps along the slope of the loss in z, f·Φ'(y, f), or along Φ'(y, f) in its place.
    cap : float
        The largest |z|: beyond it f stays at e^±cap, and `status_` counts the events where this
        happens.
    """

    gradient: str = "log"
    cap: float = 30.0

    def __post_init__(self) -> None:
        check_choice("gradient", self.gradient, ("log", "mirror"))
        self._set(cap=check_cap(self.cap, 700.0))


Link = Identity | Log

LINKS: dict[str, type[Link]] = {"identity": Identity, "log": Log}
"""Every link by name."""


def check_cap(cap: Any, most: float) -> float:
    """The largest |z|; an error if it is too large for e^z and its products."""
    cap = check_positive("cap", cap)
    if cap > most:
        raise ValueError(f"cap must be at most {most:g}, got {cap:.6g}: e^cap would overflow.")
    return cap


def as_link(link: Any) -> Link:
    """A link from its name or a link."""
    return as_value("link", link, LINKS, "Log()")
