"""Literals of the compact text: ``dense<f32, 2>[1.0, 2.0]``, or their bytes, ``dense<ui8, 2>"00ff"``.

Elements stand row-major, a complex number as its two parts; one element fills any shape. Bytes are
hexadecimal: so large literals are written, and those that decimals do not tell exactly (the bits of a NaN).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.elements import ElementProblem, format_elements
from mind_mlir.ir.types import DTypeKind, TensorType
from mind_mlir.languages.core.numbers import convert_elements, convert_plain
from mind_mlir.languages.ptir.literals import BAD_LITERAL, LiteralProblem, literal_of
from mind_mlir.languages.ptir.text import TextReader, spelled_dims

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import TensorLiteral

#: Literals of more elements are written as their bytes, unless all are the same.
_MAX_ELEMENTS = 64
_PIECE = 1 << 18


def read_dense(reader: TextReader) -> TensorLiteral:
    """Return the literal that begins here; what is wrong with its data goes to the findings."""
    start, text = reader.token.start, reader.text
    type_, behind = reader.tensor_type()
    inner = reader.skip(behind) + 1
    opening = text[inner - 1 : inner]
    end = text.find("]" if opening == "[" else '"', inner)
    if opening not in ("[", '"') or end < 0:
        reader.go_to(behind)
        known = opening in ("[", '"')
        reader.fail(
            "a literal that is closed"
            if known
            else "the elements of the literal in brackets, or its bytes in quotes"
        )
    reader.go_to(end + 1)
    try:
        data = _elements(text[inner:end], type_) if opening == "[" else bytes.fromhex(text[inner:end])
        return literal_of(type_, data)
    except LiteralProblem as problem:
        code, message, help_text, facts = problem.code, problem.message, problem.help, problem.context
    except ElementProblem as fault:
        code, message, help_text = fault.code, fault.message, fault.help
        facts = {"declared": str(type_), "issue": "value", "id": None}
    except ValueError:
        code, message = "E4005", "the bytes of a literal are pairs of hexadecimal digits"
        help_text, facts = None, {"declared": str(type_), "issue": "bytes", "id": None}
    reader.report.add(code, message, (start, end + 1), help_text, **facts)
    return BAD_LITERAL


def _elements(text: str, type_: TensorType) -> bytes:
    """Return the bytes of the elements that are listed; one stands for all."""
    texts = [element.strip() for element in text.split(",")] if text.strip() else []
    dtype = type_.dtype
    plain = convert_plain(texts, dtype)
    array = convert_elements(texts, dtype) if plain is None else plain
    width = 2 if dtype.kind is DTypeKind.COMPLEX else 1
    found, count = len(texts), _count(type_)
    if found == width and count > 1:
        array = np.tile(array, count)
    elif found != width * count:
        message = f"the shape of {type_} has {count} elements, found {found // width}"
        message += ", and one part of a number" if found % width else ""
        raise LiteralProblem("E3010", message, context={"declared": count, "found": found // width})
    return np.asarray(array, dtype.part.numpy).tobytes()


def _count(type_: TensorType) -> int:
    """Return how many elements a literal has; what has no number of them is no literal's type."""
    if not all(isinstance(extent, int) for extent in type_.shape) or not type_.is_addressable:
        message = f"no literal has the type {type_}"
        raise LiteralProblem("E3010", message, context={"declared": str(type_), "found": None})
    return type_.element_count


def spell_dense(literal: TensorLiteral) -> Iterator[str]:
    """Yield a literal in pieces."""
    type_, data = literal.type, literal.data
    shape = f", {spelled_dims(type_.shape)}" if type_.shape else ""
    yield f"dense<{type_.dtype.value}{shape}>"
    elements = _listed(literal)
    if elements is not None:
        yield f"[{elements}]"
        return
    yield '"'
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE].hex()
    yield '"'


def _listed(literal: TensorLiteral) -> str | None:
    """Return the elements, or the one that fills the shape, where they read back as they are."""
    type_, data = literal.type, literal.data
    size, flat = type_.dtype.itemsize, literal.array.reshape(-1)
    if flat.size > 1 and data == data[:size] * flat.size:
        flat = flat[:1]
    if flat.size > _MAX_ELEMENTS:
        return None
    listed = ", ".join(format_elements(flat, type_.dtype))
    return listed if _elements(listed, type_) == data else None
