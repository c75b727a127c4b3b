"""`ProgramExecutable`: a PTIR program whose functions take tuples, or have symbolic dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mind_mlir.arguments.programs import ProgramArguments
from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.types import TensorType
from mind_mlir.languages.programs.verification import in_binding, verify
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import chosen_function, restricted
from mind_mlir.languages.ptir.symbols import bind, checked_bindings, symbols_of
from mind_mlir.languages.ptir.to_module import convert, signature_of
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.call_record import OUT
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.function_set import named_function
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from mind_mlir.support.stages import Observer


@dataclass(frozen=True, slots=True)
class Bindings:
    """The bindings that an executable has compiled, with counts of hits, misses and evictions.

    Attributes:
        entries: The function and the extents of its symbols for what is there, the last used at the end.
        capacity: How many of these are kept at most.
        hits: Calls whose code was there.
        misses: Calls (and `ProgramExecutable.prepare`) that had to compile.
        evictions: How many were dropped, least recently used first.
    """

    entries: tuple[tuple[str, Mapping[str, int]], ...]
    capacity: int
    hits: int
    misses: int
    evictions: int


class ProgramExecutable:
    """A program compiled to native code, once for each binding of its symbolic dimensions.

    Called, it is the program's entry; ``executable["f"]`` is any of its functions. A call binds each symbol
    to the extent that its arguments have there, 0 or more, and compiles the function for that binding the
    first time; `bindings` says for which it is compiled. What does not depend on symbols is compiled at once.
    Tuples are given and returned as tuples of Python. Any number of threads may call one at the same time. It
    pickles as its program, with the code of its bindings.

    Attributes:
        program: The program, with those of its symbols bound that were bound when it was compiled.
        functions: Its functions by name.
    """

    def __init__(
        self,
        program: Program,
        options: CompileOptions,
        *,
        observer: Observer | None,
        max_bindings: int,
        compiled: Iterable[tuple[tuple[str, tuple[int, ...]], Executable]] = (),
    ) -> None:
        """Compile what does not depend on symbols; there is code already of the bindings in ``compiled``."""
        self.program = argument_checks.expect(program, Program, "program", "a Program")
        self._options = argument_checks.expect(options, CompileOptions, "options", "CompileOptions")
        self._observer = observer
        self._max_bindings = max_bindings = argument_checks.integer(max_bindings, "max_bindings")
        self._cache: BindingCache[tuple[str, tuple[int, ...]], Executable] = BindingCache(max_bindings)
        for key, executable in compiled:
            self._cache.get(key, partial(_given, executable))
        if symbols_of(program):  # else it is verified where it is compiled
            verify(program)
        self.functions: Mapping[str, ProgramFunction] = FrozenDict(
            {function.name: ProgramFunction(self, function.name) for function in program.functions}
        )
        for function in self.functions.values():
            if not function.symbols:
                function.prepare()

    def __repr__(self) -> str:
        return f"<ProgramExecutable {brief(', '.join(self.functions))}, {len(self._cache.items())} bindings>"

    def __reduce__(self) -> tuple[Callable[..., ProgramExecutable], tuple[object, ...]]:
        return _again, (self.program, self._options, self._max_bindings, self._cache.items())

    def __copy__(self) -> ProgramExecutable:
        return self  # nothing about it can be changed

    def __deepcopy__(self, memo: object) -> ProgramExecutable:
        return self

    def __getitem__(self, name: str) -> ProgramFunction:
        """Return the function called ``name``; a `KeyError` where there is none."""
        return named_function(self.functions, name)

    @public
    def __call__(self, /, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """Run the entry (see `ProgramFunction.__call__`)."""
        return self.functions[self.program.entry](*args, **kwargs)

    def prepare(self, **extents: int) -> Executable:
        """Return the entry compiled for a binding of all of its symbols (see `ProgramFunction.prepare`)."""
        return self.functions[self.program.entry].prepare(**extents)

    def bindings(self) -> Bindings:
        """Return for which bindings there is code, and what has become of calls."""
        cache = self._cache
        entries = tuple(
            (name, FrozenDict(zip(self.functions[name].symbols, extents, strict=True)))
            for (name, extents), _ in cache.items()
        )
        return Bindings(entries, cache.capacity, cache.hits, cache.misses, cache.evictions)

    def clear_bindings(self) -> None:
        """Drop all code; calls compile it again."""
        self._cache.clear()

    def as_text(self, stage: str, bindings: Mapping[str, int] | None = None) -> str:
        """Return the entry, for a binding of its symbols, in the form that ``stage`` leaves it in.

        Raises:
            VerificationError: E4303, a symbol is not bound.
            TypeError: An argument is not of its type.
            ValueError: ``stage`` is no stage, or the program has no such symbol.
        """
        bound = bind(self.program, checked_bindings(bindings or {}, symbols_of(self.program)))
        module = convert(restricted(bound)).module
        return Executable(module, self._options, observer=self._observer).as_text(stage)


class ProgramFunction:
    """One function of a program.

    Attributes:
        name: Its name.
        symbols: The symbolic dimensions that its arguments bind.
    """

    def __init__(self, executable: ProgramExecutable, name: str) -> None:
        self.name = name
        self._executable = executable
        self._program = restricted(executable.program, name)
        function = chosen_function(self._program)
        self._arguments = ProgramArguments(function, signature_of(function))
        self._takes_out = OUT not in self._arguments.signature.names
        self.symbols = self._arguments.symbols

    def __repr__(self) -> str:
        return f"<ProgramFunction {self}>"

    def __str__(self) -> str:
        signature = self._arguments.signature
        named = zip(signature.names, signature.parameters, strict=True)
        taken = ", ".join(f"{name}: {type_}" for name, type_ in named)
        return f"{self.name}({taken}) -> ({', '.join(map(str, signature.results))})"

    @public
    def __call__(self, /, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """Run the function on numpy arrays, given by position or by name.

        With ``out=``, arrays for the results, nested as these are, results are written there (see
        `CompiledFunction.__call__`).

        Returns:
            One value for each result, always as a tuple: an array, or a tuple where the type is one.

        Raises:
            ArgumentError: The arguments do not fit the parameters (E61xx), or disagree about a symbolic
                dimension (E6107).
            VerificationError: The program breaks a rule where its symbols are what the arguments say.
            ExecutionError: As `CompiledFunction.__call__`.
        """
        outputs: dict[str, object] = {}
        if OUT in kwargs and self._takes_out:
            given = dict(kwargs)
            outputs[OUT] = self._arguments.flat_results(given.pop(OUT))
            kwargs = given
        extents, tensors = self._arguments.take(args, kwargs)
        compiled = self._compiled(extents)
        return self._arguments.results(compiled(*tensors, **outputs))

    def prepare(self, **extents: int) -> Executable:
        """Return the function compiled for a binding of all of its symbols, so that a call need not.

        What is returned takes and gives back tensors alone, in the order in which they stand in tuples.

        Raises:
            TypeError: An extent is no integer.
            ValueError: One is negative, there is no such symbol, or a symbol is not bound.
            VerificationError: The program breaks a rule where its symbols are bound so.
        """
        given = checked_bindings(extents, self.symbols)
        if missing := [name for name in self.symbols if name not in given]:
            raise ValueError(f"bindings must name every symbol; missing: {', '.join(missing)}")
        return self._compiled(tuple(given[name] for name in self.symbols))

    def _compiled(self, extents: tuple[int, ...]) -> Executable:
        return self._executable._cache.get((self.name, extents), lambda: self._compile(extents))

    def _compile(self, extents: Sequence[int]) -> Executable:
        binding = dict(zip(self.symbols, extents, strict=True))
        with in_binding(binding):
            converted = convert(bind(self._program, binding))
        whole = self._executable
        return Executable(converted.module, whole._options, observer=whole._observer)


def _given(executable: Executable) -> Executable:
    return executable


def _again(
    program: Program, options: CompileOptions, max_bindings: int, compiled: list[Any]
) -> ProgramExecutable:
    """Return what a pickled executable stands for."""
    return ProgramExecutable(program, options, observer=None, max_bindings=max_bindings, compiled=compiled)


def needs_program(program: Program) -> bool:
    """Return whether callers of ``program`` need more than its module: tuples, or symbols to be bound."""
    return bool(symbols_of(program)) or any(
        not isinstance(type_, TensorType)
        for function in program.functions
        for type_ in (*function.parameters, *function.results)
    )
