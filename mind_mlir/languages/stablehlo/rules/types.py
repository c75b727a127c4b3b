"""Types and constants of StableHLO in our terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.elements import limits, wide_integer
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.mlir.bindings import Operation, Type, ir, raw_elements
from mind_mlir.mlir.stablehlo_builder import spelled_element

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: The dtypes by what MLIR calls them.
_DTYPES = {spelled_element(dtype): dtype for dtype in DType} | {"index": DType.SI64}
#: What orders effects; our programs have none.
_ORDER_ALONE = "!stablehlo.token"


#: An element as MLIR spells it.
_RESOURCE_NAME = re.compile(r'dense_resource<(?:"(?P<quoted>[^"]*)"|(?P<plain>[^">]*))>')
_TRUTHS = {"true": 1, "false": 0}
_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|true|false|-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


class Unsupported(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Ends the import of an operation; what it says is why."""


def tensor_type(type_: Type) -> TensorType:
    """Return a type of StableHLO as ours.

    Raises:
        Unsupported: It is no tensor of known extents, or there is no dtype for its elements.
    """
    if isinstance(type_, ir.IntegerType | ir.IndexType | ir.FloatType):
        return TensorType(dtype_of(type_))  # as `arith` has numbers
    if not isinstance(type_, ir.RankedTensorType):
        raise Unsupported(f"values of type {type_}")
    if not type_.has_static_shape:
        raise Unsupported("extents that are not known before the program runs")
    return TensorType(dtype_of(type_.element_type), tuple(type_.shape))


def flat_types(type_: Type) -> tuple[TensorType, ...]:
    """Return the types of the tensors that a value is made of: several of a tuple, none of a token.

    Raises:
        Unsupported: As `tensor_type`.
    """
    if isinstance(type_, ir.TupleType):
        return tuple([each for part in parts_of(type_) for each in flat_types(part)])
    return () if str(type_) == _ORDER_ALONE else (tensor_type(type_),)


def parts_of(type_: Type) -> list[Type]:
    """Return the types of the parts of a tuple."""
    return [type_.get_type(number) for number in range(type_.num_types)]


def dtype_of(type_: Type) -> DType:
    """Return the dtype of an element type; `Unsupported` where there is none."""
    found = _DTYPES.get(str(type_))
    if found is None:
        raise Unsupported(f"elements of type {type_}")
    return found


def constant_of(operation: Operation, resources: Mapping[str, bytes]) -> tuple[Array, TensorType]:
    """Return the numbers of a constant, only one of them where all are the same, and its type.

    Args:
        operation: The constant.
        resources: The data that the program holds beside its operations, by name.
    """
    type_ = tensor_type(operation.results[0].type)
    if type_.element_count == 0:
        return np.zeros(type_.extents, type_.dtype.numpy), type_
    if type_.dtype.bits < 8 or type_.dtype.is_complex:  # of which the bindings know nothing
        said = operation.get_asm(enable_debug_info=False, large_elements_limit=None)
        if (name := _RESOURCE_NAME.search(said)) is not None:
            return _resource(resources.get(name["quoted"] or name["plain"]), type_), type_
        if "dense<" not in said:
            return np.array(" true" in said).astype(type_.dtype.numpy), type_
        return literal(said[said.index("dense<") :], type_)
    attribute = operation.attributes["value"]
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr):
        return np.array(attribute.value).astype(type_.dtype.numpy), type_
    if not isinstance(attribute, ir.DenseElementsAttr):
        name = _RESOURCE_NAME.match(str(attribute))
        if name is None:
            raise Unsupported("constants that are no dense elements")
        return _resource(resources.get(name["quoted"] or name["plain"]), type_), type_
    data = np.frombuffer(raw_elements(attribute, type_.dtype.itemsize), type_.dtype.numpy)
    return (data.reshape(()) if attribute.is_splat else data.reshape(type_.extents)), type_


def _resource(data: bytes | None, type_: TensorType) -> Array:
    """Return the numbers of ``dense_resource<name>``, whose data is ``data``."""
    if data is None:
        raise Unsupported("data that the program does not hold")
    dtype, count = type_.dtype, type_.element_count
    kind = np.dtype(np.uint8 if dtype.bits < 8 else dtype.numpy)
    packed = dtype.bits == 1 and len(data) == -(-count // 8) != count
    if len(data) != (-(-count // 8) if packed else count * kind.itemsize):
        raise Unsupported(f"{len(data)} bytes as the data of {type_}")
    found = np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little") if packed else None
    numbers = np.frombuffer(data, kind) if found is None else found
    return numbers.astype(dtype.numpy).reshape(type_.extents)


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
