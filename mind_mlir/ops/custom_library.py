"""The custom calls that ship with the compiler: two made of operations, and one for each operation.

PTIR's way to say what it does not have is a custom call. Each operation with operands, without regions, and
with attributes that a custom call can have, has a target of its mnemonic, such as
``mind.core.population_count.v1``: types, numpy rule and attributes are the record's, and it expands to the
operation itself. So a program can say all that Core IR can.

`mind_mlir.register_custom_call` is the function of this module, so that nobody takes the names that ship.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.profiles import ANY_PROFILE
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contexts import EvalContext, TypeContext
from mind_mlir.ops.contract import Tagged
from mind_mlir.ops.custom_targets import CustomAttribute, CustomTarget
from mind_mlir.ops.custom_targets import (
    register_custom_call as register_custom_call,  # noqa: PLC0414 -- as `mind_mlir` has it from here
)
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.registry import by_mnemonic
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import AttributeDef, OpDef
    from mind_mlir.ops.vjp import Appends


_FLOATS = (DType.F32, DType.F64)


def _float_type(type_: TensorType) -> TensorType:
    if type_.dtype not in _FLOATS:
        raise ValueError(f"their dtype must be f32 or f64, not {type_.dtype}")
    return type_


def _filled(builder: Appends, value: float, like: Value) -> Value:
    """Append a tensor of the type of ``like`` that holds one number."""
    scalar = builder.constant(value, like.type.dtype)
    return builder.emit("BroadcastTo", scalar, result_shape=like.shape) if like.shape else scalar


# mind.gelu.v1


def _gelu_type(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    if len(operands) != 1:
        raise ValueError(f"there must be one, not {len(operands)}")
    return _float_type(operands[0])


def _evaluate_gelu(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    (x,) = operands
    wide = x.astype(np.float64)
    if attributes["approximate"]:
        inner = np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))
        return np.asarray(0.5 * wide * (1 + inner)).astype(x.dtype)
    complement = np.frompyfunc(math.erfc, 1, 1)(-wide * math.sqrt(0.5))
    return np.asarray(0.5 * wide * np.asarray(complement, np.float64)).astype(x.dtype)


def _expand_gelu(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
    (x,) = operands

    def times(value: Value, factor: float) -> Value:
        return builder.emit("Mul", value, _filled(builder, factor, value))

    if attributes["approximate"]:
        cube = builder.emit("Mul", builder.emit("Mul", x, x), x)
        inner = times(builder.emit("Add", x, times(cube, 0.044715)), math.sqrt(2 / math.pi))
        inner = builder.emit("Tanh", inner)
    else:
        inner = builder.emit("Erf", times(x, math.sqrt(0.5)))
    return builder.emit("Mul", times(x, 0.5), builder.emit("Add", inner, _filled(builder, 1, x)))


# mind.rms_norm.v1


def _rms_norm_type(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    if len(operands) != 2:
        raise ValueError(f"there must be two, x and gamma, not {len(operands)}")
    x, gamma = operands
    if x.rank == 0:
        raise ValueError("x must have a last axis")
    if gamma.dtype is not x.dtype or gamma.shape != x.shape[-1:]:
        raise ValueError(f"gamma must be {x.with_shape(x.shape[-1:])}")
    return _float_type(x)


def _evaluate_rms_norm(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    x, gamma = operands
    square = np.mean(x * x, axis=-1, keepdims=True, dtype=x.dtype)
    epsilon = np.asarray(attributes["epsilon"], x.dtype)
    return np.asarray(x / np.sqrt(square + epsilon) * gamma)


def _expand_rms_norm(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
    x, gamma = operands
    total = builder.emit("Sum", builder.emit("Mul", x, x), axes=(-1,), keepdims=True)
    square = builder.emit("Mul", total, _filled(builder, 1 / max(x.shape[-1], 1), total))
    moved = builder.emit("Add", square, _filled(builder, attributes["epsilon"], square))
    scale = builder.emit("BroadcastTo", builder.emit("Rsqrt", moved), result_shape=x.shape)
    weight = builder.emit("BroadcastTo", gamma, result_shape=x.shape)
    return builder.emit("Mul", builder.emit("Mul", x, scale), weight)


# Targets that are operations of records


_NAME = re.compile(r"mind\.core\.([a-z0-9_]+)\.v1", re.ASCII)


def record_target(name: str) -> CustomTarget | None:
    """Return the target called ``name`` that is an operation of a record, or None."""
    match = _NAME.fullmatch(name)
    record = None if match is None else by_mnemonic().get(match[1])
    return None if record is None or not _is_callable(record) else _target(record.mnemonic)


def called_record(name: str) -> OpDef | None:
    """Return the record that a custom call of ``name`` stands for, or None."""
    return None if record_target(name) is None else by_mnemonic()[_NAME.sub(r"\1", name)]


def call_of(record: OpDef, attributes: Mapping[str, AttributeValue]) -> Mapping[str, Any] | None:
    """Return the fields of a custom call that says an operation, or None where none can.

    Args:
        record: Of the operation.
        attributes: Its attributes, complete.
    """
    if not _is_callable(record):
        return None
    tagged = {
        each.name: Tagged(_kind(each) or "", _plain(attributes[each.name])) for each in record.attributes
    }
    return FrozenDict({"target": f"mind.core.{record.mnemonic}.v1", "attrs": FrozenDict(tagged)})


def attributes_of(record: OpDef, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an operation from those of a call of it."""
    dtypes = {each.name for each in record.attributes if each.kind is AttrKind.DTYPE}
    return {name: DType(value) if name in dtypes else value for name, value in given.items()}


