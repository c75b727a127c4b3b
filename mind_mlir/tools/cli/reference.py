"""The op reference, written from the operation records: as plain data, as Markdown and as text.

Nothing is said here that a record does not say; what the documents leave open is listed under each operation
as its *choices*.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mind_mlir.ir.module import CoreOperation, Module, Result
from mind_mlir.ir.profiles import ANY_PROFILE, CORE_FUNCTIONS, CORE_V1, PTIR
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.core.printer import format_value, print_operation
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.dtype_support import YES, support
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.opdef import AttributeDef, Example, NotDifferentiable, OpDef, OperandDef
from mind_mlir.ops.registry import all_ops
from mind_mlir.passes.structure import structure

#: What ``T`` stands for in a printed example, where the operand allows it.
_SHOWN_DTYPES = (DType.F32, DType.I1, DType.SI32)
_EXAMPLE_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d, ]*)\]\Z")


def signature(record: OpDef) -> str:
    """Return how the operation is written in Core IR text, with names in place of values."""
    spelled = (f"%{operand.name}{', ...' if operand.variadic else ''}" for operand in record.operands)
    operands = f" ({', '.join(spelled)})" if record.operands else ""
    names = sorted(record.attributes, key=lambda attribute: attribute.name)
    attributes = f" {{{', '.join(f'{a.name}=<{_kind(a)}>' for a in names)}}}" if names else ""
    regions = (
        f" {{{', '.join(f'^{region.name}: ...' for region in record.regions)}}}" if record.regions else ""
    )
    return f"{record.opcode}{operands}{attributes}{regions}"


def example_text(record: OpDef, example: Example) -> str:
    """Return an example as Core IR text: statements of the operands and the operation, or a function of them.

    Functions show what Core v1 refuses.
    """
    statements: list[CoreOperation] = []
    operands: list[CoreOperation] = []
    definitions = [record.operand(index) for index in range(len(example.operands))]
    types = tuple(_type(text, operand) for text, operand in zip(example.operands, definitions, strict=True))
    for type_, name in zip(types, _names(definitions), strict=True):
        statements += _operand(type_, name, len(statements))
        operands.append(statements[-1])
    declared = TensorType(_SHOWN_DTYPES[0], (2, 3)) if record.opcode == "Input" else None
    context = TypeContext(
        record.opcode, len(statements), types, dict(example.attributes), declared, profile=ANY_PROFILE
    )
    results = infer_types(record, context)
    assert results is not None, f"an example of {record.opcode} is not valid: {context.diagnostics}"
    values = [operand.value_id for operand in operands]
    first = len(statements)
    others = [Result(first + number, type_) for number, type_ in enumerate(results[1:], start=1)]
    statements.append(
        CoreOperation.create(first, record.opcode, values, example.attributes, results[0], others=others)
    )
    given = {value for value in example.attributes.values() if isinstance(value, DType)}
    is_core = {type_.dtype for type_ in (*types, *results)} | given <= {*CORE_V1.dtypes}
    if record.opcode in CORE_V1.refused or not is_core:
        flat = Module.flat(statements, statements[-1].result_ids)
        return str(replace(structure(flat), profile=(CORE_FUNCTIONS if is_core else PTIR).name))
    return "\n".join(print_operation(statement) for statement in statements)


def _examples(record: OpDef) -> list[tuple[str, str]]:
    """Return the text and the note of each example."""
    statements = [(example_text(record, example), example.note) for example in record.examples]
    return statements + [(program.text.removesuffix("\n"), program.note) for program in record.programs]


def _names(definitions: Sequence[OperandDef]) -> list[str]:
    """Return what to call the operands: those of a variadic one are numbered."""
    names = [definition.name for definition in definitions]
    return [name if names.count(name) == 1 else f"{name}{index}" for index, name in enumerate(names)]


def _operand(type_: TensorType, name: str, first_id: int) -> list[CoreOperation]:
    """Return the statements that produce an operand: an input, cut down to nothing where it is empty."""
    extents = type_.extents
    held = type_.with_shape(tuple(extent or 1 for extent in extents))
    declared = CoreOperation.create(first_id, "Input", (), {"name": name}, held)
    if held == type_:
        return [declared]
    ranges = {"starts": (0,) * type_.rank, "ends": extents, "steps": (1,) * type_.rank}
    return [declared, CoreOperation.create(first_id + 1, "Slice", (first_id,), ranges, type_)]


def op_data(record: OpDef) -> dict[str, Any]:
    """Return everything a record says, as JSON can hold it."""
    derivative = record.derivative
    return {
        "opcode": record.opcode,
        "dialect": _dialect_form(record),
        "signature": signature(record),
        "summary": record.summary,
        "description": record.description,
        "spec": record.spec,
        "extension": record.extension,
        "operands": [
            {
                "name": operand.name,
                "dtypes": [dtype.core_name for dtype in operand.dtypes],
                "dtype_code": operand.dtype_code,
            }
            for operand in record.operands
        ],
        "attributes": [
            {
                "name": attribute.name,
                "kind": attribute.kind.phrase,
                "doc": attribute.doc,
                "default": None if attribute.default is None else format_value(attribute.default),
                "choices": list(attribute.choices),
                "code": attribute.code,
            }
            for attribute in record.attributes
        ],
        "regions": [{"name": region.name, "doc": region.doc} for region in record.regions],
        "same_dtype": record.same_dtype,
        "commutative": record.commutative,
        "rounding": record.rounding.value,
        "differentiable": not isinstance(derivative, NotDifferentiable),
        "derivative": _derivative(record),
        "choices": list(record.choices),
        "aliases": [
            {
                "profile": alias.profile,
                "opcode": alias.name,
                "attributes": {name: format_value(value) for name, value in alias.attributes.items()},
            }
            for alias in record.aliases
        ],
        "examples": [{"text": text, "note": note} for text, note in _examples(record)],
    }


def op_markdown(record: OpDef, heading: str = "##") -> str:
    """Return the section of one operation."""
    title = f"{heading} {record.opcode}{' (extension)' if record.extension else ''}"
    lines = [title, "", record.summary, "", "```text", signature(record), "```", "", record.description, ""]
    if record.operands:
        lines += _table(
            ("operand", "dtypes", "another dtype is"),
            (
                (f"`{o.name}`", ", ".join(d.core_name for d in o.dtypes), o.dtype_code)
                for o in record.operands
            ),
        )
    if record.attributes:
        lines += _table(
            ("attribute", "value", "default", "meaning"),
            ((f"`{a.name}`", _kind(a, "code"), _default(a), a.doc) for a in record.attributes),
        )
    if record.regions:
        lines += _table(("region", "meaning"), ((f"`^{r.name}`", r.doc) for r in record.regions))
    place = "stage" if record.upstream else "dialect"
    facts = [f"Specification: {record.spec}.", f"In the `mind` {place}: {_dialect_form(record, '`')}."]
    if len(record.operands) > 1:
        facts.append(
            "All operands share one dtype (E2004)." if record.same_dtype else "Operands may differ in dtype."
        )
    if record.commutative:
        facts.append("Commutative: canonical form orders the operands by value id.")
    facts.append(f"Derivative: {_derivative(record)}.")
    for alias in record.aliases:
        fixed = ", ".join(f"`{name}={format_value(value)}`" for name, value in alias.attributes.items())
        standing = f", which stands for {fixed}" if fixed else ""
        facts.append(f"Also spelled `{alias.name}` in profile `{alias.profile}`{standing}.")
    lines += [*(f"- {fact}" for fact in facts), ""]
    if record.choices:
        lines += ["Chosen where the documents leave the choice:", "", *(f"- {c}" for c in record.choices), ""]
    lines += ["Examples:", "", "```text"]
    for position, (text, note) in enumerate(_examples(record)):
        lines += [""] * (position > 0) + ([f"# {note}"] if note else [])
        lines.append(text)
    return "\n".join([*lines, "```", ""])


def reference_markdown() -> str:
    """Return the op reference: a table of contents and a section for each record."""
    records = all_ops()
    lines = [
        "# Operations",
        "",
        "<!-- Written by `mind-mlir ops --markdown` from the operation records; do not edit. -->",
        "",
        "Every operation of MIND Core IR v1, and the extensions (marked), which have PTIR's names.",
        "",
    ]
    lines += _table(
        ("operation", "dialect", "", "summary"),
        (
            (
                f"[{record.opcode}](#{record.opcode.lower()}{'-extension' if record.extension else ''})",
                _dialect_form(record, "`"),
                "extension" if record.extension else "",
                record.summary,
            )
            for record in records
        ),
    )
    return "\n".join(lines) + "\n" + "\n".join(op_markdown(record) for record in records)


def op_list() -> str:
    """Return each operation's signature, summary and implementation-defined choices."""
    lines: list[str] = []
    for record in all_ops():
        mark = " [extension]" if record.extension else ""
        lines.append(f"{signature(record)}{mark}")
        lines.append(f"    {record.summary}")
        for choice in record.choices:
            lines += _wrap(choice, "    - ", "      ")
    return "\n".join(lines) + "\n"


