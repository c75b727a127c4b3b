"""`StagedFunction`: what becomes a program for the arguments that it is called with.

Functions of Python (`mind_mlir.jit`) and of the surface language are templates: dtypes, shapes and containers
of their arguments say which program they are. This finds the program for a call, or has it made and compiled.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir import border, trees
from mind_mlir.arguments import viewed
from mind_mlir.diagnostics import Diagnostic, TracingError
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.options import CompileOptions
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.staged_values import NUMBERS, STAGE, Captured, StagedValue
from mind_mlir.staging.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.runtime.staged_gradient import GradientFunction, Pullback
    from mind_mlir.staging.unit import Instance
    from mind_mlir.trees import Form

#: For how many signatures code is kept, unless a caller says otherwise.
DEFAULT_MAX_SIGNATURES = 64


@dataclass(frozen=True, slots=True)
class Static:
    """An argument that is part of the program; 1, 1.0 and True are three."""

    value: Hashable = field(metadata={"static": True})
    kind: type = field(metadata={"static": True})


class StagedFunction:
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
        self.name = name
        self.__signature__ = signature
        self.options = CompileOptions() if options is None else options
        self.static = frozenset(static)
        self.max_signatures = max_signatures
        for each in static:
            if each not in signature.parameters:
                known = ", ".join(signature.parameters) or "none"
                raise ValueError(f"static_argnames must be parameters of {name} ({known}), not {each!r}")
        self._programs: OrderedDict[Hashable, tuple[Executable, Form]] = OrderedDict()
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{self.__signature__}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return it bound to an object, as functions of a class are; the object is a static argument."""
        return self if instance is None else BoundMethod(self, instance)

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
        leaves, form = self.flatten(args, kwargs)
        stage = STAGE.get()
        if any(isinstance(leaf, StagedValue) for leaf in leaves):
            if stage is None:
                raise TracingError(_leaked())
            return stage.call(self, form, leaves)
        arrays, types = self._arrays(form, leaves)
        try:
            program, returned = self._program(form, types)
        except Captured:
            if stage is None:
                raise
            return stage.call(self, form, leaves)
        results = program(*arrays)
        return results[0] if returned.container is None else returned.unflatten(results)

    def flatten(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Form]:
        """Return the leaves of a call's arguments, and the form of ``(args, kwargs)`` bound to the signature.

        Raises:
            TypeError: The arguments do not fit the signature, or a static one is not hashable.
            ValueError: A container is nested too deeply.
        """
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        for name in self.static:
            bound.arguments[name] = _static(bound.arguments[name], name)
        return trees.flatten((bound.args, bound.kwargs), f"the arguments of {self.name}")

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
        types = []
        for leaf, name in zip(leaves, self.names(form), strict=True):
            types.append(leaf if isinstance(leaf, TensorType) else self.type_of(leaf, name))
        module, _ = self._module(form, tuple(types))
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

    def type_of(self, leaf: Any, name: str = "an argument") -> TensorType:
        """Return the type of an argument.

        Raises:
            TracingError: E2305, it is no array.
        """
        if isinstance(leaf, StagedValue):
            found: TensorType = leaf.type
            return found
        return self._array(leaf, name)[1]

    def _positional(self, count: int) -> list[str]:
        kinds = inspect.Parameter
        found = []
        for parameter in self.__signature__.parameters.values():
            if parameter.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD):
                found.append(parameter.name)
            elif parameter.kind is kinds.VAR_POSITIONAL:
                found += [f"{parameter.name}.{number}" for number in range(count - len(found))]
        return found

    def _arrays(self, form: Form, leaves: Sequence[Any]) -> tuple[list[Array], tuple[TensorType, ...]]:
        arrays, types = [], []
        for place, leaf in enumerate(leaves):
            if type(leaf) is np.ndarray and (dtype := _DTYPES.get(leaf.dtype)) is not None:
                array, type_ = leaf, TensorType(dtype, leaf.shape)
            else:
                array, type_ = self._array(leaf, None if place is None else self.names(form)[place])
            arrays.append(array)
            types.append(type_)
        return arrays, tuple(types)

    def _array(self, leaf: Any, name: str | None) -> tuple[Array, TensorType]:
        """Return an argument as an array, and its type."""
        weak = NUMBERS.get(type(leaf))
        if weak is not None:
            try:
                return np.asarray(leaf, weak.dtype.numpy), weak
            except OverflowError:
                raise TracingError(_not_an_array(name, "it is an integer beyond 64 bits")) from None
        array, reason = viewed(leaf) if not callable(leaf) else (None, f"it is {border.describe(leaf)}")
        if array is None:
            raise TracingError(_not_an_array(name, reason))
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        dtype = DType.from_numpy(array.dtype)
        if dtype is None:
            raise TracingError(_not_an_array(name, f"it has elements of {array.dtype}"))
        return array, TensorType(dtype, array.shape)

    def _program(self, form: Form, types: tuple[TensorType, ...]) -> tuple[Executable, Form]:
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
                found = programs[key] = (Executable(module, self.options), returned)
                while len(programs) > self.max_signatures:
                    programs.popitem(last=False)
        return found

    def _module(self, form: Form, types: tuple[TensorType, ...]) -> tuple[Any, Form]:
        unit = Unit()
        instance = self.instance(unit, form, types)
        return unit.module(instance, self.names(form)), instance.form