def _is_callable(record: OpDef) -> bool:
    if record.contract is not None or not record.in_dialect or record.regions or not record.operands:
        return False
    return all(_kind(each) is not None for each in record.attributes)


def _kind(definition: AttributeDef) -> str | None:
    kinds = (
        (AttrKind.BOOL, "Bool"),
        (AttrKind.I64, "I64"),
        (AttrKind.F64, "F64"),
        (AttrKind.I64_LIST, "I64Array"),
        (AttrKind.STRING, "String"),
        (AttrKind.ENUM, "String"),
        (AttrKind.DTYPE, "String"),
    )
    return next((name for kind, name in kinds if definition.kind is kind), None)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, DType) else value


@cache
def _target(mnemonic: str) -> CustomTarget:
    record = by_mnemonic()[mnemonic]

    def types(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> Sequence[TensorType]:
        context = TypeContext(
            record.opcode, 0, tuple(operands), attributes_of(record, attributes), profile=ANY_PROFILE
        )
        found = infer_types(record, context)
        if found is None:
            raise ValueError(context.diagnostics[0].message)
        return found

    def evaluate(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Any:
        given = tuple(operands)
        dtypes = [DType.from_numpy(each.dtype) for each in given]
        read = [TensorType(d, each.shape) for d, each in zip(dtypes, given, strict=True) if d is not None]
        results = tuple(types(read, attributes))
        complete = attributes_of(record, attributes)
        context = EvalContext(record.opcode, record.opcode, given, complete, results[0], None, results)
        return record.evaluate(context)

    def expand(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Sequence[Value]:
        return builder.emit_all(record.opcode, *operands, **attributes_of(record, attributes))

    attributes = {
        each.name: CustomAttribute(_kind(each) or "", each.doc, _plain(each.default), each.choices)
        for each in record.attributes
    }
    return CustomTarget(
        name=f"mind.core.{mnemonic}.v1",
        doc=record.summary,
        attributes=FrozenDict(attributes),
        types=types,
        evaluate=evaluate,
        expand=expand,
    )


def _register() -> None:
    register_custom_call(
        "mind.gelu.v1",
        types=_gelu_type,
        evaluate=_evaluate_gelu,
        expand=_expand_gelu,
        attributes={
            "approximate": CustomAttribute("Bool", "whether tanh takes the place of erf", default=False)
        },
        doc="the Gaussian error linear unit of one tensor of f32 or f64: x times the normal CDF of x",
    )
    register_custom_call(
        "mind.rms_norm.v1",
        types=_rms_norm_type,
        evaluate=_evaluate_rms_norm,
        expand=_expand_rms_norm,
        attributes={"epsilon": CustomAttribute("F64", "what is added to the mean square", default=1e-5)},
        doc="x / sqrt(mean(x^2) + epsilon) * gamma along the last axis; gamma has the extent of that axis",
    )


_register()
