"""Conditions on columns as text, such as `mag >= 5 and region == 'north'`, parsed into a tree.

Nothing is ever evaluated by Python: what the small grammar below does not know is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from hplus._checks import shown

Literal = float | bool | str
"""What a column is compared with."""

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""Comparisons, and what they become if both sides are swapped."""

TOKEN = re.compile(
    r"\s*(?:(?P<date>\d{4}-\d\d-\d\d)|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|(?P<text>'[^']*'|\"[^\"]*\")|`(?P<quoted>[^`]+)`|(?P<word>[^\W\d][\w.]*)"
    r"|(?P<sign><=|>=|==|!=|<>|<|>|=|\(|\)|\[|\]|,))"
)

WORDS = ("and", "or", "not", "in", "is", "null", "true", "false")
"""Words with a meaning of their own; a column of this name is written in backticks."""

MAX_LENGTH, MAX_NESTING = 10_000, 50
"""Characters of a condition, and brackets in brackets."""

EXAMPLE = "mag >= 5 and region == 'north'"


@dataclass(frozen=True)
class Comparison:
    """A column against a value, by one of `<`, `<=`, `==`, `!=`, `>=`, `>`."""

    column: str
    sign: str
    literal: Literal


@dataclass(frozen=True)
class ColumnPair:
    """A column against another one, by the same signs."""

    column: str
    sign: str
    other: str


@dataclass(frozen=True)
class Membership:
    """Is the value of a column one of these?"""

    column: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Missing:
    """Has a row no value in a column?"""

    column: str


@dataclass(frozen=True)
class Negation:
    """Does a condition not hold?"""

    inner: Node


@dataclass(frozen=True)
class Junction:
    """Do all of some conditions hold ("and"), or at least one of them ("or")?"""

    word: str
    parts: tuple[Node, ...]


Leaf = Comparison | ColumnPair | Membership | Missing

Node = Leaf | Negation | Junction


class Token(NamedTuple):
    """A piece of a condition: its kind, its text, and what it means."""

    kind: str
    text: str
    meaning: Literal = ""


END = Token("end", "the end")


def leaves(node: Node) -> Iterator[Leaf]:
    """The parts of a condition that look at one column each, or compare two."""
    match node:
        case Negation(inner):
            yield from leaves(inner)
        case Junction(_, parts):
            for part in parts:
                yield from leaves(part)
        case _:
            yield node


def named(column: str) -> str:
    """The name of a column as it is written in a condition."""
    plain = re.fullmatch(r"[^\W\d][\w.]*", column) and column.lower() not in WORDS
    if not plain and "`" in column:
        raise ValueError(f"a column in a condition must have no backtick, got {shown(column)}.")
    return column if plain else f"`{column}`"


def quoted(text: str) -> str:
    """A text as it is written in a condition."""
    if "'" in text and '"' in text:
        raise ValueError(f"a text in a condition must not have both quotes, got {shown(text)}.")
    return f'"{text}"' if "'" in text else f"'{text}'"


def is_time(literal: Literal) -> bool:
    """Is it a date or a time in ISO 8601?"""
    if not isinstance(literal, str) or not re.match(r"\s*\d{4}-\d\d-\d\d", literal):
        return False
    try:
        datetime.fromisoformat(literal.strip())
    except ValueError:
        return False
    return True


