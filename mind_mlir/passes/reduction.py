"""Smaller programs in which a bug of the compiler shows as it does in a large one.

Before: a module in structured form that a stage fails on. After: one that it fails on, too, with fewer
functions, outputs and operations. What an operation made becomes an input, or is taken to be an operand of
the same type.
"""

from __future__ import annotations

import re
import time
import traceback
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import InternalError, MindError
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.module import CoreOperation, Functions, Parameter, Return, Yield
from mind_mlir.ir.profiles import CORE_FUNCTIONS
from mind_mlir.ir.regions import live_operations, reads
from mind_mlir.languages.core.printer import print_module
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from mind_mlir.ir.module import Block, Function, Module, Result, ValueId
    from mind_mlir.ir.types import ValueType

#: How many programs are tried, and for how many seconds, at most.
MOST_TRIALS, MOST_SECONDS = 1_000, 20.0


def reduced_error(
    module: Module, error: InternalError, run: Callable[[Module, str], object]
) -> InternalError:
    """Return the error of a smaller module that the same stage fails on, or ``error`` where none is found.

    Args:
        module: A verified module.
        error: How it fails.
        run: Does with a verified module what failed, up to the stage that is named.
    """
    smallest = error

    def fails(candidate: Module) -> bool:
        nonlocal smallest
        try:
            run(candidate, error.stage)
        except InternalError as found:
            if _mark(found) == _mark(error):
                smallest = found
                return True
        return False

    try:
        profile = (
            CORE_FUNCTIONS.name if module.is_flat else module.profile
        )  # what is structured has functions
        module = replace(structured_form(module), profile=profile)
    except Exception:  # this may be where the bug is
        if any(len(function.blocks) > 1 for function in module.functions):
            return error
    smallest.reducible(print_module(reduced(module, fails)), lambda: smallest)
    return smallest


def _mark(error: InternalError) -> tuple[str, ...]:
    """Return what tells one bug from others: the stage, what happened, and where in the compiler."""
    message = re.sub("[0-9]+", "#", error.message)
    cause = error.__cause__
    if cause is None:
        return error.stage, message
    *_, (frame, _) = traceback.walk_tb(cause.__traceback__)
    return error.stage, message, type(cause).__name__, frame.f_code.co_filename, frame.f_code.co_name


def reduced(module: Module, fails: Callable[[Module], bool]) -> Module:
    """Return a smaller module that ``fails`` is true of; ``module`` where none is found.

    Args:
        module: A module in structured form.
        fails: Returns whether a verified module fails as ``module`` does.
    """
    search = _Search(module, fails)
    search.keep_one_function()
    known = None
    while search.module is not known:
        known = search.module
        search.leave_out(_output_count, _without_outputs)
        search.leave_out(_output_count, _sooner)
        search.leave_out(_operation_count, _around_operations)
        search.leave_out(_operation_count, _without_operations)
    return search.module


class _Search:
    """The smallest module so far, and how much may still be tried."""

    def __init__(self, module: Module, fails: Callable[[Module], bool]) -> None:
        self.module = module
        self._fails = fails
        self._trials = MOST_TRIALS
        self._end = time.monotonic() + MOST_SECONDS

    def keep_one_function(self) -> None:
        """Take the first function that fails without its callers."""
        functions = self.module.functions
        for function in functions if len(functions) > 1 else ():
            alone = Functions(replace(each, public=each is function) for each in functions)
            if self._try(restricted(replace(self.module, functions=alone), function.name)):
                return

    def leave_out(
        self, parts: Callable[[Module], int], without: Callable[[Module, Collection[int]], Module]
    ) -> None:
        """Leave out what can be of the ``parts`` of the module: all of them, then fewer at a time."""
        size = parts(self.module)
        while size > 0:
            start = 0
            while start < parts(self.module):
                if not self._try(without(self.module, range(start, start + size))):
                    start += size
            size //= 2

    def _try(self, candidate: Module) -> bool:
        if self._trials <= 0 or candidate == self.module or time.monotonic() > self._end:
            return False
        self._trials -= 1
        try:
            does = self._fails(verify(candidate))
        except MindError:
            return False
        if does:
            self.module = candidate
        return does


def _output_count(module: Module) -> int:
    return sum(len(each.blocks[0].terminator.operands) for each in module.functions if each.public)


