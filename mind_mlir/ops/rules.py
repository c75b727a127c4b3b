"""The types of the rules of `mind_mlir.ops.opdef.OpDef`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.module import CoreOperation
    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.mlir.emission import EmitContext
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.dims import Dims, DimsContext
    from mind_mlir.ops.open_axes import OpenContext, OpenValue
    from mind_mlir.ops.region_flow import Forwarded
    from mind_mlir.ops.vjp import ExpandContext, VjpContext

TypeRule: TypeAlias = "Callable[[TypeContext], TensorType | tuple[TensorType, ...]]"
#: Returns an array, or a tuple of arrays where there are several results; the rule of an operation that runs
#: regions or functions is a generator (`mind_mlir.ops.contexts.Running`).
EvalRule: TypeAlias = "Callable[[EvalContext], Any]"
DerivativeRule: TypeAlias = "Callable[[VjpContext], Sequence[Any]]"
#: Appends the operation for open axes, and returns its results.
OpenRule: TypeAlias = "Callable[[OpenContext], list[OpenValue]]"
DimsRule: TypeAlias = "Callable[[DimsContext], Dims]"
FlowRule: TypeAlias = "Callable[[CoreOperation], Sequence[Forwarded]]"
NormalizeRule: TypeAlias = (
    "Callable[[Mapping[str, AttributeValue], TensorType], Mapping[str, AttributeValue]]"
)
TermsRule: TypeAlias = "Callable[[Sequence[tuple[int, ...]], Mapping[str, AttributeValue]], int]"
#: From the operands, of floats, and the complete attributes to what errors are relative to.
MagnitudeRule: TypeAlias = "Callable[[Sequence[Array], Mapping[str, Any]], Array]"
LinalgRule: TypeAlias = "Callable[[LoweringContext], Any]"
#: Returns the result, or where there are several, all of them.
StablehloRule: TypeAlias = "Callable[[StablehloContext], HloValue | Sequence[HloValue]]"
#: May return False: others cannot take the place of this use.
ExpandRule: TypeAlias = "Callable[[ExpandContext], bool]"
#: Returns the results of the operations that it emitted.
EmitRule: TypeAlias = "Callable[[EmitContext], list[Any]]"
