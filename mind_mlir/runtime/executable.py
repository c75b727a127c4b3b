"""`Executable`: a compiled function that Python calls with numpy arrays."""

from __future__ import annotations

import inspect
import keyword
import time
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir import border
from mind_mlir.arguments import address, bind, parameters_of
from mind_mlir.diagnostics import ExecutionError
from mind_mlir.diagnostics.display import brief
from mind_mlir.interrupts import held
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.ir.types import DType
from mind_mlir.ops.contexts import allocation_failed
from mind_mlir.pipeline import Lowering
from mind_mlir.runtime.disassemble import assembly
from mind_mlir.runtime.native import NativeFunction
from mind_mlir.stages import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.attributes import Array
    from mind_mlir.pipeline import Observer

DEFAULT_OPT_LEVEL = 3
OPT_LEVELS = range(4)


def compile(
    module: Module, *, opt_level: int = DEFAULT_OPT_LEVEL, observer: Observer | None = None
) -> Executable:
    """Compile a module for this machine.

    Args:
        module: A module of profile ``core-v1``; it is verified and canonicalised first.
        opt_level: LLVM's optimisation level, 0 to 3; results are the same at each.
        observer: Sees every stage's form as it appears.

    Raises:
        VerificationError: The module breaks a rule; the exception holds all findings.
        ExecutionError: E6004, intermediate values need more scratch memory than any address space has.
        TypeError: An argument is not of the type above.
        ValueError: ``opt_level`` is none of 0 to 3.
        InternalError: A stage failed on a verified module: a bug of the compiler.
    """
    return Executable(module, opt_level=opt_level, observer=observer)


class _Signature:
    """What a call of an executable takes and returns, for `inspect.signature` and completion in editors."""

    def __get__(self, executable: Executable | None, owner: type) -> inspect.Signature:
        if executable is None:
            raise AttributeError("a class has the signature of its constructor")
        return executable.signature()


