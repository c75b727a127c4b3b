"""Takes programs of extreme extents through every stage; run as a process of its own, with little memory.

The programs are the examples of the records, with their numbers replaced by others, the same by the same. A
program that verifies may only end in a `MindError` after that. Prints what else happens.
"""

from __future__ import annotations

import math
import random
import resource
import sys
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir import Builder, MindError, Module, compile, differentiate, interpret, print_module, verify
from mind_mlir.ir.attributes import Padding
from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import Example, OpDef

_NUMBERS = (0, 1, 2, 3, 7, 2**20, 2**31, 2**32 + 1, 2**40, 2**60, 2**61 - 1, 2**62, 2**63 - 1)
#: Programs with greater values are compiled but not run, which takes no memory here, but time.
_SMALL = 2**14
_MEMORY = 8 << 30


class Substitution:
    """Replaces numbers: the same by the same, and most of them by themselves."""

    def __init__(self, choices: random.Random) -> None:
        self._choices = choices
        self._chosen: dict[int, int] = {}

    def __call__(self, value: Any) -> Any:
        match value:
            case bool():
                return value
            case int():
                return self._number(value)
            case tuple():
                return tuple(map(self, value))
            case Padding():
                return Padding(value.mode, self(value.pairs))
        return value

    def _number(self, number: int) -> int:
        if number not in self._chosen:
            keep = self._choices.random() < 0.6
            self._chosen[number] = number if keep else self._choices.choice(_NUMBERS)
        return self._chosen[number]


def program(record: OpDef, example: Example, choices: random.Random) -> Module | None:
    """Return an example with other numbers, or None where the operation does not allow them."""
    replaced = Substitution(choices)
    builder = Builder()
    operands = []
    try:
        for index, text in enumerate(example.operands):
            definition = record.operand(index)
            name, _, extents = text.removesuffix("]").partition("[")
            dtype = DType.from_name(name) or (DType.F32 if DType.F32 in definition.dtypes else DType.SI64)
            shape = replaced(tuple(int(extent) for extent in extents.split(",") if extent))
            operands.append(_operand(builder, f"x{index}", TensorType(dtype, shape)))
        attributes = {name: replaced(value) for name, value in example.attributes.items()}
        result = builder.emit(record.opcode, *operands, **attributes)
        return verify(builder.build([result, builder.emit("Neg", result)]))
    except MindError:
        return None


def _operand(builder: Builder, name: str, type_: TensorType) -> Value:
    """Return a value of ``type_`` that takes no memory in the interpreter."""
    one = builder.input(name, TensorType(type_.dtype, (1,)))
    if 0 not in type_.shape:
        return builder.emit("BroadcastTo", one, result_shape=type_.shape)
    none = builder.emit("Slice", one, starts=(0,), ends=(0,), steps=(1,))
    ones = (1,) * (len(type_.shape) - 1)
    spread = builder.emit("ExpandDims", none, axes=tuple(range(len(ones)))) if ones else none
    order = list(range(len(ones)))
    order.insert(type_.shape.index(0), len(ones))
    moved = builder.emit("Transpose", spread, permutation=tuple(order))
    return builder.emit("BroadcastTo", moved, result_shape=type_.shape)


def attempts(module: Module) -> Iterator[Any]:
    """Yield what can be done with a verified module."""
    yield lambda: _run(module)
    yield lambda: _run(differentiate(module, extensions=True).module)


def _run(module: Module) -> None:
    executable = compile(module, opt_level=0)
    if not all(_is_small(op.tensor_type) for op in module.operations):
        return
    arguments = {
        name: np.zeros(op.tensor_type.extents, op.tensor_type.dtype.numpy)
        for name, op in module.inputs_by_name.items()
    }
    for found, expected in zip(executable(**arguments), interpret(module, arguments), strict=True):
        np.testing.assert_array_equal(found, expected)


def main(seed: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    choices = random.Random(seed)  # noqa: S311 -- test programs are no secret
    records = [
        record
        for record in all_ops()
        if record.operands
        and record.examples
        and not record.collective
        and record.opcode not in CORE_V1.refused
    ]
    done = 0
    while done < count:
        record = choices.choice(records)
        module = program(record, choices.choice(record.examples), choices)
        if module is None or all(_is_small(op.tensor_type) for op in module.operations):
            continue
        done += 1
        for attempt in attempts(module):
            print(print_module(module), file=sys.stderr, flush=True)  # the last is what killed the process
            try:
                attempt()
            except MindError:
                pass
            except Exception:
                print(print_module(module), traceback.format_exc(), flush=True)


def _is_small(type_: TensorType) -> bool:
    return math.prod(extent or 1 for extent in type_.extents) <= _SMALL


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
