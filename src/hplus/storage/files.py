"""One safetensors file: a sealed document in its metadata, and arrays with a checksum each."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

Array = NDArray[Any]
Json = dict[str, Any]

SCHEMA = 1
"""The version of the document's form; a file with a later one is refused."""

LARGEST_HEADER = 2**20
"""Bytes of a file's header, where the document is, and characters of an array of text.

So that a file made to do harm is read within a second and 512 MiB.
"""

DTYPES = {
    "F32": "<f4", "F64": "<f8", "BOOL": "|b1",
    "I8": "|i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
    "U8": "|u1", "U16": "<u2", "U32": "<u4", "U64": "<u8",
}  # fmt: skip
"""The dtypes of tensors, by safetensors' names for them."""

CODES = {dtype: code for code, dtype in DTYPES.items()}


def digest(array: Array) -> str:
    """The SHA-256 of dtype, shape and bytes."""
    digest = hashlib.sha256(f"{array.dtype.str} {list(array.shape)} ".encode())
    digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def seal(document: Json) -> str:
    return hashlib.sha256(dumps(document).encode()).hexdigest()


def dumps(document: Json) -> str:
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


def header(text: str, tensors: Mapping[str, Array]) -> bytes:
    """The beginning of a safetensors file: its size, what each tensor is and where, spaces."""
    entries: Json = {"__metadata__": {"hplus": text}}
    end = 0
    for name, array in tensors.items():
        start, end = end, end + array.nbytes
        code = CODES[array.dtype.str]
        entries[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, end]}
    header = dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    _check_size(len(header))
    return len(header).to_bytes(8, "little") + header


def _check_size(header: int) -> None:
    if header > LARGEST_HEADER:
        raise ValueError(
            f"the header must have at most {LARGEST_HEADER / 2**20:.3g} MiB, got "
            f"{header / 2**20:.3g} MiB: hold numbers in arrays, not in lists."
        )


def read_file(path: Path) -> tuple[Json, dict[str, Array]]:
    """The document and the tensors of a file, all of them as their checksums say."""
    _check_start(path)
    try:
        with safe_open(path, framework="numpy") as file:
            document = _document((file.metadata() or {}).get("hplus"))
            digests = document["arrays"]
            if set(file.keys()) != set(digests):
                raise ValueError("its tensors are not those of its document: copy it again.")
            return document, {name: _tensor(file, name, digests[name]) for name in digests}
    except SafetensorError as error:
        raise ValueError(f"it is truncated or damaged ({error}): copy it again.") from error


def _check_start(path: Path) -> None:
    if not path.is_file():
        raise ValueError("it is not an ordinary file.")
    with open(path, "rb") as file:
        start = file.read(9)
    if start[8:] != b"{":
        raise ValueError("it is not a file written by hplus.save.")
    size = int.from_bytes(start[:8], "little")
    _check_size(size)
    if 8 + size > path.stat().st_size:
        raise ValueError("it is truncated: copy it again.")


def _document(text: str | None) -> Json:
    """The document in a file's metadata, refused if it is not ours, too new or changed."""
    document = {} if text is None else json.loads(text)
    if not isinstance(document, dict) or document.get("format") != "hplus":
        raise ValueError("it is a safetensors file that hplus did not write.")
    if document["schema"] > SCHEMA:
        writer = document.get("versions")
        raise ValueError(f"it has schema {document['schema']}, of {writer}: upgrade hplus.")
    if document.pop("sha256") != seal(document):
        raise ValueError("its document does not match its checksum: copy it again.")
    return document


def _tensor(file: Any, name: str, expected: str) -> Array:
    code = file.get_slice(name).get_dtype()
    if code not in DTYPES:
        raise ValueError(f"the dtypes of its arrays must be among {list(DTYPES)}, got {code}.")
    array: Array = file.get_tensor(name)
    if digest(array) != expected:
        raise ValueError(f"its array {name} does not match its checksum: copy it again.")
    return array


def replace_file(target: Path, contents: Iterable[Any]) -> None:
    """Put a new file in the place of `target` in one step, once it is safe on disk."""
    temporary = target.with_name(f".hplus-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for piece in contents:
                _write(file, piece)
            file.flush()
            _sync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        _rename(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        _sync(folder)
    finally:
        os.close(folder)


def _write(file: BinaryIO, piece: Any) -> None:
    file.write(piece)


# names of their own, so that a test can make one of them fail
_sync = os.fsync
_rename = os.replace