class Executable:
    """A function compiled to native code.

    Calls check their arguments, never write to them, and return fresh arrays. The interpreter lock is
    released while native code runs, and any number of threads may call one Executable at the same time.
    It pickles as its module, which is compiled again where it is loaded; a copy is the same object.

    Attributes:
        parameters: The inputs, in order.
        results: The types of the outputs, in order.
        timings: Seconds that each stage of the compilation took.
    """

    def __init__(self, module: Module, *, opt_level: int, observer: Observer | None) -> None:
        border.expect(module, Module, "module", MODULE)
        opt_level = _opt_level(opt_level)
        if observer is not None and not callable(observer):
            border.reject("observer", "callable, or None", observer)
        with held():
            lowering = Lowering(observer=observer)
            lowering.run(module)
            start = time.perf_counter()
            self._native = NativeFunction(lowering.mlir, opt_level=opt_level)
            lowering.timings["codegen"] = time.perf_counter() - start
        self.timings: Mapping[str, float] = MappingProxyType(lowering.timings)
        self._source = module
        self._opt_level = opt_level
        canonical = lowering.canonical
        assert canonical is not None, "a lowering that went through has a canonical module"
        types = {op.value_id: op.tensor_type for op in canonical.operations}
        self.parameters = parameters_of(canonical)
        self.results = tuple(types[output] for output in canonical.outputs)
        # The MLIR values in the checks die with the module; only their facts are kept.
        self._checks = tuple(outcome.check for outcome in lowering.checks_of[canonical.name])
        # What a call allocates: the outputs and, behind them, the status that the checks are judged by.
        self._layouts = [(type_.extents, type_.dtype.numpy) for type_ in self.results]
        if self._checks:
            self._layouts.append(((2 * len(self._checks),), DType.SI64.numpy))
        self._locations: dict[str, Location | None] = {op.label: op.location for op in canonical.operations}

    def __str__(self) -> str:
        return str(self._source)

    def __repr__(self) -> str:
        inputs, results = ", ".join(map(str, self.parameters)), ", ".join(map(str, self.results))
        return f"<Executable {brief(f'{self._source.name}({inputs}) -> ({results})')}>"

    __signature__ = _Signature()

    def signature(self) -> inspect.Signature:
        """Return what a call takes and returns, which is what `inspect.signature` says, too.

        An input whose name is none in Python can only be given by position or with ``**``: there is no
        signature that says so, and this one then takes anything.
        """
        names = [parameter.name for parameter in self.parameters]
        kinds = inspect.Parameter
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
            parameters = [
                kinds(p.name, kinds.POSITIONAL_OR_KEYWORD, annotation=str(p.type)) for p in self.parameters
            ]
        else:
            parameters = [kinds("args", kinds.VAR_POSITIONAL), kinds("kwargs", kinds.VAR_KEYWORD)]
        return inspect.Signature(parameters, return_annotation=f"({', '.join(map(str, self.results))})")

    def __reduce__(self) -> tuple[Callable[[Module, int], Executable], tuple[Module, int]]:
        return _recompile, (self._source, self._opt_level)

    def __copy__(self) -> Executable:
        return self  # nothing about it can be changed

    def __deepcopy__(self, memo: object) -> Executable:
        return self

    def __call__(self, /, *args: object, **kwargs: object) -> tuple[Array, ...]:
        """Run the function on numpy arrays, given by position or by input name.

        Returns:
            One fresh C-contiguous array for each output, always as a tuple.

        Raises:
            ArgumentError: The arguments do not fit the inputs (E61xx).
            ExecutionError: E6001, an index was out of bounds; E6004, the memory for outputs or intermediate
                values could not be had.
        """
        arrays = bind(self.parameters, args, kwargs)
        try:
            outputs = tuple([np.empty(shape, dtype) for shape, dtype in self._layouts])
            self._native.call([address(array) for array in (*arrays, *outputs)])
        except MemoryError as error:
            what = f"the outputs and {self._native.scratch_bytes} bytes of scratch memory"
            raise allocation_failed(what, self.results) from error
        if not self._checks:
            return outputs
        *results, status = outputs
        self._raise_for(status.tolist())
        return tuple(results)

    def as_text(self, stage: str) -> str:
        """Return the function in the form that ``stage`` leaves it in.

        Args:
            stage: One of `mind_mlir.stages.FORMS`, from ``core`` to ``asm``.

        Raises:
            TypeError: ``stage`` is no string.
            ValueError: It is another one.
            UnsupportedError: E7003, the tools that print assembly are not installed.
        """
        border.choice(stage, FORMS, "stage")
        return stage_text(self._source, stage, opt_level=self._opt_level)

    def _raise_for(self, status: Sequence[int]) -> None:
        ends = zip(status[::2], status[1::2], strict=True)
        judged = (
            check.judge(smallest, largest, self._locations.get(check.label))
            for check, (smallest, largest) in zip(self._checks, ends, strict=True)
        )
        findings = [finding for finding in judged if finding is not None]
        if findings:
            raise ExecutionError(findings)


def _recompile(module: Module, opt_level: int) -> Executable:
    """Return what a pickled executable stands for; its machine code is made for the machine that loads it."""
    return compile(module, opt_level=opt_level)


def _opt_level(value: object) -> int:
    level = border.integer(value, "opt_level")
    if level not in OPT_LEVELS:
        raise ValueError(f"opt_level must be one of {', '.join(map(str, OPT_LEVELS))}, not {level}")
    return level


@held()
def stage_text(module: Module, stage: str, *, opt_level: int = DEFAULT_OPT_LEVEL) -> str:
    """Return ``module`` in the form that ``stage`` leaves it in (see `Executable.as_text`)."""
    lowering = Lowering()
    text = lowering.run(module, until="llvm" if stage == "asm" else stage)
    if text is not None:
        return text
    if stage == "asm":
        return assembly(NativeFunction(lowering.mlir, opt_level=opt_level))
    return f"{lowering.mlir}"
