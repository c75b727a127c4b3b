"""Code that becomes a function of its own: what it captures is given to the function, or repeated inside.

Buffers are given as pointers, numbers as they are. Operations that only say where in a buffer to look, and
constants, are repeated, so that a function takes the buffers themselves.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import func, ir
from mind_mlir.mlir.locations import Sharing, places_of, unite
from mind_mlir.mlir.memory import VIEWS, byte_size, is_contiguous
from mind_mlir.mlir.values import constant_of, definition, name_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from mind_mlir.mlir.bindings import Block, Operation, Type, Value

#: Marks functions that code was moved to, on their way down to the LLVM dialect and there.
KERNEL_ATTRIBUTE = "mind.kernel"
#: Marks those among them that may be given overlapping buffers.
ALIASING_ATTRIBUTE = "mind.aliasing"

#: Operations that are repeated inside, where the buffer itself is given: they say where in it to look.
_REPEATED = ("arith.constant", *(each for each in VIEWS if each != "memref.view"))
#: Operations whose results overlap no other buffer that is live.
_BUFFERS = ("memref.alloca", "memref.get_global", "memref.view")


class Closure:
    """The captures of some operations: the values they use that are computed outside of them."""

    def __init__(
        self,
        code: Iterable[Operation] = (),
        inside: Iterable[Value] = (),
        repeated: Container[str] = _REPEATED,
    ) -> None:
        """Find what is captured.

        Args:
            code: Operations of one block, one after the other; regions belong to them.
            inside: Values from outside that the function has anyway.
            repeated: What operations are called that are repeated inside.
        """
        self._repeated = repeated
        self._code: list[Operation] = []
        self._known = set(inside)
        self._names: list[str] = []
        self._users: dict[Value, list[Operation]] = {}
        self._clones: dict[Operation, None] = {}
        self._arguments: dict[Value, None] = {}
        for op in code:
            self.add(op)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operations, in order."""
        return tuple(self._names)

    @property
    def arguments(self) -> list[Value]:
        """The values to be given, in the order in which they are used: equal code, equal order."""
        return list(self._arguments)

    @property
    def types(self) -> list[Type]:
        """The types of `arguments`."""
        return [value.type for value in self._arguments]

    def add(self, op: Operation) -> None:
        """Add the operation that follows."""
        self._code.append(op)
        known, users, names = self._known, self._users, self._names
        advance = ir.WalkResult.ADVANCE

        def visit(op: Operation) -> object:
            names.append(op.name)
            for operand in op.operands:
                if operand not in known:
                    if operand not in users:
                        users[operand] = []
                        self._gather(operand)
                    users[operand].append(op)
            known.update(op.results)
            regions = op.regions
            if len(regions):
                for region in regions:
                    for block in region.blocks:
                        known.update(block.arguments)
            return advance

        op.walk(visit, ir.WalkOrder.PRE_ORDER)

    def captures(self, value: Value) -> bool:
        """Return whether the code uses ``value``, which is computed outside of it."""
        return value in self._users

    def is_passable(self) -> bool:
        """Return whether pointers and numbers are enough to give the arguments."""
        return all(
            is_contiguous(value.type) for value in self.arguments if isinstance(value.type, ir.MemRefType)
        )

    def may_alias(self, function: Operation) -> bool:
        """Return whether two of the buffers may overlap, where the code stands in ``function``."""
        if ALIASING_ATTRIBUTE in function.attributes:
            return True
        entry = function.regions[0].blocks[0]
        return any(_may_alias(entry, value) for value in self.arguments) or _share_bytes(self.arguments)

    def function(self, name: str, types: Sequence[Type], before: Operation) -> Operation:
        """Return a private function of ``types`` for the code, which stands in function ``before``."""
        with ir.InsertionPoint(before):
            made = func.FuncOp(name, (list(types), []), visibility="private")
        made.attributes[KERNEL_ATTRIBUTE] = ir.UnitAttr.get()
        if self.may_alias(before):
            made.attributes[ALIASING_ATTRIBUTE] = ir.UnitAttr.get()
        return made

    def move(self, function: Operation, results: Sequence[Value] = ()) -> None:
        """Move the code to ``function``, which takes the arguments, and let it return ``results``."""
        body = function.add_entry_block()
        for op in self._code:
            op.detach_from_parent()
            body.append(op)
        self.enter(body, body.arguments)
        with ir.InsertionPoint(body):
            func.ReturnOp(list(results))

    def enter(self, body: Block, given: Sequence[Value]) -> None:
        """Let the code read ``given`` for the arguments; ``body``, where it is to stand, repeats the rest."""
        inside = dict(zip(self.arguments, given, strict=True))
        with ir.InsertionPoint.at_block_begin(body):
            for op in self._clones:
                clone = op.clone().operation
                for index, operand in enumerate(op.operands):
                    clone.operands[index] = inside[operand]
                inside |= zip(op.results, clone.results, strict=True)
        for value, users in self._users.items():
            for user in users:
                user.replace_uses_of_with(value, inside[value])

    def _gather(self, value: Value) -> None:
        """Enter what is needed for ``value``: operations to repeat, and arguments."""
        owner = definition(value)
        if owner is None or owner.name not in self._repeated:
            self._arguments[value] = None
            return
        for operand in owner.operands:
            self._gather(operand)
        self._clones[owner] = None


