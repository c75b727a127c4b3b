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

import shlex
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

import click

from mind_mlir.diagnostics import Diagnostic, InternalError, MindError, SourceText
from mind_mlir.diagnostics.findings import limited
from mind_mlir.diagnostics.render import Format, render
from mind_mlir.outputs.errors import ReaderGoneError, refused
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tools.cli.reproducer import write_reproducer
from mind_mlir.tools.cli.streams import prepare_streams, use_color
from mind_mlir.tools.interruption import EXIT_INTERRUPTED, Interrupted, raising_on_interrupt

#: Findings that are printed unless the user asks for more.
DEFAULT_ERROR_LIMIT = 100

EXIT_DIAGNOSTICS = 1
EXIT_INTERNAL = 70
EXIT_BROKEN_PIPE = 141

_SHOWN_LINES, _SHOWN_COLUMNS = 4, 200


@dataclass(slots=True)
class Session:
    """The state of a running command that the error boundary needs for its reports.

    Attributes:
        format: How diagnostics are printed.
        error_limit: How many findings are printed; 0 prints all that are kept.
        stage: What the command is doing, for the report of an internal error.
        source: The source text being worked on, for the reproducer.
    """

    format: Format = "human"
    error_limit: int = DEFAULT_ERROR_LIMIT
    stage: str = "command line"
    source: SourceText | None = None

    def report(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Print diagnostics to standard error."""
        self.print(diagnostics, sys.stderr)

    def print(self, diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
        """Print diagnostics to ``stream``, in colour where it is a terminal."""
        shown = limited(tuple(diagnostics), self.error_limit)
        stream.write(render(shown, format=self.format, color=use_color(stream)))


class GuardedCommand(click.Command):
    """A command that ends with one of the exit codes above and, where something went wrong, a message."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command inside the error boundary, and leave the process unless told otherwise."""
        prepare_streams()
        session = Session()
        run: Callable[..., int | None] = super().main
        code = guarded(session, lambda: run(*args, standalone_mode=False, obj=session, **extra))
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an interrupt ends it without a word, where click would print an empty line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)


def guarded(session: Session, body: Callable[[], int | None]) -> int:
    """Run a command and return its exit code, after the message for whatever exception ended it."""
    try:
        with raising_on_interrupt():
            return _run(session, body)
    except (KeyboardInterrupt, Interrupted):
        return EXIT_INTERRUPTED


def _run(session: Session, body: Callable[[], int | None]) -> int:
    try:
        code = body()
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except MindError as error:
        session.report(error.diagnostics)
        return EXIT_DIAGNOSTICS
    except click.Abort as error:  # what click makes of an interrupt, and of the end of a file
        if isinstance(error.__cause__, EOFError):
            report_internal_error(session, error.__cause__)
            return EXIT_INTERNAL
        return EXIT_INTERRUPTED
    except ReaderGoneError:
        return EXIT_BROKEN_PIPE
    except (ImportError, MemoryError, OSError) as error:
        session.report([_surroundings(session, error)])
        return EXIT_DIAGNOSTICS
    except Exception as error:
        report_internal_error(session, error)
        return EXIT_INTERNAL
    return code or 0


def _surroundings(session: Session, error: ImportError | MemoryError | OSError) -> Diagnostic:
    """Return what is said about an error that is neither the program's fault nor ours, but the machine's."""
    if isinstance(error, ImportError):  # the bindings are missing or of another version; it says what to do
        root = error
        while isinstance(root.__cause__, ImportError):  # numpy wraps the reason in a page of advice
            root = root.__cause__
        return Diagnostic("E6002", str(root))
    if isinstance(error, MemoryError):
        return Diagnostic("E6004", f"out of memory in stage '{session.stage}': {error}".rstrip(": "))
    (diagnostic,) = refused(
        session.stage, error
    ).diagnostics  # no descriptors left, no place for temporary files
    return diagnostic


def report_internal_error(session: Session, error: Exception) -> None:
    """Write the reproducer of a bug of the compiler, and say where it is."""
    if not isinstance(error, InternalError):
        source = session.source.text if session.source else ""
        message = f"{type(error).__name__}: {error}".rstrip(": ")
        internal = InternalError(session.stage, message, source)
        internal.__cause__ = error
        error = internal
    sys.stderr.write(f"{_shortened(str(error))}\n")
    trace = "".join(traceback.format_exception(error))
    path = write_reproducer(error.reduced(), trace)
    sys.stderr.write("this is a bug of mind-mlir, not of your program; please report it")
    sys.stderr.write(f" with the file {path}\n" if path else "; no reproducer could be written\n")
    if session.source and Path(session.source.name).is_file():
        name = shlex.quote(session.source.name)
        sys.stderr.write(f"mind-mlir reduce {name} searches longer for a small program that fails so\n")


def _shortened(text: str) -> str:
    """Return the first lines of ``text``, which may quote whole loops; the reproducer has all of it."""
    lines = text.splitlines()
    shown = [
        line if len(line) <= _SHOWN_COLUMNS else f"{line[:_SHOWN_COLUMNS]} ..."
        for line in lines[:_SHOWN_LINES]
    ]
    return "\n".join(shown if len(lines) <= _SHOWN_LINES else [*shown, "..."])
