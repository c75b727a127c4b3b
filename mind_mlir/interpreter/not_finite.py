"""Finds the operation that makes a NaN or an infinity: what `check_nan` and ``--trap-nan`` report, E6006.

An operation *makes* a NaN where an element of its result is one and none of what that was computed of is, and
an infinity where it was computed of finite numbers alone. So neither who passes a NaN on is named, nor a
constant or an argument that was meant to be infinite, as a mask is; but what subtracts infinities is.

Several operations of a program may make some, and most of these are of no harm: an exponential overflows, and
its reciprocal is 0. Of a program whose results are not finite, the one is named whose NaN or infinity came
through to them; else the first. Where a NaN is made of an infinity that has been made, it is who made that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias
from weakref import ref

import numpy as np

from mind_mlir.diagnostics import Diagnostic, NotFiniteError
from mind_mlir.interpreter import evaluate, run
from mind_mlir.interpreter.sightings import (
    FINITE,
    INFINITIES,
    INFINITY,
    NAN,
    RunningWithin,
    Sighting,
    facts_of,
    floats_of,
    is_bad,
    is_elementwise,
    not_finite,
    place_of,
)
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.languages.mind.elaboration.wording import as_written
from mind_mlir.ops.printing import silently
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from mind_mlir.interpreter.machine import Observer, WaitingBlock
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Output
    from mind_mlir.ir.module import CoreOperation, Module

    Test: TypeAlias = Callable[[Array], Array]

#: A number that every function of numbers takes to a finite one: it stands where an operand has none, to see
#: whether an element of the result is finite then.
_HARMLESS = 0.5
#: Of so many arrays it is known where what they hold comes from, at most.
_MOST_KNOWN = 100_000
#: What may be made, what tells it, and what tells what is not to be among what it is made of.
_KINDS: tuple[tuple[str, Test, Test], ...] = (
    (NAN, np.isnan, is_bad),
    (NAN, np.isnan, np.isnan),
    (INFINITY, np.isinf, is_bad),
)
_NO_MAKER = "no operation makes one"


class NotFiniteWatch:
    """Looks on while a program runs, and notes what makes NaN or infinities (`Watch`)."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.sightings: list[Sighting] = []
        self.results: Sequence[Array] = ()
        self._seen: set[int] = set()
        #: What first made a NaN of the infinities that somebody has made.
        self._later: dict[int, Sighting] = {}
        #: Where the NaN or infinities of an array come from, by its identity; what keeps that from being
        #: another array's, too.
        self._origins: dict[int, tuple[object, Sighting]] = {}

    @property
    def see(self) -> Observer:
        """Return what sees each operation."""
        return self._see

    def _see(
        self,
        operation: CoreOperation,
        operands: Sequence[Array],
        results: Sequence[Array],
        frames: Sequence[WaitingBlock],
    ) -> None:
        bad = [result for result in results if not_finite(result) is not None]
        if not bad or not operands:  # a constant is meant to be what it is
            return
        made = None if _meets(operation) else self._made(operation, operands, results, frames)
        if made is None:
            made = next(filter(None, map(self.origin, operands)), None)
        if made is not None:
            if len(self._origins) > _MOST_KNOWN:
                self._origins.clear()
            for result in bad:
                held = ref(result) if isinstance(result, np.ndarray) else (lambda result=result: result)
                self._origins[id(result)] = held, made

    def _made(
        self,
        operation: CoreOperation,
        operands: Sequence[Array],
        results: Sequence[Array],
        frames: Sequence[WaitingBlock],
    ) -> Sighting | None:
        """Return what is made; for a NaN of infinities that have been made, what made these."""
        for what, test, others in _KINDS:
            new = _new(operation, operands, results, test, others)
            for result, mask in zip(results, new, strict=True):
                if mask is None or not mask.any():
                    continue
                index = tuple(int(at) for at in np.argwhere(mask)[0])
                around = tuple(RunningWithin(f.step.operation, f.target, f.runs[f.target]) for f in frames)
                count, given = int(mask.sum()), FINITE if others is is_bad else INFINITIES
                found = Sighting(
                    operation, what, index, count, tuple(operands), np.asarray(result), around, given
                )
                before = next(filter(None, map(self.origin, operands)), None)
                if given == INFINITIES and before is not None:
                    self._later.setdefault(id(before), found)
                    return before
                if id(operation) not in self._seen:
                    self._seen.add(id(operation))
                    self.sightings.append(found)
                return found
        return None

    def origin(self, array: Array) -> Sighting | None:
        """Return where the NaN or infinities of an array were made, as far as that is known."""
        held, found = self._origins.get(id(array), (None, None))
        return found if callable(held) and held() is array else None

    def end(self, results: Sequence[Array]) -> None:
        """See what the function returns."""
        self.results = results

    def finding(self) -> Diagnostic | None:
        """Return what there is to say of what came through to the results, or else of what was made first."""
        found = self._first()
        return None if found is None else found.finding(self._later.get(id(found)))

    def _first(self) -> Sighting | None:
        bad = [each for each in self.results if not_finite(each) is not None]
        bad.sort(key=lambda each: not np.isnan(floats_of(each)).any())
        through = next(filter(None, map(self.origin, bad)), None)
        return through or (self.sightings[0] if self.sightings else None)


