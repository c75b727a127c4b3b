"""Small functions for the simplifying passes: how they are built, run and compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from mind_mlir.builders.builder import Builder
from mind_mlir.interpreter import run
from mind_mlir.ir.elements import limits, wide_integer
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import ALL_FLOATS, ALL_INTEGERS, ALL_REAL, BOOL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.value import Value

REAL, FLOATS, INTEGERS, TRUTHS = ALL_REAL, ALL_FLOATS, ALL_INTEGERS, BOOL
SIGNED = tuple(dtype for dtype in INTEGERS if dtype.value.startswith("s"))
UNSIGNED = tuple(dtype for dtype in INTEGERS if dtype.value.startswith("u"))


@dataclass
class Bench:
    """Builds a function of PTIR, where nothing broadcasts unless it says so."""

    dtype: DType
    builder: Builder = field(default_factory=lambda: Builder(profile="ptir-v0.4"))

    def parameter(self, shape: Sequence[int], dtype: DType | None = None) -> Value:
        name = f"v{len(self.builder.parameters)}"
        return self.builder.parameter(TensorType(dtype or self.dtype, tuple(shape)), name)

    def number(self, number: Any, like: Value) -> Value:
        """Return ``number`` in the dtype and the shape of ``like``."""
        return self.full(number, like.type.dtype, like.shape)

    def full(self, number: Any, dtype: DType, shape: tuple[int, ...]) -> Value:
        scalar = self.builder.constant(number, dtype)
        return self("BroadcastTo", scalar, result_shape=shape) if shape else scalar

    def __call__(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        return self.builder.emit(opcode, *operands, **attributes)

    def function(self, *results: Value) -> Function:
        return self.builder.function("main", results)


def opcodes(function: Function) -> list[str]:
    """Return what is computed: no constants, nor what broadcasts them."""
    (block,) = function.blocks
    constants: set[int] = set()
    left = []
    for operation in block.operations:
        is_constant = not operation.operands or (
            operation.opcode == "BroadcastTo" and operation.operands[0] in constants
        )
        if is_constant:
            constants.add(operation.value_id)
        else:
            left.append(operation.opcode)
    return left


def module(function: Function) -> Module:
    return Module(Functions((function,)), "ptir-v0.4")


def results(function: Function, arguments: Sequence[Array]) -> tuple[Array, ...]:
    named: Mapping[str, Any] = {f"v{place}": array for place, array in enumerate(arguments)}
    return run(module(function), named)


def bits(array: Array) -> bytes:
    """Return the bytes of a result, where all NaNs are one."""
    if array.dtype.kind in "fV" and array.dtype not in (ml_dtypes.int4, ml_dtypes.uint4):
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()


def assert_same(before: Sequence[Array], after: Sequence[Array]) -> None:
    for left, right in zip(before, after, strict=True):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        assert bits(left) == bits(right), f"{left}\n{right}"


def edge_pairs(dtype: DType) -> tuple[Array, Array]:
    """Return awkward numbers of ``dtype``, each beside each."""
    edges = edge_values(dtype)
    return np.repeat(edges, len(edges)), np.tile(edges, len(edges))


def edge_values(dtype: DType) -> Array:
    if dtype is DType.I1:
        return np.array([False, True])
    if dtype.is_integer:
        least, greatest = limits(dtype)
        numbers = [each for each in (0, 1, -1, 2, 3, -7, 5, -5) if least <= each <= greatest]
        outer = [least, least + 1, greatest, greatest - 1]
        return np.array([*numbers, *outer], wide_integer(dtype)).astype(dtype.numpy)
    info: Any = ml_dtypes.finfo
    names = ("smallest_subnormal", "tiny", "max")
    ends = [float(getattr(info(dtype.numpy), name)) for name in names]
    magnitudes = np.array([0.0, 1.0, 1.5, 3.0, 5.0, *ends, 3 * ends[0], np.inf, np.nan])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.concatenate([magnitudes, -magnitudes]).astype(dtype.numpy)


@dataclass(frozen=True)
class Case:
    """A use of a pattern, or one that is close to it and must stay as it is.

    Attributes:
        pattern: What the pattern is called: its `Pattern.before`.
        dtypes: What of; the one that differs stands for others elsewhere.
        build: Makes the value from a bench and two values of edge numbers.
        left: The opcodes that are left; None where nothing may change.
    """

    pattern: str
    dtypes: Sequence[DType]
    build: Callable[[Bench, Value, Value], Value]
    left: tuple[str, ...] | None

    def function(self, dtype: DType) -> Function:
        bench = Bench(dtype)
        count = len(edge_values(dtype)) ** 2
        return bench.function(self.build(bench, bench.parameter((count,)), bench.parameter((count,))))
