"""`mind-mlir`: the compiler's driver."""

from __future__ import annotations

from importlib import import_module

import click

from mind_mlir import __version__
from mind_mlir.support.interrupts import held
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.tools.cli.session import GuardedCommand, Session

#: Subcommand -> one line of help. Each lives in the module of its name and is imported when it is used,
#: so that ``--help`` is quick and a command loads only what it needs.
COMMANDS = {
    "run": "Compile a program, or load a bundle, and run it on arrays.",
    "compile": "Print a program in any form, or write it as a library.",
    "grad": "Differentiate a program.",
    "check": "Report everything that is wrong with programs.",
    "fmt": "Write .mind programs in their one style.",
    "lsp": "Serve editors: findings as one types, completion, types, renaming.",
    "convert": "Write a program in another format.",
    "targets": "Show the conversion targets, and what they take.",
    "legality": "Report what a conversion target does not take of a program.",
    "profile": "Show where the time of a program goes.",
    "plan": "Say what a program sends, holds and takes on many processes.",
    "explore": "Write a page of what becomes of a program, stage by stage.",
    "reduce": "Make a program smaller that still fails.",
    "buffers": "Show the memory that a program works in.",
    "doctor": "Show what this installation is, and whether it works.",
    "machine": "Show what is known of a processor, and how fast it is.",
    "cache": "Look at the compiled code that is kept on disk.",
    "ops": "Describe the operations.",
    "explain": "Explain a diagnostic code.",
}
#: Where functions of their own names are that a module has several of.
_HOMES = dict.fromkeys(("convert", "legality", "targets"), "convert")
#: Modules of commands that are packages of their own.
_ELSEWHERE = {"lsp": "mind_mlir.tools.lsp.command"}


class CommandGroup(GuardedCommand, click.Group):
    """A group whose subcommands are imported on demand and whose errors all end in an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the subcommands in the order of a first use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand."""
        if cmd_name not in COMMANDS:
            return None
        with held():
            own = f"mind_mlir.tools.cli.{_HOMES.get(cmd_name, cmd_name)}"
            home = import_module(_ELSEWHERE.get(cmd_name, own))
        command = getattr(home, cmd_name if cmd_name in _HOMES else "command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; where there is none of that name, suggest one."""
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"there is no command '{name}'{did_you_mean(name, COMMANDS)}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"mind-mlir, version {__version__}")
        click.echo(f"threads: {_threads()}")
        context.exit()


def _threads() -> str:
    """Return how many threads share the loops of compiled code, or why that cannot be said."""
    from mind_mlir.runtime import threads  # noqa: PLC0415 -- commands that run nothing do without

    try:
        count = threads.get_num_threads()
    except ValueError as error:
        return f"unknown: {error}"
    return f"{count}" if threads.is_available() else f"{count} (no thread pool on this system)"


@click.command(
    cls=CommandGroup,
    name="mind-mlir",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes:
  0 success, 1 diagnostics, 2 wrong usage, 130 interrupted,
  70 internal error (a reproducer is written)

\b
Completion with Tab, until the shell ends (or put the line into its startup file):
  bash  eval "$(_MIND_MLIR_COMPLETE=bash_source mind-mlir)"
  zsh   eval "$(_MIND_MLIR_COMPLETE=zsh_source mind-mlir)"
  fish  _MIND_MLIR_COMPLETE=fish_source mind-mlir | source
""",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and the number of threads, and exit.",
)
@click.pass_context
def program(context: click.Context) -> None:
    """Compile MIND programs, Core IR, PTIR and ONNX models to fast native code, by way of MLIR.

    FILE may be '-' for standard input in every command.
    """
    context.ensure_object(Session)


def main() -> None:
    """Run `mind-mlir` on the arguments of the process."""
    program()
