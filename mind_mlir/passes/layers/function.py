"""The function that a layer becomes, and its calls."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Block, Function, Parameter, Result, Return
from mind_mlir.ir.numbered import joined
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.layers.code import Code, Operand
    from mind_mlir.passes.layers.repeats import Layer


class LayerFunction:
    """The function of a layer; its body is that of the first time.

    Attributes:
        name: Its name.
        starts: The numbers of the first steps of each time.
        length: How many steps it has.
    """

    def __init__(self, code: Code, layer: Layer, name: str) -> None:
        self.name = name
        self.starts = layer.starts
        self.length = layer.length
        self._code = code
        #: What it is given: at each time the value. Equal values of one time may differ at another.
        self._given: dict[tuple[ValueId, ...], int] = {}
        #: Which of these an operand of a step is a view of.
        self._outside: dict[tuple[int, int], int] = {}
        #: What it hands on: at each time the value.
        self._results: dict[tuple[ValueId, ...], None] = {}
        #: Which results of which steps are among that.
        self._handed_on: set[tuple[int, int]] = set()
        self._find_arguments()

    def hand_on(self, value: ValueId | None) -> None:
        """Enter a result of a step, at any time, that something outside reads."""
        assert value is not None, "what a step makes is a value"
        number, result = self._code.made_by[value]
        offset = number - self.starts[self._time_of(number)]
        if (offset, result) in self._handed_on:
            return
        self._handed_on.add((offset, result))
        steps = [self._code.steps[start + offset] for start in self.starts]
        self._results[tuple([step.operation.result_ids[result] for step in steps])] = None

    def hand_on_moved(self, operands: Iterable[Operand]) -> None:
        """Enter results of the whole program that are reshaped or transposed results of steps.

        They are moved inside where that is so at all times, in the same way and once.
        """
        kinds: dict[tuple[int, int, int], list[Operand]] = {}
        for operand in operands:
            assert operand.root is not None, "what a step makes is a value"
            number, result = self._code.made_by[operand.root]
            offset = number - self.starts[self._time_of(number)]
            kinds.setdefault((offset, result, operand.chain), []).append(operand)
        for alike in kinds.values():
            by_time = {self._time(operand): operand.value for operand in alike}
            if len(by_time) == len(alike) == len(self.starts):
                self._results[tuple([by_time[time] for time in range(len(self.starts))])] = None
            else:
                for operand in alike:
                    self.hand_on(operand.root)

    def call(self, time: int) -> CoreOperation:
        """Return the call that takes the place of the steps of one of its times."""
        steps = self._code.steps[self.starts[time] : self.starts[time] + self.length]
        last = steps[-1].operation
        first, *others = [Result(values[time], self._code.types[values[time]]) for values in self._results]
        return replace(
            last,
            value_id=first.value_id,
            opcode="Call",
            operands=tuple([values[time] for values in self._given]),
            attributes=FrozenDict({"callee": self.name}),
            result_type=first.type,
            others=tuple(others),
            source=joined([last.source, *(step.operation.source for step in steps)]),
            origin=last.label,
        )

    def built(self) -> Function:
        """Return the function, after all results have been entered."""
        body = _LayerBody(self._code, self._given)
        start = self.starts[0]
        for number in range(self.length):
            step = self._code.steps[start + number]
            roots = [self._outside.get((number, place)) for place in range(len(step.operands))]
            times = [self._code.steps[first + number].operation.source for first in self.starts]
            operation = replace(step.operation, source=joined(times))
            body.append(operation, [body.seen(*pair) for pair in zip(step.operands, roots, strict=True)])
        results = [values[0] for values in self._results]
        returned = tuple([body.value(value) for value in results])
        types = tuple([self._code.types[value] for value in results])
        block = Block(tuple(body.operations), Return(returned), body.parameters)
        return Function(self.name, (block,), public=False, result_types=types)

    def _find_arguments(self) -> None:
        steps = self._code.steps
        for offset in range(self.length):
            for place, operand in enumerate(steps[self.starts[0] + offset].operands):
                if operand.root is None or self._is_inside(operand.root):
                    continue
                roots = [steps[start + offset].operands[place].root for start in self.starts]
                values = tuple([root for root in roots if root is not None])
                self._outside[offset, place] = self._given.setdefault(values, len(self._given))

    def _is_inside(self, root: ValueId) -> bool:
        """Return whether the first time makes ``root``."""
        number, _ = self._code.made_by.get(root, (-1, 0))
        return self.starts[0] <= number < self.starts[0] + self.length

    def _time(self, operand: Operand) -> int:
        assert operand.root is not None, "what a step makes is a value"
        number, _ = self._code.made_by[operand.root]
        return self._time_of(number)

    def _time_of(self, number: int) -> int:
        """Return at which time step ``number`` is done."""
        return bisect_right(self.starts, number) - 1


class _LayerBody:
    """The body of a function in the making; its values are numbered anew.

    Attributes:
        parameters: Those of the function.
        operations: What it does so far.
    """

    def __init__(self, code: Code, given: Iterable[tuple[ValueId, ...]]) -> None:
        self._code = code
        self.parameters = tuple([
            Parameter(number, code.types[values[0]], origin=f"%{values[0]}")
            for number, values in enumerate(given)
        ])  # fmt: skip
        self.operations: list[CoreOperation] = []
        self._next = len(self.parameters)
        self._now: dict[ValueId, ValueId] = {}
        self._views: dict[tuple[int, ValueId | None], ValueId] = {}

    def append(self, operation: CoreOperation, operands: Iterable[ValueId]) -> None:
        """Append a step that reads ``operands``."""
        new = [self._fresh() for _ in operation.result_ids]
        self._now.update(zip(operation.result_ids, new, strict=True))
        others = tuple(
            [replace(old, value_id=value) for old, value in zip(operation.others, new[1:], strict=True)]
        )
        self.operations.append(
            replace(
                operation,
                value_id=new[0],
                operands=tuple(operands),
                others=tuple(others),
                origin=operation.label,
            )
        )

    def seen(self, operand: Operand, parameter: int | None) -> ValueId:
        """Return ``operand``, whose root is ``parameter``, or a value of the body where that is None."""
        root = parameter if parameter is not None or operand.root is None else self._now[operand.root]
        views = list(self._code.views(operand.value))
        value = root
        for view in reversed(views):
            key = self._code.chain_of(view.value_id), root
            if key not in self._views:
                operands = () if value is None else (value,)
                made = replace(view, value_id=self._fresh(), operands=operands, origin=view.label)
                self.operations.append(made)
                self._views[key] = made.value_id
            value = self._views[key]
        assert value is not None, "only constants have no root, and they are views"
        return value

    def value(self, value: ValueId) -> ValueId:
        """Return what ``value``, a result of a step or a view of one, is in the body."""
        return self.seen(self._code.operand(value), None)

    def _fresh(self) -> ValueId:
        self._next += 1
        return self._next - 1
