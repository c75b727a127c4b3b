"""Prints MLIR's diagnostics the way mlir-opt does: file, line and column, the source line and a caret."""

from __future__ import annotations

from dataclasses import field
from typing import Any, TextIO

from mind_mlir.diagnostics.display import excerpt, visible
from mind_mlir.mlir.bindings import Context, MLIRError, MLIRLocation, ir
from mind_mlir.mlir.locations import file_location
from mind_mlir.support.lazy_dataclass import dataclass

#: What the bindings call a source that was not read from a file.
_ANONYMOUS = "-"

#: Longer lines are cut around the place that a diagnostic is about.
_LINE_CELLS = 200


@dataclass(slots=True)
class DiagnosticPrinter:
    """Prints the diagnostics of one context.

    Attributes:
        name: The display name of the text being worked on.
        text: That text.
        stream: Where to print to.
    """

    name: str
    text: str
    stream: TextIO
    _lines: list[str] = field(default_factory=list)

    def attach(self, context: Context) -> Any:
        """Print what is emitted in ``context`` and raises no exception, while the returned object lives."""
        return context.attach_diagnostic_handler(self._handle)

    def failure(self, error: MLIRError) -> None:
        """Print the diagnostics that an exception of the bindings carries."""
        for diagnostic in error.error_diagnostics:
            self._handle(diagnostic)
        if not error.error_diagnostics:
            self.stream.write(f"error: {error}\n")

    def note(self, message: str) -> None:
        """Print what is to be said of the diagnostic before."""
        self.stream.write(f"note: {message}\n")

    def _handle(self, diagnostic: Any) -> bool:
        self._print(diagnostic.severity.name.lower(), diagnostic.message, diagnostic.location)
        for note in diagnostic.notes:
            self._print("note", note.message, note.location)
        return True

    def _print(self, severity: str, message: str, location: MLIRLocation) -> None:
        # A diagnostic hands out its location as the base class; going by way of the attribute tells the kind.
        place = file_location(ir.Location.from_attr(location.attr))
        message = "\n".join(map(visible, message.split("\n")))
        if place is None:
            self.stream.write(f"<unknown>:0: {severity}: {message}\n")
            return
        file = self.name if place.filename == _ANONYMOUS else place.filename
        line, column = place.start_line, place.start_col
        self.stream.write(f"{visible(file)}:{line}:{column}: {severity}: {message}\n")
        if file == self.name and 1 <= line <= len(self._source_lines()):
            self.stream.write(_with_caret(self._source_lines()[line - 1], max(column, 1)))

    def _source_lines(self) -> list[str]:
        if not self._lines:
            self._lines = self.text.split("\n")
        return self._lines


def _with_caret(line: str, column: int) -> str:
    """Return a source line and, below it, a caret at the 1-based ``column``, which counts bytes."""
    line = line.removesuffix("\r")
    if len(line) <= _LINE_CELLS and line.isascii() and line.replace("\t", " ").isprintable():
        indent = "".join("\t" if character == "\t" else " " for character in line[: column - 1])
        return f"{line}\n{indent}^\n"
    before = line.encode()[: column - 1].decode(errors="ignore")
    shown = excerpt(line, len(before) + 1, 1, _LINE_CELLS)
    return f"{shown.text}\n{' ' * shown.start}^\n"
