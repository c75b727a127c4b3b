"""`to_c`: a module as one C file without dependencies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.conversion.c.dtypes import require_dtypes
from mind_mlir.conversion.c.function import FunctionWriter
from mind_mlir.conversion.c.helpers import helper_lines
from mind_mlir.conversion.c.nodes import LineStatement, lines, spelled
from mind_mlir.conversion.c.operations import C_TYPES, kind_of, literal
from mind_mlir.conversion.c.pruning import pruned
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.lowering.dialect.emit import emit
from mind_mlir.lowering.to_linalg import to_linalg
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.mlir.values import definition
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.forms import structured_form, verified
from mind_mlir.support.interrupts import held

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.mlir.context import Outcome

#: Arrays of at most so many bytes together are local ones; larger ones are allocated.
_LOCAL_BYTES = 16384
_SIZES = {"float": 4, "double": 8, "int64_t": 8, "int32_t": 4, "int16_t": 2, "int8_t": 1, "bool": 1}
_HEAD = """\
/* C99 without dependencies: the standard library and libm (-lm).
 * Floats are computed as written: compile without -ffast-math, and with -ffp-contract=off where the compiler
 * ignores the pragma, as gcc does. Every array is dense, in row-major order; outputs overlap nothing.
 * A function returns 0, the number of the run-time check that failed, or -1 without memory. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
"""


@held()
def to_c(module: Module) -> str:
    """Return ``module`` as C99 (ptir-v0.4.md, Conversion infrastructure): a function for each exported one.

    ``int name(const T *inputs..., T *outputs...)`` takes dense arrays, tensors of rank 0 as arrays of one
    element; i1 is ``bool``. What it returns is 0, or the number of the run-time check that failed, which the
    comment above it explains.

    Raises:
        VerificationError: The module breaks a rule of its profile.
        UnsupportedError: E7001, a collective; E7002, a dtype that C lacks; E7004, branches and loops nest too
            deeply.
    """
    whole = verified(module)
    require_dtypes(whole)
    _require_one_rank(whole)
    structured = structured_form(whole)
    opcodes = {op.label: op.opcode for f in structured.functions for op in operations_of(f.blocks)}
    lowered = to_linalg(emit(structured, new_context(unregistered=True)), vectors=False)
    used: set[str] = set()
    tables: dict[str, str] = {}
    functions: list[str] = []
    with lowered.module.context, ir.Location.unknown():
        functions += [
            _function(view, opcodes, lowered.checks_of, used, tables)
            for view in lowered.module.body.operations
        ]
    helpers = "\n".join(helper_lines(used))
    parts = [_HEAD.rstrip("\n"), helpers, "\n".join(tables.values()), *functions]
    return "\n\n".join(part for part in parts if part) + "\n"


def _require_one_rank(module: Module) -> None:
    """Refuse a verified module with collectives (UnsupportedError: E7001)."""
    for function in module.functions:
        for operation in operations_of(function.blocks):
            if by_opcode()[operation.opcode].collective:
                message, help = f"C has no {operation.opcode}", "C code has no other ranks to do it with"
                raise UnsupportedError(Diagnostic("E7001", message, operation.location, (), help))


def _function(op: Any, opcodes: Any, checks_of: Any, used: set[str], tables: dict[str, str]) -> str:
    symbol = re.sub(r"\W", "_", op.name.value)
    name = "run_main" if symbol == "main" else symbol
    writer = FunctionWriter(name, opcodes, used, tables)
    block = op.regions[0].blocks[0]
    private = op.name.value not in checks_of
    checks: Sequence[Outcome] = () if private else checks_of[op.name.value]
    arguments = []
    held_ = op.attributes
    attributes = held_["arg_attrs"] if "arg_attrs" in held_ else None  # noqa: SIM401  has no get
    for number, argument in enumerate(block.arguments):
        given = f"x{number}"
        if attributes is not None and "mind.name" in ir.DictAttr(attributes[number]):
            given = ir.StringAttr(ir.DictAttr(attributes[number])["mind.name"]).value
        fresh = writer.code.name(given)
        writer.values.bind(argument, fresh)
        arguments.append((argument.type, fresh))
    returned = list(list(block.operations)[-1].operation.operands)
    status = returned.pop() if checks else None
    outputs = []
    for number, value in enumerate(returned):
        fresh = writer.code.name(f"out{number}")
        outputs.append((value.type, fresh))
        if isinstance(value.type, ir.RankedTensorType) and not isinstance(value, ir.BlockArgument):
            writer.values.want(value, fresh)
    writer.block(block)
    for value, (type_, fresh) in zip(returned, outputs, strict=True):
        if not isinstance(type_, ir.RankedTensorType):
            writer.code.add(LineStatement(f"*{fresh} = {spelled(writer.values.scalars[value])};"))
        elif (array := writer.values.arrays[value]).place is None or array.place[0] != fresh:
            writer.values.copied(array, fresh)
    notes = []
    if status is not None:
        ends = list(definition(status).operands)  # type: ignore[union-attr]  # made of elements
        for number, outcome in enumerate(checks, start=1):
            low, high = (literal(end, "i64").text for end in outcome.check.allowed)
            least, most = (spelled(writer.values.scalars[each]) for each in ends[2 * number - 2 : 2 * number])
            writer.code.add(
                LineStatement(f"if (status == 0 && ({least} < {low} || {most} > {high})) status = {number};")
            )
            notes.append(f"{number}: {outcome.check.opcode} {outcome.check.label}, in [{low}, {high}]")
    return _text(name, writer, arguments, outputs, notes, private=private)


def _text(
    name: str, writer: FunctionWriter, arguments: Any, outputs: Any, notes: list[str], *, private: bool
) -> str:
    inputs = [_parameter(type_, each, constant=True) for type_, each in arguments]
    results = [_parameter(type_, each, constant=False) for type_, each in outputs]
    head = f"{'static ' if private else ''}int {name}("
    listed = ", ".join([*inputs, *results]) or "void"
    if len(head + listed) > 99:
        listed = "\n    " + ",\n    ".join([*inputs, *results])
    statements = pruned(writer.code.body, writer.values.buffers)
    body = list(lines(statements))
    text = "\n".join(body)
    writer.values.buffers = {
        each: held for each, held in writer.values.buffers.items() if re.search(rf"\b{each}\b", text)
    }
    jumps = any("goto end;" in line for line in body)
    declared, freed = _arrays(writer)
    described = [f"{each}: {_shape(type_)}" for type_, each in (*arguments, *outputs)]
    described += [f"returns {note}" for note in notes]
    comment = "/* " + "\n * ".join([name, *described]) + " */"
    unused = [
        f"    (void){each};"
        for _, each in (*arguments, *outputs)
        if not any(re.search(rf"\b{each}\b", line) for line in body)
    ]
    return "\n".join(
        [
            comment,
            f"{head}{listed})",
            "{",
            "    int status = 0;",
            *declared,
            *unused,
            *body,
            *(["end:"] if jumps else []),
            *freed,
            "    return status;",
            "}",
        ]
    )


