"""How a verified module gets from one form before MLIR to the next, for all that show or lower it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.core.printer import print_module
from mind_mlir.diagnostics import InternalError, MindError
from mind_mlir.passes.canonicalize import canonical
from mind_mlir.passes.expand import expanded
from mind_mlir.passes.structure import structure
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mind_mlir.ir.module import Module


def structured_form(module: Module) -> Module:
    """Return the structured form of the canonical form of a verified module.

    Raises:
        UnsupportedError: As `structure`.
    """
    for step in STEPS.values():
        module = step(module)
    return module


#: What makes each form of the form before it, in the order of `mind_mlir.stages`.
STEPS: Mapping[str, Callable[[Module], Module]] = MappingProxyType(
    {"canonical": canonical, "structured": structure}
)


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
    """
    start = time.perf_counter()
    try:
        yield
    except (MindError, InternalError):
        raise
    except Exception as error:
        if reproducer is None:
            raise
        raise InternalError(stage, str(error) or type(error).__name__, reproducer()) from error
    finally:
        timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - start


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
        verified = expanded(verify(module))
    with timed(timings, "canonical", lambda: print_module(verified)):
        return canonical(verified)
