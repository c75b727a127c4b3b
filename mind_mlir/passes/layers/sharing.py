"""Makes the layers of a program functions, each of which is compiled once.

Before: a module in structured form. After: the same, but what the body of a function computes several times,
with a contraction in it and no run-time check, is a private function that is called.

A model of twelve equal layers is so compiled in little more than the time of one, to code that is as fast: a
layer begins with a contraction, before which no loop would have gone on, where the fewest bytes go from one
layer to the next; and views of what it is given are repeated inside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Functions
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.layers.code import Code
from mind_mlir.passes.layers.function import LayerFunction
from mind_mlir.passes.layers.repeats import layers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.ir.module import Block, CoreOperation, Function, Module, ValueId
    from mind_mlir.passes.layers.code import Operand

#: Functions of fewer operations, or fewer contractions, have no layers worth the search.
_SHORT, _FEW = 64, 3


def share_layers(module: Module) -> Module:
    """Return ``module``, in structured form, with its layers as functions; itself where there are none."""
    names = {function.name for function in module.functions}
    functions: list[Function] = []
    for function in module.functions:
        (block,) = function.blocks
        functions += _Sharing(function, names).functions() if _may_repeat(block) else (function,)
    if len(functions) == len(module.functions):
        return module
    return replace(module, functions=Functions(functions))


def _may_repeat(block: Block) -> bool:
    if len(block.operations) < _SHORT:
        return False
    return sum(by_opcode()[operation.opcode].contracts for operation in block.operations) >= _FEW


class _Sharing:
    """Shares the layers of one function."""

    def __init__(self, function: Function, names: set[str]) -> None:
        self._function = function
        (self._block,) = function.blocks
        self._code = code = Code(self._block)
        self._layers = [LayerFunction(code, layer, self._name(names)) for layer in layers_of(code)]
        #: The layer that a step is in, and which time.
        self._owners: dict[int, tuple[LayerFunction, int]] = {}
        for layer in self._layers:
            for time, start in enumerate(layer.starts):
                self._owners.update((start + number, (layer, time)) for number in range(layer.length))
        self._find_results()

    def functions(self) -> tuple[Function, ...]:
        """Return the function, and those of its layers."""
        if not self._layers:
            return (self._function,)
        block = replace(self._block, operations=tuple(self._rest()))
        return (replace(self._function, blocks=(block,)), *(layer.built() for layer in self._layers))

    def _name(self, names: set[str]) -> str:
        number = 0
        while (name := f"{self._function.name}_layer_{number}") in names:
            number += 1
        names.add(name)
        return name

    def _find_results(self) -> None:
        """Tell layers what of theirs is read outside."""
        for number, step in enumerate(self._code.steps):
            here = self._owners.get(number)
            for operand in step.operands:
                maker = self._maker(operand)
                if maker is not None and maker != here:
                    maker[0].hand_on(operand.root)
        moved: dict[ValueId, Operand] = {}
        for operand in self._code.results:
            maker = self._maker(operand)
            if maker is None:
                continue
            if self._code.is_moved(operand):
                moved[operand.value] = operand
            else:
                maker[0].hand_on(operand.root)
        for layer in self._layers:
            layer.hand_on_moved([operand for operand in moved.values() if self._is_of(operand, layer)])

    def _maker(self, operand: Operand) -> tuple[LayerFunction, int] | None:
        if operand.root not in self._code.made_by:
            return None
        return self._owners.get(self._code.made_by[operand.root][0])

    def _is_of(self, operand: Operand, layer: LayerFunction) -> bool:
        maker = self._maker(operand)
        return maker is not None and maker[0] is layer

    def _rest(self) -> Iterator[CoreOperation]:
        """Yield what is left of the block: calls of layers, other steps, and the views that these read."""
        there: set[ValueId] = set()
        for number, step in enumerate(self._code.steps):
            if number not in self._owners:
                yield from self._views(step.operands, there)
                yield step.operation
                continue
            layer, time = self._owners[number]
            if number == layer.starts[time] + layer.length - 1:
                call = layer.call(time)
                there.update(call.result_ids)
                yield call
        yield from self._views(self._code.results, there)

    def _views(self, operands: Iterable[Operand], there: set[ValueId]) -> Iterator[CoreOperation]:
        """Yield the views of ``operands`` that are not ``there`` yet."""
        for operand in operands:
            needed = []
            for view in self._code.views(operand.value):
                if view.value_id in there:
                    break
                needed.append(view)
            there.update(view.value_id for view in needed)
            yield from reversed(needed)
