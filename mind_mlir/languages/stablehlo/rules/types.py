"""Types and constants of StableHLO in our terms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.elements import limits, wide_integer
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.mlir.bindings import ir, raw_elements
from mind_mlir.mlir.stablehlo_builder import spelled_element

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.bindings import Operation, Type

#: The dtypes by what MLIR calls them.
_DTYPES = {spelled_element(dtype): dtype for dtype in DType}


#: An element as MLIR spells it.
_TRUTHS = {"true": 1, "false": 0}
_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|true|false|-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


class Unsupported(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Ends the import of an operation; what it says is why."""


def tensor_type(type_: Type) -> TensorType:
    """Return a type of StableHLO as ours.

    Raises:
        Unsupported: It is no tensor of known extents, or there is no dtype for its elements.
    """
    if not isinstance(type_, ir.RankedTensorType):
        raise Unsupported(f"values of type {type_}")
    if not type_.has_static_shape:
        raise Unsupported("extents that are not known before the program runs")
    return TensorType(dtype_of(type_.element_type), tuple(type_.shape))


def dtype_of(type_: Type) -> DType:
    """Return the dtype of an element type; `Unsupported` where there is none."""
    found = _DTYPES.get(str(type_))
    if found is None:
        raise Unsupported(f"elements of type {type_}")
    return found


def constant_of(operation: Operation) -> tuple[Array, TensorType]:
    """Return the numbers of a constant, only one of them where all are the same, and its type."""
    type_ = tensor_type(operation.results[0].type)
    if type_.element_count == 0:
        return np.zeros(type_.extents, type_.dtype.numpy), type_
    if type_.dtype.bits < 8 or type_.dtype.is_complex:  # of which the bindings know nothing
        said = operation.get_asm(enable_debug_info=False, large_elements_limit=None)
        return literal(said[said.index("dense<") :], type_)
    attribute = operation.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr):
        raise Unsupported("constants that are no dense elements")
    data = np.frombuffer(raw_elements(attribute, type_.dtype.itemsize), type_.dtype.numpy)
    return (data.reshape(()) if attribute.is_splat else data.reshape(type_.extents)), type_


def literal(text: str, type_: TensorType) -> tuple[Array, TensorType]:
    """Return the numbers that ``dense<...>`` spells, only one where all are the same, and their type."""
    dtype = type_.dtype
    body = text.removeprefix("dense<")
    if body.startswith('"0x'):
        words = bytes.fromhex(body[3 : body.index('"', 3)])
        data = np.frombuffer(words, np.uint8 if dtype.bits < 8 else dtype.numpy)
        found = data.astype(dtype.numpy)
    else:
        tokens = _TOKEN.findall(body[: body.rindex("> : ")])
        part = dtype.part
        wide = np.float64 if part.is_float else wide_integer(part)
        found = np.array([_element(each, part) for each in tokens], wide).astype(part.numpy)
        if dtype is not part:
            found = found.view(dtype.numpy)
    return (found.reshape(()) if found.size == 1 else found.reshape(type_.extents)), type_


def _element(word: str, dtype: DType) -> Any:
    if word in _TRUTHS:
        return _TRUTHS[word]
    if word.startswith("0x") and dtype.is_float:
        bits = np.array(int(word, 16)).astype(f"u{dtype.itemsize}")
        return float(bits.view(dtype.numpy)[()])
    if dtype.is_float:
        return float(word)
    number = int(word, 0)
    return number - (1 << dtype.bits) if number > limits(dtype)[1] else number


def keyword_of(operation: Operation, name: str) -> str:
    """Return the keyword of an attribute such as ``#stablehlo<comparison_direction LT>``, which is there."""
    return str(operation.attributes[name]).rpartition(" ")[2].rstrip(">")


def number(value: float, dtype: DType) -> TensorLiteral:
    """Return a scalar of ``dtype``."""
    return TensorLiteral.of(np.array(value).astype(dtype.numpy), dtype)


def least(dtype: DType) -> Any:
    """Return the least number of a dtype, what greatest numbers begin with."""
    if dtype is DType.I1:
        return False
    if dtype.is_float:
        return -np.inf if dtype.format.infinite else -dtype.format.greatest
    return limits(dtype)[0]


def greatest(dtype: DType) -> Any:
    """Return the greatest number of a dtype, what least numbers begin with."""
    if dtype is DType.I1:
        return True
    if dtype.is_float:
        return np.inf if dtype.format.infinite else dtype.format.greatest
    return limits(dtype)[1]
