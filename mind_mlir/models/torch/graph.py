"""Graphs of operators as plain data, which rules read without torch.

    FxGraph ::= inputs, nodes, outputs            input  ::= name, ArrayType | None (an integer of Python)
    FxNode  ::= name = operator(args, kwargs)     output ::= Ref | number | None

An argument is a `Ref` to an input or an earlier node, a number, a string, None, a `DType`, an `FxGraph` (what
a branch or a loop runs), or a list of arguments. What concerns devices, layouts and strides has been left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of an input or a node, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayType:
    """The type of an array: its dtype, and its extents as far as they are known when the graph is read."""

    dtype: DType
    shape: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's program."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a graph: an array, or an integer that decides on the program (None).

    Attributes:
        name: Its name.
        type: Its type.
        extents: What torch calls its open extents, by axis, with "" for those that are known; or the integer.
    """

    name: str
    type: ArrayType | None
    extents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FxNode:
    """The use of an operator.

    Attributes:
        name: What its value is called.
        operator: The operator with its overload: ``aten.add.Tensor``.
        args: What it is given by position.
        kwargs: What it is given by name.
        types: The types of its results; None for what is no array.
        place: The line that it comes from, where that is known.
    """

    name: str
    operator: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    types: tuple[ArrayType | None, ...]
    place: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class FxGraph:
    """Operators in the order in which they are evaluated.

    Attributes:
        inputs: What it is given.
        nodes: The uses of operators.
        outputs: What it returns.
    """

    inputs: tuple[Input, ...]
    nodes: tuple[FxNode, ...]
    outputs: tuple[Any, ...]

    def all_nodes(self) -> Iterator[FxNode]:
        """Yield the nodes, and those of the graphs among their arguments."""
        for node in self.nodes:
            yield node
            for part in parts([*node.args, *node.kwargs.values()]):
                if isinstance(part, FxGraph):
                    yield from part.all_nodes()

    def used_names(self) -> set[str]:
        """Return the names of the inputs and nodes that something reads."""
        given = [each for node in self.all_nodes() for each in (*node.args, *node.kwargs.values())]
        return {part.name for part in parts([*given, *self.outputs]) if isinstance(part, Ref)}


def parts(argument: Any) -> Iterator[Any]:
    """Yield the arguments that one is made of, which has lists in it."""
    if isinstance(argument, list | tuple):
        for each in argument:
            yield from parts(each)
    else:
        yield argument


def mapped(argument: Any, change: Callable[[Any], Any]) -> Any:
    """Return an argument with what ``change`` returns for each of its parts; tuples become lists."""
    if isinstance(argument, list | tuple):
        return [mapped(each, change) for each in argument]
    return change(argument)
