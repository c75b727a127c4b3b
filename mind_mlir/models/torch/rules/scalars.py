"""Numbers of Python in graphs: extents, and what is computed of them when the graph is traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.models.torch.rules.use import UnreadUse

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def of_numbers(function: Callable[..., Any]) -> Rule:
    """Return the rule of a function of Python."""
    return lambda _, *args: function(*args)


def _size(_: OperatorUse, x: TracedArray, dim: int | None = None) -> Any:
    return list(x.shape) if dim is None else x.shape[dim]


def _stride(_: OperatorUse, x: TracedArray, dim: int | None = None) -> Any:
    steps = [math.prod(x.shape[axis + 1 :]) for axis in range(x.ndim)]
    return steps if dim is None else steps[dim]


def _number_of(_: OperatorUse, x: TracedArray) -> Any:
    raise UnreadUse("it asks for a number that is known only when the program runs")


def _of_numbers(_: OperatorUse, *args: Any, **kwargs: Any) -> Any:
    raise UnreadUse("its result has as many elements as numbers say, which are known when the program runs")


def _nothing(_: OperatorUse, *args: Any, **kwargs: Any) -> None:
    """Do nothing: what is asserted of extents holds for those that the program is made for."""


def _assertion(_: OperatorUse, *args: Any, **kwargs: Any) -> None:
    """Leave out what a program asserts of its numbers; checks of indices are made all the same."""


_OPERATORS = (
    "add",
    "sub",
    "mul",
    "floordiv",
    "truediv",
    "mod",
    "pow",
    "neg",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
)
_BITS = ("and_", "or_", "xor", "lshift", "rshift", "not_")
#: Operators whose results have as many elements as the numbers of their operands say.
_AS_NUMBERS_SAY = (
    *("nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive"),
    *("repeat_interleave.Tensor", "bincount"),
)
RULES: Mapping[str, Rule] = {
    **{f"operator.{name}": of_numbers(getattr(operator, name)) for name in (*_OPERATORS, *_BITS)},
    **{f"math.{name}": of_numbers(getattr(math, name)) for name in ("floor", "ceil", "trunc", "sqrt")},
    "operator.getitem": of_numbers(operator.getitem),
    "torch.sym_max": of_numbers(max),
    "torch.sym_min": of_numbers(min),
    "torch.sym_int": of_numbers(int),
    "torch.sym_float": of_numbers(float),
    "torch.sym_not": of_numbers(operator.not_),
    "torch.sym_ite": of_numbers(lambda condition, one, other: one if condition else other),
    "torch.sym_sum": of_numbers(sum),
    "torch._sym_sqrt": of_numbers(math.sqrt),
    "builtins.max": of_numbers(max),
    "builtins.min": of_numbers(min),
    "builtins.round": of_numbers(round),
    "aten.sym_size": _size,
    "aten.sym_stride": _stride,
    "aten.sym_numel": lambda _, x: x.size,
    "aten.sym_storage_offset": lambda _, __: 0,
    "aten._local_scalar_dense": _number_of,
    "aten.item": _number_of,
    **{f"aten.{name}": _of_numbers for name in _AS_NUMBERS_SAY},
    "torchvision.nms": _of_numbers,
    "aten.sym_constrain_range": _nothing,
    "aten.sym_constrain_range_for_size": _nothing,
    "aten._assert_scalar": _nothing,
    "aten._assert_async": _assertion,
    "aten._linalg_check_errors": _assertion,
    "aten._assert_tensor_metadata": _nothing,
}
