"""`ConversionTarget`: a form that programs are converted to, and what that form takes, as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics.display import short_repr
from mind_mlir.ir.types import MAX_RANK, DType
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.conversion.walk import Visit
    from mind_mlir.ir.module import Module
    from mind_mlir.languages.ptir.program import Program

_NAME = re.compile(r"[a-z][a-z0-9_.-]*", re.ASCII)
_SUFFIX = re.compile(r"(\.[A-Za-z0-9_]+)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class OperationRule:
    """The rule of a target for one operation.

    Attributes:
        dtypes: What each of its operands and results has one of.
        reason: Why other dtypes are not taken, or nothing of it; for the help line.
        unless: What no set of dtypes can say: given an operation that is taken otherwise, it returns why that
            is not, or None.
    """

    dtypes: tuple[DType, ...] = tuple(DType)
    reason: str = ""
    unless: Callable[[Visit], str | None] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        given = argument_checks.items(self.dtypes, "dtypes", "a sequence of DTypes")
        dtypes = tuple(argument_checks.expect(each, DType, "each of dtypes", "a DType") for each in given)
        object.__setattr__(self, "dtypes", dtypes)
        argument_checks.text(self.reason, "reason")
        _check_function(self.unless, "unless", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalityTable:
    """The operations, dtypes and structures that a target takes.

    Attributes:
        operations: The rule of each operation that it takes, by opcode; of those that it does not take, a
            rule without dtypes may say why.
        dtypes: What every value has one of.
        max_rank: The most dimensions of a value.
        empty_extents: Whether extents may be 0.
        symbolic_dimensions: Whether extents may be left open; `ConversionTarget.convert_program` is needed.
        regions: Whether operations may run regions: branches and loops.
        branches: Whether functions may be of several blocks.
        calls: Whether functions may call one another.
        functions: Whether several functions may be exported.
        tuples: Whether parameters and results of functions may be tuples.
    """

    operations: Mapping[str, OperationRule]
    dtypes: tuple[DType, ...] = tuple(DType)
    max_rank: int = MAX_RANK
    empty_extents: bool = True
    symbolic_dimensions: bool = False
    regions: bool = True
    branches: bool = True
    calls: bool = True
    functions: bool = True
    tuples: bool = True

    __repr__ = short_repr

    def __post_init__(self) -> None:
        given = argument_checks.mapping(
            self.operations, "operations", "a mapping from opcodes to OperationRules"
        )
        rules = {
            argument_checks.text(opcode, "each opcode in operations"): argument_checks.expect(
                rule, OperationRule, f"operations[{opcode!r}]", "an OperationRule"
            )
            for opcode, rule in given.items()
        }
        object.__setattr__(self, "operations", FrozenDict(rules))
        dtypes = argument_checks.items(self.dtypes, "dtypes", "a sequence of DTypes")
        checked = tuple(argument_checks.expect(each, DType, "each of dtypes", "a DType") for each in dtypes)
        object.__setattr__(self, "dtypes", checked)
        argument_checks.integer(self.max_rank, "max_rank")
        for name in FORMS:
            argument_checks.flag(getattr(self, name), name)

    def takes(self, opcode: str, dtype: DType) -> bool:
        """Return whether values of ``dtype`` may be operands and results of an operation."""
        rule = self.operations.get(opcode)
        return rule is not None and dtype in rule.dtypes and dtype in self.dtypes


#: The forms of programs that a table says yes or no to, and what people call them.
FORMS: Mapping[str, str] = FrozenDict(
    {
        "symbolic_dimensions": "symbolic dimensions",
        "empty_extents": "extents of 0",
        "regions": "regions",
        "branches": "branches between blocks",
        "calls": "calls",
        "functions": "several functions",
        "tuples": "tuples in signatures",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionTarget:
    """A form that programs are converted to.

    Attributes:
        name: What it is known by, in small letters.
        summary: What it is, in a line.
        suffix: How names of files that hold it end.
        legality: What it takes.
        convert: Returns a verified and legal module in this form. Its exported functions have the names that
            the text is to have.
        convert_program: The same of a program whose symbolic dimensions are open; for tables that take those.
        symbols: Where that is not what `entry_point_names` says: given a module and that, it returns what the
            exported functions are called, by what the program calls them.
    """

    name: str
    summary: str
    suffix: str
    legality: LegalityTable
    convert: Callable[[Module], str | bytes]
    convert_program: Callable[[Program], str | bytes] | None = None
    symbols: Callable[[Module, Mapping[str, str]], Mapping[str, str]] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(argument_checks.text(self.name, "name")):
            raise ValueError(f"name must be letters and digits, as in 'my-target', not {self.name!r}")
        argument_checks.text(self.summary, "summary")
        if not _SUFFIX.fullmatch(argument_checks.text(self.suffix, "suffix")):
            raise ValueError(f"suffix must be that of a file, as in '.mlir', not {self.suffix!r}")
        argument_checks.expect(self.legality, LegalityTable, "legality", "a LegalityTable")
        _check_function(self.convert, "convert")
        _check_function(self.convert_program, "convert_program", optional=True)
        _check_function(self.symbols, "symbols", optional=True)
        if self.legality.symbolic_dimensions and self.convert_program is None:
            raise ValueError("convert_program must be given where symbolic dimensions are taken")


def _check_function(value: Any, name: str, *, optional: bool = False) -> None:
    if not callable(value) and not (optional and value is None):
        argument_checks.reject(name, "a function", value)
