"""Tokens: who may send events and who may read, by secrets from a file or the environment."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable, Mapping
from typing import NamedTuple

READ, WRITE = "read", "write"
LEAST_TOKEN_LENGTH = 20
"""Characters of a token, at least."""

VARIABLES = {READ: "HPLUS_READ_TOKEN", WRITE: "HPLUS_WRITE_TOKEN"}
"""The variables of the environment that may hold a token."""


class Tokens(NamedTuple):
    """Digests of the tokens for reading and for writing; without any, everyone may do both."""

    read: tuple[bytes, ...] = ()
    write: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    def refusal(self, given: str, use: str) -> int:
        """The status of HTTP for a request with this token: 0, 401 or 403.

        All tokens are compared, each in a time that does not depend on what was given.
        """
        if not self:
            return 0
        own = _digest(given)
        known = {
            name: sum(hmac.compare_digest(own, digest) for digest in getattr(self, name)) > 0
            for name in (READ, WRITE)
        }
        return 0 if known[use] else 403 if any(known.values()) else 401


NO_TOKENS = Tokens()


def tokens_of(pairs: Iterable[tuple[str, str]]) -> Tokens:
    """Tokens with what each is for: "read", "write" or "both"."""
    found: dict[str, list[bytes]] = {READ: [], WRITE: []}
    for use, token in pairs:
        if use not in (*found, "both"):
            raise ValueError(f"a token must be for read, write or both, got {use!r:.20}.")
        if len(token) < LEAST_TOKEN_LENGTH or not token.isascii():
            raise ValueError(
                f"a token must have at least {LEAST_TOKEN_LENGTH} ASCII characters, got "
                f"{len(token)}: for example {secrets.token_urlsafe(24)}"
            )
        for name in found if use == "both" else (use,):
            found[name].append(_digest(token))
    return Tokens(tuple(found[READ]), tuple(found[WRITE]))


def read_tokens(path: str | None, environment: Mapping[str, str] = os.environ) -> Tokens:
    """The tokens of a file, with lines such as "read abc...", and of the environment."""
    pairs = [(use, environment[name]) for use, name in VARIABLES.items() if environment.get(name)]
    if path is not None:
        lines = [line.split() for line in _lines(path) if line.strip() and line[0] != "#"]
        if any(len(words) != 2 for words in lines) or not lines:
            raise ValueError(
                f"{path} must have lines such as 'read TOKEN', 'write TOKEN' or 'both TOKEN'."
            )
        pairs += [(use, token) for use, token in lines]
    return tokens_of(pairs)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "not text"
        raise ValueError(f"the token file {path} cannot be read: {why.lower()}.") from error


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
