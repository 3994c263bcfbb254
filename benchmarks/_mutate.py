"""Deliberately corrupted model files: random bytes, or changed content with matching checksums.

Every change is drawn from a `random.Random`, so that a seed reproduces the same file.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load as load_tensors

from hplus.storage.files import CODES, digest
from hplus.storage.registry import stored_names

Json = dict[str, Any]
Draw = random.Random


class Content(NamedTuple):
    """The contents of a valid model file."""

    data: bytes
    document: Json
    tensors: dict[str, np.ndarray]


def opened(data: bytes) -> Content:
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensors = dict(sorted(load_tensors(data).items()))  # the library returns them in any order
    return Content(data, json.loads(header["__metadata__"]["hplus"]), tensors)


def shortened(content: Content, most: int = 3) -> Content:
    """The same with long lists shortened, so that changes hit all kinds of parts equally often."""
    document = _copied(content.document)
    lists = [h[k] for h, k in _places(document["model"]) if isinstance(h[k], list)]
    for part in lists:
        if part and isinstance(part[0], dict):
            del part[most:]
    return opened(_sealed(document, content.tensors))


# ---- bytes: the checksums do not match, and nearly all of these files must be rejected


def flip_bits(content: Content, draw: Draw) -> bytes:
    data = bytearray(content.data)
    for _ in range(draw.choice((1, 1, 1, 2, 8, 64))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def overwrite(content: Content, draw: Draw) -> bytes:
    start, length = _run(content.data, draw)
    fill = draw.choice((b"\0" * length, b"\xff" * length, b"[" * length, draw.randbytes(length)))
    return content.data[:start] + fill + content.data[start + length :]


def cut(content: Content, draw: Draw) -> bytes:
    return content.data[: draw.randrange(len(content.data))]


def extend(content: Content, draw: Draw) -> bytes:
    return content.data + draw.choice((b"\0", content.data, draw.randbytes(draw.randrange(1, 999))))


def swap_blocks(content: Content, draw: Draw) -> bytes:
    a, b, c, d = sorted(draw.randrange(len(content.data) + 1) for _ in range(4))
    data = content.data
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def drop_or_double(content: Content, draw: Draw) -> bytes:
    start, length = _run(content.data, draw)
    block = content.data[start : start + length]
    return content.data[:start] + draw.choice((b"", 2 * block)) + content.data[start + length :]


def header_length(content: Content, draw: Draw) -> bytes:
    size = int.from_bytes(content.data[:8], "little")
    near = size + draw.choice((-8, -1, 1, 8, 4096))
    new = draw.choice((near, near, 0, 1, 2**26, 2**31, 2**32 + size, 2**63, 2**64 - 1))
    return new.to_bytes(8, "little") + content.data[8:]


def _run(data: bytes, draw: Draw) -> tuple[int, int]:
    start = draw.randrange(len(data))
    return start, draw.randrange(1, min(256, len(data) - start) + 1)


# ---- the safetensors header: shapes and offsets that do not match the arrays


def tensor_entries(content: Content, draw: Draw) -> bytes:
    size = int.from_bytes(content.data[:8], "little")
    header = json.loads(content.data[8 : 8 + size])
    name = draw.choice([key for key in header if key != "__metadata__"])
    entry = header[name]
    giant = draw.choice((-1, 2**31, 2**53, 2**63 - 1, 2**64 - 1, 10**30, 1e9, "9", None, [], True))
    changes: list[Callable[[], Any]] = [
        lambda: entry.update(shape=[giant, *entry["shape"][1:]]),
        lambda: entry.update(shape=[giant, 0]),
        lambda: entry.update(shape=[2**32, 2**32, 2**32]),
        lambda: entry.update(shape=[1] * draw.choice((65, 10_000))),
        lambda: entry.update(data_offsets=[0, giant]),
        lambda: entry.update(data_offsets=[giant, entry["data_offsets"][1]]),
        lambda: entry.update(data_offsets=entry["data_offsets"][::-1]),
        lambda: entry.update(dtype=draw.choice(("F16", "BF16", "F8_E4M3", "X", *CODES.values()))),
        lambda: entry.pop(draw.choice(list(entry))),
        lambda: header.pop(name),
        lambda: header.update({"more": entry}),
        lambda: header.update({draw.choice(("__metadata__", name)): giant}),
        lambda: header["__metadata__"].update(hplus=giant),
        lambda: header.update({"é" * 10_000: entry}),
    ]
    draw.choice(changes)()
    return _framed(json.dumps(header).encode(), content.data[8 + size :])


# ---- sealed: the document or an array is changed, with matching checksums


def document_part(content: Content, draw: Draw) -> bytes:
    """Replace one to three parts of the document."""
    document = _copied(content.document)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        holder, key = draw.choice(_places(document["model"]))
        draw.choice(CHANGES)(holder, key, document, draw)
    return _sealed(document, content.tensors)


def document_frame(content: Content, draw: Draw) -> bytes:
    """Change the entries around the model in the document."""
    document = _copied(content.document)
    key = draw.choice(list(document))
    if draw.random() < 0.3:
        del document[key]
    else:
        document[key] = _nasty(draw)
    return _sealed(document, content.tensors)


def doubled_key(content: Content, draw: Draw) -> bytes:
    """Duplicate a key: the later one counts."""
    document = _copied(content.document)
    document["model"] = {"model": document["model"]["model"], **document["model"]}
    plain = _sealed(document, content.tensors)
    before = rb"\"params\":"
    twice = rb"\"params\":" + draw.choice((b"{}", b"[]", b"1", b"null")) + b"," + before
    size = int.from_bytes(plain[:8], "little")
    return _framed(plain[8 : 8 + size].replace(before, twice, 1), plain[8 + size :])


def array_content(content: Content, draw: Draw) -> bytes:
    """Change the numbers, dtype or shape of one or two arrays."""
    tensors = dict(content.tensors)
    for _ in range(draw.choice((1, 1, 2))):
        name = draw.choice(list(tensors))
        tensors[name] = np.ascontiguousarray(draw.choice(ARRAYS)(tensors[name], draw))
    return _sealed(_copied(content.document), tensors)


def both(content: Content, draw: Draw) -> bytes:
    return array_content(opened(document_part(content, draw)), draw)


def _copied(part: Any) -> Any:
    return pickle.loads(pickle.dumps(part))


def _places(part: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    found = [] if found is None else found
    pairs = part.items() if isinstance(part, dict) else enumerate(part)
    for key, inner in list(pairs):
        found.append((part, key))
        if isinstance(inner, dict | list):
            _places(inner, found)
    return found


def _nasty(draw: Draw) -> Any:
    return draw.choice(NASTY)(draw)


def _nested(draw: Draw) -> Any:
    part: Any = 1
    kind = draw.choice((lambda p: [p], lambda p: {"tuple": [p]}, lambda p: {"dict": {"a": p}}))
    for _ in range(draw.choice((10, 63, 64, 200, 400))):
        part = kind(part)
    return part


def _class_name(draw: Draw) -> str:
    return draw.choice(sorted(stored_names()))


NASTY: list[Callable[[Draw], Any]] = [
    lambda d: None,
    lambda d: d.choice((True, False)),
    lambda d: d.choice((0, 1, -1, 2, 3, 7, -(10**6), 10**4, 10**6, 2**31, 2**53 + 1, 2**63 - 1)),
    lambda d: {"int": d.choice(("0x" + "f" * 17, "-0x" + "f" * 5000, "", "zz", "0x8" + "0" * 15))},
    lambda d: d.choice((0.0, -0.0, 0.5, 1e-308, 5e-324, 1e16, 1e100, 1e308, -1e308, -1.5)),
    lambda d: {"float": d.choice(("nan", "inf", "-inf", "1e999", "x", "1" * 10_000))},
    lambda d: d.choice((float("nan"), float("inf"))),
    lambda d: d.choice(("", "a", "\0", "\ud800", "é" * 10**4, "x" * 10**6, "auto", "1e5", "coef_")),
    lambda d: d.choice(([], {}, [[]], [1, "a"], [0.0] * 10**4, {"tuple": []}, {"dict": {}})),
    lambda d: {"text": ["a"] * 3, "dtype": d.choice(("object", "<U1", "<U999999", "<f8", ">M8[s]")),
               "shape": d.choice(([3], [1, 3], [-1], [2**62, 2], [0, 2**62], [], ["a"], [3.0]))},
    lambda d: {"array": "0:none", "axes": d.choice(([], [0], [1, 0], [0] * 99, ["a"], [2**70]))},
    lambda d: {"enum": _class_name(d), "member": d.choice(("CONVERGED", "__class__", "mro", ""))},
    lambda d: {"value": _class_name(d), "fields": {}},
    lambda d: {"model": _class_name(d), "params": {}, "fitted": {}},
    lambda d: {"value": "builtins.eval", "fields": {"source": "1"}},
    _nested,
]  # fmt: skip
"""Replacements for a part of a document."""


def _put(holder: Any, key: Any, document: Json, draw: Draw) -> None:
    holder[key] = _nasty(draw)


def _remove(holder: Any, key: Any, document: Json, draw: Draw) -> None:
    if key in holder or isinstance(holder, list):
        del holder[key]


def _add(holder: Any, key: Any, document: Json, draw: Draw) -> None:
    if isinstance(holder, list):
        holder.insert(key, _nasty(draw))
    else:
        names = ("extra", "extra_", "__class__", "__dict__", "_lines_", "predict", "predict_", "")
        holder[draw.choice((*names, "fit_", "window_", "é_", "n" * 10**4 + "_"))] = _nasty(draw)


def _exchange(holder: Any, key: Any, document: Json, draw: Draw) -> None:
    """Swap two parts of the document."""
    other, place = draw.choice(_places(document["model"]))
    mine, theirs = _copied(holder[key]), _copied(other[place])
    holder[key], other[place] = theirs, mine


def _rename(holder: Any, key: Any, document: Json, draw: Draw) -> None:
    """Replace one class name by another."""
    named = [(h, k) for h, k in _places(document["model"]) if k in ("value", "model", "enum")]
    h, k = draw.choice(named)
    h[k] = _class_name(draw)


def _scaled(holder: Any, key: Any, document: Json, draw: Draw) -> None:
    """Replace a number by another number."""
    numbers = [
        (h, k) for h, k in _places(document["model"])
        if isinstance(h[k], int | float) and not isinstance(h[k], bool)
    ]  # fmt: skip
    h, k = draw.choice(numbers)
    h[k] = draw.choice((-h[k], 10 * h[k], h[k] + 1, h[k] - 1, 10**9, 1e300, -1e-300, 2**62, 0))


def _repeat(holder: Any, key: Any, document: Json, draw: Draw) -> None:
    """Make a list many times longer."""
    lists = [h[k] for h, k in _places(document["model"]) if isinstance(h[k], list) and h[k]]
    if lists and len(lists) < 1000:  # or the file would become larger than memory
        chosen = draw.choice(lists)
        chosen.extend(_copied(chosen) * draw.choice((1, 1, 10, 500)))


CHANGES: tuple[Callable[[Any, Any, Json, Draw], None], ...] = (
    _put, _put, _put, _remove, _add, _exchange, _rename, _scaled, _scaled, _repeat,
)  # fmt: skip


def _some(array: np.ndarray, draw: Draw, value: float) -> np.ndarray:
    """Set one or all of the numbers to `value`, as far as the dtype allows."""
    changed = array.copy().reshape(-1)
    part = slice(None) if draw.random() < 0.5 else draw.randrange(max(changed.size, 1))
    with np.errstate(all="ignore"):
        if changed.size:
            changed[part] = np.asarray(value).astype(array.dtype)
    return changed.reshape(array.shape)


def _cast(array: np.ndarray, draw: Draw) -> np.ndarray:
    with np.errstate(all="ignore"):
        return array.astype(draw.choice(list(CODES)))


def _resized(array: np.ndarray, draw: Draw) -> np.ndarray:
    shape = list(array.shape) or [1]
    axis = draw.randrange(len(shape))
    shape[axis] = draw.choice((0, 1, shape[axis] + 1, max(shape[axis] - 1, 0), 2 * shape[axis], 97))
    return np.resize(array, shape)


VALUES = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e308, -1e308, 1e-320, 1e9, -1e9, 2.0**62)

ARRAYS: tuple[Callable[[np.ndarray, Draw], np.ndarray], ...] = (
    lambda a, d: _some(a, d, d.choice(VALUES)),
    lambda a, d: _some(a, d, d.choice(VALUES)),
    _cast,
    _resized,
    _resized,
    lambda a, d: a.reshape(-1),
    lambda a, d: a[None] if d.random() < 0.5 else a.reshape((*a.shape, *[1] * 5)),
    lambda a, d: np.frombuffer(d.randbytes(a.nbytes), a.dtype).reshape(a.shape)
    if a.dtype != bool else ~a,
    lambda a, d: a.view(np.uint8).reshape(-1) if a.ndim else a,
    lambda a, d: np.zeros(d.choice(((0,), (), (1,), (2**16,), (0, 3), (300, 300)))),
    lambda a, d: -a if a.dtype.kind in "fi" else a,
)  # fmt: skip


def _sealed(document: Json, tensors: dict[str, np.ndarray]) -> bytes:
    """The bytes of a file with this document and these arrays, with correct checksums."""
    if isinstance(document.get("arrays"), dict) and "sha256" in document:
        document["arrays"] = {name: digest(array) for name, array in tensors.items()}
    content = {key: part for key, part in document.items() if key != "sha256"}
    text = json.dumps(content, separators=(",", ":"))
    seal = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    sealed = content | ({"sha256": seal} if "sha256" in document else {})
    header: Json = {"__metadata__": {"hplus": json.dumps(sealed, separators=(",", ":"))}}
    end = 0
    for name, array in tensors.items():
        start, end = end, end + array.nbytes
        shape, code = list(array.shape), CODES[array.dtype.str]
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [start, end]}
    return _framed(json.dumps(header).encode(), b"".join(a.tobytes() for a in tensors.values()))


def _framed(header: bytes, rest: bytes) -> bytes:
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + rest


MUTATIONS: dict[Callable[[Content, Draw], bytes], int] = {
    flip_bits: 2, overwrite: 2, cut: 1, extend: 1, swap_blocks: 1, drop_or_double: 1,
    header_length: 1, tensor_entries: 3, document_part: 12, document_frame: 1, doubled_key: 1,
    array_content: 6, both: 4,
}  # fmt: skip
"""The kinds of change, and how often each is drawn."""


def mutated(goods: list[Content], seed: int, i: int) -> tuple[str, int, bytes]:
    """The i-th changed file of a seed: the kind of change, which valid file, its bytes."""
    draw = random.Random(f"{seed} {i}")
    which = draw.randrange(len(goods))
    kind = draw.choices(list(MUTATIONS), list(MUTATIONS.values()))[0]
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)  # to build deep nesting; load will run with the usual limit
    try:
        return kind.__name__, which, kind(goods[which], draw)
    finally:
        sys.setrecursionlimit(usual)
