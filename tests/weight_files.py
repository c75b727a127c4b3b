"""Files of weights, written byte by byte, so that they can be wrong."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array

_WORDS = {
    "f4": "F32",
    "f2": "F16",
    "f8": "F64",
    "i4": "I32",
    "i8": "I64",
    "i1": "I8",
    "u1": "U8",
    "b1": "BOOL",
}
_GGUF_TYPES = {"f4": 0, "f2": 1, "i1": 24, "i2": 25, "i4": 26, "i8": 27, "f8": 28}


def safetensors(fields: object, data: bytes = b"", length: int | None = None) -> bytes:
    """Return a file with a header of JSON, or of any text."""
    header = (fields if isinstance(fields, str) else json.dumps(fields)).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def safetensors_of(arrays: Mapping[str, Array], pad: str = "") -> bytes:
    """Return a file of arrays; ``pad`` follows the header, to put the data at an odd place."""
    fields: dict[str, Any] = {}
    data = b""
    for name, array in arrays.items():
        word = "BF16" if array.dtype.name == "bfloat16" else _WORDS[array.dtype.str[1:]]
        offsets = [len(data), len(data) + array.nbytes]
        fields[name] = {"dtype": word, "shape": list(array.shape), "data_offsets": offsets}
        data += array.tobytes()
    return safetensors(json.dumps(fields) + pad, data)


def text(value: str) -> bytes:
    """Return a text as GGUF has it."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if value and isinstance(value[0], (int, float)):
        kind, form = (5, "i") if isinstance(value[0], int) else (6, "f")
        return struct.pack(f"<IIQ{len(value)}{form}", 9, kind, len(value), *value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))


def gguf(
    tensors: Mapping[str, Array | tuple[int, Sequence[int], bytes]],
    metadata: Mapping[str, Any] | None = None,
    *,
    version: int = 3,
    alignment: int = 32,
) -> bytes:
    """Return a file of GGUF; what is no array is the number of its type, its shape and its bytes."""
    entries = b"".join(text(key) + _value(value) for key, value in (metadata or {}).items())
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata or {})) + entries
    data = b""
    for name, tensor in tensors.items():
        kind, shape, content = _described(tensor) if isinstance(tensor, np.ndarray) else tensor
        extents = tuple(reversed(shape))
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *extents, kind, len(data))
        data += content + bytes(-len(content) % alignment)
    return head + bytes(-len(head) % alignment) + data


def _described(array: Array) -> tuple[int, Sequence[int], bytes]:
    return _GGUF_TYPES[array.dtype.str[1:]], array.shape, array.tobytes()


def quantized_blocks(kind: str, shape: Sequence[int], seed: int = 0) -> bytes:
    """Return random blocks of a layout, whose scales are finite."""
    size = {"Q8_0": 34, "Q4_0": 18}[kind]
    random = np.random.default_rng(seed)
    count = int(np.prod(shape)) // 32
    blocks = random.integers(0, 256, (count, size), np.uint8)
    blocks[:, :2] = random.standard_normal((count, 1)).astype(np.float16).view(np.uint8)
    return blocks.tobytes()
