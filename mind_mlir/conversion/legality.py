"""`check_program_legality`: what of a program a conversion target does not take, all of it at once.

The table of the target decides (`mind_mlir.conversion.target`); nothing is converted. Before: a program that
breaks no rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mind_mlir.builders.builder import Builder
from mind_mlir.conversion.registry import get_conversion_target
from mind_mlir.conversion.target import ConversionTarget, LegalityTable, OperationRule
from mind_mlir.conversion.walk import Visit, VisitKind, walk_program
from mind_mlir.diagnostics import Diagnostic
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.call_graph import CALL, CUSTOM_CALL
from mind_mlir.ir.module import MODULE, CoreOperation, Function, Functions, Module
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType
from mind_mlir.languages.programs.kinds import as_module
from mind_mlir.languages.programs.verification import verify
from mind_mlir.languages.ptir.program import Function as ProgramFunction
from mind_mlir.languages.ptir.program import Instruction, Program
from mind_mlir.languages.ptir.symbols import bind, checked_bindings, symbols_of
from mind_mlir.ops.custom_targets import custom_target
from mind_mlir.passes.expand import expanded
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.programs.kinds import AnyProgram

#: Operations that are forms of a program: an input is a parameter of its function.
FORM_OPERATIONS = ("Input", CALL)
_ANY = OperationRule()


@public
def check_program_legality(
    program: AnyProgram,
    target: str | ConversionTarget,
    *,
    bindings: Mapping[str, int] | None = None,
) -> tuple[Diagnostic, ...]:
    """Return everything that keeps ``program`` from being converted to ``target``; nothing where it is legal.

    There is one finding for each operation and each reason, in source order: E7201 for an operation that the
    target does not take, E7202 for a dtype, E7203 for a form, such as calls or symbolic dimensions. What only
    the conversion itself can find is no matter of legality: branches that nest too deeply (E7004).

    Args:
        program: A module of any profile, or a program.
        target: A target, or the name of one.
        bindings: Extents for the symbolic dimensions of a program, by name without the ``?``; those that it
            leaves open are legal where the target takes them.

    Raises:
        VerificationError: The program breaks a rule; the exception holds all findings.
        UnsupportedError: E7204, a package has a target of that name that cannot be loaded.
        TypeError: An argument is not of the type above.
        ValueError: There is no such target, or ``bindings`` names a symbol that there is not.
    """
    chosen = as_target(target)
    return findings_of(bound(program, bindings), chosen)


def as_target(target: object) -> ConversionTarget:
    """Return the target that a caller names."""
    if isinstance(target, ConversionTarget):
        return target
    if not isinstance(target, str):
        argument_checks.reject("target", "a ConversionTarget, or the name of one", target)
    return get_conversion_target(target)


def bound(program: AnyProgram, bindings: Mapping[str, int] | None) -> Module | Program:
    """Return a program with its symbols bound, or a module, that breaks no rule.

    Raises:
        VerificationError: It breaks one.
    """
    program, bindings, _ = as_module(program, bindings)
    if isinstance(program, Program):
        extents = checked_bindings({} if bindings is None else bindings, symbols_of(program))
        return verify(bind(program, extents))
    argument_checks.refuse_bindings(bindings)
    return verify(argument_checks.expect(program, Module, "program", f"{MODULE}, or a Program"))


def findings_of(program: Module | Program, target: ConversionTarget) -> tuple[Diagnostic, ...]:
    """Return what ``target`` does not take of a program that has been verified and bound."""
    check = _Check(target)
    check.exports(program)
    for visit in walk_program(program):
        deliver()
        check.visit(visit)
    return tuple(check.findings.in_source_order())


@dataclass(slots=True)
class _Check:
    """The check of one program against one target."""

    target: ConversionTarget
    findings: Findings = field(default_factory=Findings)

    @property
    def table(self) -> LegalityTable:
        return self.target.legality

    @property
    def name(self) -> str:
        return f"target {self.target.name}"

    def exports(self, program: Module | Program) -> None:
        """Look at how many functions there are to call, and at symbols."""
        public = [f for f in program.functions if isinstance(f, ProgramFunction) or f.public]
        if len(public) > 1 and not self.table.functions:
            names = ", ".join(f"@{function.name}" for function in public[:8])
            message = f"{self.name} takes one exported function, and the program has {len(public)}"
            hint = f"convert them one by one: {names}"
            self._form("functions", message, public[1].location, (), hint)
        if isinstance(program, Program) and not self.table.symbolic_dimensions:
            for name in symbols_of(program):
                where = next((f.location for f in program.functions if f.location is not None), None)
                message = f"{self.name} takes no symbolic dimensions, and ?{name} is not bound"
                hint = (
                    f"say what it is: bindings={{{name!r}: 4}} in Python, --bind {name}=4 on the command line"
                )
                self._form("symbolic_dimensions", message, where, (), hint, symbol=name)

    def visit(self, visit: Visit) -> None:
        """Look at one part of the program."""
        if visit.kind is VisitKind.OPERATION:
            self._operation(visit)
            return
        part = visit.part
        if isinstance(part, Function) and len(part.blocks) > 1 and not self.table.branches:
            message = f"{self.name} takes no branches, and {visit.path} has {len(part.blocks)} blocks"
            self._form("branches", message, visit.location, (), "write Cond and While instead")
        if isinstance(part, ProgramFunction) and not self.table.tuples:
            self._tuples(visit, part)
        if not isinstance(part, Function):  # its entry block has the same parameters
            self._types(visit, visit.results, "a parameter of " + visit.name)

    def _tuples(self, visit: Visit, function: ProgramFunction) -> None:
        if any(isinstance(type_, TupleType) for type_ in (*function.parameters, *function.results)):
            message = f"{self.name} takes no tuples, and {visit.path} has some in its signature"
            hint = "make each of their elements a parameter or result"
            self._form("tuples", message, visit.location, (), hint)

    def _operation(self, visit: Visit) -> None:
        record = visit.record
        assert record is not None, "operations of verified programs have records"
        rule = self.table.operations.get(record.opcode)
        if record.opcode in FORM_OPERATIONS:
            rule = _ANY
            if record.opcode == CALL and not self.table.calls:
                message = f"{self.name} takes no calls, and {visit.name} is one"
                hint = "write what the function does in its place"
                self._form("calls", message, visit.location, _notes(visit), hint)
        made = expansion_of(visit)
        if made is None:
            self._is_refused(visit, visit, rule)
        else:  # the conversion never sees the call, but what it is made of
            any(self._is_refused(visit, each, self._rule(each)) for each in made)
        if record.regions and not self.table.regions:
            message = f"{self.name} takes no regions, and {visit.name} runs some"
            hint = "unroll the loop, or compute both ways and Select"
            self._form("regions", message, visit.location, _notes(visit), hint)
        self._types(visit, visit.results, f"the result of {visit.name}", dtypes=False)

    def _rule(self, visit: Visit) -> OperationRule | None:
        return None if visit.record is None else self.table.operations.get(visit.record.opcode)

    def _is_refused(self, visit: Visit, operation: Visit, rule: OperationRule | None) -> bool:
        """Report what a rule says against an operation, which ``visit`` is or is made of."""
        opcode = "" if operation.record is None else operation.record.opcode
        of = "" if operation is visit else f", which is made of {opcode}"
        if rule is None or not rule.dtypes:
            message = f"{self.name} does not take {visit.name}{of}"
            self._add("E7201", message, visit, rule.reason if rule else "", opcode=opcode)
            return True
        if self._dtypes(visit, operation, rule, opcode):
            return True
        reason = None if rule.unless is None else rule.unless(operation)
        if reason is not None:
            message = f"{self.name} does not take {visit.name} as it is{of}"
            self._add("E7201", message, visit, reason, opcode=opcode)
        return reason is not None

    def _dtypes(self, visit: Visit, operation: Visit, rule: OperationRule, opcode: str) -> bool:
        """Report a dtype that the target does not take in an operation; return whether there is one."""
        of = "" if operation is visit else f", which is made of {opcode}"
        for type_ in (*operation.operands, *operation.results):
            if type_.dtype in rule.dtypes and type_.dtype in self.table.dtypes:
                continue
            message = f"{self.name} does not take {visit.name} of {type_.dtype}{of}"
            taken = _listed(each for each in rule.dtypes if each in self.table.dtypes)
            hint = rule.reason or f"it takes {taken}: cast to one of them"
            facts = {"operation": opcode, "dtype": type_.dtype.value}
            self._report("E7202", message, visit.location, _notes(visit), hint, **facts)
            return True
        return False

    def _types(self, visit: Visit, types: Iterable[TensorType], what: str, *, dtypes: bool = True) -> None:
        """Report what is not taken of the types of parameters, or but for their dtypes of results."""
        table = self.table
        found = list(types)
        foreign = next((each for each in found if each.dtype not in table.dtypes), None)
        if dtypes and foreign is not None:
            message = f"{self.name} has no {foreign.dtype}, which {what} is of"
            hint = f"it has {_listed(table.dtypes)}"
            self._report("E7202", message, visit.location, _notes(visit), hint, dtype=foreign.dtype.value)
        rank = max((each.rank for each in found), default=0)
        if rank > table.max_rank:
            message = f"{self.name} takes at most {table.max_rank} dimensions, and {what} has {rank}"
            self._form("max_rank", message, visit.location, _notes(visit), "reshape it to fewer dimensions")
        if not table.empty_extents and any(0 in each.shape for each in found):
            message = f"{self.name} takes no extents of 0, and {what} has one"
            self._form("empty_extents", message, visit.location, _notes(visit), "leave out what is empty")

    def _add(self, code: str, message: str, visit: Visit, hint: str, *, opcode: str) -> None:
        self._report(code, message, visit.location, _notes(visit), hint or None, operation=opcode)

    def _form(
        self, form: str, message: str, location: Any, notes: tuple[str, ...], hint: str, **facts: Any
    ) -> None:
        self._report("E7203", message, location, notes, hint, form=form, **facts)

    def _report(
        self, code: str, message: str, location: Any, notes: tuple[str, ...], hint: str | None, **facts: Any
    ) -> None:
        context = FrozenDict({"target": self.target.name, **facts})
        self.findings.add(Diagnostic(code, message, location, notes, hint, context=context))


def _notes(visit: Visit) -> tuple[str, ...]:
    """Return where a part is, for what has no place in a text."""
    if visit.location is not None:
        return ()
    path = visit.part.path if isinstance(visit.part, Instruction) else None
    return (f"at {visit.path}", *((f"which is {path}",) if path else ()))


def _listed(dtypes: Iterable[DType]) -> str:
    return ", ".join(str(each) for each in dtypes) or "none"


def expansion_of(visit: Visit) -> Sequence[Visit] | None:
    """Return the operations that a custom call is made of; None for one of a C function, or no custom call.

    Where extents are symbolic, which an expansion may depend on, nothing is known, and nothing said.
    """
    record = visit.record
    if record is None or record.opcode != CUSTOM_CALL or record.contract is None:
        return None
    target = custom_target(str(visit.attributes["target"]))
    if target is None or target.expand is None:
        return None
    if any(isinstance(extent, SymbolicDim) for type_ in visit.operands for extent in type_.shape):
        return ()
    attributes = visit.attributes
    if not isinstance(visit.part, CoreOperation) and record.contract.read is not None:
        attributes = record.contract.read(attributes, visit.operands)
    builder = Builder(profile=PTIR.name)
    operands = [builder.parameter(type_, f"x{place}") for place, type_ in enumerate(visit.operands)]
    results = builder.emit_all(CUSTOM_CALL, *operands, **dict(attributes))
    module = Module(Functions((builder.function("main", results),)), PTIR.name)
    return [each for each in walk_program(expanded(module)) if each.kind is VisitKind.OPERATION]
