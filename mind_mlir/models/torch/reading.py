"""FX graphs of torch as graphs of ours."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.graph import ArrayType, FxGraph, FxNode, Input, Ref, SourceLine, mapped

#: torch's names of dtypes that are not ours.
_DTYPES = {
    "bool": DType.I1,
    "uint8": DType.UI8,
    "uint16": DType.UI16,
    "uint32": DType.UI32,
    "uint64": DType.UI64,
    "int8": DType.SI8,
    "int16": DType.SI16,
    "int32": DType.SI32,
    "int64": DType.SI64,
    "bfloat16": DType.BF16,
    "float16": DType.F16,
    "float32": DType.F32,
    "float64": DType.F64,
    "complex64": DType.CF32,
    "complex128": DType.CF64,
    "float8_e4m3fn": DType.FP8_E4M3,
    "float8_e5m2": DType.FP8_E5M2,
}
_FRAME = re.compile(r'File "(.+)", line (\d+), in ')
_TORCH = re.compile(r"[\\/]torch[\\/](nn|_|functional|utils|fx)")
#: Of an operator's arguments, those that say where and how a tensor lies in memory.
_PLACEMENT = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking", "copy"})
#: Operators whose results, which gradients are made of, follow from how a matrix lies in memory.
_OF_LAYOUT = frozenset({"aten._linalg_det.default", "aten._linalg_slogdet.default"})


def dtype_of(dtype: Any) -> DType | None:
    """Return our name of a dtype of torch; None where there is none."""
    return _DTYPES.get(str(dtype).removeprefix("torch."))


def name_of_dtype(dtype: DType) -> str:
    """Return torch's name of a dtype of ours."""
    return next(name for name, found in _DTYPES.items() if found is dtype)


def read_graph(module: Any) -> tuple[FxGraph, list[Any]]:
    """Return an FX graph as a graph of ours, and the tensors that its last inputs are.

    Args:
        module: A `torch.fx.GraphModule` that has been functionalised: its nodes change nothing in place.

    Returns:
        The graph, whose inputs are the placeholders and then the tensors which the module holds.
    """
    reader = _Reader(module)
    graph = reader.read()
    return replace(graph, inputs=(*graph.inputs, *reader.held)), reader.tensors


def orders_of(module: Any) -> list[list[int] | None]:
    """Return the order of dimensions in memory of each output of an FX graph; None for that of their numbers.

    Tensors are given back with the strides that they have in torch, where these are those of a dense tensor.
    """
    outputs = _results(module.graph.find_nodes(op="output")[0])
    return [_order(each.meta.get("val") if hasattr(each, "meta") else None) for each in outputs]


def _results(node: Any) -> Sequence[Any]:
    """Return what a graph returns, given its last node; one within another may return what is no list."""
    found = node.args[0]
    return found if isinstance(found, (list, tuple)) else (found,)


def _order(value: Any) -> list[int] | None:
    if not hasattr(value, "stride") or not value.ndim:
        return None
    extents, strides = value.shape, value.stride()
    if not all(isinstance(each, int) for each in (*extents, *strides)):
        return None
    order = sorted(range(value.ndim), key=lambda axis: (-strides[axis], axis))
    expected = 1
    for axis in reversed(order):
        if extents[axis] != 1 and strides[axis] != expected:
            return None
        expected *= extents[axis]
    return None if order == list(range(value.ndim)) else order