@lru_cache(maxsize=256)
def parsed(text: str) -> Node:
    """The tree of a condition; an error says what is wrong and what to write."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f'where must be a condition such as "{EXAMPLE}", got {shown(text)}.')
    if len(text) > MAX_LENGTH:
        raise ValueError(f"where must have at most {MAX_LENGTH} characters, got {len(text)}.")
    parser = _Parser(text, list(_tokens(text)))
    found = parser.either()
    if parser.next is not END:
        raise parser.error("and or or between two conditions")
    return found


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while text[at:].strip():
        found = TOKEN.match(text, at)
        if found is None:
            raise _unknown(text, text[at:].strip())
        kind, said = str(found.lastgroup), str(found[str(found.lastgroup)])
        if kind == "date":
            raise ValueError(
                f"where must have dates in quotes, got {said} in {shown(text)}: write '{said}'."
            )
        if said in ("=", "<>"):
            wanted = {"=": "==", "<>": "!="}[said]
            raise ValueError(f"where compares with {wanted}, got {said} in {shown(text)}.")
        yield _token(kind, said)
        at = found.end()


def _token(kind: str, said: str) -> Token:
    if kind == "number":
        return Token("value", said, float(said))
    if kind == "text":
        return Token("value", said, said[1:-1])
    if kind == "word" and said.lower() in ("true", "false"):
        return Token("value", said, said.lower() == "true")
    if kind == "word" and said.lower() in WORDS:
        return Token(said.lower(), said)
    return Token("column" if kind in ("word", "quoted") else said, said, said)


def _unknown(text: str, rest: str) -> ValueError:
    if rest[0] in "'\"`":
        return ValueError(f"where must close every quote, got {rest[0]} open in {shown(text)}.")
    if rest[0] in "&|":
        wanted, said = {"&": "and", "|": "or"}[rest[0]], rest[: 1 + (rest[1:2] == rest[0])]
        return ValueError(f"where joins conditions with {wanted}, got {said} in {shown(text)}.")
    return ValueError(
        f"where knows columns, numbers, quoted text and comparisons such as {EXAMPLE}, got "
        f"{shown(rest.split()[0])} in {shown(text)}."
    )


class _Parser:
    """Reads tokens from left to right; each method reads one rule of the grammar."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens, self.depth = text, [*tokens, END], 0

    @property
    def next(self) -> Token:
        return self.tokens[0]

    def error(self, wanted: str) -> ValueError:
        if self.next is END:
            return ValueError(f"where must have {wanted} at the end of {shown(self.text)}.")
        return ValueError(
            f"where must have {wanted}, got {shown(self.next.text)} in {shown(self.text)}."
        )

    def take(self, *kinds: str) -> Token | None:
        return self.tokens.pop(0) if self.next.kind in kinds else None

    def need(self, wanted: str, *kinds: str) -> Token:
        found = self.take(*kinds)
        if found is None:
            raise self.error(wanted)
        return found

    def either(self) -> Node:
        return self._joined("or", self.both)

    def both(self) -> Node:
        return self._joined("and", self.negated)

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self.take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(word, tuple(parts))

    def negated(self) -> Node:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise ValueError(f"where must nest at most {MAX_NESTING} levels, got more.")
        found: Node
        if self.take("not"):
            found = Negation(self.negated())
        elif self.take("("):
            found = self.either()
            self.need("a closing )", ")")
        else:
            found = self.compared()
        self.depth -= 1
        return found

    def compared(self) -> Node:
        first = self.need("a column", "column", "value")
        if first.kind == "column":
            return self._of_column(first.text)
        sign = self.need("a comparison such as <=", *MIRRORED).text
        column = self.need("a column", "column").text
        left = Comparison(column, MIRRORED[sign], first.meaning)
        if self.next.kind not in MIRRORED:
            return left
        return Junction("and", (left, self._of_column(column)))

    def _of_column(self, column: str) -> Node:
        negative = self.take("not") is not None
        if negative or self.next.kind == "in":
            self.need("in", "in")
            return _negated_if(negative, Membership(column, self._listed(column)))
        if self.take("is"):
            negative = self.take("not") is not None
            self.need("null", "null")
            return _negated_if(negative, Missing(column))
        sign = self.need(f"a comparison such as == or >= after {column}", *MIRRORED).text
        if other := self.take("column"):
            return ColumnPair(column, sign, other.text)
        return Comparison(column, sign, self._value())

    def _value(self) -> Literal:
        if self.next.kind == "column":
            raise ValueError(
                f"where lists values after in, got {shown(self.next.text)} without quotes in "
                f"{shown(self.text)}: write text as '{self.next.text}'."
            )
        if self.next.kind == "null":
            raise ValueError(f"where tests for missing cells with is null, got {shown(self.text)}.")
        return self.need("a number or a quoted text", "value").meaning

    def _listed(self, column: str) -> tuple[Literal, ...]:
        opening = self.need(f"a list such as [1, 2] after {column} in", "[", "(").kind
        found = [self._value()]
        while self.take(","):
            found.append(self._value())
        self.need("a closing ]" if opening == "[" else "a closing )", {"[": "]", "(": ")"}[opening])
        kinds = {(type(v), is_time(v)) for v in found}
        if len(kinds) > 1:
            raise ValueError(
                f"where must list values of one kind after {column} in, got {shown(found)}: quote "
                "all of them, or none."
            )
        return tuple(found)


def _negated_if(negative: bool, node: Node) -> Node:
    return Negation(node) if negative else node
