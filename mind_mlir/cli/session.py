"""The boundary between the tools and the shell: what ends a command, with which words and which exit code.

Exit codes:

    0    success
    1    diagnostics: something is wrong with the program, its inputs or its files
    2    usage: the command line itself is wrong
    70   internal error: a bug of the compiler; a reproducer is written
    130  interrupted from the keyboard
    141  the reader of standard output went away
"""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from mind_mlir.cli.output import silence_stdout, use_color
from mind_mlir.cli.reproducer import write_reproducer
from mind_mlir.cli.start import EXIT_INTERRUPTED, raising_on_interrupt
from mind_mlir.diagnostics import Diagnostic, InternalError, MindError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.diagnostics import SourceText
    from mind_mlir.diagnostics.render import Format

EXIT_DIAGNOSTICS = 1
EXIT_INTERNAL = 70
EXIT_BROKEN_PIPE = 141

_SHOWN_LINES, _SHOWN_COLUMNS = 4, 200

Result = TypeVar("Result")


@dataclass(slots=True)
class Session:
    """What the boundary must know of a running command.

    Attributes:
        format: How diagnostics are printed.
        stage: What the command is doing, for the report of an internal error.
        source: The source text being worked on, for the reproducer.
    """

    format: Format = "human"
    stage: str = "command line"
    source: SourceText | None = None

    def report(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Print diagnostics to standard error."""
        print_diagnostics(diagnostics, self.format, sys.stderr)


def print_diagnostics(diagnostics: Iterable[Diagnostic], form: Format, stream: TextIO) -> None:
    """Print diagnostics to ``stream``, in colour where it is a terminal."""
    from mind_mlir.diagnostics.render import render  # noqa: PLC0415 -- loads numpy, which --help does without

    stream.write(render(diagnostics, format=form, color=use_color(stream)))


def guarded(context: click.Context, body: Callable[[], Result]) -> Result:
    """Run a command, turning every exception that is not click's own into its message and exit code."""
    try:
        with raising_on_interrupt():
            return _run(context, body)
    except KeyboardInterrupt:
        context.exit(EXIT_INTERRUPTED)


def _run(context: click.Context, body: Callable[[], Result]) -> Result:
    session = context.ensure_object(Session)
    try:
        result = body()
        sys.stdout.flush()
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except MindError as error:
        session.report(error.diagnostics)
        context.exit(EXIT_DIAGNOSTICS)
    except BrokenPipeError:
        silence_stdout()
        context.exit(EXIT_BROKEN_PIPE)
    except (
        ImportError
    ) as error:  # the bindings are missing or of another version; the message says what to do
        session.report([Diagnostic("E6002", str(error))])
        context.exit(EXIT_DIAGNOSTICS)
    except MemoryError as error:
        session.report(
            [Diagnostic("E6004", f"out of memory in stage '{session.stage}': {error}".rstrip(": "))]
        )
        context.exit(EXIT_DIAGNOSTICS)
    except Exception as error:
        report_internal_error(session, error)
        context.exit(EXIT_INTERNAL)
    return result


def report_internal_error(session: Session, error: Exception) -> None:
    """Write the reproducer of a bug of the compiler, and say where it is."""
    if not isinstance(error, InternalError):
        source = session.source.text if session.source else ""
        message = f"{type(error).__name__}: {error}".rstrip(": ")
        internal = InternalError(session.stage, message, source)
        internal.__cause__ = error
        error = internal
    trace = "".join(traceback.format_exception(error))
    path = write_reproducer(error, trace)
    sys.stderr.write(f"{_shortened(str(error))}\n")
    sys.stderr.write("this is a bug of mind-mlir, not of your program; please report it")
    sys.stderr.write(f" with the file {path}\n" if path else "; no reproducer could be written\n")


def _shortened(text: str) -> str:
    """Return the first lines of ``text``, which may quote whole loops; the reproducer has all of it."""
    lines = text.splitlines()
    shown = [
        line if len(line) <= _SHOWN_COLUMNS else f"{line[:_SHOWN_COLUMNS]} ..."
        for line in lines[:_SHOWN_LINES]
    ]
    return "\n".join(shown if len(lines) <= _SHOWN_LINES else [*shown, "..."])
