"""The interface of a function, which its callers see: its arguments by name, and its results.

The one place that knows both forms of an input: an `Input` operation of a flat module, and a parameter of a
function's entry.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.result_names import distinct
from mind_mlir.ir.terminators import Return
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.terminators import ValueId
    from mind_mlir.ir.types import ValueType


@dataclass(frozen=True, slots=True)
class Parameter:
    """One input of a function.

    Attributes:
        name: What callers name the argument.
        type: Its type.
        value_id: The value that it is in the function.
        location: Where it is declared.
    """

    name: str
    type: TensorType
    value_id: ValueId = field(default=-1, repr=False, compare=False)
    location: Location | None = field(default=None, repr=False, compare=False)
    #: The parts of the type that every call looks at.
    dtype: np.dtype[Any] = field(init=False, repr=False, compare=False)
    shape: tuple[int, ...] = field(init=False, repr=False, compare=False)
    is_bool: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.type.dtype.numpy)
        object.__setattr__(self, "shape", self.type.extents)
        object.__setattr__(self, "is_bool", self.type.dtype is DType.I1)

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class Output:
    """One result of a function.

    Attributes:
        label: What it is called: as the program says, or else the value that is returned, as its text
            writes it, or ``output_0`` where different values are returned in different places.
        type: Its type.
    """

    label: str
    type: TensorType


@dataclass(frozen=True, slots=True)
class Interface:
    """The parameters that a function takes and the outputs that it returns."""

    name: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[Output, ...]

    @property
    def output_names(self) -> tuple[str, ...]:
        """Return what files call the outputs, all different: as the program does, else ``output_0``."""
        return tuple(distinct(_plain(each.label, place) for place, each in enumerate(self.outputs)))

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        results = [
            f"{'' if each.label[:1] == '%' or name == f'output_{place}' else f'{name}: '}{each.type}"
            for place, (name, each) in enumerate(zip(self.output_names, self.outputs, strict=True))
        ]
        return f"{self.name}({parameters}) -> ({', '.join(results)})"


def _plain(label: str, place: int) -> str:
    """Return the label of an output as files have it: a number of a text is no name."""
    name = label.removeprefix("%")
    return f"output_{place}" if name != label and name.isdigit() else name


def interface_of(function: Function) -> Interface:
    """Return what callers of a function of a verified module see."""
    inputs = tuple(
        Parameter(str(op.attributes["name"]), op.tensor_type, op.value_id, op.location)
        for op in function.entry.operations
        if op.opcode == "Input" and "name" in op.attributes
    )
    arguments = tuple(
        Parameter(p.name or p.spelled[1:], p.tensor_type, p.value_id, p.location) for p in function.parameters
    )
    return Interface(function.name, arguments + inputs, _outputs(function))


def _outputs(function: Function) -> tuple[Output, ...]:
    returned = [block.terminator for block in function.blocks if isinstance(block.terminator, Return)]
    labels, types = _defined(function, {value for each in returned for value in each.operands})
    declared = function.result_types
    if declared is None:
        declared = tuple(types[value] for value in function.entry.terminator.operands)
    named = list(function.result_names)
    if len(named) != len(declared):
        named = [labels[value] for value in returned[0].operands] if len(returned) == 1 else []
    if len(named) != len(declared):
        named = [f"output_{index}" for index in range(len(declared))]
    return tuple(
        map(
            Output,
            named,
            (argument_checks.expect(each, TensorType, "a result", "a TensorType") for each in declared),
        )
    )


def _defined(
    function: Function, wanted: Collection[ValueId]
) -> tuple[dict[ValueId, str], dict[ValueId, ValueType]]:
    """Return what some values of a function are called, and their types, by id."""
    labels: dict[ValueId, str] = {}
    types: dict[ValueId, ValueType] = {}
    for block in function.blocks:
        for parameter in block.parameters:
            labels[parameter.value_id], types[parameter.value_id] = parameter.label, parameter.type
        for operation in block.operations:
            if operation.value_id in wanted:
                labels[operation.value_id], types[operation.value_id] = operation.label, operation.result_type
            for result in operation.others:
                labels[result.value_id] = operation.spell(result.value_id)
                types[result.value_id] = result.type
    return labels, types
