"""`StagedFunction`: what becomes a program for the arguments that it is called with.

Functions of Python (`mind_mlir.jit`) and of the surface language are templates: dtypes, shapes and containers
of their arguments say which program they are. This finds the program for a call, or has it made and compiled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from threading import get_ident
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import VerificationError
from mind_mlir.diagnostics.tracebacks import public, trim
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.result_names import distinct, result_names
from mind_mlir.languages.staging import Instance, Unit, recursion
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.call import Called
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.options import checked_options, interprets
from mind_mlir.runtime.staged_arguments import Order, as_arrays, as_static, leaked, type_of
from mind_mlir.runtime.staged_calls import StagedProgram
from mind_mlir.runtime.staged_method import StagedMethod, subject_of
from mind_mlir.runtime.staged_pickles import kinds_of, signatures, take_signatures, with_state
from mind_mlir.runtime.staged_reads import Mismatch, Reads
from mind_mlir.runtime.staged_values import STAGE, Captured, StagedValue
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.support.notebooks import shown_by

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType
    from mind_mlir.profiling.profile import TimeProfile
    from mind_mlir.runtime.staged_gradient import GradientFunction, Pullback, PullbackFunction
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.support.pytrees import Form
    from mind_mlir.tools.explorer.report import ExplorerReport

#: For how many signatures code is kept, unless a caller says otherwise.
DEFAULT_MAX_SIGNATURES = 64

#: So many programs are tried, one after the other, before a call is looked at with care.
MAX_TRIED = 4


class StagedFunction(Called):
    """A function that is compiled for each form of its arguments, their dtypes and shapes.

    Attributes:
        name: What it is called.
        closes: Whether what makes it may read values of the trace around it.
        interprets: Whether operations run one by one, with numpy.
        repeats: Whether what it computes has been computed before, by another call, which has printed.
    """

    closes = False
    repeats = False
    #: What a message adds where another thing is wanted.
    BORDER_NOTE = ", which becomes a program for arguments, arrays or their types: f.lower(x).module"

    def __init__(
        self,
        name: str,
        signature: inspect.Signature,
        options: CompileOptions | None = None,
        *,
        static: Sequence[str] = (),
        max_signatures: int = DEFAULT_MAX_SIGNATURES,
    ) -> None:
        """Hold what is known before the first call.

        Raises:
            TypeError: An argument is not of the type above.
            ValueError: There is no parameter of a name in ``static``, or ``max_signatures`` is below 1.
        """
        super().__init__()
        self.name = argument_checks.text(name, "name")
        self.__signature__ = argument_checks.expect(
            signature, inspect.Signature, "signature", "an inspect.Signature"
        )
        self.options = checked_options(options)
        self.interprets = interprets(self.options)
        names = argument_checks.names(static, "static_argnames")
        self.static = frozenset(names)
        self.max_signatures = argument_checks.integer(max_signatures, "max_signatures")
        if self.max_signatures < 1:
            raise ValueError(f"max_signatures must be 1 or more, not {max_signatures}")
        for each in names:
            if each not in signature.parameters:
                known = ", ".join(signature.parameters) or "none"
                raise ValueError(f"static_argnames must be parameters of {name} ({known}), not {each!r}")
        self._programs: BindingCache[Hashable, list[StagedProgram]] = BindingCache(self.max_signatures)
        #: What is being made, by which thread: a function that runs itself while it is made has no end.
        self._making: set[tuple[int, Hashable]] = set()
        self._order = Order.of(signature)
        self._count = len(self._order.names) if self._order is not None else -1
        #: The programs that were used last, and what calls them where this object's native method cannot.
        self._recent: tuple[StagedProgram, ...] = ()
        self._calls: tuple[Callable[[Sequence[Any]], Any], ...] = ()
        self._gradients: dict[Hashable, GradientFunction[..., Any]] = {}
        self._pulling: PullbackFunction | None = None

    _repr_html_ = shown_by("programs.staged")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{self.__signature__}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return it bound to an object, as functions of a class are."""
        return self if instance is None else StagedMethod(self, instance)

    def steps(self) -> Callable[[StagedFunction, Form, Sequence[Any]], Any] | None:
        """Return what runs it operation by operation as it is written; None where its program is run so."""
        return None

    def in_place(self, trace: Any) -> Callable[[Form, Sequence[Any]], Any] | None:
        """Return what runs it in a trace, in the place of a call; None where it becomes a program first."""
        return None

    def watches(self, cls: type) -> bool | None:
        """Return whether what is read of objects of ``cls`` is noted; None where they are containers."""
        return False if pytrees.is_leaf_class(cls) else None

    def reading(self, subject: object) -> Any:
        """Return what notes what is read of objects while a program is made, if it is noted."""
        return None

    def subject(self, form: Form) -> Any:
        """Return the object whose method is called with arguments of ``form``, if it is watched."""
        return subject_of(form)

    def stage(self, unit: Unit, form: Form, types: Sequence[TensorType]) -> Instance:
        """Make the function for arguments of one form, and of types; what makes it says how.

        Args:
            unit: The module in the making, which takes the function.
            form: How the arguments are put together, as ``(args, kwargs)`` that are bound to the signature.
            types: The types of the leaves.

        Returns:
            The function, whose parameters are the leaves, and whose form says how results are put together.
        """
        raise NotImplementedError

    def instance(self, unit: Unit, form: Form, types: Sequence[TensorType]) -> Instance:
        """Return the function for arguments of one form and of types, as a function of ``unit``."""
        types = tuple(types)
        stage: Any = STAGE.get()
        pending = getattr(stage, "pending", None)
        before, reading = len(pending or ()), unit.reading
        count = reading.count if reading is not None else 0
        key = (self, form, types)
        found = unit.instance(key, lambda: self.stage(unit, form, types))
        if (
            len(pending or ()) > before
            or (reading is not None and reading.count > count)
            or getattr(stage, "is_eager", False)
        ):  # it reads what is around it, or is what has run: that may be another one next time
            unit.forget(key)
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the function on arrays, numbers, and containers of these.

        Returns:
            Arrays, in containers of the form that the function returns.

        Raises:
            TypeError: The arguments do not fit the function's parameters.
            TracingError: E2305, an argument is no array; and what else is wrong with the function (E23xx).
            ArgumentError: As a call of an `Executable`.
            ExecutionError: As a call of an `Executable`.
            VerificationError: The program of these types breaks a rule.
        """
        placed: tuple[Any, ...] | None = args
        if kwargs or len(args) != self._count:  # looking closer takes a tenth of a microsecond
            placed = self._order.placed(args, kwargs) if self._order is not None else None
        if placed is not None:
            args, kwargs = placed, {}
            for call in self._calls:
                try:
                    return call(placed)
                except Mismatch:
                    continue
        try:
            return self._call_with_care(args, kwargs)
        except Exception as error:
            trim(error)
            raise

    _call_python = __call__

    def _call_with_care(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run the function on arguments that no program is at hand for."""
        leaves, form = self.flatten(args, kwargs)
        stage = STAGE.get()
        if any(isinstance(leaf, StagedValue) for leaf in leaves):
            if stage is None:
                raise leaked()
            return stage.call(self, form, leaves)
        steps = self.steps() if self.interprets else None
        if steps is not None:
            return steps(self, form, leaves)
        arrays, kinds = as_arrays(leaves, lambda: self.names(form))
        try:
            program, more = self._program(form, leaves, kinds)
        except Captured:
            if stage is None:
                raise
            return stage.call(self, form, leaves)
        results = program.executable(*arrays, *more)
        if program not in self._recent and program.executable.may_be_native:
            self.speed_up(lambda: self._prefer(program))
        return results[0] if program.returned.container is None else program.returned.unflatten(results)

    def flatten(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Form]:
        """Return the leaves of a call's arguments, and the form of ``(args, kwargs)`` bound to the signature.

        Raises:
            TypeError: The arguments do not fit the signature, or a static one is not hashable.
            ValueError: A container is nested too deeply.
        """
        what = f"the arguments of {self.name}"
        placed = None
        if self._order is not None and not self.static:
            placed = self._order.placed(tuple(args), kwargs)
        if placed is not None:
            return pytrees.flatten((placed, {}), what)
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        bound.apply_defaults()
        for name in self.static:
            bound.arguments[name] = as_static(bound.arguments[name], name)
        return pytrees.flatten((bound.args, bound.kwargs), what)

    def names(self, form: Form) -> list[str]:
        """Return what each leaf is called: ``x``, ``params.w``."""
        positional, named = form.parts
        found: list[str] = []
        for name, part in zip(self._positional(len(positional.parts)), positional.parts, strict=True):
            found += part.names(name)
        for name, part in zip(named.keys, named.parts, strict=True):
            found += part.names(name)
        return found

    @public
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Return the program for arguments, without running it.

        Args:
            args: The arguments; a `mind_mlir.TensorType` may stand for an array.
            kwargs: Arguments by name.

        Raises:
            TypeError: As a call.
            TracingError: As a call.
            VerificationError: As a call.
        """
        leaves, form = self.flatten(args, kwargs)
        try:
            module, _, _ = self._module(form, self.types_of(form, leaves))
        except Captured:
            raise leaked() from None
        return Lowered(module, self.options)

    def module_for(self, form: Form, types: tuple[TensorType, ...]) -> tuple[Module, Form]:
        """Return the program for arguments of a form and of types, and the form of its result.

        Raises:
            TracingError: As a call.
            VerificationError: As a call.
        """
        try:
            module, returned, _ = self._module(form, types)
        except Captured:
            raise leaked() from None
        return module, returned

    def lowered_call(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Module, dict[str, Array], CompileOptions]:
        """Return the program for arguments, an array for each of its inputs, and how it is compiled.

        Raises:
            TypeError: As a call.
            TracingError: As a call.
            VerificationError: As a call.
        """
        leaves, form = self.flatten(args, kwargs)
        arrays, _ = as_arrays(leaves, lambda: self.names(form))
        try:
            module, _, reads = self._module(form, self.types_of(form, leaves))
        except Captured:
            raise leaked() from None
        arrays += [] if reads is None else reads.fetch(self.subject(form))
        names = [each.name for each in interface_of(entry_function(module)).parameters]
        return module, dict(zip(names, arrays, strict=True)), self.options

    @public
    def profile(self, *args: Any, **kwargs: Any) -> TimeProfile:
        """Return where the time of a call with these arguments goes (see `mind_mlir.Executable.profile`).

        Raises:
            TypeError: As a call.
            TracingError: As a call.
            VerificationError: As a call.
            ExecutionError: As a call.
        """
        leaves, form = self.flatten(args, kwargs)
        arrays, kinds = as_arrays(leaves, lambda: self.names(form))
        try:
            program, more = self._program(form, leaves, kinds)
        except Captured:
            raise leaked() from None
        return program.executable.profile(*arrays, *more)

    @public
    def explore(self, *args: Any, **kwargs: Any) -> ExplorerReport:
        """Return a page of what becomes of the program for arguments (see `mind_mlir.Executable.explore`).

        Args:
            args: The arguments; a `mind_mlir.TensorType` may stand for an array.
            kwargs: Arguments by name.

        Raises:
            TypeError: As a call.
            TracingError: As a call.
            VerificationError: As a call.
        """
        return self.lower(*args, **kwargs).explore()

    @public
    def compile_for(self, form: Form, types: Sequence[TensorType]) -> None:
        """Compile it now for arguments of a form and of types, so that a call need not."""
        self._program(form, types, kinds_of(types))

    def programs(self) -> list[StagedProgram]:
        """Return the programs that there are now, the one that was used least recently first."""
        return [each for _, programs in self._programs.items() for each in programs]

    def grad(self, argnums: Any = 0) -> GradientFunction[..., Any]:
        """Return the function of the same arguments that returns gradients (see `mind_mlir.grad`)."""
        return self._gradient(argnums, with_value=False)

    def value_and_grad(self, argnums: Any = 0) -> GradientFunction[..., Any]:
        """Return the function that returns its result and gradients (see `mind_mlir.value_and_grad`)."""
        return self._gradient(argnums, with_value=True)

    @public
    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, Pullback]:
        """Return the result, and what takes its cotangents to the arguments' (see `mind_mlir.vjp`)."""
        from mind_mlir.runtime.staged_gradient import Pullback  # noqa: PLC0415 -- it is one of these

        return self(*args, **kwargs), Pullback(self, args, kwargs)

    def _gradient(self, argnums: Any, *, with_value: bool) -> GradientFunction[..., Any]:
        """Return the gradients, the same function each time, so that they are compiled once."""
        from mind_mlir.runtime.staged_gradient import GradientFunction  # noqa: PLC0415 -- it is one of these

        made: GradientFunction[..., Any] = GradientFunction(self, argnums, with_value=with_value)
        return self._gradients.setdefault((made.paths, made.several, with_value), made)

    def pulling(self) -> PullbackFunction:
        """Return the function of cotangents and arguments that `vjp` needs, the same each time."""
        from mind_mlir.runtime.staged_gradient import PullbackFunction  # noqa: PLC0415 -- it is one of these

        if self._pulling is None:
            self._pulling = PullbackFunction(self)
        return self._pulling

    def __reduce__(self) -> Any:
        """Pickle it as what it is made of, with the code of the signatures that there is code for."""
        return with_state(self, self._made_of(), signatures(self.programs()))

    def _made_of(self) -> Any:
        """Return what makes this function anew, as `__reduce__` does."""
        return str(getattr(self, "__qualname__", self.name))

    def __setstate__(self, programs: Any) -> None:
        """Take the code of signatures that came with a pickle."""
        if take_signatures(self._programs, programs):
            self._recent, self._calls, self._words = (), (), None

    def types_of(self, form: Form, leaves: Sequence[Any]) -> tuple[TensorType, ...]:
        """Return the types of the leaves of arguments (E2305: one is no array)."""
        types = []
        for place, leaf in enumerate(leaves):
            types.append(type_of(leaf, lambda place=place: self.names(form)[place]))  # type: ignore[misc]  # bound now
        return tuple(types)

    def _positional(self, count: int) -> list[str]:
        kinds = inspect.Parameter
        found = []
        for parameter in self.__signature__.parameters.values():
            if parameter.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD):
                found.append(parameter.name)
            elif parameter.kind is kinds.VAR_POSITIONAL:
                found += [f"{parameter.name}.{number}" for number in range(count - len(found))]
        return found

    def _prefer(self, program: StagedProgram) -> None:
        """Let the calls to come try ``program`` first, and then those that were tried before."""
        order = self._order
        if order is None or program.arguments.parts[1].count:
            return
        recent = (program, *self._recent)[: min(MAX_TRIED, self.max_signatures)]
        is_native = program.is_native()
        # The native method has no defaults: what leaves one out comes to Python.
        skipped = is_native and not order.defaults
        calls = [each.call(order.static(each, self.static)) for each in recent[skipped:]]
        words = program.words if is_native else None
        self._recent, self._calls = recent, tuple([call for call in calls if call is not None])
        self._words = words

    def _program(
        self, form: Form, leaves: Sequence[Any], kinds: tuple[Hashable, ...]
    ) -> tuple[StagedProgram, Sequence[Any]]:
        """Return the program for a call, and the arrays that it takes beside the arguments."""
        key = (form, kinds)
        running = (get_ident(), key)
        if running in self._making:
            raise VerificationError(recursion())

        def make() -> StagedProgram:
            self._making.add(running)
            try:
                types = self.types_of(form, leaves)
                module, returned, reads = self._module(form, types)
                return StagedProgram(Executable(module, self.options), form, types, returned, reads)
            finally:
                self._making.discard(running)

        # Programs of one key differ in what they read of objects.
        programs = self._programs.get(key, lambda: [make()])
        subject = self.subject(form)
        for program in programs:
            more = () if program.reads is None else program.reads.arrays(subject)
            if more is not None:
                return program, more
        made = make()
        programs[:] = [made, *programs[: self.max_signatures - 1]]
        return made, made.reads.fetch(subject) if made.reads else ()

    def _module(self, form: Form, types: tuple[TensorType, ...]) -> tuple[Module, Form, Reads | None]:
        unit = Unit(profile=EXTENDED_FUNCTIONS)
        unit.reading = self.reading(self.subject(form))
        instance = self.instance(unit, form, types)
        reads = None if unit.reading is None else unit.reading.finished()
        names = self.names(form) if reads is None else [*self.names(form), *reads.names]
        return unit.module(_named(instance), distinct(names)), instance.form, reads


def _named(instance: Instance) -> Instance:
    """Return an instance whose results are called as they are reached, if its maker does not name them."""
    if instance.result_names:
        return instance
    return replace(instance, result_names=result_names(instance.form.items()))
