"""The page of the commands, with what `--help` says of each."""

from __future__ import annotations

import click

from mind_mlir.tools.cli.main import COMMANDS, program

HEAD = "docs/commands.md"
_WIDTH = 96


def page(text: str) -> str:
    """Return the page with a section for each command behind it."""
    return text + "".join(f"\n## mind-mlir {name}\n\n```text\n{_help(name)}\n```\n" for name in COMMANDS)


def _help(name: str) -> str:
    parent = click.Context(program, info_name="mind-mlir", terminal_width=_WIDTH)
    command = program.get_command(parent, name)
    assert command is not None
    # `cache` has commands of its own.
    inner = command.commands.items() if isinstance(command, click.Group) else ()
    context = click.Context(command, parent, name, terminal_width=_WIDTH)
    texts = [command.get_help(context)]
    texts += [each.get_help(click.Context(each, context, called)) for called, each in inner]
    return "\n\n".join(texts)
