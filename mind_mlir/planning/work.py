"""What a call of a function computes, and the scratch memory that it works in: lowered, and not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.lowering.profiling.stamps import Stamps
from mind_mlir.mlir.references import References
from mind_mlir.passes.record import Printed
from mind_mlir.planning.occurrences import occurrences
from mind_mlir.target import named_target
from mind_mlir.target.abi import symbol_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.ir.module import CoreOperation, Module
    from mind_mlir.lowering.profiling.rows import Work
    from mind_mlir.planning.occurrences import PlannedOperation
    from mind_mlir.support.options import CompileOptions


class Implied(NamedTuple):
    """What a program implies.

    Attributes:
        operations: The operations that run, as they are compiled.
        nests: What each nest of loops has to move and to do, and how often it runs.
        scratch: The bytes of its temporary values.
    """

    operations: tuple[PlannedOperation, ...]
    nests: tuple[tuple[Work, int], ...]
    scratch: int


def implied_by(module: Module, name: str, options: CompileOptions) -> Implied:
    """Return what a call of a function implies, the only one that a module exports.

    Raises:
        VerificationError: The module breaks a rule.
    """
    stamps, compiled = Stamps(0), _Compiled()
    lowering = Lowering(
        named_target(options.target),
        options=options,
        observer=compiled,
        kernels=lambda _: None,
        references=References(),
        plan_wanted=True,
        stamps=stamps,
    )
    lowering.run(module, "bufferized")
    assert compiled.module is not None, "a lowering that went through has been optimised"
    found = tuple(occurrences(compiled.module, compiled.module.functions[name]))
    times: dict[tuple[str, Place | None], int] = {}
    for each in found:
        times[_key(each.operation)] = max(times.get(_key(each.operation), 0), each.times)
    nests = []
    for row in stamps.rows:
        if row.work.bytes or row.work.operations:
            keys = [(each.label, each.place) for each in row.computes]
            nests.append((row.work, max(times.get(key, 1) for key in keys)))
    arenas = {arena.function: arena.bytes for arena in lowering.arenas}
    return Implied(found, tuple(nests), arenas[symbol_of(name)])


class _Compiled:
    """Sees the module as it is when MLIR takes it over."""

    module: Module | None = None

    def __call__(self, stage: str, form: Callable[[], str]) -> None:
        if isinstance(form, Printed):
            self.module = form.code  # type: ignore[assignment]  # forms of whole modules are shown here


def _key(operation: CoreOperation) -> tuple[str, Place | None]:
    location = operation.location
    place = None if location is None else (location.source.name, location.line, location.column)
    return operation.label, place
