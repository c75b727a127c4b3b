"""Random programs with functions, blocks and branches: any control-flow graph, which always comes to an end.

Fuel makes them end: every block has a parameter that its predecessors count down, a branch may go back, or
anywhere, only while there is fuel, and its other side leads forward. Blocks read what
their dominators define. Most functions return the path that they took, whatever else they return.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import (
    Block,
    Branch,
    CondBranch,
    CoreOperation,
    Function,
    Functions,
    Module,
    Parameter,
    Result,
    Return,
    Target,
    Yield,
)
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.constants import constant_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn

    from mind_mlir.ir.attributes import Array

FLAG, COUNT = TensorType(DType.I1), TensorType(DType.SI64)
FLOATS = (TensorType(DType.F64), TensorType(DType.F64, (2,)), TensorType(DType.F32, (3,)))
TYPES = (COUNT, *FLOATS, FLAG)


@dataclass(frozen=True)
class ControlFlow:
    """A generated module; its functions are public, ``main``, and internal ones that it calls."""

    module: Module

    def __repr__(self) -> str:
        return f"ControlFlow:\n{self.module}"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # what Hypothesis shows
        printer.text(repr(self))

    def arguments(self, seed: int, fuel: int = 12) -> dict[str, Array]:
        """Return random arguments for ``main``; no loop runs more than ``fuel`` times."""
        rng = np.random.default_rng(seed)
        arrays = {}
        for parameter in self.module.functions["main"].parameters:
            type_ = parameter.tensor_type
            array: Any = rng.uniform(-2, 2, type_.extents)
            if parameter.name == "fuel":
                array = rng.integers(0, fuel + 1)
            elif type_.dtype is DType.SI64:
                array = rng.integers(-3, 4, type_.extents)
            elif type_.dtype is DType.I1:
                array = rng.integers(0, 2, type_.extents)
            arrays[str(parameter.name)] = np.asarray(array, type_.dtype.numpy)
        return arrays


@dataclass(frozen=True)
class Features:
    """What programs may hold.

    Attributes:
        blocks: The most blocks of a function.
        operations: The most operations of a block, besides those that count and decide.
        float_conditions: Whether floats decide where to go: not where small changes must change little.
        regions: Whether blocks hold `Cond` and `While`.
        calls: The most functions besides ``main``.
        entry_loops: Whether branches lead to entries, which the verifier refuses.
        types: The types of values.
    """

    blocks: int = 8
    operations: int = 4
    float_conditions: bool = True
    regions: bool = True
    calls: int = 2
    entry_loops: bool = False
    types: tuple[TensorType, ...] = TYPES


@st.composite
def control_flow(draw: DrawFn, features: Features = Features()) -> ControlFlow:
    """Generate a verified module of profile ``core-functions``."""
    callees: list[Function] = []
    for index in range(draw(st.integers(0, features.calls))):
        smaller = replace(features, blocks=max(1, features.blocks // 2))
        callees.append(_FunctionDraw(draw, smaller, f"f{index}", list(callees)).function())
    main = _FunctionDraw(draw, features, "main", callees).function()
    return ControlFlow(Module(Functions((main, *callees)), "core-functions"))


@dataclass
class _FunctionDraw:
    draw: DrawFn
    features: Features
    name: str
    callees: list[Function]
    next_id: int = 0
    types: dict[int, TensorType] = field(default_factory=dict)
    operations: list[CoreOperation] = field(default_factory=list)
    #: Whether the second parameter of every block is the path so far, a number.
    has_path: bool = False

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def type(self) -> TensorType:
        return self.draw(st.sampled_from(self.features.types))

    def fresh(self, type_: TensorType) -> int:
        self.types[self.next_id] = type_
        self.next_id += 1
        return self.next_id - 1

    def function(self) -> Function:
        self.has_path = self.number(0, 3) < 3
        targets = self._skeleton()
        dominators = _dominators(targets)
        parameters = [self._parameters(index == 0) for index in range(len(targets))]
        results = tuple(self.type() for _ in range(self.number(1, 3)))
        if self.has_path:
            results = (COUNT, *results)
        defined: dict[int, list[int]] = {}
        blocks: dict[int, Block] = {}
        for index in _preorder(dominators):
            self.operations = []
            values = list(defined.get(dominators[index], [])) if index else []
            values += [parameter.value_id for parameter in parameters[index]]
            fuel = parameters[index][0].value_id
            terminator = self._block(index, targets[index], parameters, results, values, fuel)
            defined[index] = values
            label = f"b{index}" if index else "entry"
            blocks[index] = Block(tuple(self.operations), terminator, tuple(parameters[index]), label)
        ordered = tuple(blocks[index] for index in range(len(targets)))
        return Function(self.name, ordered, self.name == "main", results)

    def _skeleton(self) -> list[list[int]]:
        """Return the targets of each block, all of which are reached: none, one that follows, or two."""
        count = self.number(1, self.features.blocks)
        drawn: list[list[int]] = []
        for index in range(count):
            kind = self.number(0, 7) if index < count - 1 else 7
            # The nearest is the simplest choice: programs hold on to their blocks.
            forward = [index + self.number(1, count - 1 - index)] if kind < 7 else []
            first = 0 if self.features.entry_loops else 1
            # Back, most of the time, and not far.
            last = max(first, index) if self.number(0, 3) else count - 1
            drawn.append(forward if kind > 4 else [last - self.number(0, last - first), *forward])
        reached, pending = {0}, [0]
        while pending:
            for target in drawn[pending.pop()]:
                if target not in reached:
                    reached.add(target)
                    pending.append(target)
        new = {old: place for place, old in enumerate(sorted(reached))}
        return [[new[target] for target in drawn[old]] for old in sorted(reached)]

    def _parameters(self, entry: bool) -> list[Parameter]:
        types = [self.type() for _ in range(self.number(0, 3))]
        if entry:
            types = [*types, *self.features.types]
        if self.has_path:
            types = [COUNT, *types]
        names = ["fuel", *(f"x{place}" for place in range(len(types)))]
        named = entry and self.name == "main"
        return [
            Parameter(self.fresh(type_), type_, name=name if named else None)
            for type_, name in zip((COUNT, *types), names, strict=True)
        ]

    def _block(
        self,
        index: int,
        targets: list[int],
        parameters: list[list[Parameter]],
        results: Sequence[TensorType],
        values: list[int],
        fuel: int,
    ) -> Return | Branch | CondBranch:
        for _ in range(self.number(0, self.features.operations)):
            self._operation(values, fuel)
        passed_on = []
        if self.has_path:
            path = self.emit("Mul", (parameters[index][1].value_id, self.constant(3)), COUNT)
            passed_on = [self.emit("Add", (path, self.constant(index + 1)), COUNT)]
        known = len(passed_on)
        if not targets:
            return Return((*passed_on, *(self.value(type_, values) for type_ in results[known:])))
        passed_on.insert(0, self.emit("Sub", (fuel, self.constant(1)), COUNT))
        left, known = passed_on[0], known + 1
        found = []
        for target in targets:
            others = parameters[target][known:]
            passed = [*passed_on, *(self.value(p.tensor_type, values) for p in others)]
            found.append(Target(f"b{target}" if target else "entry", tuple(passed)))
        if len(found) == 1:
            return Branch(found[0])
        more = self.emit("Compare", (left, self.constant(0)), FLAG, op="Greater")
        chosen = more
        if self.number(0, 2):
            chosen = self.emit("Select", (more, self.flag(values), self.constant(0, FLAG)), FLAG)
        if self.number(0, 1):
            return CondBranch(chosen, found[0], found[1])
        no, yes = self.constant(0, FLAG), self.constant(1, FLAG)
        return CondBranch(self.emit("Select", (chosen, no, yes), FLAG), found[1], found[0])

    # Values

    def emit(self, opcode: str, operands: Sequence[int], *types: TensorType, **attributes: Any) -> int:
        return self.append(opcode, operands, types, attributes)[0]

    def append(
        self,
        opcode: str,
        operands: Sequence[int],
        types: Sequence[TensorType],
        attributes: dict[str, Any],
        regions: Sequence[Block] = (),
    ) -> tuple[int, ...]:
        ids = [self.fresh(type_) for type_ in types]
        others = [Result(value, type_) for value, type_ in zip(ids[1:], types[1:], strict=True)]
        self.operations.append(
            CoreOperation.create(
                ids[0], opcode, operands, attributes, types[0], others=others, regions=regions
            )
        )
        return tuple(ids)

    def constant(self, number: float, type_: TensorType = COUNT) -> int:
        opcode, attributes = constant_form(TensorLiteral.of(np.full(type_.extents, number), type_.dtype))
        return self.emit(opcode, (), type_, **attributes)

    def value(self, type_: TensorType, values: Sequence[int]) -> int:
        """Return one of ``values`` of a type, or a constant where there is none."""
        known = [value for value in reversed(values) if self.types[value] == type_]
        if not known:
            return self.constant(self.number(0, 1), type_)
        return self.draw(st.sampled_from(known))

    def flag(self, values: list[int]) -> int:
        """Return a scalar i1 that depends on ``values``."""
        kind = self.number(0, 2 if self.features.float_conditions else 1)
        if kind == 0 and FLAG in self.features.types:
            return self.value(FLAG, values)
        type_ = FLOATS[0] if kind == 2 else COUNT
        op = self.draw(st.sampled_from(["Less", "Equal", "GreaterEqual"]))
        return self.emit("Compare", (self.value(type_, values), self.value(type_, values)), FLAG, op=op)

    def _operation(self, values: list[int], fuel: int) -> None:
        kinds = 3 + bool(self.callees) + self.features.regions
        kind = self.number(0, kinds)
        type_ = self.type()
        if kind < 3:
            values.append(self._simple(type_, values))
        elif kind == 3 and self.callees:
            values.extend(self._call(values, fuel))
        elif self.features.regions and kind == kinds:
            values.extend(self._region(values))
        else:
            values.append(self.flag(values) if type_ == FLAG else self._simple(type_, values))

    def _simple(self, type_: TensorType, values: list[int]) -> int:
        """Append an operation whose result stays small."""
        if type_ == FLAG:
            return self.flag(values)
        a, b = self.value(type_, values), self.value(type_, values)
        kind = self.number(0, 3)
        if kind == 3:
            return self.emit("Select", (self.spread(self.flag(values), type_), a, b), type_)
        if type_ == COUNT:
            return self.emit(("Add", "Sub", "Mul")[kind], (a, b), type_)
        half = self.constant(0.5, TensorType(type_.dtype))
        if kind == 2:  # x * y / 2 stays below the larger one as long as both are below 2
            return self.emit("Mul", (self.emit("Mul", (a, half), type_), b), type_)
        if kind == 1 and type_ == FLOATS[0] and FLOATS[1] in self.features.types:
            wide = self.value(FLOATS[1], values)
            total = self.emit("Sum", (wide,), type_, axes=(), keepdims=False)
            return self.emit("Mul", (total, half), type_)
        total = self.emit(("Add", "Sub")[kind], (a, b), type_)
        return self.emit("Mul", (total, half), type_)

    def spread(self, flag: int, type_: TensorType) -> int:
        if not type_.rank:
            return flag
        shape = type_.extents
        return self.emit("BroadcastTo", (flag,), TensorType(DType.I1, shape), result_shape=shape)

    def _call(self, values: list[int], fuel: int) -> tuple[int, ...]:
        callee = self.draw(st.sampled_from(self.callees))
        # A quarter of the fuel or so, or calls in loops would take long.
        least = self.constant(3)
        few = self.emit("Compare", (fuel, least), FLAG, op="Less")
        passed = [self.emit("Select", (few, fuel, least), COUNT)]
        passed += [self.value(p.tensor_type, values) for p in callee.parameters[1:]]
        types = [type_ for type_ in callee.result_types or () if isinstance(type_, TensorType)]
        return self.append("Call", passed, types, {"callee": callee.name})

    # Regions

    def _region(self, values: list[int]) -> tuple[int, ...]:
        types = [self.type() for _ in range(self.number(1, 2))]
        if self.number(0, 1):
            predicate = self.flag(values)
            branches = [self._branch(label, types, values) for label in ("then", "else")]
            return self.append("Cond", (predicate,), types, {}, branches)
        initial = [self.constant(self.number(0, 3)), *(self.value(type_, values) for type_ in types)]
        carried = (COUNT, *types)
        condition = self._block_of(carried, values, "condition")
        body = self._block_of(carried, values, "body")
        return self.append("While", initial, carried, {}, (condition, body))

    def _branch(self, label: str, types: Sequence[TensorType], values: list[int]) -> Block:
        outer, self.operations = self.operations, []
        inner = list(values)
        for _ in range(self.number(0, 2)):
            inner.append(self._simple(self.type(), inner))
        yielded = tuple(self.value(type_, inner) for type_ in types)
        block = Block(tuple(self.operations), Yield(yielded), (), label)
        self.operations = outer
        return block

    def _block_of(self, types: Sequence[TensorType], values: list[int], label: str) -> Block:
        """Return a region of a loop that counts its first value down to zero."""
        outer, self.operations = self.operations, []
        parameters = [Parameter(self.fresh(type_), type_) for type_ in types]
        inner = [*values, *(parameter.value_id for parameter in parameters)]
        for _ in range(self.number(0, 2)):
            inner.append(self._simple(self.type(), inner))
        count = parameters[0].value_id
        if label == "condition":
            more = self.emit("Compare", (count, self.constant(0)), FLAG, op="Greater")
            head = [more, count]
        else:
            head = [self.emit("Sub", (count, self.constant(1)), COUNT)]
        yielded = (*head, *(self.value(type_, inner) for type_ in types[1:]))
        block = Block(tuple(self.operations), Yield(yielded), tuple(parameters), label)
        self.operations = outer
        return block


def _dominators(targets: list[list[int]]) -> list[int]:
    """Return the immediate dominator of each block; that of the entry is -1."""
    count = len(targets)
    sources: list[list[int]] = [[] for _ in range(count)]
    for index, found in enumerate(targets):
        for target in found:
            sources[target].append(index)
    every = set(range(count))
    sets = [{0}, *(set(every) for _ in range(count - 1))]
    changed = True
    while changed:
        changed = False
        for index in range(1, count):
            new = {index} | set.intersection(*(sets[source] for source in sources[index]))
            changed |= new != sets[index]
            sets[index] = new
    strict = [sorted(sets[index] - {index}, key=lambda block: len(sets[block])) for index in range(count)]
    return [found[-1] if found else -1 for found in strict]


def _preorder(dominators: list[int]) -> list[int]:
    """Return the blocks so that each comes after its dominators."""
    order, pending = [], [0]
    while pending:
        index = pending.pop()
        order.append(index)
        pending.extend(child for child, parent in enumerate(dominators) if parent == index)
    return order
