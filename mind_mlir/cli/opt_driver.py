"""What `mind-opt` does with one module: parse, run the pipeline, print."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir import dialect
from mind_mlir.bindings import MLIRError, PassManager, ir, new_context
from mind_mlir.cli.mlir_diagnostics import DiagnosticPrinter
from mind_mlir.cli.mlir_passes import FUNCTIONS
from mind_mlir.cli.pass_pipeline import PipelineError, Segment, split_pipeline
from mind_mlir.diagnostics import Diagnostic, InternalError, Location, MindError, ParseError, SourceText
from mind_mlir.diagnostics.display import well_formed
from mind_mlir.frontends.source import read_source
from mind_mlir.interrupts import deliver, held
from mind_mlir.lowering.bufferize import BufferizationError

if TYPE_CHECKING:
    from mind_mlir.bindings import Module
    from mind_mlir.cli.session import Session

#: Deeper texts are refused.
MAX_NESTING = 1000

#: Strings, comments and arrows hold brackets that are none.
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[()\[\]{}<>]')
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")


class PassFailureError(Exception):
    """One of our passes cannot work on the module it was given."""


@dataclass(frozen=True, slots=True)
class Printing:
    """How modules are printed."""

    debug_info: bool = False
    generic: bool = False
    after_all: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one module.

    Attributes:
        source: The text, with the line numbers of the file that it comes from.
        is_file: Whether the text is a file's whole content. MLIR then reads the file itself, which is the one
            way of having its name in the locations.
    """

    source: SourceText
    is_file: bool


def read_parts(path: str, marker: str | None) -> list[Part]:
    """Return the source at ``path``, cut at the lines that are ``marker`` where one is given.

    Raises:
        ParseError: The file cannot be read, or is not UTF-8.
    """
    source = read_source(path)
    if marker is None:
        return [Part(source, Path(source.name).is_file())]
    parts: list[list[str]] = [[]]
    for number, line in enumerate(source.lines):
        if line.rstrip() == marker:
            parts.append([""] * (number + 1))
        else:
            parts[-1].append(line)
    return [Part(SourceText(source.name, "\n".join(lines)), is_file=False) for lines in parts]


@held()
def read_pipeline(text: str) -> tuple[Segment, ...]:
    """Return the steps of a pipeline.

    Raises:
        PipelineError: It is malformed, or names a pass that nobody knows.
    """
    if well_formed(text) != text:
        raise PipelineError(f"'{well_formed(text)}' holds bytes that are not UTF-8")
    steps = split_pipeline(text, FUNCTIONS)
    with new_context():
        for step in steps:
            if step.name is None:
                try:
                    PassManager.parse(step.text)
                except ValueError as error:
                    raise PipelineError(str(error).rstrip()) from error
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Driver:
    """Runs one pipeline over any number of modules, each in a context of its own."""

    session: Session
    steps: tuple[Segment, ...]
    printing: Printing
    allow_unregistered: bool = False

    @held()
    def run(self, part: Part) -> str | None:
        """Return the text of the module after the passes, or None after printing what is wrong."""
        source = self.session.source = part.source
        printer = DiagnosticPrinter(source.name, source.text, sys.stderr)
        context = new_context()
        context.allow_unregistered_dialects = self.allow_unregistered
        dialect.load(context)
        with context, printer.attach(context):
            try:
                self.session.stage = "parse"
                _check_nesting(part.source)
                module = _parse(part)
                for step in self.steps:
                    deliver()
                    module = self._apply(step, module)
            except MindError as error:
                self.session.report(error.diagnostics)
                return None
            except MLIRError as error:
                printer.failure(error)
                return None
            except PassFailureError as error:
                self._report(error, printer)
                return None
            return self._print(module)

    def _report(self, error: PassFailureError, printer: DiagnosticPrinter) -> None:
        root = error.__cause__ and error.__cause__.__cause__
        if isinstance(root, MLIRError):
            printer.failure(root)
        else:
            sys.stderr.write(f"error: {error}\n")

    def _apply(self, step: Segment, module: Module) -> Module:
        if step.name is None:
            self.session.stage = step.text
            manager = PassManager.parse(step.text)
            if self.printing.after_all:
                manager.enable_ir_printing(print_after_all=True, enable_debug_info=self.printing.debug_info)
            manager.run(module.operation)
            return module
        self.session.stage = step.name
        before = f"{module}"
        try:
            module = FUNCTIONS[step.name](module)
        except (MindError, MLIRError):
            raise
        except BufferizationError as error:  # here, unlike in the compiler, the fault may be the module's
            raise PassFailureError(f"pass '{step.name}' failed: {error}") from error
        except Exception as error:
            raise InternalError(step.name, str(error) or type(error).__name__, before) from error
        if self.printing.after_all:
            sys.stderr.write(f"// -----// IR Dump After {step.name} //----- //\n{self._print(module)}\n")
        module.operation.verify()
        return module

    def _print(self, module: Module) -> str:
        text = module.operation.get_asm(
            enable_debug_info=self.printing.debug_info, print_generic_op_form=self.printing.generic
        )
        return f"{text.rstrip()}\n"


def _check_nesting(source: SourceText) -> None:
    """Refuse a text that MLIR's recursive parser would overflow the stack on.

    Raises:
        ParseError: E1101, brackets nest deeper than `MAX_NESTING`.
    """
    depth = 0
    for match in _BRACKETS.finditer(source.text):
        if match[0] in _OPENING:
            depth += 1
        elif match[0] in _CLOSING:
            depth = max(depth - 1, 0)
        if depth > MAX_NESTING:
            before = source.text[: match.start()]
            location = Location(source, before.count("\n") + 1, match.start() - before.rfind("\n"))
            raise ParseError(Diagnostic("E1101", f"brackets nest more than {MAX_NESTING} deep", location))


def _parse(part: Part) -> Module:
    if part.is_file:
        return ir.Module.parseFile(part.source.name)
    return ir.Module.parse(part.source.text)
