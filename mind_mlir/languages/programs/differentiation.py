"""`differentiate`, of modules and of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.passes import autodiff
from mind_mlir.support.float_mode import fixed

if TYPE_CHECKING:
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.passes.autodiff import Gradient
    from mind_mlir.passes.gradient_choice import Cotangent


@public
@fixed()
def differentiate(
    module: AnyProgram,
    function: str | None = None,
    *,
    wrt: Sequence[str] | None = None,
    cotangents: Cotangent | Sequence[Cotangent] = "unit",
    extensions: bool = False,
    verify: bool = True,
    bindings: Mapping[str, int] | None = None,
) -> Gradient:
    """Return the module that computes ``module``'s outputs, followed by the gradients of its inputs.

    Args:
        module: A module, or a program; it is verified and canonicalised first. The gradient of a program is a
            module, whose inputs and outputs are the tensors that tuples and structs are made of.
        function: Which exported function to differentiate; by default the only one, or ``main``, and of a
            program its entry. Of the others, the gradient module holds what this one calls.
        wrt: Names of the inputs to differentiate with respect to, in the order of the gradients wanted; by
            default all floating-point inputs, in their order. Inputs of a function are its arguments; those
            of a program are called ``arg0``, or ``arg0[1]`` for an element of a tuple, or as the compact text
            calls them.
        cotangents: ``unit`` weighs every element of an output by one, so that the gradient of a scalar output
            is its gradient in the usual sense. ``given`` adds an input ``cotangent_<index>`` of the output's
            type (after the module's own inputs; underscores are appended to a name that is taken). One word
            for all outputs, or one for each. An output that is not floating-point has no gradient, and no
            cotangent input; nor does one without elements.
        extensions: Whether to use derivative rules that the documents leave out of Core v1 (Conv2d).
        verify: Whether to verify the gradient module.
        bindings: Extents for the symbolic dimensions of a program, which all must be bound.

    Raises:
        VerificationError: ``module`` itself is not well-formed, a symbolic dimension is not bound (E4303), or
            it is not plain which function is meant (E2002, E2101, E2102).
        UnsupportedError: Branches and loops nest too deeply (E7004).
        AutodiffError: As `mind_mlir.passes.autodiff.differentiate`.
        TypeError: An argument is not of the type above.
        ValueError: ``bindings`` names what is no symbol of the program, or an extent below 0.
    """
    chosen, function = kind_of(module).single(module, function, bindings)
    return autodiff.differentiate(
        chosen, function, wrt=wrt, cotangents=cotangents, extensions=extensions, verify=verify
    )
