"""The functions of `mind_mlir.numpy` that are one operation each, by name, as the records say.

A function of a record has the name that the `mind` dialect has for it, or those of `OpDef.in_numpy`; it takes
operands by place and attributes as keywords. Where numpy's arguments are others than an operation's operands
and attributes, there is a function by hand in a module beside this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef


def spellings() -> dict[str, OpDef]:
    """Return the operation that each name stands for, where it is one as it is."""
    found = {}
    for record in all_ops():
        names = (record.mnemonic,) if record.in_numpy is None else record.in_numpy
        if not isinstance(names, str):
            found.update(dict.fromkeys(names, record))
    return found
