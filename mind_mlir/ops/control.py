"""Control flow: branches, loops and calls, as operations that run regions and functions.

A region is a block that ends in a `Yield`. It may read what is defined around its operation; what it defines
is visible only in it. In MLIR, these operations are upstream's: `scf.if`, `scf.while` and `func.call`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contexts import EvalContext, RuleViolation, Running, TypeContext
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.control_rules import (
    call_vjp,
    cond_vjp,
    emit_call,
    emit_cond,
    emit_while,
    stablehlo_cond,
    stablehlo_while,
)
from mind_mlir.ops.control_types import no_results, require
from mind_mlir.ops.loop_vjp import while_vjp
from mind_mlir.ops.opdef import (
    BOOL,
    EVERY,
    AttributeDef,
    ExampleModule,
    OpDef,
    OperandDef,
    RegionDef,
)
from mind_mlir.ops.open_control import branching, looping
from mind_mlir.ops.region_flow import cond_flow, while_flow

#: Functions that a message names.
_NAMED = 8

PREDICATE = TensorType(DType.I1)


def _cond_type(context: TypeContext) -> tuple[TensorType, ...]:
    (predicate,) = context.operands
    if predicate.rank:
        context.fail(
            "E3002",
            f"the predicate of Cond is a scalar, found one of rank {predicate.rank}",
            operand=0,
            notes=(f"operand 0 has type {predicate}",),
            help="read one element with Index, or reduce the tensor first",
            expected=0,
            found=predicate.rank,
        )
    then, otherwise = context.regions
    for region, name in ((then, "then"), (otherwise, "else")):
        require(context, f"^{name} of Cond", "parameter", (), region.parameters, region.parameter_location)
    if not then.yields:
        no_results(context, "^then of Cond yields nothing", then.location)
    expected = _agreed(context, then.yields, otherwise.yields)
    for region, name in ((then, "then"), (otherwise, "else")):
        require(context, f"^{name} of Cond", "yield", expected, region.yields, region.yield_location)
    context.stop_if_reported()
    return expected


def _cond(context: EvalContext) -> Running:
    (predicate,) = context.operands
    return (yield (0 if predicate else 1), ())


def _agreed(
    context: TypeContext, first: tuple[TensorType, ...], second: tuple[TensorType, ...]
) -> tuple[TensorType, ...]:
    """Return what two places say of the results, or where they differ what is declared."""
    if first == second or context.declared is None:
        return first
    return context.declared_results or (context.declared,)


def _while_type(context: TypeContext) -> tuple[TensorType, ...]:
    condition, body = context.regions
    where = condition.parameter_location
    require(context, "^condition of While", "parameter", context.operands, condition.parameters, where)
    context.stop_if_reported()
    if not condition.yields or condition.yields[0] != PREDICATE:
        found = condition.yields[0] if condition.yields else "nothing"
        context.report(
            "E2001" if condition.yields else "E2007",
            f"^condition of While yields a predicate of type {PREDICATE} first, found {found}",
            location=condition.yield_location(0) or condition.location,
            help="yield whether to go on, then the values for ^body",
            function="While",
            expected=str(PREDICATE),
            found=str(found),
        )
        raise RuleViolation
    carried = condition.yields[1:]
    if not carried:
        no_results(context, "^condition of While yields nothing but its predicate", condition.location)
    expected = _agreed(context, carried, body.parameters)
    where = condition.yield_location
    require(context, "^condition of While", "yield", (PREDICATE, *expected), condition.yields, where)
    require(context, "^body of While", "parameter", expected, body.parameters, body.parameter_location)
    require(context, "^body of While", "yield", context.operands, body.yields, body.yield_location)
    context.stop_if_reported()
    return expected


def _while(context: EvalContext) -> Running:
    values: Sequence[Any] = context.operands
    while True:
        more, *carried = yield 0, values
        if not more:
            return tuple(carried)
        values = yield 1, carried


def _call_type(context: TypeContext) -> tuple[TensorType, ...]:
    name: str = context.attributes["callee"]
    if name not in context.functions:
        names = [f"@{known}" for known in islice(context.functions, _NAMED)]
        known = ", ".join([*names, "..."] if len(context.functions) > _NAMED else names) or "none"
        context.fail(
            "E4121",
            f"there is no function @{name}",
            attribute="callee",
            help=f"the functions of the module are: {known}",
            callee=name,
        )
    signature = context.functions[name]
    if signature is None:
        raise RuleViolation
    require(context, f"a call of @{name}", "argument", signature.parameters, context.operands, None)
    if not signature.results:
        no_results(context, f"@{name} returns nothing", None)
    context.stop_if_reported()
    return signature.results


def _call(context: EvalContext) -> Running:
    return (yield context.attributes["callee"], context.operands)


_CHOOSE = """\
func @main(%p: tensor<i1[]>, %x: tensor<f32[3]>, %y: tensor<f32[3]>) -> (tensor<f32[3]>) {
^entry:
  %r = Cond (%p) : tensor<f32[3]> {
  ^then:
    %s = Add (%x, %y) : tensor<f32[3]>
    yield %s
  ^else:
    yield %x
  }
  return %r
}
"""
_NESTED = """\
func @main(%p: tensor<i1[]>, %q: tensor<i1[]>, %x: tensor<i64[]>) -> (tensor<i64[]>, tensor<i64[]>) {
^entry:
  %a, %b = Cond (%p) : (tensor<i64[]>, tensor<i64[]>) {
  ^then:
    %c = Cond (%q) : tensor<i64[]> {
    ^then:
      yield %x
    ^else:
      %n = Neg (%x) : tensor<i64[]>
      yield %n
    }
    yield %c, %x
  ^else:
    %zero = ConstI64 {value=0} : tensor<i64[]>
    yield %zero, %x
  }
  return %a, %b
}
"""
_DOUBLE = """\
func @main(%x: tensor<f64[2]>, %n: tensor<i64[]>) -> (tensor<f64[2]>, tensor<i64[]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %y, %i = While (%x, %zero) : (tensor<f64[2]>, tensor<i64[]>) {
  ^condition(%a: tensor<f64[2]>, %j: tensor<i64[]>):
    %ten = ConstI64 {value=10} : tensor<i64[]>
    %m = Minimum (%n, %ten) : tensor<i64[]>
    %more = Compare (%j, %m) {op=Less} : tensor<i1[]>
    yield %more, %a, %j
  ^body(%b: tensor<f64[2]>, %k: tensor<i64[]>):
    %sum = Add (%b, %b) : tensor<f64[2]>
    %one = ConstI64 {value=1} : tensor<i64[]>
    %next = Add (%k, %one) : tensor<i64[]>
    yield %sum, %next
  }
  return %y, %i
}
"""
_CHANGING = """\
func @main(%x: tensor<f32[]>) -> (tensor<f32[4]>) {
^entry:
  %r = While (%x) : tensor<f32[4]> {
  ^condition(%a: tensor<f32[]>):
    %one = ConstF32 {value=1.0} : tensor<f32[]>
    %more = Compare (%a, %one) {op=Greater} : tensor<i1[]>
    %row = BroadcastTo (%a) {result_shape=[4]} : tensor<f32[4]>
    yield %more, %row
  ^body(%b: tensor<f32[4]>):
    %first = Index (%b) {indices=[0]} : tensor<f32[]>
    %half = ConstF32 {value=0.5} : tensor<f32[]>
    %c = Mul (%first, %half) : tensor<f32[]>
    yield %c
  }
  return %r
}
"""
_CALLS = """\
func @main(%x: tensor<f32[2]>, %y: tensor<f32[2]>) -> (tensor<f32[2]>, tensor<f32[2]>) {
^entry:
  %s, %d = call @both (%x, %y) : (tensor<f32[2]>, tensor<f32[2]>)
  return %s, %d
}

