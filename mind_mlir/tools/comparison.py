"""``--check``: runs a module both compiled and interpreted, and names the first operation that differs.

An operation that runs regions or functions is one operation: what it computes on the way is not looked at,
and since its rounding adds up over iterations, its results may differ by more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mind_mlir.interpreter import evaluate, evaluate_running, trace
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.module import CoreOperation, Functions, Module, Return, ValueId
from mind_mlir.ir.regions import reads
from mind_mlir.ir.types import DType
from mind_mlir.ops.accumulation import summation_error, term_magnitudes
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.numbers import dtype_of, widened
from mind_mlir.ops.opdef import OpDef, Rounding
from mind_mlir.ops.printing import silently
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.canonicalize import canonicalize_with_map
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.optimize import ALL_PASSES
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.executable import Executable
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

_CONTROL_NOTE = (
    "(a value of --emit=structured; what runs again and again may turn small differences into great ones)"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first operation whose compiled value differs from its numpy rule's.

    Attributes:
        operation: As it stands in the module given; one of a function as in structured form.
        index: The first element that differs.
        compiled: What compiled code makes of it.
        interpreted: What the numpy rule makes of it.
        result: Which of the operation's results differs.
    """

    operation: CoreOperation
    index: tuple[int, ...]
    compiled: object
    interpreted: object
    result: int = 0

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]"
        operation = self.operation
        label = operation.spell(operation.result_ids[self.result]) if self.result else operation.label
        text = (
            f"{label} = {operation.opcode} differs at {where}: "
            f"compiled {self.compiled}, interpreted {self.interpreted}"
        )
        return f"{text}\n{_CONTROL_NOTE}" if _runs_others(by_opcode()[operation.opcode]) else text


_ALL = frozenset(each.name for each in ALL_PASSES)

#: Calls compiled code on arguments by name.
Run: TypeAlias = "Callable[[Executable, Mapping[str, Array]], Sequence[Array]]"


def _options(target: str | None) -> CompileOptions:
    """Return options with which each operation is compiled, whatever the environment says."""
    return CompileOptions(target=target, disabled_passes=_ALL, interpret=False)


def _run(executable: Executable, arguments: Mapping[str, Array]) -> Sequence[Array]:
    return executable(**arguments)


def first_difference(
    module: Module,
    arguments: Mapping[str, Array],
    function: str | None = None,
    *,
    target: str | None = None,
    run: Run = _run,
) -> Difference | None:
    """Return the first operation, in program order, whose compiled value is wrong, or None.

    The module is compiled with every value as an output, and each operation is interpreted on the *compiled*
    values of its operands, so that an error is found where it arises and rounding does not add up. Of a
    module of functions that is one function, by default the one that is meant. Code is for ``target``, as in
    `mind_mlir.compile`; the optimiser leaves operations as they stand, so that each is compiled.

    Raises:
        VerificationError: The module breaks a rule, or has no such function (E2002, E2101, E2102).
        ArgumentError: The arguments do not fit the inputs.
        ExecutionError: As a call of the compiled function.
    """
    if not module.is_flat:
        chosen = entry_function(verify(module), function)
        return _first_in_function(restricted(module, chosen.name), arguments, target, run)
    flat, renamed = canonicalize_with_map(verify(module))
    given = {renamed[op.value_id]: op for op in module.operations if op.value_id in renamed}
    operations = [op for op in flat.operations if op.opcode != "Input"]
    everything = flat.with_body(
        type(flat.body)(flat.operations, Return(tuple(op.value_id for op in operations)))
    )
    outputs = run(Executable(everything, _options(target)), arguments)
    compiled: dict[ValueId, Array] = {
        op.value_id: arguments[str(op.attributes["name"])] for op in flat.inputs
    }
    compiled.update(zip((op.value_id for op in operations), outputs, strict=True))
    with silently():  # compiled code has printed
        for operation, interpreted in trace(flat, arguments, compiled):
            if operation.opcode == "Input":
                continue
            operands = [compiled[operand] for operand in operation.operands]
            difference = _compare(operation, compiled[operation.value_id], interpreted, operands)
            if difference is not None:
                return replace(difference, operation=given[operation.value_id])
    return None


def _first_in_function(
    module: Module, arguments: Mapping[str, Array], target: str | None, run: Run
) -> Difference | None:
    """Compare the operations of the only exported function that stand outside of all regions."""
    structured = structured_form(module)
    function = entry_function(structured)
    block, called = function.entry, [other for other in structured.functions if other is not function]
    results = [result for operation in block.operations for result in operation.results]
    everything = replace(
        function,
        blocks=(replace(block, terminator=Return(tuple(result.value_id for result in results))),),
        result_types=tuple(result.type for result in results),
    )
    changed = replace(structured, functions=Functions((everything, *called)))
    outputs = run(Executable(changed, _options(target)), arguments)
    values: dict[ValueId, Array] = {
        parameter.value_id: arguments[parameter.name] for parameter in interface_of(function).parameters
    }
    values.update(zip((result.value_id for result in results), outputs, strict=True))
    with silently():  # as above
        for operation in block.operations:
            interpreted = evaluate_running(operation, values, called)
            operands = [values[operand] for operand in reads(operation)]
            for number, (value, expected) in enumerate(zip(operation.result_ids, interpreted, strict=True)):
                difference = _compare(operation, values[value], np.asarray(expected), operands)
                if difference is not None:
                    return replace(difference, result=number)
    return None


