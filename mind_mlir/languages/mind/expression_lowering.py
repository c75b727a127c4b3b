"""Expression objects to modules, through the elaborator of the surface language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import SourceText, VerificationError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.types import TensorType
from mind_mlir.languages.mind.elaboration.body import Body
from mind_mlir.languages.mind.elaboration.file import File
from mind_mlir.languages.mind.elaboration.literals import placeholder
from mind_mlir.languages.mind.elaboration.programs import completed
from mind_mlir.languages.mind.elaboration.routines import instance_of
from mind_mlir.languages.mind.elaboration.values import Routine
from mind_mlir.languages.mind.expression_text import ExpressionGraph, ExpressionText, written
from mind_mlir.languages.mind.expressions import Expression, as_expression, identifier
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.languages.staging import Instance

#: What diagnostics call the text of expressions.
SOURCE = "<expression>"


@dataclass(frozen=True, slots=True)
class SymbolTable(Mapping[str, TensorType]):
    """The types of variables by name, in the order in which these become inputs.

    Raises:
        TypeError: ``types`` is no mapping of names to `TensorType`s.
        ValueError: A name is no identifier of the surface language, or an extent no number.
    """

    types: Mapping[str, TensorType]

    def __post_init__(self) -> None:
        given = argument_checks.mapping(self.types, "symbols", "a mapping of names to TensorTypes")
        checked: dict[str, TensorType] = {}
        for key, value in given.items():
            name = identifier(key, "each symbol")
            type_ = argument_checks.expect(value, TensorType, f"symbol {name}", "a TensorType")
            if not all(isinstance(extent, int) for extent in type_.shape):
                raise ValueError(f"symbol {name} must have numbers for extents, not {type_}")
            checked[name] = type_
        object.__setattr__(self, "types", FrozenDict(checked))

    def __getitem__(self, name: str) -> TensorType:
        return self.types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)


@public
def lower_expression(
    expression: Expression | Sequence[Expression], symbols: Mapping[str, TensorType]
) -> Module:
    """Return the module that computes an expression, or several (core-ir.md, "Surface language lowering").

    The variables that are read are its inputs, in the order of the table; literals become `ConstTensor`s,
    operators and calls their operations in the order of evaluation; the outputs are the values of the
    expressions. It is what the surface language's function of these variables and this expression becomes.

    Args:
        expression: An expression, or a list of them: one output for each.
        symbols: A `SymbolTable`, or a mapping like it.

    Returns:
        A flat Core v1 module; one of functions where an operation needs them, such as ``/``.

    Raises:
        VerificationError: Everything that is wrong, as in the surface language: E2002, a name is not in the
            table; E2004, dtypes are mixed; E3001, shapes do not broadcast; and so on. Places are those of
            the expression as `str` writes it. E1109, it nests too deeply.
        TypeError: ``expression`` is none, or ``symbols`` no table.
    """
    several = isinstance(expression, (list, tuple))
    given: Sequence[Any] = expression if isinstance(expression, (list, tuple)) else [expression]
    roots = [as_expression(each) for each in given]
    table = symbols if isinstance(symbols, SymbolTable) else SymbolTable(symbols)
    graph = ExpressionGraph.of(roots)
    graph.check_depth()
    text = written(roots, several=several, graph=graph, taken=table)
    file = File(SourceText(SOURCE, text.text))
    inputs = {name: type_ for name, type_ in table.items() if name in graph.variables}
    made = _instance(file, text, inputs)
    if made is None:
        file = File(file.source)
        _instance(file, text, table)  # suggestions know the whole table
        findings = Findings()
        findings.extend(file.findings)
        raise VerificationError(findings.in_source_order())
    return file.unit.module(made, list(inputs))


def _instance(file: File, text: ExpressionText, inputs: Mapping[str, TensorType]) -> Instance | None:
    """Return the function of ``inputs`` whose body is the text; None where something is wrong with it."""
    parameters = [nodes.Parameter(nodes.Ident(name)) for name in inputs]
    function = Routine(nodes.Closure(parameters, text.block))
    caller = Body(file, file.unit.builder())
    arguments = [placeholder(caller, type_) for type_ in inputs.values()]
    span = text.block.span
    return completed(file, SOURCE, lambda: instance_of(file, SOURCE, function, arguments, {}, span))
