"""numpy's names of operations: the one table of them.

A function of a record has the name that the `mind` dialect has for it, takes operands by place and attributes
as keywords. Where numpy has the same function under another name, that stands here; where its arguments are
others than an operation's operands and attributes, there is a function by hand in a module beside this one.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING

from mind_mlir.ops.registry import all_ops, by_opcode
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ops.opdef import OpDef


#: Names beside those of the dialect, and the operations that they stand for.
_NAMES = FrozenDict(
    {
        "subtract": "Sub",
        "multiply": "Mul",
        "negative": "Neg",
        "absolute": "Abs",
        "arctan2": "Atan2",
        "pow": "Power",
        "fmod": "Remainder",
        "isfinite": "IsFinite",
        "rint": "RoundEven",
        "round": "RoundEven",
        "bitwise_and": "And",
        "bitwise_or": "Or",
        "bitwise_xor": "Xor",
        "bitwise_not": "Not",
        "bitwise_invert": "Not",
        "invert": "Not",
        "left_shift": "ShiftLeft",
        "bitwise_left_shift": "ShiftLeft",
    }
)

#: Names of the dialect by which numpy means something else, and the name here; none where a function by
#: another name of numpy's does what the operation does.
_RENAMED: Mapping[str, str | None] = {"round": "round_half_away", "select": None}

#: Operations that are no functions of arrays, and what stands for them in Python.
ELSEWHERE = FrozenDict(
    {
        "Input": "the arguments of a function that mind_mlir.jit is given",
        "ConstI64": "asarray",
        "ConstF32": "asarray",
        "ConstF64": "asarray",
        "ConstTensor": "asarray",
        "Call": "a call of a function that mind_mlir.jit has been given",
        "Cond": "mind_mlir.cond",
        "While": "mind_mlir.while_loop",
        "Scan": "mind_mlir.scan",
    }
)


def spellings() -> dict[str, OpDef]:
    """Return the operation that each name stands for, where it is one as it is."""
    found = {}
    for record in all_ops():
        name = _RENAMED.get(record.mnemonic, record.mnemonic)
        if name is not None and record.opcode not in ELSEWHERE and not iskeyword(name):
            found[name] = record
    return found | {name: by_opcode()[opcode] for name, opcode in _NAMES.items()}
