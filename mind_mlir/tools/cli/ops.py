"""`mind-mlir ops`: describe the operations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.tools.cli.completion import complete_opcode
from mind_mlir.tools.cli.options import output_option
from mind_mlir.tools.cli.output import write_output

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef


@click.command(name="ops")
@click.argument("names", metavar="[OPCODE]...", nargs=-1, shell_complete=complete_opcode)
@click.option("--json", "form", flag_value="json", help="Print every record as one JSON document.")
@click.option("--markdown", "form", flag_value="markdown", help="Print the op reference.")
@click.option(
    "--irdl", "form", flag_value="irdl", help="Print the mind dialect as IRDL, for mlir-opt --irdl-file."
)
@click.option("--dtypes", "form", flag_value="dtypes", help="Print which PTIR operation takes which dtype.")
@output_option
def command(names: tuple[str, ...], form: str | None, output: str | None) -> None:
    """Describe the operations: what each does and what we chose, or all about the ones named.

    The lines behind a dash say what this compiler does where the documents leave the choice to it.
    """
    from mind_mlir.ops.registry import all_ops  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli import reference  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    records = [_find(name) for name in names] or list(all_ops())
    if form == "json":
        text = json.dumps([reference.op_data(record) for record in records], indent=2, ensure_ascii=False)
    elif form == "irdl":
        if names:
            raise click.UsageError("--irdl prints the whole dialect; leave the opcodes out")
        from mind_mlir.lowering.dialect import irdl_text  # noqa: PLC0415 -- loads MLIR

        text = irdl_text()
    elif form == "dtypes":
        if names:
            raise click.UsageError("--dtypes prints the whole table; leave the opcodes out")
        text = reference.dtype_table()
    elif names:
        text = "\n".join(reference.op_markdown(record, "#") for record in records)
    else:
        text = reference.reference_markdown() if form == "markdown" else reference.op_list()
    write_output(text, output)


def _find(name: str) -> OpDef:
    from mind_mlir.ops.registry import all_ops, by_mnemonic, by_opcode  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    record = by_opcode().get(name) or by_mnemonic().get(name.removeprefix("mind."))
    if record is None:
        record = {alias.name: each for each in all_ops() for alias in each.aliases}.get(name)
    if record is None:
        hint = did_you_mean(name, by_opcode()) or "; 'mind-mlir ops' lists all"
        raise click.BadParameter(f"there is no operation '{name}'{hint}")
    return record