def _compare(
    operation: CoreOperation, compiled: Array, interpreted: Array, operands: Sequence[Array]
) -> Difference | None:
    if dtype_of(interpreted).is_complex:
        wrong = ~_agreeing_parts(operation, compiled, interpreted, operands)
    elif not dtype_of(interpreted).is_float:
        wrong = np.asarray(compiled != interpreted)
    else:
        wrong = ~_agreeing(operation, compiled, interpreted, operands)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(operation, index, compiled[index], interpreted[index])


def _agreeing(
    operation: CoreOperation, compiled: Array, interpreted: Array, operands: Sequence[Array]
) -> Array:
    """Return where float results agree; a NaN agrees with any other."""
    allowed = allowed_error(operation, interpreted, operands)
    compiled, interpreted = widened(compiled), widened(interpreted)
    agreeing = np.isnan(compiled) & np.isnan(interpreted)
    equal = compiled == interpreted
    record = by_opcode()[operation.opcode]
    if record.rounding is Rounding.EXACT and not _runs_others(record):
        return np.asarray(agreeing | (equal & (np.signbit(compiled) == np.signbit(interpreted))))
    with np.errstate(all="ignore"):
        near = np.abs(compiled - interpreted) <= allowed
    # Terms that overflow together do so sooner, later or never, depending on their order.
    return np.asarray(agreeing | equal | near | (allowed == np.inf))


def _agreeing_parts(
    operation: CoreOperation, compiled: Array, interpreted: Array, operands: Sequence[Array]
) -> Array:
    """Return where complex results agree in both parts: exactly, or within an error of the magnitude."""
    record, part = by_opcode()[operation.opcode], dtype_of(interpreted).part
    exact = record.rounding is Rounding.EXACT and not _runs_others(record)
    relative, magnitude = part.tolerance, np.abs(interpreted)
    if _runs_others(record):
        found = [np.abs(each) for each in (interpreted, *operands) if dtype_of(each).is_complex]
        magnitude = sum(np.where(np.isfinite(each), each, 0).sum() for each in found)
        relative = control_tolerance(part)
    elif record.terms is not None:
        attributes = complete_attributes(record, operation.attributes)
        given = term_magnitudes(record, operands, attributes, lambda arrays: evaluate(operation, arrays))
        magnitude = given.real
        relative = summation_error(record.terms([o.shape for o in operands], attributes), part)
    agreeing = np.ones(interpreted.shape, np.bool_)
    for left, right in ((compiled.real, interpreted.real), (compiled.imag, interpreted.imag)):
        both = (np.isnan(left) & np.isnan(right)) | (left == right)
        if exact:
            both &= np.isnan(left) | (np.signbit(left) == np.signbit(right))
        else:
            with np.errstate(all="ignore"):
                both |= np.abs(left - right) <= relative * magnitude + part.format.smallest_subnormal
        agreeing &= both
    return agreeing


def allowed_error(operation: CoreOperation, value: Array, operands: Sequence[Array]) -> Array:
    """Return how far each element of a compiled float result may be from its numpy rule's ``value``.

    Zero where the record promises the same bits. Else relative: to the value, or, for operations that
    accumulate, to the sum of the terms' magnitudes, which cancellation may hide in the value; that grows with
    the logarithm of how many terms there are (`summation_error`). Infinities and
    NaNs, among the terms or as the value, allow nothing: what they give does not depend on rounding.
    """
    record = by_opcode()[operation.opcode]
    dtype = dtype_of(value)
    if _runs_others(record):
        floats = [array for array in (value, *operands) if dtype_of(array).is_float]
        greatest = max(float(_magnitude(array).max(initial=0)) for array in floats)
        return np.full_like(widened(value), control_tolerance(dtype) * greatest)
    if record.rounding is Rounding.EXACT or not dtype.is_float:
        return np.zeros_like(widened(value))
    magnitude, error = _magnitude(value), dtype.tolerance
    if record.terms is not None:
        attributes = complete_attributes(record, operation.attributes)
        magnitude = term_magnitudes(record, operands, attributes, lambda given: evaluate(operation, given))
        terms = record.terms([o.shape for o in operands], attributes)
        if dtype.bits < 32:  # summed in f32, and rounded
            error += summation_error(terms, DType.F32)
        else:
            error = summation_error(terms, dtype)
    with np.errstate(all="ignore"):
        return np.asarray(error * widened(magnitude) + dtype.format.smallest_subnormal)


def _runs_others(record: OpDef) -> bool:
    """Return whether an operation runs regions or functions: its numpy rule then is a generator."""
    return isgeneratorfunction(record.evaluate)


def control_tolerance(dtype: DType) -> float:
    """Return the error that a result of control flow may have, relative to the greatest number about."""
    return (8 if dtype.is_narrow else 1e3) * dtype.tolerance


def _magnitude(array: Array) -> Array:
    array = widened(array)
    return np.asarray(np.where(np.isfinite(array), np.abs(array), 0), array.dtype)
