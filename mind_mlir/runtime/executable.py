"""`Executable`: a compiled module, whose functions Python calls with numpy arrays."""

from __future__ import annotations

import time
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir import border
from mind_mlir.abi import symbol_of
from mind_mlir.analysis.restriction import restricted
from mind_mlir.diagnostics.display import brief
from mind_mlir.frozen import FrozenDict
from mind_mlir.interrupts import deliver, held
from mind_mlir.ir.entry import DEFAULT_ENTRY, default_entry, exported
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.mlir.references import References
from mind_mlir.pipeline import Lowering
from mind_mlir.runtime.call import Called
from mind_mlir.runtime.contexts import borrowed, is_small
from mind_mlir.runtime.disassemble import assembly
from mind_mlir.runtime.function import CompiledFunction, Signature
from mind_mlir.runtime.kernels import begin_kernels
from mind_mlir.runtime.memory import pool
from mind_mlir.runtime.native import NativeFunction, NativeModule
from mind_mlir.runtime.places import Places
from mind_mlir.runtime.threads import begin_pool, check_threads, loop_threads
from mind_mlir.stages import FORMS
from mind_mlir.target import TARGETS, named_target, runnable_target

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Iterator, Mapping

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Parameter
    from mind_mlir.ir.types import TensorType
    from mind_mlir.pipeline import Observer
    from mind_mlir.runtime.bound import BoundFunction
    from mind_mlir.target import Target

DEFAULT_OPT_LEVEL = 3
OPT_LEVELS = range(4)


def compile(
    module: Module,
    *,
    function: str | None = None,
    opt_level: int = DEFAULT_OPT_LEVEL,
    threads: int | None = None,
    target: str | None = None,
    winograd: bool = False,
    observer: Observer | None = None,
) -> Executable:
    """Compile a module for this machine.

    Args:
        module: A module of any profile; it is verified and canonicalised first.
        function: The exported function to compile, with what it calls; all of them unless given.
        opt_level: How far LLVM optimises what gains by it, 0 to 3; results are the same at each.
        threads: How many threads share a loop at most, 1 to 1024; `get_num_threads` says how many do where
            that is less, or nothing is given. Results are the same with any number.
        target: The processor, ``native``, ``sse``, ``avx2`` or ``avx512``; by default what the variable
            ``MIND_MLIR_TARGET`` says, or else ``native``, this machine with all that it has.
        winograd: Whether convolutions of floats with filters of 3 x 3 and stride 1 take Winograd's form where
            it is faster. It has a bound of its own: `docs/schedule.md`.
        observer: Sees every stage's form as it appears.

    Raises:
        VerificationError: The module breaks a rule; the exception holds all findings. E2002, E2101: there
            is no such function, or it is not exported.
        ExecutionError: E6004, intermediate values need more scratch memory than any address space has.
        TypeError: An argument is not of the type above.
        ValueError: ``opt_level`` is none of 0 to 3, ``threads`` is out of range, ``target`` is none of
            those, or not this machine's, or one of the variables ``MIND_MLIR_NUM_THREADS`` and
            ``MIND_MLIR_TARGET`` is wrong.
        InternalError: A stage failed on a verified module: a bug of the compiler.
    """
    return Executable(
        module,
        function=function,
        opt_level=opt_level,
        threads=threads,
        target=target,
        winograd=winograd,
        observer=observer,
    )


