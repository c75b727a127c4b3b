"""`mind-mlir ops`: describe the operations."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

import click

from mind_mlir.cli.options import output_option
from mind_mlir.cli.output import write_output
from mind_mlir.cli.reference import op_data, op_list, op_markdown, reference_markdown
from mind_mlir.ops.registry import all_ops, by_mnemonic, by_opcode

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef


@click.command(name="ops")
@click.argument("names", metavar="[OPCODE]...", nargs=-1)
@click.option("--json", "form", flag_value="json", help="Print every record as one JSON document.")
@click.option("--markdown", "form", flag_value="markdown", help="Print the op reference.")
@click.option(
    "--irdl", "form", flag_value="irdl", help="Print the mind dialect as IRDL, for mlir-opt --irdl-file."
)
@output_option
def command(names: tuple[str, ...], form: str | None, output: str | None) -> None:
    """Describe the operations: what each does and what we chose, or all about the ones named.

    The lines behind a dash say what this compiler does where the documents leave the choice to it.
    """
    records = [_find(name) for name in names] or list(all_ops())
    if form == "json":
        text = json.dumps([op_data(record) for record in records], indent=2, ensure_ascii=False)
    elif form == "irdl":
        if names:
            raise click.UsageError("--irdl prints the whole dialect; leave the opcodes out")
        from mind_mlir.dialect import irdl_text  # noqa: PLC0415 -- loads MLIR

        text = irdl_text()
    elif names:
        text = "\n".join(op_markdown(record, "#") for record in records)
    else:
        text = reference_markdown() if form == "markdown" else op_list()
    write_output(text, output)


def _find(name: str) -> OpDef:
    record = by_opcode().get(name) or by_mnemonic().get(name.removeprefix("mind."))
    if record is None:
        close = difflib.get_close_matches(name, by_opcode(), n=1)
        hint = f"; did you mean {close[0]}?" if close else "; 'mind-mlir ops' lists all"
        raise click.BadParameter(f"there is no operation '{name}'{hint}")
    return record