def _without_outputs(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` without some of its outputs, which are counted through its exported functions."""
    return _with_outputs(module, places, lambda _: ())


def _sooner(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` with what some of its outputs are computed from in their place."""
    return _with_outputs(module, places, lambda maker: maker.operands if maker else ())


def _with_outputs(
    module: Module, places: Collection[int], instead: Callable[[CoreOperation | None], tuple[ValueId, ...]]
) -> Module:
    number = count()

    def changed(function: Function) -> Function:
        if not function.public:
            return function
        (block,) = function.blocks
        makers = {value: each for each in block.operations for value in each.result_ids}
        returned: dict[ValueId, None] = {}
        for value in block.terminator.operands:
            returned.update(dict.fromkeys(instead(makers.get(value)) if next(number) in places else (value,)))
        types = None if function.result_types is None else tuple([_types(block)[value] for value in returned])
        other = replace(function, result_types=types, result_locations=())
        return _finished(other, replace(block, terminator=Return(tuple(returned))))

    return _mapped(module, changed)


def _types(block: Block) -> dict[ValueId, ValueType]:
    """Return the types of all values of ``block`` and the blocks within it."""
    found = {each.value_id: each.type for each in block.parameters}
    found.update((each.value_id, each.type) for made in operations_of([block]) for each in made.results)
    return found


def _operation_count(module: Module) -> int:
    return sum(len(_operations(each)) for each in module.functions)


def _operations(function: Function) -> list[CoreOperation]:
    return [each for each in operations_of(function.blocks) if each.opcode != "Input"]


def _without_operations(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` where the results of some operations are inputs of their functions."""
    number = count()

    def changed(function: Function) -> Function:
        left_out = {each.value_id: each for each in _operations(function) if next(number) in places}
        made = [each for operation in left_out.values() for each in operation.results]
        return _finished(function, _without(function.blocks[0], left_out, {}), made)

    return _mapped(module, changed)


def _around_operations(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` where operands of the same type take the place of the results of operations."""
    number = count()

    def changed(function: Function) -> Function:
        types = _types(function.blocks[0])
        instead: dict[ValueId, ValueId] = {}
        for each in _operations(function):
            same = [value for value in each.operands if types.get(value) == each.result_type]
            if next(number) in places and same and not each.others:
                instead[each.value_id] = instead.get(same[0], same[0])
        return _finished(function, _without(function.blocks[0], instead, instead))

    return _mapped(module, changed)


def _mapped(module: Module, changed: Callable[[Function], Function]) -> Module:
    return replace(module, functions=Functions(changed(each) for each in module.functions))


def _without(block: Block, left_out: Collection[ValueId], instead: Mapping[ValueId, ValueId]) -> Block:
    """Return ``block`` without some operations, and reading other values instead of theirs."""
    operations = [
        replace(
            each,
            operands=tuple([instead.get(value, value) for value in each.operands]),
            regions=tuple([_without(region, left_out, instead) for region in each.regions]),
        )
        for each in block.operations
        if each.value_id not in left_out
    ]
    end = block.terminator
    leaves = Return if isinstance(end, Return) else Yield
    terminator = leaves(tuple([instead.get(value, value) for value in end.operands]))
    return replace(block, operations=tuple(operations), terminator=terminator)


def _finished(function: Function, block: Block, made: Iterable[Result] = ()) -> Function:
    """Return ``function`` with ``block``, of which what the outputs need stays.

    Those of ``made`` that are needed become inputs: instructions of a flat function, parameters of another.
    """
    operations = live_operations(block.operations, block.terminator.operands)
    read = {*block.terminator.operands, *(value for each in operations for value in reads(each))}
    needed = [each for each in made if each.value_id in read]
    if function.result_types is None:
        inputs = [
            CoreOperation(each.value_id, "Input", (), {"name": f"value{each.value_id}"}, each.type)
            for each in needed
        ]
        return replace(function, blocks=(replace(block, operations=(*inputs, *operations)),))
    parameters = [
        *(each for each in block.parameters if each.value_id in read or not function.public),
        *(
            Parameter(each.value_id, each.type, name=f"value{each.value_id}" if function.public else None)
            for each in needed
        ),
    ]
    changed = replace(block, parameters=tuple(parameters), operations=tuple(operations))
    return replace(function, blocks=(changed,))
