"""Differentiation as the subcommands `grad` and `compile --autodiff` do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.core.printer import print_module
from mind_mlir.passes.autodiff import differentiate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import Module
    from mind_mlir.tools.cli.stage_log import StageLog


def gradient_module(
    module: Module,
    log: StageLog,
    *,
    function: str | None = None,
    wrt: Sequence[str] | None = None,
    given: bool = False,
    extensions: bool = False,
) -> Module:
    """Return the gradient module of ``module`` (see `mind_mlir.passes.autodiff.differentiate`).

    Args:
        module: The primal.
        log: Sees the primal, as stage ``primal``.
        function: The function to differentiate; ``main``, or the only exported one, by default.
        wrt: Names of the inputs to differentiate with respect to; all float inputs by default.
        given: Whether the outputs' cotangents are inputs rather than ones.
        extensions: Whether derivative rules outside Core v1 may be used.

    Raises:
        VerificationError: The primal is not well-formed.
        AutodiffError: It cannot be differentiated as asked (E5xxx).
    """
    log("primal", lambda: print_module(module))
    with log.timed("autodiff"):
        gradient = differentiate(
            module,
            function,
            wrt=wrt,
            cotangents="given" if given else "unit",
            extensions=extensions,
        )
    return gradient.module
