"""Operations that run regions and functions, and those that do nothing to values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.lapack import lapack_call
from mind_mlir.languages.stablehlo.rules.types import flat_types, parts_of
from mind_mlir.languages.stablehlo.rules.use import Rule, Use

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value

#: Calls of this are StopGradient; `from_jax` writes them.
STOP_GRADIENT = "mind_mlir.stop_gradient"
#: Calls of this say what jax has assumed of shapes.
_ASSERTION = "shape_assertion"
#: Calls of these only say where values are to be.
_NOTHING = (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "annotate_device_placement",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
)


def _while(use: Use) -> Sequence[Value]:
    if not use.operands:
        use.refuse("a loop without values")
    types = [value.type for value in use.operands]
    with use.builder.region(types) as condition:
        (go_on,) = use.imports.block(use.body(0), condition.parameters)
        condition.yield_([go_on, *condition.parameters])
    with use.builder.region(types) as body:
        body.yield_(use.imports.block(use.body(1), body.parameters))
    return use.builder.emit_all("While", *use.operands, regions=(condition, body), source=use.source)


def _chosen(use: Use, predicate: Value, then: int, otherwise: int) -> Sequence[Value]:
    if not use.has_results:
        return ()
    regions = []
    for index in (then, otherwise):
        with use.builder.region() as region:
            region.yield_(use.imports.block(use.body(index), ()))
        regions.append(region)
    return use.builder.emit_all("Cond", predicate, regions=tuple(regions), source=use.source)


def _case(use: Use) -> Sequence[Value]:
    """The branch that an index names, or the last one: a choice of two after the other."""
    if not use.has_results:
        return ()
    return _branch(use, 0, len(use.operation.regions))


def _branch(use: Use, number: int, count: int) -> Sequence[Value]:
    if number == count - 1:
        return use.imports.block(use.body(number), ())
    wanted = use.emit("Compare", use.operands[0], use.number(number, DType.SI32), op="Equal")
    with use.builder.region() as then:
        then.yield_(use.imports.block(use.body(number), ()))
    with use.builder.region() as otherwise:
        otherwise.yield_(_branch(use, number + 1, count))
    return use.builder.emit_all("Cond", wanted, regions=(then, otherwise), source=use.source)


def _custom_call(use: Use) -> Sequence[Value]:
    target = str(use.attribute("call_target_name").value)
    if target == STOP_GRADIENT:
        return [use.emit("StopGradient", each) for each in use.operands]
    if target == _ASSERTION:
        known = use.imports.folded(use.operands[0]) if use.operands else None
        if known is None or not known.all():
            use.refuse("an assertion that is not known to hold before the program runs")
        return ()
    if (found := lapack_call(use, target)) is not None:
        return found
    if target not in _NOTHING:
        use.refuse(f"the target {target}")
    return use.operands


def _same(use: Use) -> Sequence[Value]:
    return use.operands


# Tuples are the tensors that they are made of, one after the other, and tokens are nothing.


def _tuple_element(use: Use) -> Sequence[Value]:
    parts = [flat_types(each) for each in parts_of(use.operation.operands[0].type)]
    index = use.integer("index")
    first = sum(len(part) for part in parts[:index])
    return use.operands[first : first + len(parts[index])]


def _no_values(use: Use) -> Sequence[Value]:
    return ()


RULES: Mapping[str, Rule] = {
    "func.call": Rule(lambda use: use.imports.call(str(use.attribute("callee").value), use.operands)),
    "stablehlo.after_all": Rule(_no_values),
    "stablehlo.case": Rule(_case),
    "stablehlo.composite": Rule(
        lambda use: use.imports.call(str(use.attribute("decomposition").value), use.operands)
    ),
    "stablehlo.create_token": Rule(_no_values),
    "stablehlo.custom_call": Rule(_custom_call),
    "stablehlo.get_tuple_element": Rule(_tuple_element),
    "stablehlo.if": Rule(lambda use: _chosen(use, use.operands[0], 0, 1)),
    "stablehlo.optimization_barrier": Rule(_same, lifts=True),
    "stablehlo.tuple": Rule(_same),
    "stablehlo.while": Rule(_while),
}
