"""Nests that a program repeats, emitted once.

The first few nests of a kind are emitted where they stand. From then on a private function computes them, and
each is a call: the time that later stages take for a nest, they take once. A kind is described by a key, made
from what is to be emitted rather than from what has been.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import IN_PLACE
from mind_mlir.lowering.schedule.emission.decision import Choice
from mind_mlir.lowering.schedule.emission.emitter import Emitter
from mind_mlir.mlir.bindings import func, ir
from mind_mlir.mlir.locations import places_of
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from mind_mlir.mlir.bindings import Operation, Type, Value


@dataclasses.dataclass
class _Kind:
    """Equal nests: how many there have been so far, and the function that computes them, if any."""

    count: int = 0
    function: str | None = None


class SharedNests:
    """The nests of one function so far, by kind."""

    def __init__(self, function: Operation, *, located: bool = False) -> None:
        """Begin with none.

        Args:
            function: The function.
            located: Whether nests from different places of the program are of different kinds.
        """
        self._located = located
        self._function = function.operation
        self._prefix = ir.StringAttr(function.attributes["sym_name"]).value
        self._kinds: dict[Hashable, _Kind] = {}
        self._functions = 0

    def may_share(self, op: Operation, inputs: Sequence[Value]) -> bool:
        """Return whether a nest in the place of ``op`` can be a call as well.

        Parts of tensors could only be passed as copies; what is inserted into another tensor is best computed
        in its place there; and what a loop repeats is emitted once anyway.
        """
        if op.parent.operation != self._function:
            return False
        if any(
            use.owner.operation.name == "tensor.insert_slice" for result in op.results for use in result.uses
        ):
            return False
        owners = [definition(value) for value in inputs]
        return not any(owner is not None and owner.name == "tensor.extract_slice" for owner in owners)

    def call(
        self,
        key: Hashable,
        inputs: Sequence[Value],
        results: Sequence[Type],
        define: Callable[[Emitter, list[Value]], Sequence[Value]],
    ) -> list[Value] | None:
        """Emit a call of the function of kind ``key``, and return what it returns.

        Args:
            key: What is computed; it says all that ``define`` depends on.
            inputs: The tensors that are read.
            results: The types of the results, new tensors.
            define: Emits the body of the function, given its arguments, and returns its results.

        Returns:
            None, with nothing emitted, if the nest is to be emitted where it stands.
        """
        if self._located:
            key = (key, places_of(ir.Location.current))
        kind = self._kinds.setdefault(key, _Kind())
        kind.count += 1
        if kind.count <= IN_PLACE:
            return None
        if kind.function is None:
            kind.function = self._define([value.type for value in inputs], results, define)
        call = func.CallOp(list(results), ir.FlatSymbolRefAttr.get(kind.function), list(inputs))
        return list(call.results)

    def _define(
        self,
        inputs: Sequence[Type],
        results: Sequence[Type],
        define: Callable[[Emitter, list[Value]], Sequence[Value]],
    ) -> str:
        name = f"{self._prefix}_nest_{self._functions}"
        self._functions += 1
        with ir.InsertionPoint(self._function):
            function = func.FuncOp(name, (list(inputs), list(results)), visibility="private")
        body = function.add_entry_block()
        with ir.InsertionPoint(body):
            func.ReturnOp(list(define(Emitter(function), list(body.arguments))))
        return name


def choices_of_sharing(results: Sequence[Value] | None) -> tuple[Choice, ...]:
    """Return the choice that a nest is a call, given the results of the call, if it is one."""
    if results is None:
        return ()
    callee = ir.FlatSymbolRefAttr(results[0].owner.attributes["callee"]).value
    return (Choice("call", f"@{callee}", f"one function for all but {IN_PLACE} nests of this kind"),)