def run_watched(
    module: Module, arguments: Mapping[str, Array], function: str | None = None
) -> tuple[Array, ...]:
    """Return the results of a function of a verified module, run operation by operation.

    Raises:
        NotFiniteError: E6006, an operation makes a NaN or an infinity, whether or not it comes through to the
            results; or an argument's NaN does.
        ExecutionError: As `mind_mlir.interpret`.
    """
    watch = NotFiniteWatch()
    results = run(module, arguments, function, watch)
    finding = watch.finding() or _given(module, arguments, results)
    if finding is not None:
        raise NotFiniteError(as_written([finding]))
    return results


def check_results(
    module: Module, function: str | None, arguments: Mapping[str, Array], results: Sequence[Array]
) -> None:
    """Check what compiled code has returned: where it is not finite, say which operation makes that.

    Args:
        module: A verified module.
        function: Which of its functions was called; None where one alone is exported.
        arguments: Those of the call, by name.
        results: What it returned.

    Raises:
        NotFiniteError: E6006, as `run_watched`, where a result is not finite.
    """
    if all(not_finite(each) is None for each in results):
        return
    with silently():
        again = run_watched(module, arguments, function)
    if all(not_finite(each) is None for each in again):
        raise NotFiniteError(_only_compiled(interface_of(entry_function(module, function)).outputs, results))


def _given(module: Module, arguments: Mapping[str, Array], results: Sequence[Array]) -> Diagnostic | None:
    """Return what there is to say of a NaN in the results that no operation has made."""
    if not any(np.isnan(floats_of(each)).any() for each in results):
        return None
    for name, array in arguments.items():
        bad = np.argwhere(np.isnan(floats_of(array)))
        if len(bad):
            index = tuple(map(int, bad[0]))
            message = (
                f"the argument '{name}' holds a NaN{place_of(index)}, which comes through to the results"
            )
            return Diagnostic("E6006", message, help=_NO_MAKER, context=facts_of("Input", name, index, NAN))
    if mesh_text(module):  # another rank may hold it, which tells
        return None
    message = "a constant holds a NaN, which comes through to the results"
    return Diagnostic("E6006", message, help=_NO_MAKER, context=facts_of("ConstTensor", "", (), NAN))


def _only_compiled(outputs: Sequence[Output], results: Sequence[Array]) -> Diagnostic:
    """Return what there is to say of results that are finite where operations run one by one."""
    output, result = next(
        pair for pair in zip(outputs, results, strict=True) if not_finite(pair[1]) is not None
    )
    bad = is_bad(floats_of(result))
    index = tuple(int(at) for at in np.argwhere(bad)[0])
    what = NAN if np.isnan(floats_of(result)[index]) else INFINITY
    return Diagnostic(
        "E6006",
        f"the result {output.label} holds {what}{place_of(index)} where operations run compiled, and none "
        "where they run one by one",
        notes=("sums are added up in another order there, in which they do not overflow",),
        help="scale what is added up, or compute it in f64",
        context=facts_of("Return", output.label, index, what),
    )


def _meets(operation: CoreOperation) -> bool:
    """Return whether other ranks do an operation, too: what it makes is not of its own operands alone."""
    return by_opcode()[operation.opcode].collective


def _new(
    operation: CoreOperation,
    operands: Sequence[Array],
    results: Sequence[Array],
    test: Test,
    others: Test,
) -> list[Array | None]:
    """Return where results are as ``test`` says though nothing that they are made of is as ``others`` say."""
    found = [test(floats_of(each)) for each in results]
    if not any(each.any() for each in found):
        return [None] * len(found)
    given = [others(floats_of(each)) for each in operands]
    if any(each.any() for each in given):
        cleaned = [
            np.where(bad, np.asarray(_HARMLESS).astype(each.dtype), each) if bad.any() else each
            for each, bad in zip(operands, given, strict=True)
        ]
        again = evaluate(operation, cleaned)
        several = again if isinstance(again, tuple) else (again,)
        found = [one & is_bad(floats_of(two)) for one, two in zip(found, several, strict=True)]
        if is_elementwise(operation):  # what stands at the same place is what an element is made of
            found = [one & ~_any_of(given, one.shape) for one in found]
    return list(found)


def _any_of(masks: Sequence[Array], shape: tuple[int, ...]) -> Array:
    found = np.zeros(shape, np.bool_)
    for mask in masks:
        found |= np.broadcast_to(mask, shape)
    return found
