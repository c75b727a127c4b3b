"""Helps the tests of autodiff: modules from records' examples, random values, directional derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from index_values import INDICES, indices_of

from mind_mlir import Builder, DType, TensorType, interpret
from mind_mlir.ir.module import Return
from mind_mlir.ops.opdef import Domain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import Example, OpDef

Arrays = dict[str, "Array"]


def example_type(spelled: str) -> TensorType:
    """Return the type an example spells, with f64 for its ``T``."""
    name, _, extents = spelled.removesuffix("]").partition("[")
    dtype = DType.F64 if name == "T" else DType.from_name(name)
    assert dtype is not None
    return TensorType(dtype, tuple(int(extent) for extent in extents.split(",") if extent.strip()))


def example_module(record: OpDef, example: Example) -> Module:
    """Return a module that applies an example to inputs ``x0``, ``x1``, ...

    No input may be empty, so an empty operand is sliced from one that is not.
    """
    b = Builder()
    operands = [declare(b, f"x{i}", example_type(spelled)) for i, spelled in enumerate(example.operands)]
    attributes: dict[str, Any] = example.attributes
    return b.build([b.emit(record.opcode, *operands, **attributes)])


def declare(b: Builder, name: str, type_: TensorType) -> Value:
    value = b.input(name, type_.with_shape(tuple(max(extent, 1) for extent in type_.extents)))
    if value.type == type_:
        return value
    zeros = (0,) * type_.rank
    return b.emit("Slice", value, starts=zeros, ends=type_.extents, steps=(1,) * type_.rank)


def example_values(record: OpDef, example: Example, rng: np.random.Generator) -> Arrays:
    """Return values in the operands' domains for `example_module`."""
    types = [example_type(spelled) for spelled in example.operands]
    values = {}
    for index, type_ in enumerate(types):
        operand = record.operand(index)
        shape = tuple(max(extent, 1) for extent in type_.extents)
        if operand.domain in INDICES:
            filled = [type_.with_shape(tuple(max(e, 1) for e in type_.extents)) for type_ in types]
            array: Array = indices_of(operand.domain, filled, index, example.attributes, rng)
        elif type_.dtype is DType.I1:
            array = np.asarray(rng.random(shape) < 0.5)
        elif operand.domain is Domain.NONZERO:
            array = rng.uniform(1, 3, shape) * rng.choice([-1, 1], shape)
        elif type_.dtype.is_integer:
            array = rng.integers(-9, 10, shape)
        elif operand.domain is Domain.POSITIVE:
            array = np.exp(rng.uniform(-1, 1, shape))
        else:
            array = rng.standard_normal(shape)
            if record.opcode == "Tan":  # away from its poles, where differences say little
                array = np.clip(array, -1, 1)
        values[f"x{index}"] = np.asarray(array, type_.dtype.numpy)
    return values


def float_inputs(module: Module) -> list[str]:
    """Return the names of the floating-point inputs."""
    found = []
    for op in module.inputs:
        assert isinstance(op.result_type, TensorType)
        if op.result_type.dtype.is_float:
            found.append(str(op.attributes["name"]))
    return found


def directions(module: Module, names: Sequence[str], rng: np.random.Generator) -> Arrays:
    """Return a random tensor of the type of each input in ``names``."""
    types = {op.attributes["name"]: op.result_type for op in module.inputs}
    result = {}
    for name in names:
        type_ = types[name]
        assert isinstance(type_, TensorType)
        result[name] = np.asarray(rng.standard_normal(type_.extents), type_.dtype.numpy)
    return result


def with_outputs(module: Module, outputs: Sequence[int]) -> Module:
    """Return ``module`` with other outputs."""
    return module.with_body(replace(module.body, terminator=Return(tuple(outputs))))


def moved(values: Mapping[str, Array], direction: Mapping[str, Array], step: float) -> Arrays:
    """Return ``values + step * direction``."""
    return {name: v + step * direction[name] if name in direction else v for name, v in values.items()}


def finite_difference(
    module: Module, values: Mapping[str, Array], direction: Mapping[str, Array], step: float = 1e-5
) -> list[Array]:
    """Return the central difference of each output along ``direction``: zero where both are one infinity."""
    above = interpret(module, moved(values, direction, step))
    below = interpret(module, moved(values, direction, -step))
    return [
        np.subtract(a, b, out=np.zeros_like(a), where=a != b) / (2 * step)
        for a, b in zip(above, below, strict=True)
    ]


def inner(left: Sequence[Array], right: Sequence[Array]) -> float:
    """Return the inner product of two lists of tensors."""
    return float(sum(np.sum(a * b) for a, b in zip(left, right, strict=True)))
