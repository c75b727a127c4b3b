"""Formats files of `.mind` programs for `mind-mlir fmt`."""

from __future__ import annotations

import difflib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, MindError, ParseError, SourceText, UnsupportedError
from mind_mlir.diagnostics.display import display_path
from mind_mlir.languages.mind.formatting import format_source
from mind_mlir.languages.source import read_source
from mind_mlir.outputs.files import write_file
from mind_mlir.tools.cli.output import STDOUT

if TYPE_CHECKING:
    from mind_mlir.tools.cli.session import Session

SUFFIX = ".mind"
#: How programs in other languages begin: Core IR, PTIR, StableHLO.
_OTHER = re.compile(
    r"(?:\s++|//[^\n]*+|#[^\n]*+)*+(?:[%@{\"]|(?:program|module|outputs|func|public|builtin)\b|export\s++func\b)"
)


def format_files(
    session: Session, files: Iterable[str], output: str | None, *, check: bool, diff: bool
) -> bool:
    """Format files and directories, or show what would change; return whether the exit code is to say so.

    Findings of all files are reported; a file that has any is left as it is.
    """
    findings: list[Diagnostic] = []
    changed = False
    for file in files:
        try:
            for path in _paths(file):
                changed |= _format(session, path, output, findings, check=check, diff=diff)
        except MindError as error:
            findings += error.diagnostics
    session.report(findings)
    return bool(findings) or (changed and check)


def _format(
    session: Session, path: str, output: str | None, findings: list[Diagnostic], *, check: bool, diff: bool
) -> bool:
    """Format one file, and return whether that changes it."""
    session.stage = "format"
    try:
        session.source = source = read_source(path)
        text = _formatted(source)
    except MindError as error:
        findings += error.diagnostics
        return False
    changed = text != source.text
    if diff:
        sys.stdout.writelines(_difference(source, text))
    if check:
        if changed and not diff:
            sys.stdout.write(f"{source.name}\n")
    elif not diff and (changed or output is not None or path == STDOUT):
        _write(text, path if output is None else output)
    return changed


def _write(text: str, path: str) -> None:
    if path == STDOUT:
        sys.stdout.write(text)
    else:
        write_file(path, text.encode())


def _formatted(source: SourceText) -> str:
    try:
        return format_source(source)
    except ParseError:
        if source.name.endswith(SUFFIX) or _OTHER.match(source.text) is None:
            raise
    raise UnsupportedError(
        Diagnostic(
            "E7001",
            f"'{source.name}' is no {SUFFIX} program",
            location=source.locate(0, 0),
            help=f"'mind-mlir convert {source.name} --to=core' prints Core IR in its canonical form",
        )
    )


def _paths(file: str) -> Iterator[str]:
    """Yield ``file``, or the programs in it, if it is a directory, in the order of their names."""
    if file == STDOUT or not os.path.isdir(file):  # noqa: PTH112 -- '-' and '' are no paths
        yield file
        return
    found = False
    for folder, folders, names in os.walk(file):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(SUFFIX):
                found = True
                yield os.path.join(folder, name)  # noqa: PTH118 -- as the directory was written
    if not found:
        context = {"path": display_path(file), "reason": f"there is no {SUFFIX} file in it"}
        message = f"cannot read '{context['path']}': {context['reason']}"
        raise ParseError(Diagnostic("E1106", message, context=MappingProxyType(context)))


def _difference(source: SourceText, text: str) -> Iterator[str]:
    """Yield the lines of a unified diff."""
    before, after = (list(io.StringIO(each, newline="\n")) for each in (source.text, text))
    for line in difflib.unified_diff(before, after, source.name, f"{source.name} (formatted)"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
