"""A module in the form that all stages begin with, which is the one that code is kept for."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import InternalError, MindError
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.passes.canonicalize import canonical
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mind_mlir.ir.module import Function, Module


@contextmanager
def timed(
    timings: dict[str, float], stage: str, reproducer: Callable[[], str] | None = None
) -> Iterator[None]:
    """Add the time of a stage to ``timings``.

    Args:
        timings: Seconds by stage.
        stage: The stage.
        reproducer: Returns what the stage works on, for the report of a bug of ours; where there is none,
            exceptions pass as they are.

    Raises:
        InternalError: The stage raised what is no diagnostic.
        MemoryError: There is no memory for what the stage does.
    """
    start = time.perf_counter()
    try:
        yield
    except (MindError, InternalError, MemoryError):
        raise
    except Exception as error:
        if reproducer is None:
            raise
        raise InternalError(stage, str(error) or type(error).__name__, reproducer()) from error
    finally:
        timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - start


@contextmanager
def reducible(module: Module, run: Callable[[Module, str], object]) -> Iterator[None]:
    """Let the bugs that show within be reduced: see `InternalError.reduced`.

    Args:
        module: A verified module.
        run: Does with a verified module what is done within with ``module``, up to the stage that is named.
    """
    try:
        yield
    except InternalError as error:
        from mind_mlir.passes.reduction import reduced_error  # noqa: PLC0415 -- only where there is a bug

        error.reducible(str(module), partial(reduced_error, module, error, run))
        raise


def canonical_form(module: Module, timings: dict[str, float]) -> Module:
    """Return the canonical form of a module, which is verified first, and without custom calls to expand.

    Args:
        module: A module of any profile.
        timings: Takes the seconds of the stages.

    Raises:
        VerificationError: The module breaks a rule; all findings are in it.
        InternalError: A stage failed on a verified module.
    """
    with timed(timings, "verify"):
        verified = verify(module)
        if any(map(_has_custom_calls, verified.functions)):
            from mind_mlir.passes.expand import expanded  # noqa: PLC0415 -- few programs have any

            verified = expanded(verified)
    with (
        reducible(verified, lambda other, _: canonical_form(other, {})),
        timed(timings, "canonical", verified.__str__),
    ):
        return canonical(verified)


def _has_custom_calls(function: Function) -> bool:
    return any(operation.opcode == "CustomCall" for operation in operations_of(function.blocks))
