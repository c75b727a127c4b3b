"""Reads programs from JSON (ptir-formats.md, "JSON").

Functions, regions and their bodies are entered one by one, so that every instruction knows its place and its
path, and so that no more than one of them is there as plain data; `ValueConverter` makes it an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.diagnostics import Diagnostic, Location, ParseError, SourceText
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.languages.ptir.json_faults import JsonFault
from mind_mlir.languages.ptir.json_text import JsonText, Member
from mind_mlir.languages.ptir.operation_reading import InstructionValues
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, Region
from mind_mlir.languages.ptir.reading import Path, Problem, ValueConverter, clip, path_text
from mind_mlir.languages.ptir.rules import check_functions, check_regions, wrong_version
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.ir.types import ValueType

_Reader: TypeAlias = "Callable[[Path], Any]"

_FUNCTION = ("name", "parameters", "parameter_ids", "results", "body", "result_ids")
_REGION = ("id", "parameters", "body", "results")
_INSTRUCTION = ("id", "op", "operands", "output")


def read_json(source: SourceText) -> Program:
    """Return the program that a JSON text holds.

    Raises:
        ParseError: Everything that is wrong with it, in source order.
    """
    reader = _JsonReader(source)
    program = reader.read()
    if program is None or reader.findings.total:
        raise ParseError(reader.findings.in_source_order())
    return program


class _Stopped(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """The text cannot be read on; the finding has been reported."""


@dataclass(slots=True)
class _JsonReader:
    """Reads one text; what is wrong goes to the findings."""

    source: SourceText
    findings: Findings = field(default_factory=Findings)
    _text: JsonText = field(init=False)
    _entry_place: Location | None = None

    def __post_init__(self) -> None:
        self._text = JsonText(self.source)

    def read(self) -> Program | None:
        """Return the program, or what is left of it, or None; what is wrong has been reported."""
        try:
            return self._program()
        except JsonFault as fault:
            self._report_fault(fault, ())
        except _Stopped:
            pass
        return None

    def _program(self) -> Program:
        found = self._object(
            (),
            {
                "spec_version": self._version,
                "entry": self._entry,
                "functions": self._list(self._function),
                "regions": self._list(self._region),
            },
            required=("entry", "functions"),
            what="a program",
        )
        if self._text.peek():
            start = self._text.position
            raise JsonFault(
                "E1101", "syntax error: the program ends before this", start, len(self._text.text)
            )
        functions, regions = tuple(found.get("functions", ())), tuple(found.get("regions", ()))
        if not self.findings.total:
            check_functions(functions, found["entry"], self.findings, self._entry_place)
        check_regions(regions, self.findings)
        return Program(functions, regions, found.get("entry", ""))

    # Parts of programs.

    def _entry(self, path: Path) -> str:
        start = self._text.position
        name = self._plain(ValueConverter.text, "")(path)
        self._entry_place = self._located(start, self._text.position)
        return str(name)

    def _version(self, path: Path) -> str:
        start = self._text.position
        version = self._plain(ValueConverter.text, "")(path)
        if finding := wrong_version(version, self._located(start, self._text.position), path_text(path)):
            self.findings.add(finding)
        return str(version)

    def _function(self, path: Path) -> Function:
        start = self._text.position
        found = self._object(
            path,
            {
                "name": self._plain(ValueConverter.text, ""),
                "parameters": self._plain(_types, ()),
                "parameter_ids": self._plain(_identifiers, ()),
                "results": self._plain(_types, ()),
                "body": self._list(self._instruction),
                "result_ids": self._plain(_identifiers, ()),
                "hints": self._plain(_hints, None),
            },
            required=_FUNCTION,
            what="a function",
        )
        where = self._located(start, start + 1)
        for types, ids in (("parameters", "parameter_ids"), ("results", "result_ids")):
            counts = len(found.get(types, ())), len(found.get(ids, ()))
            if counts[0] != counts[1] and types in found and ids in found:
                message = f"{path_text(path)}: {counts[0]} {types}, but {counts[1]} {ids}"
                self._add("E1108", message, path, where, "give one number for each type")
        return Function(
            found.get("name", ""),
            tuple(found.get("parameters", ())),
            tuple(found.get("parameter_ids", ())),
            tuple(found.get("body", ())),
            tuple(found.get("results", ())),
            tuple(found.get("result_ids", ())),
            found.get("hints"),
            location=where,
        )

    def _region(self, path: Path) -> Region:
        start = self._text.position
        found = self._object(
            path,
            {
                "id": self._plain(ValueConverter.identifier, 0),
                "parameters": self._plain(_types, ()),
                "body": self._list(self._instruction),
                "results": self._plain(_types, ()),
            },
            required=_REGION,
            what="a region",
        )
        return Region(
            found.get("id", 0),
            tuple(found.get("parameters", ())),
            tuple(found.get("body", ())),
            tuple(found.get("results", ())),
            location=self._located(start, start + 1),
        )

    def _instruction(self, path: Path) -> Instruction:
        start = self._text.position
        id_, operation, operands, output = self._plain(_instruction, _NO_INSTRUCTION)(path)
        where = self._located(start, self._text.position)
        return Instruction(id_, operation, operands, output, where, path_text(path))

    # Steps.

    def _object(
        self, path: Path, readers: Mapping[str, _Reader], required: tuple[str, ...], what: str
    ) -> dict[str, Any]:
        """Read an object member by member."""
        start = self._text.position
        if self._text.peek() != "{":
            self._plain(lambda values, data, _: values.expected((), f"{what}, an object", data), None)(path)
            return {}
        found: dict[str, Any] = {}
        present = set()
        for member in self._text.members():
            present.add(member.key)
            place = (*path, member.key)
            try:
                if member.key in readers and not member.again:
                    found[member.key] = readers[member.key](place)
                    continue
                self._report_key(member, place, readers, what)
                self._text.value()
            except JsonFault as fault:
                self._recover(fault, place)
        for key in required:
            if key not in present:
                message = f"{path_text(path)}: field '{key}' is missing"
                where = self._located(start, start + 1)
                self._add("E1108", message, path, where, f"{what} has the fields {', '.join(readers)}")
        return found

    def _list(self, reader: _Reader) -> _Reader:
        def read(path: Path) -> list[Any]:
            if self._text.peek() != "[":
                self._plain(lambda values, data, _: values.expected((), "a list", data), None)(path)
                return []
            found = []
            for index in self._text.elements():
                try:
                    found.append(reader((*path, index)))
                except JsonFault as fault:
                    self._recover(fault, (*path, index))
            return found

        return read

    def _plain(self, convert: Callable[[InstructionValues, Any, Path], Any], instead: Any) -> _Reader:
        """Return what reads a value as a whole; ``instead`` is what there is of it where it is malformed."""

        def read(path: Path) -> Any:
            start = self._text.position
            try:
                data = self._text.value()
            except JsonFault as fault:
                self._recover(fault, path)
                return instead
            end, values = self._text.position, InstructionValues()
            result = convert(values, data, ())
            if values.problems:
                self._report(values.problems, path, start)
                self._text.position = end
            return result

        return read

    def _recover(self, fault: JsonFault, path: Path) -> None:
        """Report a fault and go behind the value that has it, where that is possible."""
        self._report_fault(fault, path)
        if fault.resume is None:
            raise _Stopped from fault
        self._text.position = fault.resume

    # Findings.

    def _located(self, start: int, end: int) -> Location:
        return self.source.locate(*self._text.span(start, end))

    def _report_fault(self, fault: JsonFault, path: Path) -> None:
        """Report what is wrong with the text of a value."""
        if self.findings.full:
            self.findings.count()
            return
        whole = (*path, *fault.path)
        context = {"text": fault.message} if fault.code == "E1005" else {}
        where = self._located(min(fault.start, len(self._text.text)), fault.end)
        self._add(fault.code, f"{path_text(whole)}: {fault.message}", whole, where, None, **context)

    def _report_key(self, member: Member, path: Path, known: Mapping[str, _Reader], what: str) -> None:
        """Report a key that has no place there, or comes again."""
        where = self._located(member.key_start, member.key_end)
        problem = "is given twice" if member.again else f"is unknown{did_you_mean(member.key, known)}"
        message = f"{path_text(path)}: field '{clip(member.key)}' {problem}"
        help_text = None if member.again else f"{what} has the fields {', '.join(known)}"
        self._add("E1108", message, path, where, help_text)

    def _report(self, problems: list[Problem], path: Path, start: int) -> None:
        """Report problems of the value that stands at ``start``, and look for their places."""
        if self.findings.full:
            self.findings.count(len(problems))
            return
        wanted: dict[Any, Any] = {}
        for number, problem in enumerate(problems):
            steps = problem.path[:-1] if problem.at_key else problem.path
            node = wanted
            for step in steps:
                node = node.setdefault(step, {})
            node.setdefault((None, problem.path[-1]) if problem.at_key else None, []).append(number)
        found: dict[int, tuple[int, int]] = {}
        end = self._text.spans(start, wanted, found)
        whole = self._text.span(start, end)
        for number, problem in enumerate(problems):
            place = (*path, *problem.path)
            span = problem.span or found.get(number, whole)
            where = self.source.locate(*span)
            message = f"{path_text(place)}: {problem.message}"
            self._add(problem.code, message, place, where, problem.help, **problem.context)

    def _add(
        self, code: str, message: str, path: Path, where: Location, help_text: str | None, **context: Any
    ) -> None:
        facts = FrozenDict({**context, "path": path_text(path)})
        self.findings.add(Diagnostic(code, message, where, (), help_text, context=facts))


def _types(values: ValueConverter, data: Any, path: Path) -> tuple[ValueType, ...]:
    items = values.items(data, path, "a list of types")
    return tuple([values.value_type(item, (*path, index)) for index, item in enumerate(items)])


def _identifiers(values: ValueConverter, data: Any, path: Path) -> tuple[int, ...]:
    items = values.items(data, path, "a list of numbers")
    return tuple([values.identifier(item, (*path, index)) for index, item in enumerate(items)])


def _hints(values: ValueConverter, data: Any, path: Path) -> Any:
    return values.json(data, path)


def _instruction(values: InstructionValues, data: Any, path: Path) -> tuple[Any, ...]:
    found = values.members(data, path, _INSTRUCTION, what="an instruction, an object")
    if found is None:
        return _NO_INSTRUCTION
    id_ = values.identifier(found["id"], (*path, "id"))
    operation = values.operation(found["op"], (*path, "op"))
    place = (*path, "operands")
    items = values.items(found["operands"], place, "a list of operands")
    operands = tuple([values.operand(item, (*place, index)) for index, item in enumerate(items)])
    return id_, operation, operands, values.value_type(found["output"], (*path, "output"))


_NO_INSTRUCTION = (0, Operation(""), (), None)
