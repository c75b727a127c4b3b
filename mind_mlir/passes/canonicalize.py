"""Brings a module into canonical form (core-ir.md, "Canonicalisation").

Before: a verified module. After: the same functions of the same arguments, with

- value ids dense and ascending in program order, those of inputs and parameters first; values have no names
  any more, so that equal programs have equal texts, but messages call them what the given module does
  (`CoreOperation.label`);
- all attributes given and in the normal form of their records: axes count from the front and ascend, no
  extent is left to be inferred where there are elements;
- operands of commutative operations in ascending order;
- operations on small constants replaced by their value, where that is safe (`canonical.folding`);
- no operation whose value nothing needs (inputs and arguments stay, being the interface, and what prints).

In modules of functions, this goes on through blocks and regions, and besides

- blocks are in reverse postorder, labelled ``entry``, ``b1``, ``b2`` and so on; no branch is decided, and no
  block follows another where nothing else comes between (`canonical.functions`);
- no parameter always gets the same value, and what loops carry, branches yield and blocks pass is needed
  (`canonical.liveness`);
- every function is exported or called.

Deterministic and idempotent; linear in the number of operations, for each level of loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.effects import is_effect
from mind_mlir.ir.module import Block, CoreOperation, Return
from mind_mlir.ops.infer import normal_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.canonical.folding import MAX_FOLDED_ELEMENTS, Folder
from mind_mlir.passes.verify import verify
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.ir.module import Module, ValueId


@public
@fixed()
def canonicalize(module: Module) -> Module:
    """Return the canonical form of a module; it is verified first.

    Raises:
        VerificationError: The module breaks a rule of its profile; all findings are in it.
        TypeError: ``module`` is no `Module`.
    """
    return canonical(verify(module))


def canonical(module: Module, most: int = MAX_FOLDED_ELEMENTS) -> Module:
    """Return the canonical form of a verified module, whose constants that are folded have few elements."""
    if module.is_flat:
        return canonicalize_with_map(module, most=most)[0]
    from mind_mlir.passes.canonical.functions import canonical_functions  # noqa: PLC0415 -- flat modules do without

    return canonical_functions(module, most)


def canonicalize_with_map(
    module: Module, keep: Iterable[ValueId] = (), most: int = MAX_FOLDED_ELEMENTS
) -> tuple[Module, Mapping[ValueId, ValueId]]:
    """Return the canonical form and the new id of every value that is left.

    Args:
        module: A verified flat module.
        keep: Values that must survive although no output needs them.
        most: The elements of constants that take the place of operations, at most.
    """
    operations = _fold(_inputs_first(module.operations), most)
    terminator = module.returned
    effects = [operation.value_id for operation in operations if is_effect(operation)]
    live = _live_values(operations, (*terminator.operands, *keep, *effects))
    kept = [op for op in operations if op.opcode == "Input" or op.value_id in live]
    renamed = {op.value_id: new for new, op in enumerate(kept)}
    renumbered = tuple(_renumber(op, renamed) for op in kept)
    outputs = Return(tuple(renamed[value] for value in terminator.operands), terminator.locations)
    body = Block(renumbered, outputs, label=module.body.label)
    return module.with_body(body), FrozenDict(renamed)


def _inputs_first(operations: Iterable[CoreOperation]) -> list[CoreOperation]:
    return sorted(operations, key=lambda op: op.opcode != "Input")  # sorting is stable


def _fold(operations: list[CoreOperation], most: int) -> list[CoreOperation]:
    folder = Folder(most=most)
    folded = []
    for operation in operations:
        deliver()
        folded.append(folder.fold(operation))
    return folded


def _live_values(operations: list[CoreOperation], roots: Iterable[ValueId]) -> set[ValueId]:
    live = set(roots)
    for operation in reversed(operations):
        if operation.value_id in live:
            live.update(operation.operands)
    return live


def _renumber(operation: CoreOperation, renamed: Mapping[ValueId, ValueId]) -> CoreOperation:
    record = by_opcode()[operation.opcode]
    operands = [renamed[operand] for operand in operation.operands]
    if record.commutative:
        operands.sort()
    attributes = normal_attributes(record, operation.attributes, operation.result_type)
    value_id, read = renamed[operation.value_id], tuple(operands)
    same = value_id == operation.value_id and read == operation.operands
    if same and attributes is operation.attributes and not operation.names:
        return operation  # as nearly all of a program that has been printed in this form
    return CoreOperation.create(
        value_id,
        operation.opcode,
        read,
        attributes,
        operation.result_type,
        operation.source,
        origin=operation.label,
    )
