"""`StagedFunction`: what becomes a program for the arguments that it is called with.

Functions of Python (`mind_mlir.jit`) and of the surface language are templates: dtypes, shapes and containers
of their arguments say which program they are. This finds the program for a call, or has it made and compiled.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any

from mind_mlir import trees
from mind_mlir.options import CompileOptions
from mind_mlir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.runtime.call import Called, wants_record
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.staged_arguments import as_arrays, as_static, leaked, type_of
from mind_mlir.runtime.staged_calls import Mismatch, NativeProgram, is_flat, written_call
from mind_mlir.runtime.staged_method import StagedMethod
from mind_mlir.runtime.staged_values import STAGE, Captured, StagedValue, WeakType
from mind_mlir.staging.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType
    from mind_mlir.runtime.staged_gradient import GradientFunction, Pullback
    from mind_mlir.staging.unit import Instance
    from mind_mlir.trees import Form

#: For how many signatures code is kept, unless a caller says otherwise.
DEFAULT_MAX_SIGNATURES = 64


@dataclass(slots=True, eq=False)
class _Program:
    """The program for one signature.

    Attributes:
        executable: What runs it.
        arguments: The form of its arguments, as ``(args, kwargs)``.
        returned: The form of its result.
        is_weak: Whether an argument is a number of Python.
        words: The native record of its calls, once there is one.
        call: What calls it with arguments of that form, where these or the result are containers.
    """

    executable: Executable
    arguments: Form
    returned: Form
    is_weak: bool
    words: Array | None = None
    call: Callable[[tuple[Any, ...]], Any] | None = None


class StagedFunction(Called):
    """A function that is compiled for each form of its arguments, their dtypes and shapes.

    Attributes:
        name: What it is called.
    """

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

        Args:
            name: What it is called.
            signature: What it takes, as Python binds arguments.
            options: How its programs are compiled.
            static: The names of parameters whose arguments are part of the program.
            max_signatures: For how many signatures code is kept.

        Raises:
            ValueError: There is no parameter of a name in ``static``.
        """
        super().__init__()
        self.name = name
        self.__signature__ = signature
        self.options = CompileOptions() if options is None else options
        self.static = frozenset(static)
        self.max_signatures = max_signatures
        for each in static:
            if each not in signature.parameters:
                known = ", ".join(signature.parameters) or "none"
                raise ValueError(f"static_argnames must be parameters of {name} ({known}), not {each!r}")
        self._programs: OrderedDict[Hashable, _Program] = OrderedDict()
        self._lock = RLock()
        parameters = signature.parameters.values()
        self._is_plain = all(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in parameters)
        #: The program that calls try first, and what calls it where the native method of this object cannot.
        self._last: _Program | None = None
        self._quick: Callable[[tuple[Any, ...]], Any] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{self.__signature__}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return it bound to an object, as functions of a class are; the object is a static argument."""
        return self if instance is None else StagedMethod(self, instance)

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
        before = len(pending or ())
        key = (self, form, types)
        found = unit.instance(key, lambda: self.stage(unit, form, types))
        if len(pending or ()) > before:  # it reads what is around it, which may be another value next time
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
        if self._quick is not None and not kwargs:
            try:
                return self._quick(args)
            except Mismatch:
                pass
        leaves, form = self.flatten(args, kwargs)
        stage = STAGE.get()
        if any(isinstance(leaf, StagedValue) for leaf in leaves):
            if stage is None:
                raise leaked()
            return stage.call(self, form, leaves)
        arrays, types = as_arrays(leaves, lambda: self.names(form))
        try:
            program = self._program(form, types)
        except Captured:
            if stage is None:
                raise
            return stage.call(self, form, leaves)
        results = program.executable(*arrays)
        if program is not self._last and wants_record():
            self._prefer(program)
        return results[0] if program.returned.container is None else program.returned.unflatten(results)

    _call_python = __call__

    def flatten(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Form]:
        """Return the leaves of a call's arguments, and the form of ``(args, kwargs)`` bound to the signature.

        Raises:
            TypeError: The arguments do not fit the signature, or a static one is not hashable.
            ValueError: A container is nested too deeply.
        """
        what = f"the arguments of {self.name}"
        if (
            self._is_plain
            and not kwargs
            and not self.static
            and len(args) == len(self.__signature__.parameters)
        ):
            return trees.flatten((tuple(args), {}), what)
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        for name in self.static:
            bound.arguments[name] = as_static(bound.arguments[name], name)
        return trees.flatten((bound.args, bound.kwargs), what)

    def names(self, form: Form) -> list[str]:
        """Return what each leaf is called: ``x``, ``params.w``."""
        positional, named = form.parts
        found: list[str] = []
        for name, part in zip(self._positional(len(positional.parts)), positional.parts, strict=True):
            found += part.names(name)
        for name, part in zip(named.keys, named.parts, strict=True):
            found += part.names(name)
        return found

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
        module, _ = self._module(form, self.types_of(form, leaves))
        return Lowered(module, self.options)

    def grad(self, argnums: Any = 0) -> GradientFunction:
        """Return the function of the same arguments that returns gradients (see `mind_mlir.grad`)."""
        from mind_mlir.runtime.staged_gradient import GradientFunction  # noqa: PLC0415 -- it is one of these

        return GradientFunction(self, argnums, with_value=False)

    def value_and_grad(self, argnums: Any = 0) -> GradientFunction:
        """Return the function that returns its result and gradients (see `mind_mlir.value_and_grad`)."""
        from mind_mlir.runtime.staged_gradient import GradientFunction  # noqa: PLC0415 -- it is one of these

        return GradientFunction(self, argnums, with_value=True)

    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, Pullback]:
        """Return the result, and what takes its cotangents to the arguments' (see `mind_mlir.vjp`)."""
        from mind_mlir.runtime.staged_gradient import Pullback  # noqa: PLC0415 -- it is one of these

        return self(*args, **kwargs), Pullback(self, args, kwargs)

    def types_of(self, form: Form, leaves: Sequence[Any]) -> tuple[TensorType, ...]:
        """Return the types of the leaves of arguments.

        Raises:
            TracingError: E2305, one is no array.
        """
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

    def _prefer(self, program: _Program) -> None:
        """Let the calls to come try ``program`` first."""
        self._last, self._words, self._quick = program, None, None
        positional, named = program.arguments.parts
        known = self._is_plain and len(positional.parts) == len(self.__signature__.parameters)
        if not known or named.count or program.is_weak or program.returned.container is _EMPTY.container:
            return
        if program.words is None:
            program.words = program.executable.staged_words(single=program.returned.count == 1)
        returned = program.returned
        is_several = is_flat(returned) and returned.count > 1
        if is_flat(positional) and (returned.container is None or is_several):
            self._words = program.words
            return
        if program.call is None:
            static = [name in self.static for name in self.__signature__.parameters]
            program.call = written_call(NativeProgram(program.words), positional, static, program.returned)
        self._quick = program.call

    def _program(self, form: Form, types: tuple[TensorType, ...]) -> _Program:
        key = (form, types)
        programs = self._programs
        found = programs.get(key)
        if found is not None:
            with suppress(KeyError):  # another thread has dropped it just now
                programs.move_to_end(key)
            return found
        with self._lock:
            found = programs.get(key)
            if found is None:
                module, returned = self._module(form, types)
                is_weak = any(isinstance(type_, WeakType) for type_ in types)
                found = _Program(Executable(module, self.options), form, returned, is_weak)
                programs[key] = found
                while len(programs) > self.max_signatures:
                    programs.popitem(last=False)
        return found

    def _module(self, form: Form, types: tuple[TensorType, ...]) -> tuple[Module, Form]:
        unit = Unit(profile=EXTENDED_FUNCTIONS)
        instance = self.instance(unit, form, types)
        return unit.module(instance, self.names(form)), instance.form


_EMPTY = trees.flatten(None)[1]
