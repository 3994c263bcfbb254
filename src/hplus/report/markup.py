"""HTML and SVG as text in which everything that is not markup has been escaped."""

from __future__ import annotations

from html import escape
from typing import Any, final

VOID = frozenset({"meta", "br", "img"})
"""Elements of HTML without an end tag."""


@final
class Markup(str):
    """Text that is markup already; any other text is escaped where it becomes a part of markup."""

    __slots__ = ()


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """One element with its children; `class_` and `stroke_width` become class and stroke-width.

    An attribute that is None is left out.

    >>> element("p", "1 < 2 ", element("b", "so"), class_="note")
    '<p class="note">1 &lt; 2 <b>so</b></p>'
    """
    parts = [f"<{tag}"]
    for name, given in attributes.items():
        if given is not None:
            parts.append(f' {name.rstrip("_").replace("_", "-")}="{escape(_text(given))}"')
    parts.append(">")
    if tag not in VOID:
        parts += [join(*children), f"</{tag}>"]
    return Markup("".join(parts))


def section(title: str, *children: Any, id_: str) -> Markup:
    """A part of the page under a heading."""
    return element("section", element("h2", title), *children, id=id_)


def join(*children: Any) -> Markup:
    """Markup of several parts, one after the other; text is escaped, None is left out."""
    kept = (child for child in children if child is not None)
    return Markup(
        "".join(child if isinstance(child, Markup) else escape(_text(child)) for child in kept)
    )


def _text(given: Any) -> str:
    """Coordinates to a tenth of a pixel or less: nobody sees more."""
    return f"{given:.2f}".rstrip("0").rstrip(".") if isinstance(given, float) else str(given)