class _Reader:
    """An FX graph on its way.

    Attributes:
        held: Inputs for the tensors that the module holds, those of graphs within it among them.
        tensors: These tensors.
    """

    def __init__(self, module: Any, prefix: str = "") -> None:
        """Begin with nothing read; names of what is held begin with ``prefix``."""
        self.module, self.prefix = module, prefix
        self.inputs: list[Input] = []
        self.held: list[Input] = []
        self.tensors: list[Any] = []
        self.nodes: list[FxNode] = []
        self.outputs: list[Any] = []
        self.parts: dict[str, FxGraph | Ref] = {}

    def read(self) -> FxGraph:
        """Return the graph, whose inputs are the placeholders."""
        for node in self.module.graph.nodes:
            self.take(node)
        return FxGraph(tuple(self.inputs), tuple(self.nodes), tuple(self.outputs))

    def take(self, node: Any) -> None:
        """Read a node."""
        if node.op == "placeholder":
            value = node.meta.get("val")
            self.inputs.append(Input(node.name, _type_of(value), _extents(value)))
        elif node.op == "get_attr":
            self._take_held(node)
        elif node.op == "output":
            self.outputs = [self._argument(each) for each in _results(node)]
        elif node.users or _changes(node.target):
            self.nodes.append(self._node(node))

    def _take_held(self, node: Any) -> None:
        found, name = operator.attrgetter(node.target)(self.module), self.prefix + node.name
        if hasattr(found, "graph"):
            inner = _Reader(found, f"{name}__")
            self.parts[node.name] = inner.read()
            self.held += inner.held
            self.tensors += inner.tensors
        else:
            self.parts[node.name] = Ref(name)
            self.held.append(Input(name, _type_of(found)))
            self.tensors.append(found)

    def _node(self, node: Any) -> FxNode:
        value = node.meta.get("val")
        more = {}
        if str(node.target) in _OF_LAYOUT:
            more["is_contiguous"] = node.args[0].meta["val"].is_contiguous()
        values = value if isinstance(value, (list, tuple)) else (value,)
        return FxNode(
            node.name,
            name_of(node.target),
            tuple([self._argument(each) for each in node.args]),
            {name: self._argument(each) for name, each in node.kwargs.items() if name not in _PLACEMENT}
            | more,
            tuple([_type_of(each) for each in values]),
            _place(node.meta.get("stack_trace") or ""),
        )

    def _argument(self, argument: Any) -> Any:
        return mapped(argument, self._part)

    def _part(self, part: Any) -> Any:
        if part is None or isinstance(part, (bool, int, float, complex, str)):
            return part
        if hasattr(part, "op") and hasattr(part, "users"):
            return self.parts.get(part.name, Ref(part.name))
        dtype = dtype_of(part)
        if dtype is not None:
            return dtype
        whole = getattr(part, "node", None)
        if whole is not None and hasattr(whole, "maybe_as_int"):  # a symbol that is known
            known = whole.maybe_as_int()
            if known is not None:
                return known
        return None  # a device, a layout, a generator


def name_of(target: Callable[..., Any] | str) -> str:
    """Return the name of what a node calls: ``aten.add.Tensor``, ``operator.mul``."""
    if isinstance(target, str):
        return target
    if hasattr(target, "_schema"):
        return str(target)
    namespace = getattr(target, "namespace", None)
    if namespace == "higher_order":
        return f"higher_order.{target.__name__}"
    module = target.__module__.removeprefix("_").split(".")[0]
    return f"{module}.{target.__name__}"


def _changes(target: Any) -> bool:
    """Return whether an operator changes its arguments; it then has no rule, and is not to be lost."""
    return bool(getattr(getattr(target, "_schema", None), "is_mutable", False))


def _type_of(value: Any) -> ArrayType | None:
    if not hasattr(value, "dtype"):
        return ArrayType(DType.F64, ()) if type(value).__name__ == "SymFloat" else None
    dtype = dtype_of(value.dtype)
    if dtype is None:
        return None
    return ArrayType(dtype, tuple([each if isinstance(each, int) else None for each in value.shape]))


def _extents(value: Any) -> tuple[str, ...]:
    if type(value).__name__ == "SymInt":
        return (str(value),)
    # A symbol that torch has settled is written as its number.
    texts = [str(each) for each in getattr(value, "shape", ())]
    return tuple(["" if text.isdigit() else text for text in texts]) if any(texts) else ()


def _place(trace: str) -> SourceLine | None:
    """Return the innermost line of a stack trace that is none of torch's own."""
    frames = _FRAME.findall(trace)
    users = [frame for frame in frames if not _TORCH.search(frame[0])] or frames
    return SourceLine(users[-1][0], int(users[-1][1])) if users else None
