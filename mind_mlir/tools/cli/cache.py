"""`mind-mlir cache`: look at the compiled code that is kept on disk, and be rid of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mind_mlir.diagnostics.display import display_path
from mind_mlir.tools.cli.completion import complete_directory
from mind_mlir.tools.cli.options import check_variables
from mind_mlir.tools.cli.session import EXIT_DIAGNOSTICS, Session

if TYPE_CHECKING:
    from pathlib import Path


directory_option = click.option(
    "--dir",
    "directory",
    metavar="PATH",
    shell_complete=complete_directory,
    help="The directory of the cache; MIND_MLIR_CACHE_DIR unless given, or the platform's.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(name="cache")
def command() -> None:
    """Look at the compiled code that is kept on disk, and be rid of it.

    \b
    MIND_MLIR_CACHE=off         switches the cache off
    MIND_MLIR_CACHE_DIR=PATH    says where it is
    MIND_MLIR_CACHE_LIMIT=512M  says how large it may become; 1G unless given
    """  # noqa: D301 -- click reads the \b


@command.command(name="list")
@directory_option
@json_option
@click.pass_obj
def list_(session: Session, directory: str | None, as_json: bool) -> None:
    """List what is kept, that used last first."""
    from mind_mlir.cache.inspection import look_through  # noqa: PLC0415 -- loads numpy, which --help does without
    from mind_mlir.tools.cli.cache_table import as_document, listed  # noqa: PLC0415 -- as above

    session.stage = "cache"
    place = _place(directory)
    found = look_through(place)
    click.echo(as_document(place, found) if as_json else listed(place, found), nl=False)


@command.command()
@directory_option
@click.pass_obj
def clear(session: Session, directory: str | None) -> None:
    """Remove all that is kept; files of others in the directory stay."""
    from mind_mlir.cache.inspection import clear as cleared  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.cache_table import counted  # noqa: PLC0415 -- as above

    session.stage = "cache"
    place = _place(directory)
    removed = cleared(place)
    entries = [file for file in removed if file.is_entry]
    total = counted(len(entries), sum(file.size for file in removed))
    click.echo(f"removed {total} from {display_path(str(place))}")


@command.command()
@directory_option
@json_option
@click.option("--remove", "removes", is_flag=True, help="Remove what is of no use.")
@click.pass_obj
def verify(session: Session, directory: str | None, as_json: bool, removes: bool) -> None:
    """List what is kept and of no use; exit 1 if there is any.

    All that is kept is read. What is of no use does no harm: it is never loaded, and the code is made anew.
    """
    from mind_mlir.cache.inspection import look_through  # noqa: PLC0415 -- as above
    from mind_mlir.cache.removal import remove  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.cache_table import as_document, verified  # noqa: PLC0415 -- as above

    session.stage = "cache"
    place = _place(directory)
    found = look_through(place)
    useless = [each for each in found if each.problem is not None]
    if removes:
        remove([each.file for each in useless])
    click.echo(as_document(place, useless) if as_json else verified(place, found), nl=False)
    if useless:
        click.get_current_context().exit(EXIT_DIAGNOSTICS)


def _place(directory: str | None) -> Path:
    """Return the directory that is meant."""
    from pathlib import Path  # noqa: PLC0415 -- as above

    from mind_mlir.cache.directory import cache_directory  # noqa: PLC0415 -- as above

    check_variables()
    if directory is not None:
        return Path(directory)
    usual = cache_directory()
    if usual is None:
        raise click.UsageError("this user has no directory for caches: say --dir PATH")
    return Path(usual)
