"""`from_stablehlo`: a StableHLO program as a module of profile `ptir-v0.4`.

Each function becomes one of ours in structured form, called as it is there; what is private stays so. Regions
for scalars, as reductions have them, are applied to whole tensors (`rules.bodies.combined`). What cannot be
read is reported all at once: one finding for each operation and reason, with every place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import (
    Diagnostic,
    InternalError,
    MindError,
    SourceText,
    UnsupportedError,
    VerificationError,
)
from mind_mlir.diagnostics.source import pack_offsets
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.module import Function, Functions, Module
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.languages.stablehlo.parsing import new_context, read, resources_of
from mind_mlir.languages.stablehlo.rules import RULES
from mind_mlir.languages.stablehlo.rules.folding import Folded
from mind_mlir.languages.stablehlo.rules.types import Unsupported, flat_types
from mind_mlir.languages.stablehlo.rules.use import Use
from mind_mlir.mlir.bindings import Block, MLIRLocation, Operation, PassManager, ir
from mind_mlir.mlir.locations import place_of
from mind_mlir.ops.contexts import Signature
from mind_mlir.passes.verify import verify
from mind_mlir.support import argument_checks
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.interrupts import deliver, held
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.bindings import Module as MLIRModule

#: How many places a finding names.
_MOST_PLACES = 10
_DECOMPOSED = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
#: What the names of a module's attributes begin with that say how XLA is to run it, as jax's do.
_FOR_XLA = "mhlo."
#: How many operations a block has that is read in the place of its calls: one, and the end.
_SHORT = 2
_ENDS = ("func.return", "stablehlo.return")


@public
@fixed()
def from_stablehlo(program: str | bytes, *, name: str = "<stablehlo>") -> Module:
    """Return a StableHLO program as a verified module, whose functions are called as the program's.

    Args:
        program: Its text, as `jax.jit(f).lower(x).as_text()` gives it, or a portable artifact.
        name: What diagnostics call the text.

    Raises:
        ParseError: E1101, it is not well-formed.
        UnsupportedError: E7001, it holds what cannot be read; a finding for each operation and reason.
        VerificationError: What it says breaks a rule of ours.
        InternalError: A rule failed: a bug of the compiler.
        TypeError: ``program`` is neither a string nor bytes, or ``name`` no string.
    """
    if not isinstance(program, str | bytes):
        argument_checks.reject("program", "StableHLO, as a string or as bytes", program)
    source = SourceText(argument_checks.text(name, "name"), program if isinstance(program, str) else "")
    with held():
        mlir = read(program, source, new_context())
        try:
            module = _Program(mlir, source).module()
        except MindError:
            raise
        except Exception as error:
            raise InternalError("import", f"{type(error).__name__}: {error}", str(mlir)) from error
    return verify(module)


@dataclass
class _Program:
    """One program on its way.

    Attributes:
        mlir: The program.
        source: Its text.
        missing: Where what cannot be read stands, by operation and reason.
        signatures: What its functions take and return, by name.
        short: The blocks of those that are no more than one operation.
    """

    mlir: MLIRModule
    source: SourceText
    missing: dict[tuple[str, str], list[MLIRLocation]] = field(default_factory=dict)
    signatures: dict[str, Signature | None] = field(default_factory=dict)
    short: dict[str, Block] = field(default_factory=dict)

    @cached_property
    def resources(self) -> Mapping[str, bytes]:
        """Return the data that the program holds beside its operations, by name."""
        return resources_of(self.source.text or self.mlir.operation.get_asm(enable_debug_info=False))

    def module(self) -> Module:
        """Return the program as a module."""
        with self.mlir.context, ir.Location.unknown():
            functions = [op for op in self.mlir.body.operations if op.operation.name == "func.func"]
            for function in functions:
                self._declare(function)
            found = [self._function(function) for function in functions]
        if self.missing:
            raise UnsupportedError([self._finding(*each) for each in self.missing.items()])
        return Module(Functions(each for each in found if each is not None), PTIR.name)

    def _declare(self, function: Operation) -> None:
        name = ir.StringAttr(function.attributes["sym_name"]).value
        try:
            taken = tuple([each for type_ in function.type.inputs for each in flat_types(type_)])
            given = tuple([each for type_ in function.type.results for each in flat_types(type_)])
        except Unsupported as reason:
            self.refuse(function.operation, str(reason))
            self.signatures[name] = None
            return
        self.signatures[name] = Signature(taken, given)
        for block in function.regions[0].blocks:
            if len(block.operations) == _SHORT:
                self.short[name] = block

    def _function(self, function: Operation) -> Function | None:
        name = ir.StringAttr(function.attributes["sym_name"]).value
        signature = self.signatures[name]
        if signature is None or not function.regions[0].blocks:
            return None
        is_public = '"private"' not in str(function.attributes.get("sym_visibility", None))
        builder = Builder(functions=self.signatures, profile=PTIR.name)
        for number, type_ in enumerate(signature.parameters):
            builder.parameter(type_, f"arg{number}" if is_public else None)
        body = _FunctionImport(self, builder)
        results = body.block(function.regions[0].blocks[0], builder.values)
        if self.missing:
            return None
        return builder.function(name, results, public=is_public)

    def refuse(self, operation: Operation, reason: str) -> None:
        """Note that an operation cannot be read."""
        self.missing.setdefault((str(operation.name), reason), []).append(operation.location)

    def _finding(self, what: tuple[str, str], places: list[MLIRLocation]) -> Diagnostic:
        name, reason = what
        lines = [place[1] for place in map(place_of, places) if place is not None]
        count = "once" if len(places) == 1 else f"{len(places)} times"
        shown = ", ".join(map(str, lines[:_MOST_PLACES])) + (", ..." if len(lines) > _MOST_PLACES else "")
        where = f": line {shown}" if len(lines) == 1 else f": lines {shown}" if lines else ""
        source = self.info(places[0])
        return Diagnostic(
            "E7001",
            f"{name} is not read ({count}{where}): {reason}",
            None if source is None else source.statement,
            help="the page on StableHLO programs lists what is read",
            context=FrozenDict({"operation": name, "reason": reason, "count": len(places)}),
        )

    def info(self, location: MLIRLocation) -> SourceInfo | None:
        """Return where an operation stands in the text."""
        place = place_of(location)
        line = 0 if place is None else place[1]
        if not self.source.text or not 0 < line <= self.source.index.count:
            return None
        start, end = self.source.index.span(line)
        text = self.source.text[start:end]
        start += len(text) - len(text.lstrip())
        return SourceInfo(self.source, pack_offsets(self.source, (start, end)))


@dataclass(slots=True)
class _FunctionImport:
    """The operations of one function; what rules are given to read regions with."""

    program: _Program
    builder: Builder
    values: dict[Any, tuple[Value, ...]] = field(default_factory=dict)
    constants: dict[int, Any] = field(default_factory=dict)
    parts: dict[int, tuple[Value, Value]] = field(default_factory=dict)
    known_integers: Folded = field(default_factory=Folded)

    @property
    def resources(self) -> Mapping[str, bytes]:
        """Return the data that the program holds beside its operations, by name."""
        return self.program.resources

    @property
    def for_xla(self) -> bool:
        """Return whether the program is written for XLA, and means what XLA does where StableHLO differs."""
        return any(name.startswith(_FOR_XLA) for name in self.program.mlir.operation.attributes)

    def block(
        self, block: Block, arguments: Sequence[Value], lift: tuple[int, ...] | None = None
    ) -> tuple[Value, ...]:
        """Append what ``block`` does, and return what it ends with.

        Args:
            block: A block of StableHLO.
            arguments: Its arguments.
            lift: The shape that takes the place of scalars, whose region is applied element by element; what
                is defined around it has that shape then, too.
        """
        self._define(block.arguments, arguments)
        for each in block.operations:
            deliver()
            operation = each.operation
            if operation.name in _ENDS:
                return self._read(operation.operands, lift)
            self._operation(operation, lift)
        raise Unsupported("a block without an end")

    def _operation(self, operation: Operation, lift: tuple[int, ...] | None) -> None:
        source = self.program.info(operation.location)
        appended, first = self.builder.operations, len(self.builder.operations)
        try:
            results = self._results(operation, lift, source)
        except Unsupported as reason:
            self._refuse(operation, str(reason), lift)
            return
        except VerificationError as error:
            self._refuse(operation, error.diagnostics[0].message, lift)
            return
        self.known_integers.append(appended[first:])
        self._define(operation.results, results)

    def _define(self, named: Iterable[Any], tensors: Iterable[Value]) -> None:
        """Note what values of MLIR are: a tensor each, the tensors of a tuple, nothing of a token."""
        given = iter(tensors)
        for each in named:
            count = 1 if isinstance(each.type, ir.RankedTensorType) else len(flat_types(each.type))
            self.values[each] = tuple(itertools.islice(given, count))
        assert next(given, None) is None, "a rule gives what the operation gives"

    def _read(self, named: Iterable[Any], lift: tuple[int, ...] | None) -> tuple[Value, ...]:
        """Return the tensors that values of MLIR are made of, in the shape that scalars have."""
        return tuple([self._lifted(tensor, lift) for each in named for tensor in self._parts(each)])

    def _results(
        self, operation: Operation, lift: tuple[int, ...] | None, source: SourceInfo | None
    ) -> Iterable[Value]:
        name = str(operation.name)
        operands = self._read(operation.operands, lift)
        rule = RULES.get(name)
        if rule is None and name.startswith("chlo.") and lift is None:
            return self.decomposed(operation, operands)
        if rule is None:
            raise Unsupported("there is no rule for it")
        if lift is not None and not rule.lifts:
            raise Unsupported("it stands in a region that is applied to whole tensors")
        use = Use(
            self.builder,
            source,
            self.parts,
            self.constants,
            imports=self,
            operation=operation,
            operands=operands,
            lift=lift,
        )
        found = rule.emit(use)
        return found if isinstance(found, tuple | list) else (found,)

    def value(self, value: Any, lift: tuple[int, ...] | None) -> Value:
        """Return what a value of MLIR is here, in the shape that scalars have."""
        (found,) = self._parts(value)
        return self._lifted(found, lift)

    def _parts(self, value: Any) -> tuple[Value, ...]:
        found = self.values.get(value)
        if found is None:
            raise Unsupported("it reads what could not be read")
        return found

    def _lifted(self, found: Value, lift: tuple[int, ...] | None) -> Value:
        if lift is None or found.type.extents == lift:
            return found
        return self.builder.emit("BroadcastTo", found, result_shape=lift)

    def _refuse(self, operation: Operation, reason: str, lift: tuple[int, ...] | None) -> None:
        """Note that an operation cannot be read, and let its results be anything."""
        if reason != "it reads what could not be read":
            self.program.refuse(operation, reason)
        for result in operation.results:
            try:
                types = flat_types(result.type)
            except Unsupported:
                continue
            self.values[result] = tuple(
                [self.builder.fresh(each if lift is None else each.with_shape(lift)) for each in types]
            )

    def note(self, value: Value, number: Any) -> None:
        """Remember the number that all elements of a value are."""
        self.constants[value.id] = number

    def folded(self, value: Value) -> Array | None:
        """Return integers or truth values that are the same whatever the arguments are; else None."""
        return self.known_integers.array(value)

    def call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Append a call of a function of the program; one without results does nothing."""
        signature = self.program.signatures.get(name)
        if signature is None:
            raise Unsupported(f"it calls @{name}, which could not be read")
        if not signature.results:
            return ()
        body = self.program.short.get(name)
        if body is not None and any(argument.id in self.parts for argument in arguments):
            return self.block(body, arguments)  # which then reads the parts
        return self.builder.emit_all("Call", *arguments, callee=name)

    def decomposed(self, operation: Operation, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Append what StableHLO's own passes make of an operation of CHLO."""
        context = operation.context
        module = ir.Module.create(ir.Location.unknown(context))
        with context, ir.Location.unknown():
            types = [value.type for value in operation.operands]
            results = [value.type for value in operation.results]
            text = ir.FunctionType.get(types, results)
            function = ir.Operation.create(
                "func.func",
                attributes={"sym_name": ir.StringAttr.get("part"), "function_type": ir.TypeAttr.get(text)},
                regions=1,
                ip=ir.InsertionPoint(module.body),
            )
            block = function.regions[0].blocks.append(*types)
            with ir.InsertionPoint(block):
                copy = operation.clone()
                for index, argument in enumerate(block.arguments):
                    copy.operands[index] = argument
                ir.Operation.create("func.return", operands=list(copy.results))
            try:
                PassManager.parse(_DECOMPOSED).run(module.operation)
            except ir.MLIRError:
                raise Unsupported("there is no rule for it") from None
        part = module.body.operations[0].regions[0].blocks[0]
        if any(str(each.operation.name).startswith("chlo.") for each in part.operations):
            raise Unsupported("there is no rule for it")
        return self.block(part, arguments)
