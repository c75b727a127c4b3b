"""One function of the linalg form as C: a statement list, and the arrays that it needs."""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.bindings import ir, linalg
from mind_mlir.conversion.c.arrays import Array, address, in_memory, reshaped, row_major
from mind_mlir.conversion.c.nodes import Block, Element, Index, Infix, Line, Set, Sum, Text, names_in, spelled
from mind_mlir.conversion.c.operations import C_TYPES, kind_of, literal, scalar_expression, unsupported
from mind_mlir.mlir.locations import label_of
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.bindings import Operation, Value
    from mind_mlir.conversion.c.nodes import Expr, Statement

_KEYWORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "main",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
        "true",
        "false",
        "status",
        "scratch",
        "i",
        "j",
        "k",
        "l",
        "m",
        "n",
        "y0",
        "y1",
        "j0",
        "j1",
        "jn",
        "yn",
        "gamma",
        "exp",
        "log",
        "sin",
        "cos",
        "tan",
        "pow",
        "sqrt",
        "floor",
        "ceil",
        "round",
        "erf",
        "NAN",
        "INFINITY",
    ]
)
_LOOPS = "ijklmn"
_SHAPERS = ("tensor.expand_shape", "tensor.collapse_shape")


class FunctionWriter:
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
        self._names = set(_KEYWORDS)
        self._wanted: dict[Value, str] = {}
        self._homes: dict[str, object] = {}
        self._depth = 0
        self._in_body = False
        self._order: dict[Operation, int] = {}
        self._block: Any = None

    # Names and places.

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
            name = self.name(_label(value))
            self.buffers[name] = C_TYPES[kind_of(value.type)], max(1, math.prod(value.type.shape))
        self._homes[name] = self._block if home is None else home
        return name

    # Values.

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

    # Operations.

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

    def operation(self, op: Operation) -> None:
        """Write one operation."""
        name = op.name
        if name == "arith.constant":
            self._constant(op)
        elif name.startswith("tensor."):
            rule = getattr(self, f"_{name.removeprefix('tensor.')}", None)
            if rule is None:
                raise unsupported(f"'{name}'")
            rule(op)
        elif name == "linalg.index":
            self._scalars[op.results[0]] = Sum(self._indices[ir.IntegerAttr(op.attributes["dim"]).value])
        elif name.startswith("linalg."):
            self._linalg(op)
        elif name.startswith("scf."):
            from mind_mlir.conversion.c import control  # noqa: PLC0415  its functions write with this class

            control.RULES[name](self, op)
        elif name == "func.call":
            self._call(op)
        else:
            self._scalar(op)

    def _constant(self, op: Operation) -> None:
        result, held = op.results[0], op.attributes["value"]
        kind = kind_of(result.type)
        if not isinstance(result.type, ir.RankedTensorType):
            number = ir.FloatAttr(held).value if kind[0] == "f" else ir.IntegerAttr(held).value
            self._scalars[result] = literal(number, kind)
            return
        shape = tuple(result.type.shape)
        dense = ir.DenseElementsAttr(held)
        if dense.is_splat:
            splat = dense.get_splat_value()
            number = ir.FloatAttr(splat).value if kind[0] == "f" else ir.IntegerAttr(splat).value
            text = literal(number, kind)
            self._arrays[result] = Array(shape, lambda indices, text=text: text)  # type: ignore[misc]  # bound now
            return
        values = np.array(dense).reshape(-1)
        name = self.name(f"{self._prefix}_table")
        items = ", ".join(literal(each, kind).text for each in values.tolist())
        self.constants[name] = f"static const {C_TYPES[kind]} {name}[{len(values)}] = {{{items}}};"
        self._arrays[result] = in_memory(name, shape)

    def _scalar(self, op: Operation) -> None:
        result = op.results[0]
        if isinstance(result.type, ir.RankedTensorType):
            raise unsupported(f"'{op.name}' of a tensor")
        if op.name in ("arith.addi", "arith.subi", "arith.muli") and str(result.type) == "index":
            sign = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}[op.name]
            if sign != "*":
                left, right = map(self.index, op.operands)
                self._scalars[result] = Sum(left.plus(right, 1 if sign == "+" else -1))
                return
            left, right = map(self.index, op.operands)
            if left.terms and not right.terms:
                self._scalars[result] = Sum(left.times(right.constant))
                return
            self._scalars[result] = Infix("*", Sum(left), Sum(right))
            return
        expr = scalar_expression(op, [self._scalars[each] for each in op.operands], self.used)
        self._define(result, expr)

    def _define(self, result: Value, expr: Expr) -> None:
        uses = len(list(result.uses))
        inner = uses == 1 and next(iter(result.uses)).owner.operation.block == result.owner.operation.block
        if isinstance(expr, (Text, Sum)) or (inner and self._in_body):
            self._scalars[result] = expr
            return
        if not uses:
            return
        name = self.name("t" if self._in_body else _label(result))
        self.add(Set(Text(name), expr, f"const {C_TYPES[kind_of(result.type)]}"))
        self._scalars[result] = Text(name)

    # Tensors.

    def _empty(self, op: Operation) -> None:
        zero = Text("0")
        self._arrays[op.results[0]] = Array(tuple(op.results[0].type.shape), lambda indices: zero)

    def _extract(self, op: Operation) -> None:
        tensor, *indices = op.operands
        self._define(op.results[0], self.array(tensor).read([self.index(each) for each in indices]))

    def _from_elements(self, op: Operation) -> None:
        result = op.results[0]
        values = [self._scalars[each] for each in op.operands]
        shape = tuple(result.type.shape)
        if len(values) == 1:
            only = values[0]
            self._arrays[result] = Array(shape, lambda indices: only, frozenset(names_in(only)))
            return
        if (
            all(use.owner.operation.name == "func.return" for use in result.uses)
            and result not in self._wanted
        ):
            return  # the outcomes of checks
        name = self.buffer(result)
        self.add(*(Set(Element(name, Index((), number)), each) for number, each in enumerate(values)))
        self._arrays[result] = in_memory(name, shape)

    def _expand_shape(self, op: Operation) -> None:
        shape = tuple(op.results[0].type.shape)
        found = reshaped(self.array(op.operands[0]), shape)
        if found is None:
            found = reshaped(self._dense(op.operands[0]), shape)
        assert found is not None
        self._arrays[op.results[0]] = found

    _collapse_shape = _expand_shape

    def _dense(self, value: Value) -> Array:
        name = self.buffer(value)
        array = self.array(value)
        self.copied(array, name)
        return in_memory(name, array.shape)

    def _ranges(self, op: Operation) -> tuple[list[Index], list[int], list[int]]:
        """Return offsets, sizes and steps of a slice; what is dynamic stands in the operands."""
        attributes = op.attributes
        segments = list(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"]))
        first = len(op.operands) - sum(segments[-3:])
        dynamic = iter(list(op.operands)[first:])
        offsets = [
            self.index(next(dynamic)) if each == -(2**63) else Index((), each)
            for each in ir.DenseI64ArrayAttr(attributes["static_offsets"])
        ]
        sizes = list(ir.DenseI64ArrayAttr(attributes["static_sizes"]))
        steps = list(ir.DenseI64ArrayAttr(attributes["static_strides"]))
        return offsets, sizes, steps

    def _extract_slice(self, op: Operation) -> None:
        result = op.results[0]
        if not isinstance(result.type, ir.RankedTensorType):
            raise unsupported("a slice")
        source = self.array(op.operands[0])
        offsets, sizes, steps = self._ranges(op)
        shape = tuple(result.type.shape)
        kept = _kept(sizes, shape)

        def read(indices: Sequence[Index]) -> Expr:
            given = list(offsets)
            for axis, index in zip(kept, indices, strict=True):
                given[axis] = offsets[axis].plus(index, steps[axis])
            return source.read(given)

        names = {name for offset in offsets for name, _ in offset.terms}
        self._arrays[result] = Array(shape, read, source.reads | names)

    def _insert(self, op: Operation) -> None:
        scalar, destination, *indices = op.operands
        name = self._target(op, destination)
        places = [self.index(each) for each in indices]
        value = self._scalars[scalar]
        self.add(Set(Element(name, address(places, row_major(op.results[0].type.shape))), value))

    def _insert_slice(self, op: Operation) -> None:
        source, destination = op.operands[0], op.operands[1]
        name = self._target(op, destination, reading=self.array(source))
        offsets, sizes, steps = self._ranges(op)
        strides = row_major(op.results[0].type.shape)
        array = self.array(source)
        kept = _kept(sizes, array.shape)
        self.copied(array, name, address(offsets, strides), [strides[axis] * steps[axis] for axis in kept])

    def _target(self, op: Operation, destination: Value, reading: Array | None = None) -> str:
        """Return the array that ``op`` writes to: its destination's where nobody needs it any more."""
        result, array = op.results[0], self.array(destination)
        shape = tuple(result.type.shape)
        if array.place is not None and array.place[1:] == (row_major(shape), 0):
            name = array.place[0]
            mine = (
                name in self._homes
                and self._homes[name] == self._block
                and self._block_of(destination) == self._block
            )
            apart = reading is None or name not in reading.reads
            if mine and apart and not self._uses_left(destination, self._order[op]):
                self._flushed(name, op, destination)
                self._arrays[result] = in_memory(name, shape)
                return name
        name = self.buffer(result)
        owner = definition(destination)
        if owner is None or owner.name != "tensor.empty":
            self.copied(array, name)
        self._arrays[result] = in_memory(name, shape)
        return name

    def _pad(self, op: Operation) -> None:
        source, result = self.array(op.operands[0]), op.results[0]
        body = op.regions[0].blocks[0]
        given = self.block(body)
        value = self._scalars[given[0]]
        low = list(ir.DenseI64ArrayAttr(op.attributes["static_low"]))
        name = self.buffer(result)
        shape = tuple(result.type.shape)
        self.copied(Array(shape, lambda indices: value), name)
        strides = row_major(shape)
        self.copied(source, name, address([Index((), each) for each in low], strides), strides)
        self._arrays[result] = in_memory(name, shape)

    # Linalg.

    def _linalg(self, op: Operation) -> None:
        if op.name == "linalg.fill":
            value = self._scalars[op.operands[0]]
            shape = tuple(op.results[0].type.shape)
            self._arrays[op.results[0]] = Array(shape, lambda indices: value, frozenset(names_in(value)))
            return
        maps = [attribute.value for attribute in linalg.get_indexing_maps(op)]
        operands = list(op.operands)
        results = len(op.results)
        extents = _extents(operands, maps)
        written = maps[-results:]
        outer = [d for d in range(len(extents)) if any(_depends(e, d) for m in written for e in m.results)]
        inner = [d for d in range(len(extents)) if d not in outer]
        if results == 1 and not inner and self._read_once(op):
            self._lazy(op, maps, written[0])
            return
        self._comment(op)
        if not outer and not any(r in self._wanted for r in op.results):
            self._total(op, maps, extents)
            return
        names = [self.buffer(result) for result in op.results]
        self._nest(op, maps, extents, outer, inner, names)
        for result, name in zip(op.results, names, strict=True):
            self._arrays[result] = in_memory(name, result.type.shape)

    def _total(self, op: Operation, maps: Sequence[Any], extents: Sequence[int]) -> None:
        """Write a reduction of everything, whose results are variables."""
        results = len(op.results)
        totals: list[Expr] = []
        for value, result in zip(list(op.operands)[-results:], op.results, strict=True):
            totals.append(Text(self.name(_label(result))))
            start = self._scalars[value] if value in self._scalars else self.array(value).read([])
            self.add(Set(totals[-1], start, C_TYPES[kind_of(result.type)]))
        with self.loops(extents) as given:
            inputs = zip(list(op.operands)[:-results], maps[:-results], strict=True)
            values = self._body(op, [*(self._element(v, m, given) for v, m in inputs), *totals], given)
            self._put(op, totals, values)
        for result, total in zip(op.results, totals, strict=True):
            name = _text(total)
            self._arrays[result] = Array((), lambda indices, total=total: total, frozenset((name,)))  # type: ignore[misc]  # bound now

    def _put(self, op: Operation, targets: Sequence[Expr], values: Sequence[Expr]) -> None:
        """Write assignments, all at once."""
        if len(values) > 1:
            fresh = [Text(self.name("next")) for _ in values]
            for text, value, result in zip(fresh, values, op.results, strict=True):
                self.add(Set(text, value, f"const {C_TYPES[kind_of(result.type)]}"))
            values = fresh
        self.add(*(Set(target, value) for target, value in zip(targets, values, strict=True)))

    def _read_once(self, op: Operation) -> bool:
        """Return whether every element is read once, in this block, by what computes elements one by one."""
        result = op.results[0]
        uses = list(result.uses)
        if len(uses) != 1 or result in self._wanted:
            return False
        user = uses[0].owner.operation
        if user.block != op.block:
            return False
        if user.name in _SHAPERS:
            source, target = result.type.shape, user.results[0].type.shape
            return [e for e in source if e != 1] == [e for e in target if e != 1] and self._read_once(user)
        if not user.name.startswith("linalg.") or user.name == "linalg.fill":
            return False
        maps = [attribute.value for attribute in linalg.get_indexing_maps(user)]
        read = maps[uses[0].operand_number]
        extents = _extents(list(user.operands), maps)
        return all(
            extent == 1 or any(_dimension(each) == dim for each in read.results)
            for dim, extent in enumerate(extents)
        )

    def _lazy(self, op: Operation, maps: Sequence[Any], written: Any) -> None:
        order = [_dimension(each) for each in written.results]
        operands = list(op.operands)
        reads = frozenset().union(*(self._arrays[v].reads for v in operands if v in self._arrays))
        inner = frozenset(
            name
            for view in op.regions[0].blocks[0].operations
            for value in view.operation.operands
            if value in self._arrays
            for name in self._arrays[value].reads
        )

        def read(indices: Sequence[Index]) -> Expr:
            given = [Index()] * len(order)
            for dim, index in zip(order, indices, strict=True):
                given[dim] = index  # type: ignore[index]  # results of parallel loops are permutations
            elements = [self._element(v, m, given) for v, m in zip(operands, maps, strict=True)]
            return self._body(op, elements, given)[0]

        self._arrays[op.results[0]] = Array(tuple(op.results[0].type.shape), read, reads | inner)

    def _element(self, value: Value, affine: Any, given: Sequence[Index]) -> Expr:
        if value in self._scalars:
            return self._scalars[value]
        return self.array(value).read([_index(each, given) for each in affine.results])

    def _body(self, op: Operation, elements: Sequence[Expr], given: list[Index]) -> list[Expr]:
        block = op.regions[0].blocks[0]
        for argument, element in zip(block.arguments, elements, strict=True):
            uses = len(list(argument.uses))
            if uses > 1 and not isinstance(element, (Text, Element, Sum)):
                name = self.name("t")
                self.add(Set(Text(name), element, f"const {C_TYPES[kind_of(argument.type)]}"))
                self._scalars[argument] = Text(name)
            else:
                self._scalars[argument] = element
        before = self._in_body, getattr(self, "_indices", [])
        self._in_body, self._indices = True, given
        values = [self._scalars[value] for value in self.block(block)]
        self._in_body, self._indices = before
        return values

    def _nest(
        self, op: Operation, maps: Sequence[Any], extents: Sequence[int],
        outer: list[int], inner: list[int], names: Sequence[str],
    ) -> None:  # fmt: skip
        operands, results = list(op.operands), len(names)
        strides = [row_major(result.type.shape) for result in op.results]
        given = [Index()] * len(extents)

        def places() -> list[Expr]:
            return [
                Element(name, address([_index(e, given) for e in m.results], steps))
                for name, m, steps in zip(names, maps[-results:], strides, strict=True)
            ]

        def started() -> list[Expr]:
            pairs = zip(operands[-results:], maps[-results:], strict=True)
            return [self._element(value, affine, given) for value, affine in pairs]

        def computed(current: Sequence[Expr]) -> list[Expr]:
            inputs = zip(operands[:-results], maps[:-results], strict=True)
            return self._body(op, [*(self._element(v, m, given) for v, m in inputs), *current], given)

        last = outer[-1] if outer else -1
        along = inner and results == 1 and extents[last] > 1 and self._contiguous(operands, maps, last, inner)
        first = outer[:-1] if along else outer
        with self.loops([extents[d] for d in first]) as indices:
            for dim, index in zip(first, indices, strict=True):
                given[dim] = index
            if not inner:
                self._put(op, places(), computed(started()))
            elif along:
                with self.loops([extents[last]]) as (given[last],):
                    self._put(op, places(), started())
                with self.loops([extents[d] for d in (*inner, last)]) as within:
                    for dim, index in zip((*inner, last), within, strict=True):
                        given[dim] = index
                    self._put(op, places(), computed(places()))
            else:
                totals: list[Expr] = []
                for value, result in zip(started(), op.results, strict=True):
                    totals.append(Text(self.name("acc")))
                    self.add(Set(totals[-1], value, C_TYPES[kind_of(result.type)]))
                with self.loops([extents[d] for d in inner]) as within:
                    for dim, index in zip(inner, within, strict=True):
                        given[dim] = index
                    self._put(op, totals, computed(totals))
                self.add(*(Set(place, total) for place, total in zip(places(), totals, strict=True)))

    def _contiguous(
        self, operands: Sequence[Value], maps: Sequence[Any], last: int, inner: list[int]
    ) -> bool:
        """Return whether an input lies along the last dimension of the result rather than along the sum."""
        return any(
            len(affine.results)
            and _dimension(affine.results[-1]) == last
            and any(_depends(each, d) for each in affine.results for d in inner)
            for affine in maps[: len(operands) - 1]
        )

    def _comment(self, op: Operation) -> None:
        label = label_of(op.location)
        opcode = self._opcodes.get(label or "")
        if label and opcode:
            self.add(Line(f"/* {label} = {opcode} */"))

    def _call(self, op: Operation) -> None:
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        arguments = []
        for value in op.operands:
            if isinstance(value.type, ir.RankedTensorType):
                array = self.stored(value)
                assert array.place is not None
                if array.place[1:] != (row_major(array.shape), 0):
                    array = self._dense(value)
                assert array.place is not None
                arguments.append(array.place[0])
            else:
                arguments.append(_text(self._scalars[value]))
        for result in op.results:
            if isinstance(result.type, ir.RankedTensorType):
                buffer = self.buffer(result)
                self._arrays[result] = in_memory(buffer, result.type.shape)
                arguments.append(buffer)
            else:
                fresh = self.name(_label(result))
                self.add(Line(f"{C_TYPES[kind_of(result.type)]} {fresh};"))
                self._scalars[result] = Text(fresh)
                arguments.append(f"&{fresh}")
        called = re.sub(r"\W", "_", name)
        self.add(
            Block(f"if ({called}({', '.join(arguments)}) != 0)", [Line("status = -1;"), Line("goto end;")])
        )


def _text(expr: Expr) -> str:
    return spelled(expr)


def _label(value: Value) -> str:
    label = None if isinstance(value, ir.BlockArgument) else label_of(value.owner.operation.location)
    return label or "v"


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Return the axes that a slice of ``sizes`` with result ``shape`` keeps."""
    kept: list[int] = []
    left = list(shape)
    for axis, size in enumerate(sizes):
        if left and left[0] == size and (size != 1 or len(sizes) - axis == len(left) or len(left) > 0):
            kept.append(axis)
            left.pop(0)
    return kept


def _dimension(expr: Any) -> int | None:
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def _depends(expr: Any, dim: int) -> bool:
    return any(name == str(dim) for name, _ in _index(expr, None).terms)


def _index(expr: Any, given: Sequence[Index] | None) -> Index:
    """Return the value of an affine expression; the dimensions by their numbers where none are given."""
    if isinstance(expr, ir.AffineDimExpr):
        return Index(((str(expr.position), 1),)) if given is None else given[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return Index((), expr.value)
    if isinstance(expr, ir.AffineAddExpr):
        return _index(expr.lhs, given).plus(_index(expr.rhs, given))
    if isinstance(expr, ir.AffineMulExpr):
        left, right = _index(expr.lhs, given), _index(expr.rhs, given)
        return left.times(right.constant) if not right.terms else right.times(left.constant)
    raise unsupported("an access that is no sum of loop variables")


def _extents(operands: Sequence[Value], maps: Sequence[Any]) -> list[int]:
    extents = [1] * maps[0].n_dims
    for value, affine in zip(operands, maps, strict=True):
        if isinstance(value.type, ir.RankedTensorType):
            for extent, expr in zip(value.type.shape, affine.results, strict=True):
                if isinstance(expr, ir.AffineDimExpr):
                    extents[expr.position] = extent
    return extents