def _arrays(writer: FunctionWriter) -> tuple[list[str], list[str]]:
    """Return the lines that declare the arrays of a function, and those that free them."""
    total = sum(_SIZES[type_] * count for type_, count in writer.values.buffers.values())
    if total <= _LOCAL_BYTES:
        return [f"    {type_} {each}[{count}];" for each, (type_, count) in writer.values.buffers.items()], []
    found, offset = [], 0
    for each, (type_, count) in writer.values.buffers.items():
        found.append(f"    {type_} *{each} = ({type_} *)(scratch + {offset});")
        offset += -(-_SIZES[type_] * count // 64) * 64
    allocate = [
        f"    char *scratch = malloc({offset});",
        "    if (scratch == NULL) {",
        "        return -1;",
        "    }",
    ]
    return [*allocate, *found], ["    free(scratch);"]


def _parameter(type_: Any, name: str, *, constant: bool) -> str:
    element = C_TYPES[kind_of(type_)]
    if constant and not isinstance(type_, ir.RankedTensorType):
        return f"const {element} {name}"
    return f"{'const ' if constant else ''}{element} *restrict {name}"


def _shape(type_: Any) -> str:
    extents = (
        "".join(f"[{extent}]" for extent in type_.shape) if isinstance(type_, ir.RankedTensorType) else ""
    )
    return f"{C_TYPES[kind_of(type_)]}{extents}"
