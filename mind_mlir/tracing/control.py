"""Branches and loops of traced functions: what Python's ``if`` and ``while`` cannot say of traced arrays.

    y = mind_mlir.cond(x > 0, lambda: x, lambda: -x)
    n, y = mind_mlir.while_loop(lambda c: c[1] < 1, lambda c: (c[0] + 1, c[1] * 2), (0, x))
    total = mind_mlir.fori_loop(0, n, lambda i, s: s + xs[i], 0.0)
    total, sums = mind_mlir.scan(lambda s, x: (s + x, s), 0.0, xs)

What is carried from step to step, and what branches return, are arrays, numbers and containers of them. A
step gives what it takes: containers of the same form, and arrays of the same dtypes and shapes. A number of
Python takes the dtype of the array in its place. Functions read arrays from around as Python's do.

Outside of a function that is traced, each call is compiled and run at once. As the functions may read what is
around them, nothing of that is kept for the next call: what runs often belongs into a function that
`mind_mlir.jit` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.effects import has_effect
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.runtime.staged_values import STAGE, WeakType
from mind_mlir.support import argument_checks
from mind_mlir.support.pytrees import flatten
from mind_mlir.tracing import loops, stepping
from mind_mlir.tracing.conversion import as_value, common_node, node_of
from mind_mlir.tracing.jit import JitFunction
from mind_mlir.tracing.places import refuse
from mind_mlir.tracing.promotion import LatticeNode, joined
from mind_mlir.tracing.trace import Trace

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray
    from mind_mlir.tracing.eager import EagerTrace

T = TypeVar("T")
C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")


@public
def cond(pred: Any, true_fn: Callable[..., T], false_fn: Callable[..., T], *operands: Any) -> T:
    """Return ``true_fn(*operands)`` where ``pred`` is true, else ``false_fn(*operands)``; one of them runs.

    Args:
        pred: A scalar; a number is true where it is not 0.
        true_fn: Returns arrays, in containers.
        false_fn: Returns arrays of the same dtypes and shapes, in containers of the same form.
        operands: What both are given; they also read what is around them.

    Raises:
        TracingError: E2320, they return other containers, dtypes or shapes; E2322, ``pred`` is no scalar;
            E2324, they return no arrays.
        TypeError: One of them cannot be called.
    """
    trace = _trace(true_fn=true_fn, false_fn=false_fn)
    if trace is None:
        return _run("cond", lambda p, args: cond(p, true_fn, false_fn, *args), pred, operands)
    predicate = _predicate(trace, pred, "the predicate of cond")
    if trace.is_eager:
        return stepping.cond(cast("EagerTrace", trace), predicate, true_fn, false_fn, operands)
    then, otherwise = trace.builder.region(), trace.builder.region()
    with then:
        ones, form = flatten(true_fn(*operands), "the result of true_fn")
    with otherwise:
        others, other_form = flatten(false_fn(*operands), "the result of false_fn")
    difference = form.difference(other_form, "the result")
    if difference:
        refuse(
            "E2320",
            f"the branches of cond return other containers: {difference}",
            "return the same containers from both functions",
        )
    if not ones:
        if not any(has_effect(each) for region in (then, otherwise) for each in region.operations):
            loops.refuse_nothing("the branches of cond return")
        ones, others = [False], [False]  # they print alone, and an operation has a result
    names = form.names("the result") or ["the result"]
    agreed = [_agreed(one, two, name) for one, two, name in zip(ones, others, names, strict=True)]
    for region, leaves in ((then, ones), (otherwise, others)):
        with region:
            region.yield_(
                [as_value(trace, leaf, node.dtype) for leaf, node in zip(leaves, agreed, strict=True)]
            )
    results = trace.emit_all("Cond", predicate, regions=(then, otherwise))
    arrays = [trace.wrap(each.value, weak=node.weak) for each, node in zip(results, agreed, strict=True)]
    found: T = form.unflatten(arrays[: form.count])
    return found


@public
def while_loop(cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init: T) -> T:
    """Return what is carried once ``cond_fun`` is false of it: ``init``, ``body_fun(init)``, and so on.

    Args:
        cond_fun: Takes what is carried, and returns a scalar: whether to go on.
        body_fun: Takes what is carried, and returns what is carried next, in the same form.
        init: What is carried first.

    Raises:
        TracingError: E2321, ``body_fun`` returns another container, dtype or shape than it takes; E2322,
            ``cond_fun`` returns no scalar; E2324, no array is carried.
        TypeError: One of them cannot be called.
    """
    trace = _trace(cond_fun=cond_fun, body_fun=body_fun)
    if trace is None:
        last: T = _run("while_loop", lambda init: while_loop(cond_fun, body_fun, init), init)
        return last
    leaves, form = flatten(init, "init")

    def step(carried: list[TracedArray]) -> list[Any]:
        return loops.returned_leaves(body_fun(form.unflatten(carried)), form, "body_fun")

    results = (stepping if trace.is_eager else loops).while_of(
        trace,
        loops.first(leaves, form),
        lambda carried: _predicate(trace, cond_fun(form.unflatten(carried)), "what cond_fun returns"),
        step,
        "body_fun",
    )
    found: T = form.unflatten(results)
    return found


@public
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, T], T], init: T) -> T:
    """Return what is carried after ``body_fun(i, carried)`` for ``i`` from ``lower`` to before ``upper``.

    Args:
        lower: The first number, an integer scalar.
        upper: What the numbers do not reach, an integer scalar.
        body_fun: Takes the number, which takes the dtype of the array that it meets, as numbers of Python do,
            and what is carried; returns what is carried next, in the same form.
        init: What is carried first.

    Raises:
        TracingError: E2321 and E2324 as `while_loop`; E2325, a bound is no integer scalar.
        TypeError: ``body_fun`` cannot be called.
    """
    trace = _trace(body_fun=body_fun)
    if trace is None:
        last: T = _run("fori_loop", lambda i, n, init: fori_loop(i, n, body_fun, init), lower, upper, init)
        return last
    index = _joined_bounds(trace, lower, upper)
    leaves, form = flatten(init, "init")
    if not leaves:
        loops.refuse_nothing("fori_loop carries")
    end = trace.wrap(as_value(trace, upper, index.type.dtype))

    def step(carried: list[TracedArray]) -> list[Any]:
        number, *rest = carried
        returned = body_fun(number, form.unflatten(rest))
        return [number + 1, *loops.returned_leaves(returned, form, "body_fun")]

    _, *results = (stepping if trace.is_eager else loops).while_of(
        trace, [index, *loops.first(leaves, form)], lambda carried: (carried[0] < end).value, step, "body_fun"
    )
    found: T = form.unflatten(results)
    return found


@public
def scan(
    f: Callable[[C, X], tuple[C, Y]], init: C, xs: X, length: int | None = None, reverse: bool = False
) -> tuple[C, Y]:
    """Return what is carried last, and the outputs of all steps, stacked along a new leading axis.

    A step is ``carried, y = f(carried, x)``, where ``x`` holds a slice of each array in ``xs``, along its
    leading axis; ``f`` is traced once, whatever the length.

    Args:
        f: Takes what is carried and slices, and returns what is carried next, in the same form, and an
            output: arrays in containers, or None.
        init: What is carried first; None for nothing.
        xs: Arrays of one length, in containers; None for no slices, where ``length`` says how many steps.
        length: How many steps; that of the arrays where there are some.
        reverse: Whether the last slices come first; outputs are at the places of their slices all the same.

    Raises:
        TracingError: E2321, ``f`` does not return a pair, or carries another container, dtype or shape on;
            E2323, ``xs`` have no common length, or another than ``length``; E2324, nothing is carried nor
            returned.
        TypeError: ``f`` cannot be called, or ``length`` is no integer.
    """
    trace = _trace(f=f)
    steps = None if length is None else argument_checks.integer(length, "length")
    backwards = argument_checks.flag(reverse, "reverse")
    if trace is None:
        return _run("scan", lambda c, xs: scan(f, c, xs, steps, backwards), init, xs)
    leaves, form = flatten(init, "init")
    slices, slices_form = flatten(xs, "xs")
    scanned = [trace.wrap(as_value(trace, leaf), weak=node_of(leaf).weak) for leaf in slices]
    steps = _length(scanned, slices_form.names("xs"), steps)
    if not scanned:
        scanned = [trace.emit("Iota", shape=(steps,), dtype=DType.SI64, axis=0)]
    elif backwards:
        scanned = [each[::-1] for each in scanned]
    carried = loops.first(leaves, form)
    outputs_form = form

    def step(values: list[TracedArray]) -> list[Any]:
        nonlocal outputs_form
        given = slices_form.unflatten(values[len(carried) :][: slices_form.count])
        pair = f(form.unflatten(values[: len(carried)]), given)
        if not isinstance(pair, tuple) or len(pair) != 2:
            what = f"a tuple of {len(pair)}" if isinstance(pair, tuple) else argument_checks.describe(pair)
            refuse("E2321", f"f returns {what}", "return what is carried next, and the output: carried, y")
        outputs, outputs_form = flatten(pair[1], "the output of f")
        return [*loops.returned_leaves(pair[0], form, "f"), *outputs]

    if trace.is_eager and steps:
        state, stacked = stepping.scan(cast("EagerTrace", trace), carried, scanned, step)
        stacked = [each[::-1] for each in stacked] if backwards else stacked
        return form.unflatten(state), outputs_form.unflatten(stacked)
    types: list[TensorType] = []
    for each in scanned:
        type_ = each.value.type.with_shape(each.shape[1:])
        types.append(WeakType(type_.dtype, type_.shape) if each.weak else type_)
    body, yields = loops.settled(trace, carried, types, step, "f")
    if not yields:
        loops.refuse_nothing("f carries and returns")
    with body:
        body.yield_(loops.conformed(trace, carried, yields))
    results = trace.emit_all(
        "Scan",
        *(each.value(trace) for each in carried),
        *(each.value for each in scanned),
        regions=(body,),
        carry_count=len(carried),
        scan_output_count=len(yields) - len(carried),
    )
    is_weak = [node_of(leaf).weak for leaf in yields]
    stacked = [trace.wrap(each.value, weak=weak) for each, weak in zip(results, is_weak, strict=True)]
    stacked = stacked[len(carried) :]
    last: C = form.unflatten(loops.wrapped(trace, carried, results[: len(carried)]))
    every: Y = outputs_form.unflatten([each[::-1] for each in stacked] if backwards else stacked)
    return last, every


def _predicate(trace: Trace, found: Any, what: str) -> Value:
    """Return whether a scalar is true, as a truth value."""
    leaves, form = flatten(found, what)
    if form.container is not None:
        refuse("E2322", f"{what} is {form}, a container", "give one scalar: whether it is true")
    value = as_value(trace, leaves[0])
    if value.type.rank:
        refuse(
            "E2322",
            f"{what} is {value.type}, no scalar",
            "say whether any or all of its elements are meant: x.any(), x.all()",
        )
    if value.type.dtype is DType.I1:
        return value
    zero = as_value(trace, 0, value.type.dtype)
    return trace.emit("Compare", value, zero, op="NotEqual").value


def _agreed(one: Any, two: Any, name: str) -> LatticeNode:
    """Return the dtype of what two branches return in one place."""
    (first, first_weak), (second, second_weak) = loops.typed(one), loops.typed(two)
    node = joined([node_of(one), node_of(two)])
    alike = first_weak or second_weak or first.dtype is second.dtype
    if node is None or first.shape != second.shape or not alike:
        refuse(
            "E2320",
            f"{name} of cond is {first} in one branch and {second} in the other",
            "both return the same dtypes and shapes: convert with astype or reshape",
        )
    return node


def _joined_bounds(trace: Trace, lower: Any, upper: Any) -> loops.Carried:
    """Return the number of a step as it is carried: an integer of the width that one of the bounds has."""
    bounds = [loops.Carried.of(bound, name) for bound, name in ((lower, "lower"), (upper, "upper"))]
    for each in bounds:
        if each.type.shape or not each.type.dtype.is_integer:
            refuse(
                "E2325",
                f"{each.name} of fori_loop is {each.type}, no integer scalar",
                "count with integers, and compute others from them",
            )
    first, last = bounds
    node = common_node(trace, (lower, upper)) if trace.promotes else LatticeNode(first.type.dtype)
    if trace.promotes and node.dtype.is_integer:
        first.type = last.type = TensorType(node.dtype)
    if not (first.weak or last.weak or first.type == last.type):
        refuse(
            "E2325",
            f"lower of fori_loop is {first.type} and upper {last.type}",
            "give both bounds one dtype: x.astype('i64')",
        )
    first.type = last.type if first.weak else first.type
    first.weak = True  # as that of a loop over a range is
    return first


def _length(scanned: Sequence[TracedArray], names: Sequence[str], length: int | None) -> int:
    """Return how many steps a scan has."""
    for each, name in zip(scanned, names, strict=True):
        if not each.ndim:
            refuse(
                "E2323",
                f"{name} of scan is {each.value.type}, which has no leading axis",
                "read it in f as it is, or give it an axis",
            )
        if length is not None and each.shape[0] != length:
            known = "length" if each is scanned[0] else names[0]
            refuse(
                "E2323",
                f"{name} of scan has {each.shape[0]} slices, and {known} says {length}",
                "give arrays of one length",
            )
        length = each.shape[0]
    if length is None:
        refuse("E2323", "scan is given no arrays, and no length", "say how many steps there are: length=10")
    if length < 0:
        raise ValueError(f"length must not be negative, but is {length}")
    return length


def _trace(**functions: object) -> Trace | None:
    """Return the trace that runs, if any; functions that a caller gives can be called."""
    for name, function in functions.items():
        if not callable(function):
            argument_checks.reject(name, "callable", function)
    stage = STAGE.get()
    return stage if isinstance(stage, Trace) else None


def _run(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Compile and run a call that nothing is traced around."""
    function.__name__ = function.__qualname__ = name
    return JitFunction(function)(*arguments)
