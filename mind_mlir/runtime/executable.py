"""`Executable`: a compiled module, whose functions Python calls with numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.cache.fingerprint import has_bindings
from mind_mlir.diagnostics import ArtefactError, InternalError
from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.image.entry import Entry
from mind_mlir.image.errors import LoadingError
from mind_mlir.ir.analysis.effects import printing_functions
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.entry import DEFAULT_ENTRY, entry_function, exported
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.call import Called
from mind_mlir.runtime.check_places import CheckPlaces
from mind_mlir.runtime.compiled_code import code_of
from mind_mlir.runtime.function import CompiledFunction, native_function
from mind_mlir.runtime.function_set import FunctionSet
from mind_mlir.runtime.memory import pool
from mind_mlir.runtime.native import NativeModule
from mind_mlir.runtime.options import checked_options, interprets
from mind_mlir.runtime.parcel import Parcel, ReceivedParcel
from mind_mlir.runtime.received_parcels import ReceivedParcels
from mind_mlir.runtime.threads import NoPoolError, loop_threads
from mind_mlir.runtime.watched import WatchedCalls
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.interrupts import held
from mind_mlir.support.notebooks import shown_by
from mind_mlir.support.stages import FORMS, Observer
from mind_mlir.target import TARGETS, Target, runnable_target

if TYPE_CHECKING:
    from mind_mlir.image.compiled import Compilation, CompiledCode
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Parameter
    from mind_mlir.lowering.profiling.stamps import Stamps
    from mind_mlir.profiling.profile import TimeProfile
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.explorer.report import ExplorerReport


class Executable(FunctionSet):
    """A module compiled to native code: its exported functions.

    Called, it is its function ``main``, or the only one; ``executable["f"]`` is any of them. Calls check
    their arguments, never write to them, and return fresh arrays. The interpreter lock is released while
    native code runs, and any number of threads may call one Executable at the same time. It pickles with its
    machine code and its module (`mind_mlir.runtime.parcel`); a copy is the same object.

    Attributes:
        functions: The exported functions by name, in the module's order.
        module: The module, as it was given.
        options: What the caller chose.
        timings: Seconds that each stage of the compilation took.
    """

    _word = "executable"
    _repr_html_ = shown_by("programs.executable")

    def __init__(
        self,
        module: Module,
        options: CompileOptions | None = None,
        *,
        function: str | None = None,
        observer: Observer | None = None,
        entry: str | None = None,
    ) -> None:
        """Compile a module for this machine (see `mind_mlir.compile`).

        Args:
            module: A module of any profile; it is verified and canonicalised first.
            options: What the caller chose, which is checked here; the defaults unless given.
            function: The exported function to compile, with what it calls; all of them unless given.
            observer: Sees every stage's form as it appears.
            entry: The function that a call runs, where that is not ``main`` or the only one.
        """
        argument_checks.expect(module, Module, "module", MODULE)
        options = checked_options(options)
        if observer is not None and not callable(observer):
            argument_checks.reject("observer", "callable, or None", observer)
        # Before anything is done, for what the environment says may be wrong.
        loop_threads(options.threads)
        _machine(options.target)
        module = restricted(module, function)
        self._compile(
            module, options, None if entry is None else entry_function(module, entry).name, observer
        )

    def _compile(
        self,
        module: Module,
        options: CompileOptions,
        entry: str | None,
        observer: Observer | None = None,
        stamps: Stamps | None = None,
    ) -> None:
        """Compile what has been checked, and load it."""
        self.module, self.options, self._named_entry = module, options, entry
        self._parcel: Parcel | ReceivedParcel = Parcel(module, options, entry)
        self._printing = printing_functions(module.functions)
        if interprets(options) and stamps is None:
            super().__init__(*self._uncompiled(verify(module), entry))
            self.timings: Mapping[str, float] = MappingProxyType({})
            return
        limit, machine = loop_threads(options.threads), _machine(options.target)
        found = code_of(module, options, target=machine, threads=limit, observer=observer, stamps=stamps)
        try:
            functions = self._made(found)
        except NoPoolError:  # one thread runs its loops then, with the same results
            found = code_of(module, options, target=machine, threads=1)
            functions = self._made(found)
        except LoadingError as error:
            if "codegen" in found.timings:
                raise InternalError("codegen", str(error), str(module)) from error
            # It was kept, and refers to what this process does not have.
            again = replace(options, cache=False)
            found = code_of(module, again, target=machine, threads=limit, observer=observer)
            functions = self._made(found)
        super().__init__(functions, _chosen(functions, entry))
        self.timings = MappingProxyType(dict(found.timings))
        pool.leftover = True

    @classmethod
    def _received(cls, parcel: ReceivedParcel) -> Executable:
        """Return the executable of a parcel, which is opened when the executable is first used."""
        made = cls.__new__(cls)
        Called.__init__(made)
        made._parcel = parcel
        return made

    if not TYPE_CHECKING:  # its attributes are those that a compilation sets

        def __getattr__(self, name: str) -> object:
            """Return what an executable that came with a pickle does not have before it is used."""
            parcel = self.__dict__.get("_parcel")
            if name not in _OPENED or not isinstance(parcel, ReceivedParcel):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if name == "module":
                self.module = parcel.module
            else:
                self._open(parcel)
            return self.__dict__[name]

    def _open(self, parcel: ReceivedParcel) -> None:
        """Load the code of a parcel; compile its module where this process cannot run that.

        Raises:
            ArtefactError: E6501, the parcel is damaged; E6502, the code is for another machine or release,
                and there is no MLIR to compile the module with.
        """
        with parcel.lock:
            if "functions" in self.__dict__:
                return
            try:
                self.options, self._named_entry = parcel.options, parcel.entry
                self._printing = set()  # what prints does not travel
                code = parcel.code()
                functions = None if code is None else self._load(code)
            except (ArtefactError, LoadingError, NoPoolError) as error:
                if isinstance(error, ArtefactError) and (error.code == "E6501" or not has_bindings()):
                    _RECEIVED.forget(parcel.digest)
                    raise
                functions = None
            if functions is None:
                self._compile(parcel.module, parcel.options, parcel.entry)
                return
            self.timings = MappingProxyType({})
            super().__init__(functions, _chosen(functions, parcel.entry))

    def _uncompiled(
        self, module: Module, entry: str | None
    ) -> tuple[Mapping[str, CompiledFunction], CompiledFunction | None]:
        """Return functions whose operations run one by one, and the one that a call runs."""
        functions, mesh = {}, mesh_text(module)
        for function in exported(module):
            face = interface_of(function)
            shown = Entry(function.name, "", face.parameters, face.outputs, (), 0, mesh)
            functions[function.name] = CompiledFunction(
                shown,
                None,
                lambda _: None,
                (_function_of, (self._parcel, function.name)),
                self._watched(function.name, face.parameters),
            )
        return FrozenDict(functions), _chosen(functions, entry)

    def _watched(self, name: str, parameters: Sequence[Parameter]) -> WatchedCalls | None:
        """Return how calls of a function are watched, if they are."""
        options, prints = self.options, name in self._printing
        if not (prints or options.check_nan or interprets(options)):
            return None
        names = tuple(parameter.name for parameter in parameters)
        # To run it again where results are not finite, all ranks would have to.
        one_by_one = interprets(options) or (options.check_nan and bool(mesh_text(self.module)))
        return WatchedCalls(self.module, name, names, one_by_one, options.check_nan, prints)

    @property
    def may_be_native(self) -> bool:
        """Return whether calls of the function that a call runs may be native."""
        return self._called().may_be_native

    def _made(self, found: Compilation) -> Mapping[str, CompiledFunction]:
        """Return the compiled functions by name, of code that has been made or found here."""
        self._parcel = Parcel(self.module, self.options, self._named_entry, found.code)
        return self._load(found.code)

    @held()
    def _load(self, code: CompiledCode) -> Mapping[str, CompiledFunction]:
        """Return the compiled functions by name, ready to be called."""
        native = NativeModule(code.image, code.data)
        parcel = self._parcel
        places = CheckPlaces(lambda: parcel.module)
        functions = {}
        for entry in code.entries:
            functions[entry.name] = CompiledFunction(
                entry,
                native_function(native, entry),
                places.of,
                (_function_of, (parcel, entry.name)),
                self._watched(entry.name, entry.parameters),
            )
        return FrozenDict(functions)

    def __str__(self) -> str:
        return str(self.module)

    def __repr__(self) -> str:
        return f"<Executable {brief(str(self.default or f'of {self._names()}'))}>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self._parcel.__reduce_ex__(protocol)

    def is_same(self, other: Executable) -> bool:
        """Return whether pickles of another one, which came with a pickle itself, are the same."""
        other = argument_checks.expect(other, Executable, "other", "an Executable")
        return self is other or self._parcel.parts()[0] == other._parcel.parts()[0]

    def staged_words(self, *, single: bool) -> Array:
        """Return a native record of the function that a call runs, for a `StagedFunction` that calls it."""
        return self._called().staged_record(single=single).words

    @public
    def profile(self, /, *args: object, **kwargs: object) -> TimeProfile:
        """Return where the time of a call with these arguments goes: by nest and thread, beside the limits.

        The module is compiled once more, with time stamps around its nests, and called for some tenths of a
        second; `mind_mlir.profiling.profile.Profile` prints as a table.

        Raises:
            ArgumentError: The arguments do not fit the inputs (E61xx).
            ExecutionError: A call raises it.
            UnsupportedError: E7001, this process runs several ranks of a mesh.
            ValueError: There are several functions, and none is called ``main``.
        """
        self._called()
        from mind_mlir.profiling.measured import measured  # noqa: PLC0415 -- loads MLIR, which calls do without

        return measured(self, lambda executable: executable(*args, **kwargs))

    @public
    def explore(self, /, *args: object, **kwargs: object) -> ExplorerReport:
        """Return a page of what became of the module at each stage, which files and notebooks show.

        The module goes through all stages once more. The report has ``html`` and ``save(path)``.

        Args:
            args: The arguments of a call, which is profiled, too, so that the page has a timeline; none
                unless that is wanted.
            kwargs: The same by the names of inputs.

        Raises:
            ArgumentError: The arguments do not fit the inputs (E61xx).
            ExecutionError: A call raises it.
        """
        from mind_mlir.tools.explorer.report import report_of  # noqa: PLC0415 -- loads MLIR, which calls do without

        call = (args, kwargs) if args or kwargs else None
        return report_of(self.module, self.options, entry=self._named_entry, call=call)

    def _stamped(self, stamps: Stamps) -> Executable:
        """Return the module compiled once more, in the same way, with stamps."""
        made = Executable.__new__(Executable)
        made._compile(self.module, self.options, self._named_entry, stamps=stamps)
        return made

    def as_text(self, stage: str) -> str:
        """Return the module in the form that ``stage`` leaves it in.

        Args:
            stage: One of `mind_mlir.support.stages.FORMS`, from ``core`` to ``asm``.

        Raises:
            TypeError: ``stage`` is no string.
            ValueError: It is another one.
            UnsupportedError: E7003, the tools that print assembly are not installed.
        """
        argument_checks.choice(stage, FORMS, "stage")
        from mind_mlir.runtime.stage_text import stage_text  # noqa: PLC0415 -- loads MLIR, which calls do without

        return stage_text(self.module, stage, self.options)


def _chosen(functions: Mapping[str, CompiledFunction], entry: str | None) -> CompiledFunction | None:
    """Return the function that a call runs: the one that is named, or else that which is meant, if any."""
    alone = next(iter(functions.values())) if len(functions) == 1 else None
    return functions.get(DEFAULT_ENTRY, alone) if entry is None else functions[entry]


def received(*parts: Any) -> Executable:
    """Return what a pickled executable stands for: the one that there is of these parts, or a new one."""
    return _RECEIVED.get(ReceivedParcel(parts), Executable._received)


def _function_of(executable: Executable, name: str) -> CompiledFunction:
    """Return what a pickled function stands for."""
    return executable[name]


#: What an executable that came with a pickle has once it is used.
_OPENED = frozenset(("module", "options", "functions", "default", "timings", "_named_entry"))
_RECEIVED: ReceivedParcels[Executable] = ReceivedParcels()


def _machine(name: object) -> Target:
    """Return the target that a caller names, or else the environment; this machine runs its code."""
    return runnable_target(None if name is None else argument_checks.choice(name, TARGETS, "target"))
