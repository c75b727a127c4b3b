"""Attention of many forms, arguments for it, and the interpreter to compare it with."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import guarded
import ml_dtypes
import numpy as np

import mind_mlir
from examples.gpt2.builder import Body, Tensor, program
from mind_mlir.interpreter import interpret
from mind_mlir.ir.types import DType
from mind_mlir.languages.ptir.to_module import to_module

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.ir.module import Module

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
#: A mask of positions: queries see no later keys.
CAUSAL = ("GreaterEqual", 0, -math.inf)


def compared(body: Body, scores: Tensor, op: str, offset: int, fill: float) -> Tensor:
    """Hide scores where ``query + offset op key`` does not hold."""
    *_, queries, keys = scores.shape
    places = [body.apply("Iota", shape=(queries, keys), dtype=DType.SI32, axis=axis) for axis in (0, 1)]
    moved = body.binary("Add", places[0], body.stretch(body.number(offset, DType.SI32), (queries, keys)))
    seen = body.stretch(body.apply("Compare", moved, places[1], op=op), scores.shape)
    hidden = body.stretch(body.number(fill, scores.type.dtype), scores.shape)
    return body.apply("Select", seen, scores, hidden)


def stable(body: Body, z: Tensor) -> Tensor:
    return body.softmax(z)


def plain(body: Body, z: Tensor) -> Tensor:
    exponentials = body.unary("Exp", z)
    return body.binary("Mul", exponentials, body.unary("Reciprocal", body.reduce("Sum", exponentials, -1)))


def logarithmic(body: Body, z: Tensor) -> Tensor:
    total = body.unary("Log", body.reduce("Sum", body.unary("Exp", z), -1))
    return body.unary("Exp", body.binary("Sub", z, total))


def attention(
    sizes: tuple[int, int, int, int, int, int],
    softmax: Callable[[Body, Tensor], Tensor] = stable,
    *,
    dtype: DType = DType.F32,
    mask: Shape | None = None,
    hidden: tuple[str, int, float] | None = None,
    seen: Shape | None = None,
    turned: bool = False,
) -> Module:
    """Return attention of ``(batch, heads, queries, keys, depth, width)``, with a mask that is added.

    Or with one of conditions, of a shape that broadcasts. If ``turned``, its last two dimensions are swapped;
    where there is none, those of the queries.
    """
    batch, heads, queries, keys, depth, width = sizes
    body = Body([])
    is_turned = turned and seen is None
    q = body.parameter(dtype, batch, heads, *((depth, queries) if is_turned else (queries, depth)))
    k = body.parameter(dtype, batch, heads, keys, depth)
    v = body.parameter(dtype, batch, heads, keys, width)
    added = None if mask is None else body.parameter(dtype, *mask)
    flags = None if seen is None else body.parameter(DType.I1, *seen)
    q = body.transpose(q, 0, 1, 3, 2) if is_turned else q
    scores = body.binary(
        "Mul", body.product(q, body.transpose(k, 0, 1, 3, 2), 2, (3, 2)), 1 / math.sqrt(depth)
    )
    if added is not None:
        scores = body.binary("Add", scores, added)
    if hidden is not None:
        scores = compared(body, scores, *hidden)
    if flags is not None:
        rank = len(flags.shape)
        flags = body.transpose(flags, *range(rank - 2), rank - 1, rank - 2) if turned else flags
        low = body.stretch(body.number(-math.inf, dtype), scores.shape)
        scores = body.apply("Select", body.stretch(flags, scores.shape), scores, low)
    found = body.product(softmax(body, scores), v, 2, (3, 2))
    return to_module(program(body, [found]))


def arguments_of(module: Module, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    found = {}
    for parameter in mind_mlir.compile(module).parameters:
        numbers = rng.standard_normal(parameter.type.extents)
        is_flag = parameter.type.dtype is DType.I1
        found[parameter.name] = numbers > -0.5 if is_flag else numbers.astype(parameter.type.dtype.numpy)
    return found


def nests(executable: mind_mlir.Executable) -> list[str]:
    """Return the kinds of all nests."""
    return re.findall(r"^ +\d+\. (\w+)", executable.as_text("schedule"), re.MULTILINE)


def check(module: Module, arguments: Mapping[str, Array], *, fused: int = 1) -> None:
    executable = mind_mlir.compile(module)
    assert nests(executable).count("attention") == fused
    found = guarded.call_executable(executable, arguments)
    with np.errstate(all="ignore"):
        expected = interpret(module, arguments)
    for result, right in zip(found, expected, strict=True):
        unit = float(ml_dtypes.finfo(right.dtype).eps)  # type: ignore[no-untyped-call] # it has no types
        one, other = (each.astype(np.float64) for each in (result, right))
        finite = np.isfinite(other)
        assert np.array_equal(np.isnan(one), np.isnan(other))
        assert np.array_equal(one[~finite], other[~finite], equal_nan=True)
        scale = np.abs(other[finite]).max(initial=1)
        np.testing.assert_allclose(one[finite], other[finite], rtol=0, atol=60 * unit * scale)
