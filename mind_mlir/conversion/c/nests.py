"""Operations of linalg as nests of loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.conversion.c.accesses import affine_index, depends, dimension, extents_of, label_for
from mind_mlir.conversion.c.arrays import Array, address, in_memory, row_major
from mind_mlir.conversion.c.nodes import Element, Index, Line, Set, Sum, Text, names_in, spelled
from mind_mlir.conversion.c.operations import C_TYPES, kind_of
from mind_mlir.conversion.c.tensors import TensorWriter
from mind_mlir.mlir.bindings import linalg
from mind_mlir.mlir.locations import label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.conversion.c.nodes import Expr
    from mind_mlir.mlir.bindings import Operation, Value

_SHAPERS = ("tensor.expand_shape", "tensor.collapse_shape")


class NestWriter(TensorWriter):
    """Writes nests of loops; what is read once becomes part of what reads it."""

    def _linalg(self, op: Operation) -> None:
        if op.name == "linalg.fill":
            value = self._scalars[op.operands[0]]
            shape = tuple(op.results[0].type.shape)
            self._arrays[op.results[0]] = Array(shape, lambda indices: value, frozenset(names_in(value)))
            return
        maps = [attribute.value for attribute in linalg.get_indexing_maps(op)]
        operands = list(op.operands)
        results = len(op.results)
        extents = extents_of(operands, maps)
        written = maps[-results:]
        outer = [d for d in range(len(extents)) if any(depends(e, d) for m in written for e in m.results)]
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
            totals.append(Text(self.name(label_for(result))))
            start = self._scalars[value] if value in self._scalars else self.array(value).read([])
            self.add(Set(totals[-1], start, C_TYPES[kind_of(result.type)]))
        with self.loops(extents) as given:
            inputs = zip(list(op.operands)[:-results], maps[:-results], strict=True)
            values = self._body(op, [*(self._element(v, m, given) for v, m in inputs), *totals], given)
            self._put(op, totals, values)
        for result, total in zip(op.results, totals, strict=True):
            name = spelled(total)
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
        extents = extents_of(list(user.operands), maps)
        return all(
            extent == 1 or any(dimension(each) == dim for each in read.results)
            for dim, extent in enumerate(extents)
        )

    def _lazy(self, op: Operation, maps: Sequence[Any], written: Any) -> None:
        order = [dimension(each) for each in written.results]
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
        return self.array(value).read([affine_index(each, given) for each in affine.results])

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
        before = self._in_body, self._indices
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
                Element(name, address([affine_index(e, given) for e in m.results], steps))
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
            and dimension(affine.results[-1]) == last
            and any(depends(each, d) for each in affine.results for d in inner)
            for affine in maps[: len(operands) - 1]
        )

    def _comment(self, op: Operation) -> None:
        label = label_of(op.location)
        opcode = self._opcodes.get(label or "")
        if label and opcode:
            self.add(Line(f"/* {label} = {opcode} */"))
