"""`mind-mlir lsp`: a language server for editors."""

from __future__ import annotations

import click

from mind_mlir.diagnostics import Diagnostic, UnsupportedError


@click.command(name="lsp")
@click.option("--stdio", is_flag=True, help="Speak over standard input and output, as it does anyway.")
def command(stdio: bool) -> None:
    """Serve an editor: the Language Server Protocol, over standard input and output.

    The editor starts this command for files of .mind, Core IR and PTIR. It shows what is wrong as one types,
    what names mean and what shapes values have, completes, renames, formats, and runs and differentiates
    functions.

    The package pygls is needed: pip install 'mind-mlir[lsp]'.
    """
    try:
        from mind_mlir.tools.lsp.server import serve  # noqa: PLC0415 -- --help and completion do without
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        message = "the language server needs the package pygls, which is not installed"
        help_ = "run: pip install 'mind-mlir[lsp]'"
        raise UnsupportedError(Diagnostic("E7003", message, help=help_)) from None
    serve()