def _wrap(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def _dialect_form(record: OpDef, mark: str = "") -> str:
    name = f"mind.{record.mnemonic}" if record.in_dialect else record.upstream
    return f"{mark}{name}{mark}" if name else "function argument"


def _kind(attribute: AttributeDef, code: str = "") -> str:
    mark = "`" if code else ""
    if attribute.choices:
        return (", " if code else "|").join(f"{mark}{choice}{mark}" for choice in attribute.choices)
    return attribute.kind.phrase


def _default(attribute: AttributeDef) -> str:
    return "required" if attribute.default is None else f"`{format_value(attribute.default)}`"


def _derivative(record: OpDef) -> str:
    if isinstance(record.derivative, NotDifferentiable):
        return f"none ({record.derivative.reason})"
    return "an extension of Core v1 (E5001 unless switched on)" if record.derivative_is_extension else "yes"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, tuple("---" for _ in head), *rows)]
    return [*(f"| {' | '.join(row)} |" for row in cells), ""]


def _type(text: str, operand: OperandDef) -> TensorType:
    match = _EXAMPLE_TYPE.match(text)
    assert match is not None, f"{text!r} is not a type of an example"
    if match["dtype"] == "T":
        dtype = next((each for each in _SHOWN_DTYPES if each in operand.dtypes), operand.dtypes[0])
    else:
        named = DType.from_name(match["dtype"])
        assert named is not None, f"{text!r} names no dtype"
        dtype = named
    return TensorType(dtype, tuple(int(extent) for extent in match["shape"].split(",") if extent.strip()))


