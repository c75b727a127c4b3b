"""The values that loops of traced functions carry from step to step, and the steps as regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.runtime.staged_values import WeakType
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.pytrees import Form, flatten
from mind_mlir.tracing.conversion import as_value, node_of, type_of
from mind_mlir.tracing.places import refuse
from mind_mlir.tracing.promotion import LatticeNode, joined, node_of_number

if TYPE_CHECKING:
    from mind_mlir.builders.region import Region
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray
    from mind_mlir.tracing.trace import Trace


@dataclass(slots=True)
class Carried:
    """A value that a loop carries.

    Attributes:
        leaf: What it is first.
        type: Its type in all steps.
        weak: Whether it is a number that takes the dtype of the array it meets.
        name: What messages call it.
    """

    leaf: Any
    type: TensorType
    weak: bool
    name: str

    @classmethod
    def of(cls, leaf: Any, name: str) -> Carried:
        """Return a value as it is before the first step."""
        return cls(leaf, *typed(leaf), name)

    def value(self, trace: Trace) -> Value:
        """Return what it is first, of the type that it has in all steps."""
        return as_value(trace, self.leaf, self.type.dtype)

    def takes(self, leaf: Any) -> bool:
        """Take the dtype of ``leaf``, which is what follows on a number; return whether that is another one.

        So a loop that begins with 0.0 and adds numbers of f32 carries f32.
        """
        now = node_of_number(self.type.dtype) if self.weak else LatticeNode(self.type.dtype)
        node = joined([now, node_of(leaf)])
        if not self.weak or node is None or node == now or type_of(leaf).shape != self.type.shape:
            return False
        self.type, self.weak = self.type.with_dtype(node.dtype), node.weak
        return True


def first(leaves: Sequence[Any], form: Form) -> list[Carried]:
    """Return what is carried first."""
    return [Carried.of(leaf, name) for leaf, name in zip(leaves, form.names("init"), strict=True)]


def refuse_nothing(what: str) -> None:
    """Refuse what has no arrays to work on."""
    refuse(
        "E2324", f"{what} no arrays", "without arrays there is nothing to compute: call the function itself"
    )


def typed(leaf: Any) -> tuple[TensorType, bool]:
    """Return the type of a leaf, and whether it is a number that takes another dtype."""
    return type_of(leaf), node_of(leaf).weak


def while_of(
    trace: Trace,
    carried: list[Carried],
    goes_on: Callable[[list[TracedArray]], Value],
    step: Callable[[list[TracedArray]], list[Any]],
    what: str,
) -> list[TracedArray]:
    """Append a loop, and return what is carried last."""
    if not carried:
        refuse_nothing("while_loop carries")
    body, yields = settled(trace, carried, [], step, what)
    with body:
        body.yield_(conformed(trace, carried, yields))
    with trace.builder.region([each.type for each in carried]) as condition:
        values = condition.parameters
        arguments = [trace.wrap(value, weak=each.weak) for value, each in zip(values, carried, strict=True)]
        condition.yield_([goes_on(arguments), *values])
    initial = [each.value(trace) for each in carried]
    return wrapped(trace, carried, trace.emit_all("While", *initial, regions=(condition, body)))


def settled(
    trace: Trace,
    carried: list[Carried],
    more: Sequence[TensorType],
    step: Callable[[list[TracedArray]], list[Any]],
    what: str,
) -> tuple[Region, list[Any]]:
    """Return the region of a step, and what it is to yield, once the types that are carried are known.

    A number that is carried first takes the dtype of what follows; then the step is traced anew.
    """
    while True:
        weak = [each.weak for each in carried] + [isinstance(each, WeakType) for each in more]
        strong = [each.strong if isinstance(each, WeakType) else each for each in more]
        with trace.builder.region([*(each.type for each in carried), *strong]) as body:
            parameters = zip(body.parameters, weak, strict=True)
            yields = step([trace.wrap(value, weak=is_weak) for value, is_weak in parameters])
        taken = [each.takes(leaf) for each, leaf in zip(carried, yields, strict=False)]
        if not any(taken):
            break
    check_carried(carried, yields, what)
    return body, yields


def check_carried(carried: Sequence[Carried], yields: Sequence[Any], what: str) -> None:
    """Check that what a step returns is of the types that are carried (E2321)."""
    for each, leaf in zip(carried, yields, strict=False):
        type_, is_weak = typed(leaf)
        if type_.shape != each.type.shape or not (is_weak or type_ == each.type):
            refuse(
                "E2321",
                f"{each.name} is {each.type}, and {what} returns {type_} for it",
                "what is carried keeps its dtype and shape: begin with an array of these, or convert with "
                "astype or reshape",
            )


def conformed(trace: Trace, carried: Sequence[Carried], yields: Sequence[Any]) -> list[Value]:
    """Return what a step yields as values; what is carried has the dtype that it has in all steps."""
    dtypes = [each.type.dtype for each in carried] + [None] * (len(yields) - len(carried))
    return [as_value(trace, leaf, dtype) for leaf, dtype in zip(yields, dtypes, strict=True)]


def wrapped(trace: Trace, carried: Sequence[Carried], results: Sequence[TracedArray]) -> list[TracedArray]:
    """Return the results of a loop as what is carried last."""
    return [trace.wrap(each.value, weak=one.weak) for one, each in zip(carried, results, strict=True)]


def returned_leaves(value: Any, form: Form, what: str) -> list[Any]:
    """Return the leaves of what a step carries on, which has the form that it is given."""
    leaves, found = flatten(value, f"the result of {what}")
    difference = form.difference(found, "init")
    if difference:
        refuse(
            "E2321",
            f"{what} carries another container on than it is given: {difference}",
            "return what is carried in the same containers",
        )
    return leaves
