"""`NodeUse`: a node as a rule sees it, with its operands and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.ir.types import DType
from mind_mlir.models.needed import Needed
from mind_mlir.models.onnx.graphs.graph import OnnxGraph, OnnxNode, Reference
from mind_mlir.models.onnx.graphs.refusals import broken, unsupported
from mind_mlir.models.onnx.graphs.tensors import dtype_of
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from mind_mlir.models.onnx.graphs.layouts import Layouts
    from mind_mlir.models.onnx.graphs.scope import GraphScope

#: An array: traced, or of numpy where its numbers are known.
Array: TypeAlias = Any
#: What a value of a graph is: an array, a list of arrays for a sequence, or None for an empty optional.
Value: TypeAlias = Any


class Evaluator(Protocol):
    """What evaluates graphs for rules; ``layouts`` are images with their channels behind."""

    layouts: Layouts

    def graph(self, graph: OnnxGraph, scope: GraphScope) -> list[Value]:
        """Evaluate a graph whose inputs have values in ``scope``, and return its outputs."""

    def at_once(self, emit: Callable[[], Any]) -> Any:
        """Return what is made of known numbers alone, as arrays of numpy."""


@dataclass(frozen=True, slots=True)
class OnnxRule:
    """What an operator does.

    Attributes:
        emit: Appends it to the trace that runs, and returns its result or a tuple of them.
        is_plain: Whether it takes arrays of numpy as well, and computes with these at once: what computes
            shapes is so.
        folds: Whether it computes the same each time, so that what is made of known numbers is known.
        is_elementwise: Whether it computes one result, element by element, of operands that broadcast.
    """

    emit: Callable[[NodeUse], Any]
    is_plain: bool = False
    folds: bool = True
    is_elementwise: bool = False


@dataclass(slots=True)
class NodeUse:
    """A node that is evaluated.

    Attributes:
        evaluator: What evaluates graphs within the node.
        node: The node.
        scope: The names that it sees.
        operands: The values of its inputs; None for what is left out.
        sources: What each operand follows from.
        stays: Whether known arrays stay arrays of numpy.
    """

    evaluator: Evaluator
    node: OnnxNode
    scope: GraphScope
    operands: Sequence[Value]
    sources: Sequence[frozenset[str]]
    stays: bool = False

    def __len__(self) -> int:
        return len(self.operands)

    def __getitem__(self, place: int) -> Array:
        """Return an operand that is needed, as an array."""
        if not self.has(place):
            broken(f"its input {place} is left out")
        return self.array(self.operands[place])

    def array(self, value: Value) -> Array:
        """Return a value as an array to compute with: traced, unless known ones stay."""
        if isinstance(value, list):
            broken("it is given a sequence for a tensor")
        if value is None:
            broken("it is given an empty optional for a tensor")
        return value if self.stays or isinstance(value, TracedValue) else traced(value)

    def has(self, place: int) -> bool:
        """Return whether an operand is there."""
        return place < len(self.operands) and self.operands[place] is not None

    def get(self, place: int) -> Array | None:
        """Return an operand as an array, or None where it is left out."""
        return self[place] if self.has(place) else None

    def all(self) -> list[Array]:
        """Return all operands as arrays."""
        return [self[place] for place in range(len(self.operands))]

    def sequence(self, place: int) -> list[Array]:
        """Return an operand that is a sequence."""
        found = self.operands[place] if place < len(self.operands) else None
        if not isinstance(found, list):
            broken(f"its input {place} is no sequence")
        return found

    def known(self, place: int, what: str) -> np.ndarray[Any, Any]:
        """Return the numbers of an operand, which decide ``what``; the model is traced anew to know them."""
        if not self.has(place):
            broken(f"its input {place}, {what}, is left out")
        found = self.operands[place]
        if isinstance(found, np.ndarray):
            return found
        raise Needed(self.sources[place], what)

    def is_known(self, place: int) -> bool:
        """Return whether the numbers of an operand are known."""
        return self.has(place) and isinstance(self.operands[place], np.ndarray)

    def ints(self, place: int, what: str) -> tuple[int, ...]:
        """Return the integers of an operand, as `known`."""
        found = self.known(place, what)
        if found.dtype.kind not in "iu":
            broken(f"its input {place}, {what}, is of {found.dtype}, no integers")
        return tuple(int(each) for each in found.reshape(-1))

    def axis(self, number: int, rank: int) -> int:
        """Return an axis counted from the front."""
        if not -rank <= number < rank:
            broken(f"axis {number} is none of the {rank} that there are")
        return number % rank

    def axes(self, numbers: Sequence[int], rank: int) -> tuple[int, ...]:
        """Return axes counted from the front, all of them different."""
        found = tuple([self.axis(number, rank) for number in numbers])
        if len(set(found)) < len(found):
            broken(f"axes {list(numbers)} name one twice")
        return found

    def behind(self, place: int) -> Array:
        """Return an image that is an operand, [N, C, ...], as [N, ..., C]."""
        return self.evaluator.layouts.behind(self[place])

    def in_front(self, x: Array) -> Array:
        """Return an image [N, ..., C] as [N, C, ...]."""
        return self.evaluator.layouts.in_front(x)

    @property
    def version(self) -> int:
        """Return the version of the operator set."""
        return self.node.version

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, of the type that its default has, or the default."""
        found = self.node.attributes.get(name)
        if isinstance(found, Reference):
            found = self.scope.attributes.get(found.name)
        if found is None:
            return default
        if isinstance(default, float) and isinstance(found, int):
            return float(found)
        if default is not None and not isinstance(found, type(default)):
            broken(f"its attribute {name} is of the wrong kind")
        return found

    def needed(self, name: str, kind: type) -> Any:
        """Return an attribute that has no default."""
        found = self.attr(name)
        if not isinstance(found, kind):
            broken(f"its attribute {name} is left out, or of the wrong kind")
        return found

    def attributes(self) -> Mapping[str, Any]:
        """Return all attributes that are given."""
        found = {name: self.attr(name) for name in self.node.attributes}
        return {name: value for name, value in found.items() if value is not None}

    def all_sources(self) -> frozenset[str]:
        """Return what its operands follow from."""
        return frozenset().union(*self.sources)


def traced(array: np.ndarray[Any, Any]) -> Array:
    """Return a known array as a constant of the trace that runs."""
    if array.dtype.hasobject:
        unsupported("tensors of strings have no dtype here")
    if DType.from_numpy(array.dtype) is None:
        unsupported(f"there are no arrays of {array.dtype} here")
    return mnp.asarray(array)


def dtype_for(use: NodeUse, number: int) -> np.dtype[Any]:
    """Return numpy's dtype for ONNX's number of one, which is one that arrays have here."""
    found = dtype_of(number)
    if found is None:
        broken(f"dtype number {number} is none of ONNX")
    if found.hasobject or DType.from_numpy(found) is None:
        unsupported(f"there are no arrays of {'strings' if found.hasobject else found} here")
    return found