class Executable(Called):
    """A module compiled to native code: its exported functions.

    Called, it is its function ``main``, or the only one; ``executable["f"]`` is any of them. Calls check
    their arguments, never write to them, and return fresh arrays. The interpreter lock is released while
    native code runs, and any number of threads may call one Executable at the same time. It pickles as its
    module, which is compiled again where it is loaded; a copy is the same object.

    Attributes:
        functions: The exported functions by name, in the module's order.
        timings: Seconds that each stage of the compilation took.
    """

    def __init__(
        self,
        module: Module,
        *,
        function: str | None = None,
        opt_level: int,
        threads: int | None,
        target: str | None = None,
        winograd: bool = False,
        observer: Observer | None,
        entry: str | None = None,
    ) -> None:
        super().__init__()
        border.expect(module, Module, "module", MODULE)
        opt_level = _opt_level(opt_level)
        threads = None if threads is None else check_threads(threads, "threads")
        # Before anything is done, for what the environment says may be wrong.
        limit = loop_threads(threads)
        machine = _machine(target)
        if observer is not None and not callable(observer):
            border.reject("observer", "callable, or None", observer)
        self._source = module = restricted(module, function)
        winograd = border.flag(winograd, "winograd")
        self._options = (opt_level, threads, target, winograd)
        self._named_entry = entry
        with held(), borrowed(keep=observer is None and is_small(module)) as context:
            begin_pool(limit)
            references = None if observer else References()
            kernels = partial(begin_kernels, target=machine)
            lowering = Lowering(
                machine,
                threads=limit,
                winograd=winograd,
                observer=observer,
                kernels=kernels,
                references=references,
                context=context,
            )
            lowering.run(module)
            start = time.perf_counter()
            native = NativeModule(lowering.mlir, opt_level=opt_level, target=machine, references=references)
            self.functions: Mapping[str, CompiledFunction] = FrozenDict(self._link(lowering, native))
            lowering.timings["codegen"] = time.perf_counter() - start
        self.timings: Mapping[str, float] = MappingProxyType(lowering.timings)
        default = default_entry(module)
        entry = default.name if entry is None and default is not None else entry
        self._entry = None if entry is None else self.functions[entry]
        pool.leftover = True

    def _link(self, lowering: Lowering, native: NativeModule) -> Iterator[tuple[str, CompiledFunction]]:
        """Yield the compiled functions with their names."""
        canonical = lowering.canonical
        assert canonical is not None, "a lowering that went through has a canonical module"
        places = Places(canonical) if any(lowering.checks_of.values()) else None
        for function in exported(canonical):
            deliver()
            name, symbol = function.name, symbol_of(function.name)
            # The MLIR values in the checks die with the module; only their facts are kept.
            checks = [outcome.check for outcome in lowering.checks_of[symbol]]
            found = [(check, places.of(check) if places else None) for check in checks]
            reload = (_recompile_function, (self._source, *self._options, name))
            yield name, CompiledFunction(function, NativeFunction(native, entry=symbol), found, reload)

    def __str__(self) -> str:
        return str(self._source)

    def __repr__(self) -> str:
        return f"<Executable {brief(str(self._entry or f'of {self._names()}'))}>"

    __signature__ = Signature()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the inputs of the function that a call runs; a `ValueError` where there is none."""
        return self._called().parameters

    @property
    def results(self) -> tuple[TensorType, ...]:
        """Return the types of its outputs; a `ValueError` where there is none."""
        return self._called().results

    def signature(self) -> inspect.Signature:
        """Return what a call takes and returns (see `CompiledFunction.signature`)."""
        return self._called().signature()

    def __reduce__(self) -> tuple[Callable[..., Executable], tuple[object, ...]]:
        return _recompile, (self._source, *self._options, self._named_entry)

    def __copy__(self) -> Executable:
        return self  # nothing about it can be changed

    def __deepcopy__(self, memo: object) -> Executable:
        return self

    def __getitem__(self, name: str) -> CompiledFunction:
        """Return the exported function called ``name``.

        Raises:
            KeyError: There is none.
            TypeError: ``name`` is no string.
        """
        function = self.functions.get(border.text(name, "name"))
        if function is None:
            raise KeyError(f"no function is called {brief(repr(name))}; the functions are: {self._names()}")
        return function

    def __call__(self, /, *args: object, **kwargs: object) -> tuple[Array, ...]:
        """Run ``main``, or the only function, on numpy arrays, given by position or by input name.

        With ``out=``, an array or a tuple with one for each output, results are written there (see
        `CompiledFunction.__call__`).

        Returns:
            One fresh C-contiguous array for each output, or those given, always as a tuple.

        Raises:
            ArgumentError: The arguments do not fit the inputs, or ``out`` the outputs (E61xx).
            ExecutionError: E6001, an index was out of bounds; E6004, the memory for outputs or intermediate
                values could not be had; E6009, an integer was divided by zero.
            ValueError: There are several functions, and none is called ``main``.
        """
        function = self._called()
        results = function._call(args, kwargs)
        self._words = function._words
        return results

    _call_python = __call__

    def bind(self, /, *args: object, **kwargs: object) -> BoundFunction:
        """Return ``main``, or the only function, bound to its arguments and outputs.

        It is for loops that use the same arrays again (see `CompiledFunction.bind`).

        Raises:
            ArgumentError: The arguments do not fit the inputs, or ``out`` the outputs (E61xx).
            ExecutionError: E6004, there is no memory for the outputs.
            ValueError: There are several functions, and none is called ``main``.
        """
        return self._called().bind(*args, **kwargs)

    def as_text(self, stage: str) -> str:
        """Return the module in the form that ``stage`` leaves it in.

        Args:
            stage: One of `mind_mlir.stages.FORMS`, from ``core`` to ``asm``.

        Raises:
            TypeError: ``stage`` is no string.
            ValueError: It is another one.
            UnsupportedError: E7003, the tools that print assembly are not installed.
        """
        border.choice(stage, FORMS, "stage")
        opt_level, threads, target, winograd = self._options
        return stage_text(
            self._source, stage, opt_level=opt_level, threads=threads, target=target, winograd=winograd
        )

    def _called(self) -> CompiledFunction:
        """Return the function that a call runs."""
        if self._entry is None:
            raise ValueError(
                f"no function is called '{DEFAULT_ENTRY}': say which one to run, as in "
                f"executable[{next(iter(self.functions), 'name')!r}](...); the functions are: {self._names()}"
            )
        return self._entry

    def _names(self) -> str:
        return brief(", ".join(self.functions) or "none")


def _recompile(
    module: Module,
    opt_level: int,
    threads: int | None,
    target: str | None,
    winograd: bool,
    entry: str | None,
) -> Executable:
    """Return what a pickled executable stands for; its machine code is made for the machine that loads it."""
    return Executable(
        module,
        opt_level=opt_level,
        threads=threads,
        target=target,
        winograd=winograd,
        observer=None,
        entry=entry,
    )


def _recompile_function(
    module: Module, opt_level: int, threads: int | None, target: str | None, winograd: bool, name: str
) -> CompiledFunction:
    """Return what a pickled function stands for."""
    executable = compile(
        module, function=name, opt_level=opt_level, threads=threads, target=target, winograd=winograd
    )
    return executable[name]


def _machine(name: object) -> Target:
    """Return the target that a caller names, or else the environment; this machine runs its code."""
    return runnable_target(None if name is None else border.choice(name, TARGETS, "target"))


def _opt_level(value: object) -> int:
    level = border.integer(value, "opt_level")
    if level not in OPT_LEVELS:
        raise ValueError(f"opt_level must be one of {', '.join(map(str, OPT_LEVELS))}, not {level}")
    return level


@held()
def stage_text(
    module: Module,
    stage: str,
    *,
    opt_level: int = DEFAULT_OPT_LEVEL,
    threads: int | None = None,
    target: str | None = None,
    winograd: bool = False,
) -> str:
    """Return ``module`` in the form that ``stage`` leaves it in (see `Executable.as_text`)."""
    lowering = Lowering(named_target(target), threads=loop_threads(threads), winograd=winograd)
    text = lowering.run(module, until="llvm" if stage == "asm" else stage)
    if text is not None:
        return text
    if stage == "asm":
        return assembly(NativeModule(lowering.mlir, opt_level=opt_level, together=True))
    return f"{lowering.mlir}"