class SharedFunctions:
    """The functions of one kind that were made so far: equal ones are one."""

    def __init__(self, kind: str, sharing: Sharing = Sharing.FIRST) -> None:
        """Begin with none, whose names will say ``kind``."""
        self._kind = kind
        self._sharing = sharing
        self._alike: dict[object, list[Operation]] = {}
        self._texts: dict[str, str] = {}
        self._count = 0

    def enter(self, function: Operation, prefix: str, names: tuple[str, ...]) -> str:
        """Return the name of ``function``, or of an equal one that was there before, and erase the other.

        It is private; its own name starts with ``prefix``, and its operations are called ``names``.
        """
        # Printing a function takes as long as making it: only those are compared that look alike.
        places = _places(function) if self._sharing is Sharing.APART else ()
        alike = self._alike.setdefault((function.type, names, places), [])
        if alike:
            text = self._text(function)
            for other in alike:
                name = name_of(other)
                if name not in self._texts:
                    self._texts[name] = self._text(other)
                if self._texts[name] == text:
                    if self._sharing is Sharing.ALL:
                        unite(other.operation, function.operation)
                    function.operation.erase()
                    return name
        name = f"{prefix}_{self._kind}_{self._count}"
        self._count += 1
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        alike.append(function)
        return name

    def _text(self, function: Operation) -> str:
        name = name_of(function)
        text = str(function.operation.get_asm(use_local_scope=True, assume_verified=True))
        return text.replace(f"@{name}(", f"@{self._kind}(", 1)


def _places(function: Operation) -> tuple[object, ...]:
    """Return the places of the operations of ``function``."""
    found: list[object] = []

    def collect(op: Operation) -> object:
        found.append(places_of(op.location))
        return ir.WalkResult.ADVANCE

    function.operation.walk(collect)
    return tuple(found)


def _may_alias(entry: Block, value: Value) -> bool:
    if not isinstance(value.type, ir.MemRefType):
        return False
    owner = definition(value)
    if owner is None:
        return bool(value.owner != entry)
    return owner.name not in _BUFFERS


def _share_bytes(values: Iterable[Value]) -> bool:
    """Return whether two of the buffers have bytes of the arena in common.

    Buffers that are live at different times do, and a loop may use one after the other.
    """
    spans: dict[Value, list[tuple[int, int]]] = {}
    for value in values:
        owner = definition(value)
        if owner is None or owner.name != "memref.view":
            continue
        arena, offset = list(owner.operands)[:2]
        start = _constant_part(offset)
        spans.setdefault(arena, []).append((start, start + byte_size(value.type)))
    for found in spans.values():
        found.sort()
        if any(after[0] < before[1] for before, after in pairwise(found)):
            return True
    return False


def _constant_part(offset: Value) -> int:
    """Return the constant of an offset into the arena, which multiples of loop variables are added to."""
    owner = definition(offset)
    while owner is not None and owner.name == "arith.addi":
        owner = definition(owner.operands[0])
    return 0 if owner is None else constant_of(owner.result) or 0
