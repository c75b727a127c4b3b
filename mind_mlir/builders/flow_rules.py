"""The rules of blocks, branches, functions and their signatures (core-ir-page.md, "IR structure").

The verifier and the builders of functions apply the same rules: each is given types, and where they are
written, and says what is wrong in a `Diagnostic`. Where a type is None, something else is wrong with it, and
is reported there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.type_rules import finding
from mind_mlir.ir.types import DType, TensorType, ValueType
from mind_mlir.support.argument_checks import counted

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic, Location

CONDITION = TensorType(DType.I1)


def condition(type_: TensorType | None, spelled: str, location: Location | None) -> Diagnostic | None:
    """Return E4114 where a branch cannot depend on a value of ``type_``."""
    if type_ is None or type_ == CONDITION:
        return None
    if type_.dtype is DType.I1:
        help_ = "read one element with Index, or reduce the tensor first"
    else:
        help_ = "compare first: Compare gives a tensor of i1"
    message = f"the condition of cond_br must be a {CONDITION}, but {spelled} is a {type_}"
    facts = {"expected": str(CONDITION), "found": str(type_)}
    return finding("E4114", message, location, (), help_, **facts)


def branch_arguments(
    label: str,
    parameters: Sequence[TensorType | None],
    arguments: Sequence[TensorType | None],
    spell: Callable[[int], str],
    locate: Callable[[int], Location | None],
) -> Iterator[Diagnostic]:
    """Yield E4113 where a branch does not give block ``label`` what its parameters declare.

    Args:
        label: The block.
        parameters: The types of its parameters.
        arguments: The types of what the branch passes.
        spell: What the text calls each argument.
        locate: Where each argument stands, or else the target.
    """
    if list(parameters) == list(arguments):
        return
    facts = {"block": label, "parameters": listing(parameters), "arguments": listing(arguments)}
    if len(parameters) != len(arguments):
        message = f"^{label} takes {counted(parameters, 'argument')}, found {len(arguments)}"
        help_ = f"pass values of types {listing(parameters)}"
        help_ = help_ if parameters else f"write ^{label} without arguments"
        yield finding("E4113", message, locate(min(len(parameters), len(arguments))), (), help_, **facts)
        return
    for index, wanted, given in _differing(parameters, arguments):
        message = f"parameter {index} of ^{label} is a {wanted}, but {spell(index)} is a {given}"
        help_ = f"pass a {wanted}, or declare the parameter as {given}"
        yield finding("E4113", message, locate(index), (), help_, **facts, index=index)


def returned(
    name: str,
    declared: Sequence[ValueType | None],
    found: Sequence[ValueType | None],
    spell: Callable[[int], str],
    locate: Callable[[int], Location | None],
) -> Iterator[Diagnostic]:
    """Yield E4115 where what function ``name`` returns is not what it declares; as `branch_arguments`."""
    if list(declared) == list(found):
        return
    facts = {"function": name, "declared": listing(declared), "returned": listing(found)}
    if len(declared) != len(found):
        message = f"@{name} has {counted(declared, 'result')}, but {len(found)} are returned"
        help_ = f"return values of types {listing(declared)}" if declared else "write return without values"
        yield finding("E4115", message, locate(min(len(declared), len(found))), (), help_, **facts)
        return
    for index, wanted, given in _differing(declared, found):
        message = f"result {index} of @{name} is declared as {wanted}, but {spell(index)} is a {given}"
        help_ = f"return a {wanted}, or declare the result as {given}"
        yield finding("E4115", message, locate(index), (), help_, **facts, index=index)


def _differing(
    wanted: Sequence[ValueType | None], found: Sequence[ValueType | None]
) -> Iterator[tuple[int, ValueType, ValueType]]:
    """Yield the places where two types differ, with these."""
    for index, (type_, given) in enumerate(zip(wanted, found, strict=True)):
        if type_ is not None and given is not None and type_ != given:
            yield index, type_, given


def function_name_taken(name: str, location: Location | None, first: str) -> Diagnostic:
    """Return E4107: another function is called ``name`` already, ``first`` says which."""
    notes, help_ = (f"the other one is {first}",), "give every function a name of its own"
    return finding("E4107", f"two functions are called @{name}", location, notes, help_, function=name)


def entry_is_target(label: str, location: Location | None) -> Diagnostic:
    """Return E4108: a branch goes to the entry of its function."""
    message = f"a branch goes to ^{label}, the entry of the function, which only calls enter"
    help_ = "let the entry branch to a block that begins the loop"
    return finding("E4108", message, location, (), help_, block=label)


def label_taken(label: str, location: Location | None, first: str) -> Diagnostic:
    """Return E4109: another block is labelled ``label`` already, ``first`` says which."""
    notes, help_ = (f"the other one is {first}",), "give every block of a function a label of its own"
    return finding("E4109", f"two blocks are labelled ^{label}", location, notes, help_, block=label)


def missing_terminator(label: str, location: Location | None, wanted: str, found: str | None) -> Diagnostic:
    """Return E4111: a block ends in ``found`` (None: in nothing), which does not end such a block."""
    message = f"^{label} ends in {found}" if found else f"^{label} has no terminator"
    return finding("E4111", message, location, (), f"end it with {wanted}", block=label)


def after_terminator(label: str, terminator: str, location: Location | None) -> Diagnostic:
    """Return E4112: something follows the terminator of a block."""
    message = f"^{label} has ended: nothing follows its terminator"
    notes = (f"the terminator is '{terminator}'",)
    help_ = "begin another block, or put this before the terminator"
    return finding("E4112", message, location, notes, help_, block=label, terminator=terminator)


def listing(types: Sequence[object]) -> str:
    """Return types as a signature writes them: ``(tensor<f32[2]>, tensor<i64[]>)``."""
    return f"({', '.join('?' if type_ is None else str(type_) for type_ in types)})"