class BoundMethod:
    """A `StagedFunction` of a class, bound to an object of it.

    An object that is a container of arrays (a dataclass) is an argument like any other. Of another one, which
    must be hashable, the program is made for that object: what it holds is read while the function is traced.
    """

    def __init__(self, function: StagedFunction, instance: object) -> None:
        """Bind ``function`` to ``instance``."""
        self.__func__, self.__self__ = function, instance
        self._first = _static(instance, "self") if trees.is_leaf(instance) else instance

    def __repr__(self) -> str:
        return f"<bound method {self.__func__.name} of {border.describe(self.__self__)}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, the object first."""
        return self.__func__(self._first, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Return the program (see `StagedFunction.lower`)."""
        return self.__func__.lower(self._first, *args, **kwargs)

    def grad(self, argnums: Any = 0) -> BoundMethod:
        """Return the gradients; arguments are counted without the object (see `StagedFunction.grad`)."""
        return BoundMethod(self.__func__.grad(_behind_self(argnums)), self.__self__)

    def value_and_grad(self, argnums: Any = 0) -> BoundMethod:
        """Return result and gradients, counted as `grad` does (see `StagedFunction.value_and_grad`)."""
        return BoundMethod(self.__func__.value_and_grad(_behind_self(argnums)), self.__self__)

    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, Pullback]:
        """Return the result and what takes cotangents back (see `StagedFunction.vjp`)."""
        return self.__func__.vjp(self._first, *args, **kwargs)


def _behind_self(argnums: Any) -> Any:
    if isinstance(argnums, (tuple, list)):
        return tuple([_behind_self(each) for each in argnums])
    number = border.whole(argnums)
    return argnums if number is None or number < 0 else number + 1


_DTYPES = {dtype.numpy: dtype for dtype in DType}


def _static(value: Any, name: str) -> Static:
    try:
        hash(value)
    except TypeError:
        border.reject(f"the static argument {name}", "hashable", value)
    return Static(value, type(value))


def _not_an_array(name: str | None, reason: str) -> Diagnostic:
    return Diagnostic(
        "E2305",
        f"argument '{name}' is no array, nor a container of arrays: {reason}",
        help="pass arrays, numbers, and containers of these; what else decides on the program is named in "
        "jit(..., static_argnames=...)",
    )


def _leaked() -> Diagnostic:
    return Diagnostic(
        "E2303",
        "a traced array is used after its function has returned",
        help="return it from the function that mind_mlir.jit is given: what is called then holds the numbers",
    )