internal func @both(%a: tensor<f32[2]>, %b: tensor<f32[2]>) -> (tensor<f32[2]>, tensor<f32[2]>) {
^entry:
  %s = Add (%a, %b) : tensor<f32[2]>
  %d = call @less (%a, %b) : tensor<f32[2]>
  return %s, %d
}

internal func @less(%a: tensor<f32[2]>, %b: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %d = Sub (%a, %b) : tensor<f32[2]>
  return %d
}
"""
_EXTENSION = "In text, only modules of profile core-functions have it; blocks that branch say the same."

OPERATIONS = (
    OpDef(
        opcode="Cond",
        summary="Runs one of two regions.",
        description="Where `pred`, a scalar (E3002), is true, the results are what region `then` "
        "yields, else what `else` yields. The regions have no parameters and read what is defined around "
        "the operation; the one that is not chosen does not run. Both yield as many values as there are "
        "results, at least one (E4122, E2007), of the results' types (E2001).",
        spec="ptir-v0.4.md, Control flow (regions)",
        operands=(OperandDef("pred", BOOL),),
        regions=(
            RegionDef("then", "what happens where the predicate is true"),
            RegionDef("else", "what happens where it is not"),
        ),
        type_rule=_cond_type,
        evaluate=_cond,
        open_axes=branching,
        derivative=cond_vjp,
        flow=cond_flow,
        in_numpy="mind_mlir.cond",
        lower=None,
        stablehlo=stablehlo_cond,
        upstream="scf.if",
        emit=emit_cond,
        choices=(
            _EXTENSION,
            "Regions have no parameters: a value from outside is read where it is needed.",
        ),
        extension=True,
        contract=Contract(
            "Cond",
            fields=(
                Field("true_region", FieldKind.REGION, attribute="then"),
                Field("false_region", FieldKind.REGION, attribute="else"),
            ),
        ),
        programs=(ExampleModule(_CHOOSE), ExampleModule(_NESTED, "one inside of another; two results")),
    ),
    OpDef(
        opcode="While",
        summary="Runs a region again and again, while another one says so.",
        description="Region `condition` is given the values `init` and yields a predicate and values. Where "
        "the predicate is false, these values are the results; else region `body` is given them, and what it "
        "yields is given to `condition` again. So parameters of `condition` and yields of `body` have the "
        "types of `init`, parameters of `body` and what `condition` yields after its predicate those of the "
        "results, of which there is at least one (E2001, E2007, E4122). Both regions also read what is "
        "defined around the operation.",
        spec="ptir-v0.4.md, Control flow (regions)",
        operands=(OperandDef("init", EVERY, variadic=True),),
        regions=(
            RegionDef("condition", "yields whether to go on, a scalar i1, and the values to go on with"),
            RegionDef("body", "yields the values for the next test"),
        ),
        type_rule=_while_type,
        evaluate=_while,
        open_axes=looping,
        derivative=while_vjp,
        flow=while_flow,
        in_numpy="mind_mlir.while_loop",
        lower=None,
        stablehlo=stablehlo_while,
        upstream="scf.while",
        emit=emit_while,
        same_dtype=False,
        choices=(
            _EXTENSION,
            "The types of the results may differ from those of `init`, as in MLIR's `scf.while`.",
            "A loop that does not end runs until it is interrupted.",
        ),
        extension=True,
        contract=Contract(
            "While",
            fields=(
                Field("cond_region", FieldKind.REGION, attribute="condition"),
                Field("body_region", FieldKind.REGION, attribute="body"),
            ),
        ),
        programs=(
            ExampleModule(_DOUBLE, "a counted loop, which may run 0 times"),
            ExampleModule(_CHANGING, "results of other types than the values that are carried"),
        ),
    ),
    OpDef(
        opcode="Call",
        summary="Calls a function of the module.",
        description="The results are those of function `callee`, which exists (E4121), takes values of the "
        "operands' types (E2001, E2007) and returns at least one value (E4122). In text: `%r = call @callee "
        "(%arg, ...) : <type>`, or `%q, %r = call ... : (<type>, <type>)`.",
        spec="core-ir-page.md, IR structure",
        operands=(OperandDef("args", EVERY, variadic=True),),
        attributes=(AttributeDef("callee", AttrKind.STRING, "the name of the function, without the @"),),
        type_rule=_call_type,
        evaluate=_call,
        derivative=call_vjp,
        in_numpy="a call of a function that mind_mlir.jit has been given",
        runs_others=True,
        lower=None,
        stablehlo=lambda context: context.call(context.attributes["callee"]),
        upstream="func.call",
        emit=emit_call,
        same_dtype=False,
        choices=("Exported functions may be called as well as internal ones; recursion is an error.",),
        extension=True,
        programs=(ExampleModule(_CALLS, "two results; calls in what is called"),),
    ),
)
