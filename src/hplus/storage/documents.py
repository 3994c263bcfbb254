"""A fitted model as a JSON document and the arrays that it names, and back.

Only registered classes are ever built, through their constructors, which check what they get.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from hplus.storage.files import CODES, MAX_HEADER_BYTES, SCHEMA, Array, Json
from hplus.storage.registry import find_class, present_fields, present_holder, registered_name

Arrays = dict[tuple[Any, ...], tuple[str, Array]]

MAX_DEPTH = 64
"""Levels of lists, values and models nested in one another."""

JSON_SCALARS = (type(None), bool, int, float, str)
"""Types that JSON represents directly."""

MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What manipulated content can raise in `build` and in constructors."""

MAX_REASON_LENGTH = 300
"""Characters of a reason, which may quote manipulated content of any length."""


def pack(part: Any, path: str, holder: str, arrays: Arrays) -> Any:
    """`part` as JSON, tagged where JSON has no such type; its arrays are added to `arrays`."""
    kind = type(part)
    if part is None or kind in (bool, str):
        return part
    if kind is int:
        return part if abs(part) < 2**63 else {"int": hex(part)}
    if kind is float:
        return part if math.isfinite(part) else {"float": repr(part)}
    if kind in (list, tuple):
        items = [pack(p, f"{path}[{i}]", holder, arrays) for i, p in enumerate(part)]
        return items if kind is list else {"tuple": items}
    if kind is dict and all(type(key) is str for key in part):
        return {"dict": {k: pack(p, f"{path}[{k!a}]", holder, arrays) for k, p in part.items()}}
    if kind is np.ndarray:
        return _pack_array(part, path, holder, arrays)
    if isinstance(part, np.generic):
        return {"scalar": _pack_array(np.asarray(part), path, holder, arrays)}
    if registered_name(kind) is None:
        raise ValueError(_refusal(part, holder))
    return _pack_registered(part, path, arrays)


def _pack_registered(part: Any, path: str, arrays: Arrays) -> Json:
    kind, name = type(part).__name__, registered_name(type(part))
    start = f"{path}__" if path else ""

    def each(members: Json, at: str | None) -> Json:
        # an error names the value that holds the part, but the parameter of a model
        return {
            k: pack(p, start + k, f"{at or start + k}: {kind}", arrays) for k, p in members.items()
        }

    if isinstance(part, Enum):
        return {"enum": name, "member": part.name}
    if dataclasses.is_dataclass(part):
        fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.init}
        return {"value": name, "fields": each(fields, path)}
    params = each(part.get_params(deep=False), None)
    return {"model": name, "params": params, "fitted": each(_fitted(part), None)}


def _fitted(model: Any) -> Json:
    """The attributes whose names end with one underscore and begin with none."""
    state = model.__getstate__()
    return {n: part for n, part in state.items() if re.fullmatch(r"[^_](.*[^_])?_", n)}


def _pack_array(array: Array, path: str, holder: str, arrays: Arrays) -> Json:
    dtype = array.dtype.newbyteorder("<")
    if dtype.kind in "UO" and all(isinstance(item, str) for item in array.flat):
        items = [str(item) for item in array.flat]
        kind = "object" if dtype.kind == "O" else dtype.str
        return {"text": items, "dtype": kind, "shape": list(array.shape)}
    if dtype.str not in CODES:
        raise ValueError(_refusal(array, holder))
    # row-major or column-major order is preserved: sums over the other order round differently
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    order = list(range(array.ndim)) if array.flags.c_contiguous else order
    tensor = np.asarray(array.transpose(order), dtype=dtype, order="C")
    # arrays that share memory become one tensor, and share memory again after loading
    key = (tensor.__array_interface__["data"][0], dtype.str, tensor.shape)
    name, _ = arrays.setdefault(key, (f"{len(arrays)}:{path}", tensor))
    return {"array": name, "axes": np.argsort(order).tolist()}


