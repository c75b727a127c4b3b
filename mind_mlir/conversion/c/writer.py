"""The base of the writers of C functions: it manages names, scopes and the expressions of values."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mind_mlir.conversion.c.accesses import label_for
from mind_mlir.conversion.c.arrays import Array, address, in_memory, row_major
from mind_mlir.conversion.c.names import RESERVED
from mind_mlir.conversion.c.nodes import Block, Element, Index, Set, Sum, Text
from mind_mlir.conversion.c.operations import C_TYPES, kind_of
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.conversion.c.nodes import Expr, Statement
    from mind_mlir.mlir.bindings import Operation, Value

_LOOPS = "ijklmn"


class Writer(ABC):
    """Writes the body of one function.

    Attributes:
        used: The helpers that it calls.
        constants: Definitions of its tables, by name.
        buffers: C type and number of elements of its arrays, by name.
        types: The C types of the arrays that it is given.
    """

    def __init__(
        self, prefix: str, opcodes: Mapping[str, str], used: set[str], constants: dict[str, str]
    ) -> None:
        self.used, self.constants, self._prefix, self._opcodes = used, constants, prefix, opcodes
        self.buffers: dict[str, tuple[str, int]] = {}
        self.body: list[Statement] = []
        self._out = self.body
        self._scalars: dict[Value, Expr] = {}
        self._arrays: dict[Value, Array] = {}
        self._names = set(RESERVED)
        self._wanted: dict[Value, str] = {}
        self._homes: dict[str, object] = {}
        self._depth = 0
        self._in_body = False
        self._indices: list[Index] = []
        self._order: dict[Operation, int] = {}
        self._block: Any = None

    def name(self, wanted: str) -> str:
        """Return a name like ``wanted`` that nothing has yet."""
        plain = re.sub(r"\W", "_", wanted.removeprefix("%"))
        plain = f"v{plain}" if not plain or plain[0].isdigit() else plain
        number, found = 2, plain
        while found in self._names or found in self.used:
            found, number = f"{plain}_{number}", number + 1
        self._names.add(found)
        return found

    def add(self, *statements: Statement) -> None:
        """Write statements at the current place."""
        self._out.extend(statements)

    @contextmanager
    def inside(self, block: Block, statements: list[Statement] | None = None) -> Iterator[None]:
        """Write into ``block``, which is written at the current place."""
        out, self._out = self._out, block.body if statements is None else statements
        self._depth += 1
        yield
        self._depth -= 1
        self._out = out

    @contextmanager
    def loops(self, extents: Sequence[int]) -> Iterator[list[Index]]:
        """Write into loops over ``extents``; an extent of 1 takes none."""
        out, depth = self._out, self._depth
        indices: list[Index] = []
        for extent in extents:
            if extent == 1:
                indices.append(Index())
                continue
            variable = _LOOPS[self._depth] if self._depth < len(_LOOPS) else f"i{self._depth}"
            block = Block(f"for (int64_t {variable} = 0; {variable} < {extent}; ++{variable})")
            self.add(block)
            self._out = block.body
            self._depth += 1
            indices.append(Index(((variable, 1),)))
        yield indices
        self._out, self._depth = out, depth

    def buffer(self, value: Value, home: object = None) -> str:
        """Return a new array for ``value``."""
        if value in self._wanted:
            name = self._wanted.pop(value)
        else:
            name = self.name(label_for(value))
            self.buffers[name] = C_TYPES[kind_of(value.type)], max(1, math.prod(value.type.shape))
        self._homes[name] = self._block if home is None else home
        return name

    def bind(self, value: Value, name: str) -> None:
        """Say that ``value``, an argument, is called ``name``."""
        if isinstance(value.type, ir.RankedTensorType):
            self._arrays[value] = in_memory(name, value.type.shape)
        else:
            self._scalars[value] = Text(name)

    def settle(self, name: str, home: object) -> None:
        """Say that the array ``name`` may be written to by what stands in the block ``home``."""
        self._homes[name] = home

    def alias(self, argument: Value, value: Value) -> None:
        """Say that ``argument`` is ``value``."""
        if value in self._arrays:
            self._arrays[argument] = self._arrays[value]
        else:
            self._scalars[argument] = self._scalars[value]

    def want(self, value: Value, name: str) -> None:
        """Have ``value`` computed in the array ``name`` if it is computed at all."""
        self._wanted.setdefault(value, name)

    def scalar(self, value: Value) -> Expr:
        """Return what reads the scalar ``value``."""
        return self._scalars[value]

    def array(self, value: Value) -> Array:
        """Return the tensor ``value``."""
        return self._arrays[value]

    def index(self, value: Value) -> Index:
        """Return an index that is computed, as a term of addresses."""
        expr = self._scalars[value]
        if isinstance(expr, Sum):
            return expr.index
        if isinstance(expr, Text) and re.fullmatch(r"-?\d+", expr.text):
            return Index((), int(expr.text))
        if not isinstance(expr, Text):
            name = self.name("at")
            self.add(Set(Text(name), expr, "const int64_t"))
            expr = self._scalars[value] = Text(name)
        return Index(((expr.text, 1),))

    def copied(
        self, array: Array, name: str, offset: Index | None = None, strides: Sequence[int] = ()
    ) -> None:
        """Write loops that put ``array`` into the array ``name``."""
        with self.loops(array.shape) as indices:
            place = address(indices, strides or row_major(array.shape))
            value = array.read(indices)
            self.add(Set(Element(name, place if offset is None else place.plus(offset)), value))

    def stored(self, value: Value) -> Array:
        """Return the tensor ``value``, having put it into memory."""
        array = self._arrays[value]
        if array.place is None:
            name = self.buffer(value)
            self.copied(array, name)
            array = self._arrays[value] = in_memory(name, array.shape)
        return array

    def _uses_left(self, value: Value, after: int) -> bool:
        return any(self._position(use.owner.operation) > after for use in value.uses)

    def _position(self, op: Operation) -> int:
        while op not in self._order:
            op = op.parent.operation
        return self._order[op]

    def _flushed(self, name: str, op: Operation, destination: Value) -> None:
        """Put into memory what would read the array ``name`` after ``op`` writes to it."""
        for value, array in list(self._arrays.items()):
            mine = name in array.reads and value != destination and self._block_of(value) == self._block
            if mine and self._uses_left(value, self._order[op] - 1):
                fresh = self.buffer(value)
                self.copied(array, fresh)
                self._arrays[value] = in_memory(fresh, array.shape)

    @staticmethod
    def _block_of(value: Value) -> Any:
        return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block

    def block(self, block: Any) -> list[Value]:
        """Write the operations of ``block``; return the operands of its terminator."""
        outer = self._block
        self._block = block
        operations = [view.operation for view in block.operations]
        self._order.update((op, number) for number, op in enumerate(operations))
        for op in operations[:-1]:
            self.operation(op)
        self._block = outer
        return list(operations[-1].operands)

    @abstractmethod
    def operation(self, op: Operation) -> None:
        """Write one operation."""
