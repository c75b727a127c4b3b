"""The custom calls that the compiler makes of a collective which goes on while other things are computed.

    %4 = CustomCall (%3) {target="mind.collective_start.v1", attrs="{...}"} : tensor<i64[]>
    %9 = CustomCall (%4) {target="mind.collective_finish.v1", attrs="{...}"} : tensor<f32[64, 64]>

The first copies its operand, and has the collective done; its result is a token. The second waits for that,
and gives the result. `mind_mlir.passes.overlap` makes both, when a program is compiled: no program has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.collectives.call import CollectiveCall, written
from mind_mlir.collectives.team import finish, start
from mind_mlir.ir.analysis.effects import FINISH, START
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.collectives import place_of
from mind_mlir.ops.custom_targets import CustomAttribute, CustomTarget
from mind_mlir.ops.foreign_calls import call_foreign
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.target.abi import COLLECTIVE_TARGET

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext

_DTYPES = {str(dtype): dtype for dtype in DType}
_MESH = {
    "mesh": CustomAttribute("String", "the mesh"),
    "axes": CustomAttribute("String", "the axes along which the ranks of a group differ"),
}
_SHAPE = CustomAttribute("I64Array", "the shape of the result of the collective")


def collective_target(name: str) -> CustomTarget | None:
    """Return the target called ``name`` where it is one of these, or None."""
    if name == START:
        return _start_target()
    return _finish_target() if name == FINISH else None


def _call_text(attributes: Mapping[str, Any], operand: TensorType, place: str) -> str:
    """Return a collective that is started, as the runtime is told of it."""
    own = {name: attributes[name] for name in ("mesh", "axes", "kind", "axis")}
    bucket = {name: attributes[name] for name in ("bucket", "members")}
    shape = tuple(attributes["shape"])
    return written(attributes["opcode"], own, operand.dtype, operand.extents, shape, place, **bucket)


@cache
def _start_target() -> CustomTarget:
    return CustomTarget(
        name=START,
        doc="begins a collective",
        attributes=FrozenDict(
            {
                "opcode": CustomAttribute("String", "the collective"),
                **_MESH,
                "kind": CustomAttribute("String", "how elements are joined"),
                "axis": CustomAttribute("I64", "the axis that is divided, if one is", -1),
                "shape": _SHAPE,
                "bucket": CustomAttribute("I64", "what those have in common that are done together"),
                "members": CustomAttribute("I64", "how many these are"),
            }
        ),
        types=lambda *_: TensorType(DType.SI64),
        evaluate=_evaluate_start,
        lower=_lower_start,
    )


def _evaluate_start(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    (operand,) = operands
    dtype = DType.from_numpy(operand.dtype)
    assert dtype is not None, "a value of a program has a dtype of ours"
    text = _call_text(
        attributes, TensorType(dtype, operand.shape), f"the start of bucket {attributes['bucket']}"
    )
    return np.asarray(start(CollectiveCall(text), operand))


def _lower_start(context: LoweringContext, attributes: Mapping[str, Any]) -> Any:
    text = _call_text(attributes, context.operand_types[0], place_of(context))
    return call_foreign(context, COLLECTIVE_TARGET, text)


@cache
def _finish_target() -> CustomTarget:
    return CustomTarget(
        name=FINISH,
        doc="gives the result of a collective that has begun",
        attributes=FrozenDict(
            {
                **_MESH,
                "dtype": CustomAttribute("String", "of the result", None, tuple(_DTYPES)),
                "shape": _SHAPE,
            }
        ),
        types=lambda _, attributes: _result_type(attributes),
        evaluate=_evaluate_finish,
        lower=_lower_finish,
    )


def _result_type(attributes: Mapping[str, Any]) -> TensorType:
    return TensorType(_DTYPES[attributes["dtype"]], tuple(attributes["shape"]))


def _evaluate_finish(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    type_ = _result_type(attributes)
    out: Array = np.empty(type_.extents, type_.dtype.numpy)
    finish(attributes["mesh"], int(operands[0]), out)
    return out


def _lower_finish(context: LoweringContext, attributes: Mapping[str, Any]) -> Any:
    type_ = _result_type(attributes)
    text = written(FINISH, {name: attributes[name] for name in _MESH}, type_.dtype, (), type_.extents, "")
    return call_foreign(context, COLLECTIVE_TARGET, text)
