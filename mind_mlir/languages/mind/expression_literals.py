"""The data of literals: from what Python passes, and as the surface language writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.elements import Problem
from mind_mlir.ir.nested import flattened, is_masked
from mind_mlir.ir.types import DType, dtype_of
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.languages.mind.expression_text import Writer

#: A number or truth value.
Element: TypeAlias = bool | int | float

_EXPECTED = "a number, a truth value, nested lists of them or an array"


def elements_of(value: object) -> tuple[tuple[int, ...], tuple[Element, ...], DType | None]:
    """Return the shape of ``value``, its elements row by row, and the dtype that it has as numpy's, or None.

    Raises:
        TypeError: It is no number, and no lists or array of numbers.
        VerificationError: E3010, lists are ragged, or nest deeper than any tensor.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        dtype = dtype_of(value.dtype)
        if dtype is None or value.dtype.kind == "c" or is_masked(value):
            argument_checks.reject("value", _EXPECTED, value)
        return value.shape, tuple([_element(item) for item in value.ravel().tolist()]), dtype
    try:
        shape, elements = flattened(value)
    except Problem as problem:
        finding = Diagnostic(problem.code, problem.message, None, (), problem.help)
        raise VerificationError(finding) from None
    return shape, tuple([_element(item) for item in elements]), None


def _element(item: Any) -> Element:
    """Return the plain number that an element is."""
    if type(item) in (bool, int, float):
        return item  # type: ignore[no-any-return]  # one of the three
    plain = item.item() if isinstance(item, np.generic) else item
    number = argument_checks.whole(plain)
    if number is not None:
        return number
    if isinstance(plain, (bool, float)):
        return plain if isinstance(plain, bool) else float(plain)
    return argument_checks.reject("each element of value", "a number or a truth value", item)


def write_elements(
    writer: Writer, shape: tuple[int, ...], elements: tuple[Element, ...], start: int = 0
) -> nodes.Expression:
    """Write the part of a literal that begins with the element ``start`` and has ``shape``."""
    if not shape:
        return _write_element(writer, elements[start])
    size = 1
    for extent in shape[1:]:
        size *= extent
    first, _ = writer.put("[")
    items: list[nodes.Expression] = []
    for row in range(shape[0]):
        if row:
            writer.put(", ")
        items.append(write_elements(writer, shape[1:], elements, start + row * size))
    _, end = writer.put("]")
    return nodes.List(items, (first, end))


def _write_element(writer: Writer, element: Element) -> nodes.Expression:
    if isinstance(element, bool):
        return nodes.Bool(element, writer.put("true" if element else "false"))
    text = repr(element)
    if not text.startswith("-"):
        return nodes.Number(element, text, writer.put(text))
    operator = writer.put("-")
    number = nodes.Number(-element, text[1:], writer.put(text[1:]))
    return nodes.Unary("-", number, operator, (operator[0], number.span[1]))