def dtype_table() -> str:
    """Return the page with the table, and the reasons below it."""
    dtypes, numbers = list(DType), dict[str, int]()
    rows = []
    for record, name in _contract_operations():
        cells = []
        for dtype in dtypes:
            mark, reason = support(record, dtype)
            number = f" ({numbers.setdefault(reason, len(numbers) + 1)})" if mark != YES else ""
            cells.append(f"{mark}{number}")
        rows.append((f"`{name}`", *cells))
    head = ("operation", *(dtype.value for dtype in dtypes))
    lines = [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(
        [
            "# PTIR operations and dtypes",
            "",
            "<!-- Written by `mind-mlir ops --dtypes` from the operation records; do not edit. -->",
            "",
            "What each operation of the contract takes as the dtype of its data. `yes`: compiled code is "
            "tested against the operation's numpy rule, on awkward values too. `never`: the contract "
            "excludes it, or it makes no sense. A code: the diagnostic that is given. The number in "
            "parentheses is that of the reason below. An operation with kinds is said to take what one of "
            "them takes: complex numbers have no Max and no Min, truth values no sum among themselves.",
            "",
            *lines,
            "",
            "Why not:",
            "",
            *(f"{number}. {reason}" for reason, number in numbers.items()),
            "",
        ]
    )


def _contract_operations() -> Iterator[tuple[OpDef, str]]:
    for record in all_ops():
        if record.contract is not None:
            yield record, record.contract.variant or record.contract.name
