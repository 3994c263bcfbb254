"""Frozen values: what kernels, windows, losses and feature maps share.

A value is compared by content, its repr is the code that creates it, and it is changed by making
another one: `k.replace(left__scale=2.0)`. scikit-learn reads its parameters through `get_params`,
so a grid search reaches into an expression.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self, TypeVar, dataclass_transform

import numpy as np

from hplus._checks import check_choice, shown

T = TypeVar("T")


def split_params(
    owner: object, known: Iterable[str], params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Parameters by name, and those with names like `left__scale` by the part they belong to."""
    outer: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for key, new in params.items():
        name, nested, rest = key.partition("__")
        if name not in known:
            raise ValueError(
                f"{type(owner).__name__} has no parameter {name!r}: use one of {list(known)}."
            )
        if nested:
            inner.setdefault(name, {})[rest] = new
        else:
            outer[name] = new
    return outer, inner


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def value(cls: type[T]) -> type[T]:
    """A frozen dataclass that keeps `Value`'s equality and repr."""
    return dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)


@value
class Value:
    """A frozen dataclass with nested parameters; subclasses are decorated with `@value`."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name; with `deep`, also those of values inside, as `outer__inner`."""
        params = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if deep:
            for name, part in list(params.items()):
                if isinstance(part, Value):
                    params |= {f"{name}__{key}": p for key, p in part.get_params().items()}
        return params

    def replace(self, **params: Any) -> Self:
        """A copy with some parameters changed; `left__scale=2.0` changes the part `left`."""
        known = self.get_params(deep=False)
        outer, inner = split_params(self, known, params)
        for name, changes in inner.items():
            part = outer.get(name, known[name])
            if not isinstance(part, Value):
                key = f"{name}__{next(iter(changes))}"
                raise ValueError(f"{name} has no parameters of its own, got {key!r}.")
            outer[name] = part.replace(**changes)
        return dataclasses.replace(self, **outer)

    def __sklearn_clone__(self) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self._content() == other._content()

    def __hash__(self) -> int:
        # some callables can be compared but not hashed, for example scikit-learn's kernels
        return hash(tuple(p if isinstance(p, Hashable) else type(p) for p in self._content()))

    def _content(self) -> tuple[Any, ...]:
        parts = self.get_params(deep=False).values()
        return (type(self), *(_hashable(part) for part in parts))

    def __repr__(self) -> str:
        fields = sorted(dataclasses.fields(self), key=lambda f: f.kw_only is True)
        shown = []
        for i, f in enumerate(fields):
            part = getattr(self, f.name)
            if f.default is dataclasses.MISSING or _hashable(part) != _hashable(f.default):
                shown.append(_text(part) if i == 0 and not f.kw_only else f"{f.name}={_text(part)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _set(self, **fields: Any) -> None:
        """Set fields to their normalised values; for `__post_init__` only."""
        for name, part in fields.items():
            object.__setattr__(self, name, part)


def as_value(name: str, given: Any, family: Mapping[str, type[T]], examples: str) -> T:
    """A value of a family, as it is or by its name; an error with examples for anything else."""
    for kind in family.values():
        if isinstance(given, kind):
            return given
    if isinstance(given, str):
        return family[check_choice(name, given, family)]()
    raise TypeError(
        f"{name} must be one of {', '.join(map(repr, family))} or a {name} such as {examples}, got "
        f"{shown(given)}."
    )


def _hashable(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return (part.shape, part.tobytes())
    if isinstance(part, tuple):
        return tuple(_hashable(p) for p in part)
    return part


def _text(part: Any) -> str:
    if isinstance(part, np.ndarray):
        return repr(part.tolist())
    if isinstance(part, tuple):
        return f"({', '.join(_text(p) for p in part)}{',' * (len(part) == 1)})"
    return repr(part)
