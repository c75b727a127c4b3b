"""What becomes of a program: it is compiled, run, and compared with the interpreter."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import InternalError, MindError
from mind_mlir.ir.module import CoreOperation, Module
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.passes.reduction.errors import mark
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions
from mind_mlir.tools.children import CrashedError, in_child
from mind_mlir.tools.comparison import first_difference
from mind_mlir.tools.reducing.outputs import differing_output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.ir.attributes import Array

    Given = Callable[[Module], Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ends: two that are equal fail alike.

    Attributes:
        kind: ``right``, ``diagnostics``, ``internal error``, ``crash``, ``timeout`` or ``difference``.
        facts: What tells failures of a kind apart: codes, the signal, or where in the compiler.
        message: What happened, for people; takes no part in equality.
    """

    kind: str
    facts: tuple[str, ...] = ()
    message: str = ""

    def is_like(self, other: Ending) -> bool:
        """Return whether both are the same failure."""
        return (self.kind, self.facts) == (other.kind, other.facts)


RIGHT = Ending("right")

#: How many times as long as the whole program a smaller one may take, and seconds that each may.
_TIMES, _AT_LEAST = 4.0, 2.0


class Failure:
    """How a program fails, and which others fail so.

    Args:
        module: A verified module of one exported function, in the form that is reduced.
        options: How it is compiled.
        given: Makes the inputs that a module is run with.
        seconds: How long it may take to be compiled and run; where it takes longer, that is the failure.
    """

    def __init__(self, module: Module, options: CompileOptions, given: Given, seconds: float) -> None:
        load()
        start = time.monotonic()
        self._options, self._given, self._seconds = options, given, seconds
        self.outcome = outcome(module, options, given, seconds)
        if self.outcome.kind != "timeout":
            self._seconds = min(seconds, max(_AT_LEAST, _TIMES * (time.monotonic() - start)))

    def shows_in(self, module: Module) -> bool:
        """Return whether ``module`` fails in the same way."""
        return outcome(module, self._options, self._given, self._seconds).is_like(self.outcome)


def load() -> None:
    """Load what compiles, once, for all processes that are forked from this one."""
    from mind_mlir.runtime.executable import Executable  # noqa: PLC0415 -- loads MLIR

    x = CoreOperation(0, "Input", (), {"name": "x"}, TensorType(DType.F32))
    doubled = CoreOperation(1, "Add", (0, 0), {}, TensorType(DType.F32))
    with suppress(Exception):  # each program will say what is wrong
        Executable(Module.flat([x, doubled], [1]), CompileOptions(cache=False, interpret=False))


def outcome(module: Module, options: CompileOptions, given: Given, seconds: float) -> Ending:
    """Return how a verified module of one exported function ends, in a process of its own.

    Args:
        module: The module.
        options: How it is compiled.
        given: Makes the inputs that it is run with.
        seconds: How long all that may take.
    """
    try:
        found = in_child(partial(_outcome, module, options, given), seconds)
    except CrashedError as error:
        return Ending("crash", (str(error),), f"the compiler or compiled code crashed ({error})")
    except TimeoutError:
        return Ending("timeout", (), f"it took longer than {seconds:g} seconds")
    assert isinstance(found, Ending)
    return found


def _outcome(module: Module, options: CompileOptions, given: Given) -> Ending:
    from mind_mlir.runtime.executable import Executable  # noqa: PLC0415 -- loads MLIR, which the parent does without

    try:
        inputs = given(module)
        executable = Executable(module, replace(options, cache=False, interpret=False))
        found: Callable[[], str | None]
        for kind, found in (
            ("operation", lambda: _text(first_difference(module, inputs, target=options.target))),
            ("output", lambda: differing_output(module, inputs, executable(**inputs))),
        ):
            message = found()
            if message is not None:
                return Ending("difference", (kind,), message)
    except MindError as error:
        codes = tuple(dict.fromkeys(each.code for each in error.diagnostics))
        return Ending("diagnostics", codes, str(error))
    except InternalError as error:
        return Ending("internal error", mark(error), str(error))
    except Exception as error:  # of the runtime, which has no stage
        internal = InternalError("run", f"{type(error).__name__}: {error}", "")
        internal.__cause__ = error
        return Ending("internal error", mark(internal), str(internal))
    return RIGHT


def _text(difference: object) -> str | None:
    return None if difference is None else str(difference)
