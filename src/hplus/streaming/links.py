"""Links: what a function z of the kernel's space is to the prediction f."""

from __future__ import annotations

from typing import Any, final

from hplus._checks import check_choice, check_positive, shown
from hplus._values import Value, value


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
        Steps along the slope of the loss in z, f·Φ'(y, f), or along Φ'(y, f) in its place.
    cap : float
        The largest |z|; beyond it f stays at e^±cap, and events at which that happens are counted.
    """

    gradient: str = "log"
    cap: float = 30.0

    def __post_init__(self) -> None:
        check_choice("gradient", self.gradient, ("log", "mirror"))
        cap = check_positive("cap", self.cap)
        if cap > 700.0:
            raise ValueError(f"cap must be at most 700, where e^cap overflows, got {cap:.6g}.")
        self._set(cap=cap)


LINKS: dict[str, type[Value]] = {"identity": Identity, "log": Log}
"""Every link by its name."""


def as_link(link: Any) -> Any:
    """A link from its name or from a link."""
    if isinstance(link, tuple(LINKS.values())):
        return link
    if isinstance(link, str):
        return LINKS[check_choice("link", link, LINKS)]()
    raise TypeError(f'link must be "identity", "log" or a link such as Log(), got {shown(link)}.')
