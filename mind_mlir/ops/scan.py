"""Scan: a loop over the leading axis of its inputs, whose outputs are stacked.

In structured form, before differentiation and lowering, it is a `While` that counts (ptir-v0.4.md, Control
flow): `expand_scan` says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.control_types import no_results, require
from mind_mlir.ops.loop_state import INDEX, put, take
from mind_mlir.ops.opdef import EVERY, AttributeDef, ExampleModule, OpDef, OperandDef, RegionDef
from mind_mlir.ops.open_control import scanning
from mind_mlir.ops.region_flow import scan_flow

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import EvalContext, Running, TypeContext
    from mind_mlir.ops.vjp import ExpandContext, VjpContext


def _scan_type(context: TypeContext) -> tuple[TensorType, ...]:
    carries, outputs = context.attributes["carry_count"], context.attributes["scan_output_count"]
    (body,) = context.regions
    for name, count, most in (
        ("carry_count", carries, len(context.operands) - 1),
        ("scan_output_count", outputs, len(body.yields)),
    ):
        if not 0 <= count <= most:
            what = (
                "one operand or more is scanned" if name == "carry_count" else "^body yields no more values"
            )
            context.fail(
                "E2007",
                f"{name} of Scan is {count}, expected 0 to {max(most, 0)}",
                attribute=name,
                notes=(f"Scan has {len(context.operands)} operands", what),
                help="the operands are the carried values, then the inputs that are scanned",
                function="Scan",
                expected=max(most, 0),
                found=count,
            )
    carried, scanned = context.operands[:carries], context.operands[carries:]
    _check_scanned(context, carries, scanned)
    slices = tuple(type_.with_shape(type_.shape[1:]) for type_ in scanned)
    require(
        context, "^body of Scan", "parameter", (*carried, *slices), body.parameters, body.parameter_location
    )
    context.stop_if_reported()
    each = body.yields[len(body.yields) - outputs :]
    require(context, "^body of Scan", "yield", (*carried, *each), body.yields, body.yield_location)
    context.stop_if_reported()
    if not body.yields:
        no_results(context, "^body of Scan yields nothing", body.location)
    length = scanned[0].shape[0]
    return (*carried, *(type_.with_shape((length, *type_.shape)) for type_ in each))


def _check_scanned(context: TypeContext, first: int, scanned: Sequence[TensorType]) -> None:
    for index, type_ in enumerate(scanned, start=first):
        facts: dict[str, Any] = {"operand": index, "notes": (f"operand {index} has type {type_}",)}
        if not type_.rank:
            message = "an input that Scan scans has a leading axis, found one of rank 0"
            hint = "read it in ^body as a carried value, or give it an axis"
            context.report("E3002", message, help=hint, expected=1, found=0, **facts)
        elif scanned[0].rank and type_.shape[0] != scanned[0].shape[0]:
            extents = (scanned[0].shape[0], type_.shape[0])
            message = f"the inputs that Scan scans are of one length, found {extents[0]} and {extents[1]}"
            hint = "take as many slices of each: Slice shortens"
            context.report("E3003", message, help=hint, dimension=0, extents=extents, **facts)
    context.stop_if_reported()


def _scan(context: EvalContext) -> Running:
    carries = context.attributes["carry_count"]
    carried, scanned = context.operands[:carries], context.operands[carries:]
    stacks = [np.empty(type_.extents, type_.dtype.numpy) for type_ in context.result_types[carries:]]
    for step in range(len(scanned[0])):
        found = yield 0, (*carried, *(np.asarray(array[step]) for array in scanned))
        carried = found[:carries]
        for stack, value in zip(stacks, found[carries:], strict=True):
            stack[step] = value
    return (*carried, *stacks)


def expand_scan(context: ExpandContext) -> bool:
    """Append a `While` that counts to the length: each step reads its slices, and writes into the stacks.

    A stack begins as zeros, all of which are written over. What is scanned and stacked lies flat meanwhile.
    """
    builder, carries = context.builder, context.attributes["carry_count"]
    carried, scanned = context.operands[:carries], context.operands[carries:]
    stacked = context.results[carries:]
    length = scanned[0].type.extents[0]
    if not length:
        _no_steps(context, carried, stacked)
        return True
    sources = [_reshaped(context, value, (value.type.element_count,)) for value in scanned]
    stacks = [_zeros(context, (result.type.element_count,), result.type.dtype) for result in stacked]
    initial = [builder.constant(0, DType.SI64), *carried, *stacks]
    with builder.region([value.type for value in initial]) as condition:
        end = builder.constant(length, DType.SI64)
        more = builder.emit("Compare", condition.parameters[0], end, op="Less")
        condition.yield_([more, *condition.parameters])
    with builder.region([INDEX, *(stack.type for stack in stacks)]) as body:
        index, *stacks = body.parameters
        (given,) = context.regions
        parameters = context.parameters(given.parameters)
        for source, value in zip(sources, parameters[carries:], strict=True):
            take(builder, source, index, value.type, defines=value)
        builder.operations += given.operations
        each = [result.type.with_shape(result.type.shape[1:]) for result in stacked]
        yielded = context.yielded(given, [*(value.type for value in carried), *each])
        written = [
            put(builder, stack, value, index) for stack, value in zip(stacks, yielded[carries:], strict=True)
        ]
        body.parameters = [index, *parameters[:carries], *stacks]
        following = builder.emit("Add", index, builder.constant(1, DType.SI64))
        body.yield_([following, *yielded[:carries], *written])
    ends = [builder.fresh(stack.type) for stack in stacks]
    defines = [builder.fresh(INDEX), *context.results[:carries], *ends]
    builder.emit_all("While", *initial, regions=(condition, body), defines=defines)
    for stack, result in zip(ends, stacked, strict=True):
        _reshaped(context, stack, result.type.extents, result)
    return True


def _no_steps(context: ExpandContext, carried: Sequence[Value], stacked: Sequence[Value]) -> None:
    """Append the results where there are no steps: the initial carries, and empty stacks."""
    for value, result in zip(carried, context.results, strict=False):
        _reshaped(context, value, value.type.extents, result)
    for result in stacked:
        _zeros(context, result.type.extents, result.type.dtype, result)


def _reshaped(
    context: ExpandContext, value: Value, shape: tuple[int, ...], result: Value | None = None
) -> Value:
    defines = [] if result is None else [result]
    return context.builder.emit_all("Reshape", value, new_shape=shape, defines=defines)[0]


def _zeros(
    context: ExpandContext, shape: tuple[int, ...], dtype: DType, result: Value | None = None
) -> Value:
    zero = context.builder.constant(0, dtype)
    defines = [] if result is None else [result]
    return context.builder.emit_all("BroadcastTo", zero, result_shape=shape, defines=defines)[0]


def _scan_vjp(context: VjpContext) -> NoReturn:
    raise AssertionError(f"{context.result}: no Scan is left where derivatives are taken")


_SUMS = """\
func @main(%x: tensor<f32[5, 2]>, %s: tensor<f32[2]>) -> (tensor<f32[2]>, tensor<f32[5, 2]>) {
^entry:
  %last, %sums = Scan (%s, %x) {carry_count=1, scan_output_count=1} : (tensor<f32[2]>, tensor<f32[5, 2]>) {
  ^body(%c: tensor<f32[2]>, %row: tensor<f32[2]>):
    %sum = Add (%c, %row) : tensor<f32[2]>
    yield %sum, %sum
  }
  return %last, %sums
}
"""
_SCALARS = """\
func @main(%x: tensor<f64[7]>, %y: tensor<f64[7]>, %n: tensor<i64[]>) -> (tensor<i64[]>, tensor<i1[7]>) {
^entry:
  %count, %less = Scan (%n, %x, %y) {carry_count=1, scan_output_count=1} : (tensor<i64[]>, tensor<i1[7]>) {
  ^body(%c: tensor<i64[]>, %a: tensor<f64[]>, %b: tensor<f64[]>):
    %one = ConstI64 {value=1} : tensor<i64[]>
    %next = Add (%c, %one) : tensor<i64[]>
    %is = Compare (%a, %b) {op=Less} : tensor<i1[]>
    yield %next, %is
  }
  return %count, %less
}
"""
_OUTPUTS = """\
func @main(%x: tensor<f32[3, 2, 2]>) -> (tensor<f32[3, 2, 2]>) {
^entry:
  %r = Scan (%x) {carry_count=0, scan_output_count=1} : tensor<f32[3, 2, 2]> {
  ^body(%a: tensor<f32[2, 2]>):
    %t = Transpose (%a) {permutation=[1, 0]} : tensor<f32[2, 2]>
    yield %t
  }
  return %r
}
"""
_WITHIN = """\
func @main(%x: tensor<f32[3, 4]>, %s: tensor<f32[]>) -> (tensor<f32[]>, tensor<f32[3, 4]>) {
^entry:
  %t, %r = Scan (%s, %x) {carry_count=1, scan_output_count=1} : (tensor<f32[]>, tensor<f32[3, 4]>) {
  ^body(%c: tensor<f32[]>, %row: tensor<f32[4]>):
    %d, %q = Scan (%c, %row) {carry_count=1, scan_output_count=1} : (tensor<f32[]>, tensor<f32[4]>) {
    ^body(%e: tensor<f32[]>, %a: tensor<f32[]>):
      %p = Sub (%a, %e) : tensor<f32[]>
      yield %p, %e
    }
    yield %d, %q
  }
  return %t, %r
}
"""

OPERATIONS = (
    OpDef(
        opcode="Scan",
        summary="Runs a region for each slice of its inputs, and stacks what it gives.",
        description="The first `carry_count` operands are carried from step to step; the others, one or more "
        "(E2007), have a leading axis (E3002) of one length (E3003), of which each step is given a slice. "
        "Region `body` takes the carried values and the slices, without that axis, and yields the carried "
        "values of the next step and `scan_output_count` outputs (E2007, E2001). The results are the carried "
        "values after the last step, then the outputs of all steps, stacked along a leading axis; there is "
        "one result at least (E4122). The region reads what is defined around the operation, too.",
        spec="ptir-v0.4.md, Control flow (regions)",
        operands=(OperandDef("values", EVERY, variadic=True),),
        attributes=(
            AttributeDef("carry_count", AttrKind.I64, "how many operands are carried"),
            AttributeDef("scan_output_count", AttrKind.I64, "how many outputs each step has"),
        ),
        regions=(RegionDef("body", "yields the values for the next step, and the outputs of this one"),),
        type_rule=_scan_type,
        evaluate=_scan,
        open_axes=scanning,
        derivative=_scan_vjp,
        flow=scan_flow,
        in_numpy="mind_mlir.scan",
        lower=None,
        upstream="scf.for",
        expand=expand_scan,
        same_dtype=False,
        choices=(
            "A scan of length 0 has empty stacks, and the initial values for the carried ones.",
            "The length is that of the inputs, of which there is one at least: a scan of none has no length.",
            "In structured form it is a While that counts, which is differentiated and lowered; so its "
            "derivative is that of While.",
        ),
        extension=True,
        contract=Contract(
            "Scan",
            fields=(
                Field("body_region", FieldKind.REGION, attribute="body"),
                Field("carry_count", FieldKind.INTEGER),
                Field("scan_output_count", FieldKind.INTEGER),
            ),
        ),
        programs=(
            ExampleModule(_SUMS, "running sums"),
            ExampleModule(_SCALARS, "scalars; several inputs, and outputs of another dtype"),
            ExampleModule(_OUTPUTS, "nothing is carried"),
            ExampleModule(_WITHIN, "one in another"),
        ),
    ),
)
