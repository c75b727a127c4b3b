"""Static reverse-mode differentiation (autodiff.md).

Before: a flat module, or a function of a module. After: a verified canonical module that computes the outputs
of the given one and, for each chosen input, the gradient of the outputs' weighted sum with respect to it. The
weights are ones, or further inputs, the *cotangents* of the outputs.

    gradient module ::= primal inputs, cotangent inputs, primal operations, gradient operations
    its outputs     ::= primal outputs, gradients of the chosen inputs

The operations are visited once, in reverse; each one's derivative rule turns the gradient of its result into
gradients of its operands, which are summed per value. Broadcasting is undone here, once for all rules.
Time and memory are linear in the number of operations, and nothing recurses but for regions in regions, whose
depth is bounded.

A function is differentiated in structured form (`mind_mlir.passes.structure`), and so is what it calls: the
derivative rules of `Cond`, `While` and `Call` stand in their records as those of other operations do, and
`mind_mlir.passes.function_derivatives` makes the functions that calls ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import AutodiffError, VerificationError
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.module import Block, Return
from mind_mlir.passes.activity import Flow
from mind_mlir.passes.autodiff_errors import invalid_gradient_module
from mind_mlir.passes.autodiff_functions import chosen_parameters, gradient_functions
from mind_mlir.passes.backward import Backward, full
from mind_mlir.passes.canonicalize import canonical, canonicalize_with_map
from mind_mlir.passes.forms import structured_form, verified
from mind_mlir.passes.gradient_choice import chosen_names, cotangent_modes, declare_cotangents
from mind_mlir.passes.unselected import Unselected
from mind_mlir.passes.verify import verify as verify_module
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.notebooks import shown_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.module import Function, Module, ValueId
    from mind_mlir.passes.gradient_choice import Cotangent


@dataclass(frozen=True, slots=True)
class Gradient:
    """What differentiation returns.

    Attributes:
        module: The gradient module.
        gradients: From values of the module as given to values of the gradient module. It holds every chosen
            input, and every intermediate value through which they reach an output and whose gradient the
            gradient module computes. Of a module that is not flat, it holds the chosen parameters alone.
    """

    BORDER_NOTE: ClassVar = ", whose attribute module is one"

    _repr_html_ = shown_by("programs.gradient")

    module: Module
    gradients: Mapping[ValueId, ValueId]

    def __str__(self) -> str:
        return str(self.module)

    def __repr__(self) -> str:
        return f"<Gradient with respect to {len(self.gradients)} values: {self.module!r}>"


def differentiate(
    module: Module,
    function: str | None = None,
    *,
    wrt: Sequence[str] | None = None,
    cotangents: Cotangent | Sequence[Cotangent] = "unit",
    extensions: bool = False,
    verify: bool = True,
) -> Gradient:
    """Return the module that computes ``module``'s outputs, followed by the gradients of its inputs.

    Args:
        module: A module; it is verified and canonicalised first.
        function: Which exported function to differentiate; by default the only one, or ``main``.
            Of the others, the gradient module holds what this one calls.
        wrt: Names of the inputs to differentiate with respect to, in the order of the gradients wanted; by
            default all floating-point inputs, in their order. Inputs of a function are its arguments.
        cotangents: ``unit`` weighs every element of an output by one, so that the gradient of a scalar output
            is its gradient in the usual sense. ``given`` adds an input ``cotangent_<index>`` of the output's
            type (after the module's own inputs; underscores are appended to a name that is taken). One word
            for all outputs, or one for each. An output that is not floating-point has no gradient, and no
            cotangent input; nor does one without elements, because no input is empty.
        extensions: Whether to use derivative rules that the documents leave out of Core v1 (Conv2d).
        verify: Whether to verify the gradient module.

    Raises:
        VerificationError: ``module`` itself is not well-formed, or it is not plain which function is meant
            (E2002, E2101, E2102).
        UnsupportedError: Branches and loops nest too deeply (E7004).
        AutodiffError: E5001, an operation on the way has no derivative rule; E5002, the gradient module fails
            verification; E5003 and E5004, a rule met an axis or shape that it cannot handle; E5005, a chosen
            input (by default: every input) is not floating-point; E5101, no input has a chosen name; E5102,
            ``cotangents`` is malformed. All findings are in it.
        TypeError: An argument is not of the type above.
    """
    module = verified(module)
    extensions, verify = (
        argument_checks.flag(extensions, "extensions"),
        argument_checks.flag(verify, "verify"),
    )
    entry = entry_function(module, function)
    if not module.is_flat:
        return _of_function(module, entry, wrt, cotangents, extensions=extensions, verify=verify)
    inputs = module.inputs_by_name
    names = chosen_names(inputs, wrt)
    modes = cotangent_modes(len(module.outputs), cotangents)
    flat, renamed = canonicalize_with_map(module)
    original = {new: old for old, new in renamed.items()}
    chosen = [renamed[inputs[name].value_id] for name in names]

    builder = Builder()
    primal = {op.value_id: builder.copy(op, ()) for op in flat.inputs}
    producers = {op.value_id: op for op in flat.operations}
    types = (producers[output].tensor_type for output in flat.outputs)
    seeds = declare_cotangents(zip(types, modes, strict=True), flat.inputs_by_name, builder.input)
    for operation in flat.operations[len(flat.inputs) :]:
        operands = [primal[operand] for operand in operation.operands]
        primal[operation.value_id] = builder.copy(operation, operands)

    varying = Flow.of(flat.body, {}).reached_from(chosen)
    backward = Backward(builder, primal, varying, original, Unselected.of(flat.functions[0]), extensions)
    for output, seed in zip(flat.outputs, seeds, strict=True):
        if output in backward.varying:
            backward.accumulate(output, seed or full(builder, primal[output].type, 1))
    backward.run(flat.operations)
    for value in chosen:  # what no output depends on has the gradient zero; it is never dropped
        if value not in backward.gradients:
            backward.gradients[value] = full(builder, primal[value].type, 0)
    return _finish(flat, backward, chosen, verify=verify)


def _of_function(
    module: Module,
    entry: Function,
    wrt: Sequence[str] | None,
    cotangents: Cotangent | Sequence[Cotangent],
    *,
    extensions: bool,
    verify: bool,
) -> Gradient:
    """Differentiate a function of a module that is not flat."""
    chosen = chosen_parameters(entry, wrt)
    modes = cotangent_modes(len(entry.result_types or ()), cotangents)
    structured = structured_form(module)
    made = gradient_functions(structured, entry.name, chosen, modes, extensions=extensions)
    gradient = canonical(made)
    if verify:
        _verify_gradient(gradient)
    results = gradient.functions[entry.name].entry.terminator.operands
    found = results[len(results) - len(chosen) :]
    parameters = [entry.parameters[place].value_id for place in chosen]
    return Gradient(gradient, FrozenDict(zip(parameters, found, strict=True)))


def _verify_gradient(module: Module) -> None:
    try:
        verify_module(module)
    except VerificationError as error:
        # One rule that all of a deep nest breaks is one finding.
        different = {(found.code, found.message): found for found in reversed(error.diagnostics)}
        raise AutodiffError(map(invalid_gradient_module, reversed(different.values()))) from error


def _finish(flat: Module, backward: Backward, chosen: Sequence[ValueId], *, verify: bool) -> Gradient:
    gradients = backward.gradients
    outputs = [backward.primal[output].id for output in flat.outputs]
    outputs += [gradients[value].id for value in chosen]
    terminator = Return(tuple(outputs), flat.returned.locations)
    body = Block(tuple(backward.builder.operations), terminator, label=flat.body.label)
    module, renamed = canonicalize_with_map(flat.with_body(body))
    if verify:
        _verify_gradient(module)
    kept = {
        backward.original[value]: renamed[gradient.id]
        for value, gradient in sorted(gradients.items())
        if gradient.id in renamed
    }
    return Gradient(module, FrozenDict(kept))