def _refusal(part: Any, holder: str) -> str:
    """Why `part` cannot be saved, and what to do."""
    what = f"an object of type {type(part).__name__}"
    advice = "use numbers, strings, arrays, lists, tuples and dicts"
    if isinstance(part, np.random.RandomState | np.random.Generator):
        advice = "use a whole number as the seed instead"
    elif isinstance(part, Enum) or dataclasses.is_dataclass(part) or hasattr(part, "get_params"):
        advice = "use a class of hplus, or register this one with hplus.storage.storable"
    elif isinstance(part, np.ndarray):
        what = f"an array ({type(part).__name__} of {part.dtype})"
        advice = "use a plain array of float64, integers, booleans or strings"
    elif isinstance(part, dict):
        what, advice = "a dict with keys that are not strings", "use strings as keys"
    elif callable(part):
        what, advice = "a Python callable", "use a value made of numbers and strings instead"
    return f"{holder} holds {what}, which cannot be saved: {advice}."


def build(
    part: Any,
    tensors: Mapping[str, Array],
    depth: int = 0,
    find: Callable[[str], Any] = find_class,
) -> Any:
    """What `pack` turned into JSON, with objects of the classes that `find` gives by name."""
    if type(part) in JSON_SCALARS:  # first, since a document is made of little else
        return part
    if depth > MAX_DEPTH:
        raise RecursionError

    def inner(part: Any) -> Any:
        return build(part, tensors, depth + 1, find)

    def each(parts: Json) -> Json:
        return {key: inner(part) for key, part in parts.items()}

    match part:
        case list():
            return [inner(item) for item in part]
        case {"tuple": list(items)}:
            return tuple(inner(item) for item in items)
        case {"dict": dict(items)}:
            return each(items)
        case {"int": str(text)}:
            return int(text, 16)
        case {"float": str(text)}:
            return float(text)
        case {"scalar": array}:
            return build(array, tensors, depth, find)[()]
        case {"array": str(name), "axes": list(axes)}:
            return tensors[name].transpose(axes)
        case {"text": list(items), "dtype": str(dtype), "shape": list(shape)}:
            return _build_text(items, dtype, shape)
        case {"enum": str(name), "member": str(member)}:
            return _class(name, find)[member]
        case {"value": str(name), "fields": dict(fields)}:
            return _construct(name, each(fields), find)
        case {"model": str(name), "params": dict(params), "fitted": dict(fitted)}:
            return _restore(name, _construct(name, each(params), find), each(fitted))
    raise ValueError(f"it holds {part!r:.40}, which has no meaning in schema {SCHEMA}.")


def _build_text(items: list[Any], dtype: str, shape: list[Any]) -> Array:
    width = re.fullmatch(r"object|<U(\d{1,9})", dtype)
    if width is None or int(width[1] or 1) * len(items) > MAX_HEADER_BYTES:
        raise ValueError(f"{len(items)} strings of dtype {dtype} are too large: use dtype object.")
    return np.array([str(item) for item in items], dtype=dtype).reshape(shape)


def _construct(name: str, arguments: Json, find: Callable[[str], Any]) -> Any:
    name = present_holder(name, arguments)
    try:
        return _class(name, find)(**present_fields(name, arguments))
    except MALFORMED as error:
        raise ValueError(f"{name} rejects its stored fields: {reason(error)}") from error


def _restore(kind: str, model: Any, fitted: Json) -> Any:
    for name, part in present_fields(kind, fitted).items():
        if not re.fullmatch(r"[a-z][a-z0-9_]*_", name):
            raise ValueError(f"fitted attributes must have names like coef_, got {name!r}.")
        setattr(model, name, part)
    return model


def _class(name: str, find: Callable[[str], Any]) -> Any:
    try:
        return find(name)
    except KeyError:
        raise ValueError(
            f"its class {name!r} is unknown: import the module that defines it, or upgrade hplus."
        ) from None


def reason(error: Exception) -> str:
    """Why a file cannot be made or read: one line that ends with a full stop."""
    if isinstance(error, RecursionError):
        return f"lists and values must be nested at most {MAX_DEPTH} levels deep."
    said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    line = " ".join(said.split())
    line = line if len(line) <= MAX_REASON_LENGTH else f"{line[:MAX_REASON_LENGTH]}…"
    return f"{line.rstrip('.')}."
