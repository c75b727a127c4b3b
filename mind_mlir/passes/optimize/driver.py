"""Runs the passes of the optimiser.

Before: a module in structured form. After: the same, with fewer or cheaper operations, and ids that are dense
again. Passes over a function repeat, in order, until each has found nothing to do since the last change, or
all have run `MOST_ROUNDS` times: each takes time in proportion to the function, and so does all of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Functions
from mind_mlir.ir.regions import read_too_soon
from mind_mlir.passes.canonical.body import FunctionBlocks, numbered
from mind_mlir.passes.optimize.table import CONSTANT_PASSES, MODULE_PASSES, PASSES, PREPARE
from mind_mlir.passes.record import Printed
from mind_mlir.support.interrupts import deliver
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from mind_mlir.ir.module import Function, Module
    from mind_mlir.passes.record import Evaluate, FunctionPass
    from mind_mlir.target import Target

    #: Sees, of each pass that changes something, its name and what prints the code before and after.
    PassObserver = Callable[[str, Printed, Printed], object]

#: Passes open ways for one another: what one leaves, another may drop. More than this has not been seen.
MOST_ROUNDS = 4


def optimize(
    module: Module,
    disabled: Collection[str] = frozenset(),
    order: Sequence[str] | None = None,
    observer: PassObserver | None = None,
    target: Target | None = None,
    evaluate: Evaluate | None = None,
) -> Module:
    """Return ``module``, in structured form, optimised; itself where there is nothing to do.

    Args:
        module: What to optimise.
        disabled: Names of passes that do not run (see `pass_names`).
        order: The names of those that run over functions, in another order than that of `PASSES`; or only
            some of them.
        observer: Sees what each pass changes.
        target: The processor, for the passes that need to know it; that of the environment unless given.
        evaluate: Runs code, for the pass that evaluates expressions of constants, which there is only then.
    """
    if evaluate is not None and PREPARE.name not in disabled:
        early = [each for each in CONSTANT_PASSES if each.name not in disabled]
        module = _with_passes(module, early, observer)
        prepared = PREPARE.run(module, evaluate)
        if observer is not None and prepared is not module:
            observer(PREPARE.name, Printed(module), Printed(prepared))
        module = prepared
    known = {each.name: each for each in PASSES}
    passes = [known[name] for name in (known if order is None else order) if name not in disabled]
    module = _with_passes(module, passes, observer)
    machine = named_target() if target is None else target
    for each in MODULE_PASSES:
        if each.name in disabled:
            continue
        deliver()
        changed = each.run(module, machine)
        for function in changed.functions if changed is not module else ():
            _sound(function, None, each.name)
        if observer is not None and changed is not module:
            observer(each.name, Printed(module), Printed(changed))
        module = changed
    return module


def _with_passes(module: Module, passes: Sequence[FunctionPass], observer: PassObserver | None) -> Module:
    functions = [_optimized(function, passes, observer) for function in module.functions]
    if all(one is other for one, other in zip(functions, module.functions, strict=True)):
        return module
    return replace(module, functions=Functions(functions))


def _optimized(given: Function, passes: Sequence[FunctionPass], observer: PassObserver | None) -> Function:
    function, idle, runs = given, 0, 0
    while idle < len(passes) and runs < MOST_ROUNDS * len(passes):
        each = passes[runs % len(passes)]
        deliver()
        changed = _sound(each.run(function), function, each.name)
        idle = idle + 1 if changed is function else 1
        if observer is not None and changed is not function:
            observer(each.name, Printed(function), Printed(changed))
        function = changed
        runs += 1
    if function is given:
        return given
    # Operands stay in their order: what layers have in common is then read alike by all of them.
    return numbered(FunctionBlocks.of(function), function, ordered=False)


def _sound(function: Function, given: Function | None, name: str) -> Function:
    """Return what pass ``name`` has made of ``given``, which reads no value that is not there yet.

    Later stages rely on that, and would say no more than that they do not know the value.
    """
    value = None if function is given else read_too_soon(function.entry)
    assert value is None, f"pass {name!r} leaves @{function.name} reading %{value} before it is defined"
    return function
