"""Symbolic dimensions of programs: which there are, and programs with numbers in their place.

A module has none. Whatever needs one (to verify all of it, to run, to compile, to differentiate) binds the
symbols first: each stands for one extent, 0 or more, wherever the program says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mind_mlir.ir.types import SymbolicDim, TensorType, TupleType, ValueType
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, Region
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.suggestions import did_you_mean

_Part = TypeVar("_Part", "Function", "Region")

#: Larger extents fit no address space.
_MOST = 2**63 - 1


def symbols_of(program: Program) -> tuple[str, ...]:
    """Return the names of the symbolic dimensions of ``program``, in the order in which they first stand."""
    parts: list[Function | Region] = [*program.functions, *program.regions]
    return tuple(dict.fromkeys(name for part in parts for name in _symbols_in(part)))


def parameter_symbols(function: Function) -> tuple[str, ...]:
    """Return the names that the types of a function's parameters have: what its arguments bind."""
    return tuple(dict.fromkeys(name for type_ in function.parameters for name in type_symbols(type_)))


def type_symbols(type_: ValueType) -> Iterator[str]:
    """Yield the names of the symbolic dimensions of a type."""
    pending = [type_]
    while pending:
        each = pending.pop()
        if isinstance(each, TupleType):
            pending.extend(reversed(each.elements))
        else:
            yield from (extent.name for extent in each.shape if isinstance(extent, SymbolicDim))


def checked_bindings(bindings: object, known: Iterable[str]) -> dict[str, int]:
    """Return what a caller passes as ``bindings``, in order of the names.

    Args:
        bindings: A mapping from names of symbols, without the ``?``, to extents.
        known: The symbols there are.

    Raises:
        TypeError: It is no mapping from strings to integers.
        ValueError: An extent is negative, or the program has no such symbol.
    """
    names = tuple(known)
    given = argument_checks.mapping(bindings, "bindings", "a mapping from names of symbols to extents")
    found: dict[str, int] = {}
    for name, extent in given.items():
        symbol = argument_checks.text(name, "each name in bindings")
        number = argument_checks.integer(extent, f"bindings[{symbol!r}]")
        if symbol not in names:
            listing = ", ".join(f"?{each}" for each in names) or "none"
            guess = did_you_mean(symbol, names)
            raise ValueError(f"bindings must name symbols of the program: {listing}; not '{symbol}'{guess}")
        if not 0 <= number <= _MOST:
            raise ValueError(f"bindings[{symbol!r}] must be an extent, from 0 to 2**63 - 1, not {number}")
        found[symbol] = number
    return dict(sorted(found.items()))


def bind(program: Program, bindings: Mapping[str, int]) -> Program:
    """Return ``program`` with extents in the place of the symbols that ``bindings`` names.

    Time linear in the program; parts without symbols are shared with it.
    """
    if not bindings:
        return program
    substitution = _Substitution(bindings)
    functions = tuple(map(substitution.part, program.functions))
    return replace(program, functions=functions, regions=tuple(map(substitution.part, program.regions)))


def bound(program: Program, bindings: Mapping[str, int] | None) -> Program:
    """Return ``program`` with what a caller passes as ``bindings``, which may leave symbols open.

    Raises:
        TypeError: It is no mapping from strings to integers.
        ValueError: An extent is negative, or the program has no such symbol.
    """
    return program if bindings is None else bind(program, checked_bindings(bindings, symbols_of(program)))


def bound_type(type_: ValueType, bindings: Mapping[str, int]) -> ValueType:
    """Return a type with extents in the place of symbols."""
    return _Substitution(bindings).type(type_)


def bind_instruction(instruction: Instruction, bindings: Mapping[str, int]) -> Instruction:
    """Return an instruction with extents in the place of symbols."""
    return _Substitution(bindings).instruction(instruction)


class _Substitution:
    """Puts numbers in the place of symbols; types that it has met are looked up."""

    def __init__(self, bindings: Mapping[str, int]) -> None:
        self.bindings = bindings
        self.met: dict[ValueType, ValueType] = {}

    def part(self, part: _Part) -> _Part:
        """Return a function or a region with numbers in it."""
        return replace(
            part,
            parameters=tuple(map(self.type, part.parameters)),
            body=tuple(map(self.instruction, part.body)),
            results=tuple(map(self.type, part.results)),
        )

    def type(self, type_: ValueType) -> ValueType:
        found = self.met.get(type_)
        if found is None:
            found = self.met[type_] = self._type(type_)
        return found

    def _type(self, type_: ValueType) -> ValueType:
        if isinstance(type_, TupleType):
            return TupleType(tuple(map(self.type, type_.elements)))
        shape = self.shape(type_.shape)
        return type_ if shape is type_.shape else TensorType(type_.dtype, shape)

    def shape(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        if not any(isinstance(extent, SymbolicDim) for extent in shape):
            return shape
        return tuple(
            self.bindings.get(extent.name, extent) if isinstance(extent, SymbolicDim) else extent
            for extent in shape
        )

    def instruction(self, instruction: Instruction) -> Instruction:
        output = self.type(instruction.output)
        operation = self.operation(instruction.operation)
        if output is instruction.output and operation is instruction.operation:
            return instruction
        return replace(instruction, output=output, operation=operation)

    def operation(self, operation: Operation) -> Operation:
        changed = {}
        for name, value in operation.fields.items():
            if isinstance(value, tuple) and (shape := self.shape(value)) is not value:
                changed[name] = shape
        if not changed:
            return operation
        return Operation(operation.name, operation.variant, FrozenDict({**operation.fields, **changed}))


def _symbols_in(part: Function | Region) -> Iterator[str]:
    for type_ in (*part.parameters, *part.results):
        yield from type_symbols(type_)
    for instruction in part.body:
        yield from type_symbols(instruction.output)
        for value in instruction.operation.fields.values():
            if isinstance(value, tuple):
                yield from (each.name for each in value if isinstance(each, SymbolicDim))
