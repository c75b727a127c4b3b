"""The choices of a gradient module's callers: inputs to differentiate with respect to, and cotangents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from mind_mlir.diagnostics import AutodiffError
from mind_mlir.ir.module import Parameter
from mind_mlir.passes.activity import is_float
from mind_mlir.passes.autodiff_errors import malformed_cotangents, not_differentiable, unknown_input
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.ir.module import CoreOperation
    from mind_mlir.ir.types import TensorType, ValueType
    from mind_mlir.ir.value import Value

#: Where the gradient of an output comes from: ``unit`` means ones, ``given`` an input of the gradient module.
Cotangent: TypeAlias = Literal["unit", "given"]


def chosen_names(inputs: Mapping[str, CoreOperation | Parameter], wrt: Sequence[str] | None) -> list[str]:
    """Return the names of the inputs to differentiate with respect to.

    Args:
        inputs: Input operations, or parameters of a function, by name.
        wrt: The names that are chosen; all floating-point inputs where that is None.

    Raises:
        AutodiffError: E5005 and E5101, as for `mind_mlir.passes.autodiff.differentiate`.
    """
    if wrt is None:
        floats = [name for name, value in inputs.items() if is_float(_type(value))]
        if inputs and not floats:  # there is nothing that the caller can have meant
            raise AutodiffError(not_differentiable(name, value) for name, value in inputs.items())
        return floats
    names = argument_checks.names(wrt, "wrt")
    problems: list[Diagnostic] = []
    for name in dict.fromkeys(names):
        if name not in inputs:
            problems.append(unknown_input(name, list(inputs)))
        elif not is_float(_type(inputs[name])):
            problems.append(not_differentiable(name, inputs[name]))
    if problems:
        raise AutodiffError(problems)
    return list(names)


def cotangent_modes(count: int, cotangents: Cotangent | Sequence[Cotangent]) -> Sequence[str]:
    """Return where the gradient of each of ``count`` outputs comes from.

    Raises:
        AutodiffError: E5102, ``cotangents`` does not say it.
    """
    words = argument_checks.names(cotangents, "cotangents")
    modes = list(words) * count if isinstance(cotangents, str) else list(words)
    if len(modes) != count or not set(words) <= {"unit", "given"}:
        raise AutodiffError(malformed_cotangents(cotangents, count))
    return modes


def declare_cotangents(
    outputs: Iterable[tuple[TensorType, str]],
    names: Iterable[str | None],
    declare: Callable[[str, TensorType], Value],
) -> list[Value | None]:
    """Declare the cotangents that are given; return one for each output, None where it is not given.

    Args:
        outputs: Type and mode of each output.
        names: What the other inputs are called.
        declare: Adds an input.
    """
    taken = set(names)
    seeds: list[Value | None] = []
    for index, (type_, mode) in enumerate(outputs):
        if mode == "unit" or not is_float(type_) or 0 in type_.shape:
            seeds.append(None)
            continue
        name = f"cotangent_{index}"
        while name in taken:
            name += "_"
        taken.add(name)
        seeds.append(declare(name, type_))
    return seeds


def _type(value: CoreOperation | Parameter) -> ValueType:
    return value.type if isinstance(value, Parameter) else value.result_type
