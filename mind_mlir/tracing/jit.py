"""`jit`: functions of Python, compiled for the arrays that they are called with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)
from weakref import WeakKeyDictionary

from mind_mlir.arguments.tensors import viewed
from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.programs.kinds import find_kind
from mind_mlir.runtime.options import Options, options_of, takes
from mind_mlir.runtime.staged import DEFAULT_MAX_SIGNATURES, StagedFunction
from mind_mlir.runtime.staged_arguments import Static
from mind_mlir.runtime.staged_method import Held, StagedMethod
from mind_mlir.runtime.staged_values import STAGE
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.support.pytrees import Form, stood_for
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.conversion import as_value, node_of
from mind_mlir.tracing.pickling import copy_of, made_of
from mind_mlir.tracing.places import location_of, refuse
from mind_mlir.tracing.subjects import ObjectReads, is_plain
from mind_mlir.tracing.trace import Trace
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.mind.program import SurfaceProgram
    from mind_mlir.languages.staging import Instance, Unit
    from mind_mlir.runtime.open_function import OpenFunction
    from mind_mlir.runtime.staged_gradient import GradientFunction, Pullback
    from mind_mlir.runtime.surface_function import SurfaceFunction
    from mind_mlir.support.options import CompileOptions


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class JitFunction(StagedFunction, Generic[P, R]):
    """A function of Python that runs compiled; `mind_mlir.jit` makes one.

    Called with arrays, and containers of arrays, it runs the function once on stand-ins for them, for each
    form of its arguments, their dtypes and shapes; what that records is compiled, and run.
    """

    closes = True

    if TYPE_CHECKING:  # what it takes and returns is what the function does

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
            """Run the function (see `StagedFunction.__call__`)."""

        def grad(self, argnums: Any = 0) -> GradientFunction[P, Any]:
            """Return the gradients (see `StagedFunction.grad`)."""

        def value_and_grad(self, argnums: Any = 0) -> GradientFunction[P, tuple[R, Any]]:
            """Return result and gradients (see `StagedFunction.value_and_grad`)."""

        def vjp(self, *args: P.args, **kwargs: P.kwargs) -> tuple[R, Pullback]:
            """Return the result, and what takes cotangents back (see `StagedFunction.vjp`)."""

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__(
            self: JitFunction[Concatenate[Any, Q], R], instance: object, owner: type | None = None
        ) -> StagedMethod[Q, R]: ...
        def __get__(self, instance: object, owner: type | None = None) -> Any:
            """Return it bound to an object, as functions of a class are."""

    def __init__(
        self,
        function: Callable[P, R],
        options: CompileOptions | None = None,
        *,
        static: Sequence[str] = (),
        max_signatures: int = DEFAULT_MAX_SIGNATURES,
        promotes: bool | None = None,
    ) -> None:
        """Hold what is to be traced; ``promotes`` is None for as what calls it does."""
        if not callable(function):
            argument_checks.reject("function", "callable", function)
        name = getattr(function, "__name__", None)
        name = name if type(name) is str else type(function).__name__
        super().__init__(name, _signature(function), options, static=static, max_signatures=max_signatures)
        functools.update_wrapper(self, function, updated=())
        self._function, self._promotes = function, promotes
        self._watched: WeakKeyDictionary[type, bool | None] = WeakKeyDictionary()

    @functools.cached_property
    def plain_function(self) -> FunctionType:
        """Return a copy of a plain function that is compiled, for pickles (`mind_mlir.tracing.pickling`)."""
        return copy_of(self, cast("FunctionType", self._function))

    def _made_of(self) -> Any:
        return made_of(self, self._function, promotes=self._promotes)

    def watches(self, cls: type) -> bool | None:
        """Return whether what is read of objects of ``cls`` is noted; None where they are containers."""
        known = self._watched.get(cls, ...)
        if known is ...:
            is_leaf = pytrees.is_leaf_class(cls)
            known = self._watched[cls] = is_plain(stood_for(cls)) if is_leaf else None
        return known

    def reading(self, subject: object) -> ObjectReads:
        """Return what notes what is read of objects."""
        return ObjectReads(subject)

    def stage(self, unit: Unit, form: Form, types: Sequence[TensorType]) -> Instance:
        """Trace the function for arguments of a form and of types; see `StagedFunction.stage`."""
        around: Any = STAGE.get()
        trace: Trace
        if getattr(around, "is_eager", False):  # it is to be differentiated: what runs is recorded
            trace = type(around)(unit, promotes=self._promotes)
            arrays = around.feeding[len(around.feeding) - len(types) :]
            parameters = [trace.given(type_, array) for type_, array in zip(types, arrays, strict=True)]
        else:
            trace = Trace(unit, TracedArray, promotes=self._promotes)
            parameters = [trace.parameter(type_) for type_ in types]
        with trace.running():
            if unit.reading is not None:
                unit.reading.begin(trace)
            values, weak, returned_form = self._returned(trace, form, parameters)
        trace.finish()

        def build(name: str) -> Function:
            return trace.builder.function(name, values, public=False)

        return replace(unit.define(brief(self.name), build, returned_form), weak=weak)

    def steps(self) -> Callable[[StagedFunction, Form, Sequence[Any]], Any]:
        """Return what runs it operation by operation, as it is written."""
        from mind_mlir.tracing.eager import run_eagerly  # noqa: PLC0415 -- loads the interpreter

        return run_eagerly

    def in_place(self, trace: Trace) -> Callable[[Form, Sequence[Any]], Any]:
        """Return what runs it on arrays of a trace whose operations run."""

        def run(form: Form, leaves: Sequence[Any]) -> Any:
            before, trace.promotes = (
                trace.promotes,
                trace.promotes if self._promotes is None else self._promotes,
            )
            given = [trace.wrap(as_value(trace, leaf), weak=node_of(leaf).weak) for leaf in leaves]
            try:
                values, weak, returned_form = self._returned(trace, form, given)
            finally:
                trace.promotes = before
            pairs = zip(values, weak, strict=True)
            return returned_form.unflatten([trace.wrap(value, weak=each) for value, each in pairs])

        return run

    def _returned(
        self, trace: Trace, form: Form, arrays: Sequence[TracedArray]
    ) -> tuple[list[Value], tuple[bool, ...], Form]:
        """Return what the function returns: its values, which of them are weak, and the form."""
        args, kwargs = form.unflatten(arrays)
        given = partial(_given, trace.unit.reading)
        returned = self._function(*map(given, args), **{key: given(each) for key, each in kwargs.items()})
        leaves, returned_form = pytrees.flatten(returned, f"the result of {self.name}")
        values = [self._result(trace, leaf) for leaf in leaves]
        if not values:
            refuse(
                "E2304",
                f"{self.name} returns no array",
                "return the arrays that it computes: what else it does happens once, while it is traced",
                location=location_of(self._function),
            )
        weak = tuple([isinstance(leaf, TracedValue) and leaf.weak for leaf in leaves])
        return values, weak, returned_form

    def _result(self, trace: Trace, leaf: Any) -> Value:
        if not isinstance(leaf, TracedValue):
            array = None if callable(leaf) else viewed(leaf)[0]
            if array is None or DType.from_numpy(array.dtype.newbyteorder("=")) is None:
                refuse(
                    "E2304",
                    f"{self.name} returns {argument_checks.describe(leaf)}, which is no array",
                    "return arrays, numbers, and containers of these",
                    location=location_of(self._function),
                )
        return as_value(trace, leaf)


def _given(reading: ObjectReads | None, value: Any) -> Any:
    """Return what the function is given for an argument."""
    if type(value) is Held:
        return value.get() if reading is None else reading.of(value.get())
    return value.value if type(value) is Static else value


def unbound(function: Any) -> tuple[Any, object]:
    """Return a method as its function and the object, which decides anew at each call; else it, and None.

    An object whose class has a method `__call__` is that method, bound.
    """
    if isinstance(function, StagedMethod):
        return function.__func__, function.__self__
    if isinstance(function, MethodType):
        return function.__func__, function.__self__
    called = vars(type(function)).get("__call__")
    if isinstance(called, FunctionType) and not isinstance(function, StagedFunction):
        return called, function
    return function, None


def opened(function: StagedFunction, dynamic: Any, buckets: Any) -> OpenFunction[..., Any]:
    """Return a function with open dimensions, as `jit` is told them."""
    from mind_mlir.runtime.open_function import OpenFunction  # noqa: PLC0415 -- few functions have any

    return OpenFunction(function, dynamic, buckets)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # a built-in that has none
        kinds = inspect.Parameter
        return inspect.Signature([kinds("args", kinds.VAR_POSITIONAL), kinds("kwargs", kinds.VAR_KEYWORD)])


@overload
def jit(
    function: SurfaceProgram,
    entry: str | None = None,
    *,
    max_signatures: int = DEFAULT_MAX_SIGNATURES,
    **options: Unpack[Options],
) -> SurfaceFunction: ...
@overload
def jit(
    function: Callable[P, R],
    *,
    static_argnames: Collection[str] | str = (),
    promotion: Literal["standard", "strict"] = "standard",
    max_signatures: int = DEFAULT_MAX_SIGNATURES,
    **options: Unpack[Options],
) -> JitFunction[P, R]: ...
@overload
def jit(
    *,
    static_argnames: Collection[str] | str = (),
    promotion: Literal["standard", "strict"] = "standard",
    max_signatures: int = DEFAULT_MAX_SIGNATURES,
    **options: Unpack[Options],
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
@overload
def jit(
    function: SurfaceProgram,
    entry: str | None = None,
    *,
    dynamic: Mapping[str, Mapping[int, str]],
    buckets: Mapping[str, Sequence[int]] | None = None,
    max_signatures: int = DEFAULT_MAX_SIGNATURES,
    **options: Unpack[Options],
) -> OpenFunction[..., Any]: ...
@overload
def jit(
    function: Callable[P, R],
    *,
    dynamic: Mapping[str, Mapping[int, str]],
    buckets: Mapping[str, Sequence[int]] | None = None,
    static_argnames: Collection[str] | str = (),
    promotion: Literal["standard", "strict"] = "standard",
    max_signatures: int = DEFAULT_MAX_SIGNATURES,
    **options: Unpack[Options],
) -> OpenFunction[P, R]: ...
@overload
def jit(
    *,
    dynamic: Mapping[str, Mapping[int, str]],
    buckets: Mapping[str, Sequence[int]] | None = None,
    static_argnames: Collection[str] | str = (),
    promotion: Literal["standard", "strict"] = "standard",
    max_signatures: int = DEFAULT_MAX_SIGNATURES,
    **options: Unpack[Options],
) -> Callable[[Callable[P, R]], OpenFunction[P, R]]: ...
@public
@takes(Options)
def jit(
    function: Callable[..., Any] | SurfaceProgram | None = None,
    entry: str | None = None,
    *,
    static_argnames: Collection[str] | str = (),
    promotion: Literal["standard", "strict"] = "standard",
    max_signatures: int = DEFAULT_MAX_SIGNATURES,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    buckets: Mapping[str, Sequence[int]] | None = None,
    **options: Unpack[Options],
) -> Any:
    """Return a function of Python as one that runs compiled; also a decorator, with or without arguments.

    Of a program of the surface language it returns a function, for Python to call.

    Args:
        function: A function of arrays, numbers and containers of these (dicts, lists, tuples, named tuples,
            dataclasses), which returns such. It is written as for numpy. Or a program of the surface
            language.
        entry: The function of a program; not needed where that has one function that no other one calls.
        static_argnames: Parameters whose arguments are hashable values rather than arrays: the program is
            made for each of their values.
        promotion: ``"standard"`` converts operands of several dtypes to the one that the rules of
            the page on functions of Python gives them; ``"strict"`` makes them errors (E2004).
        max_signatures: For how many forms, dtypes and shapes of arguments code is kept; that used least
            recently goes first.
        dynamic: Names of open dimensions, by argument and axis: ``{"x": {0: "batch"}}``. A program is then
            made for a range of their extents rather than for each of them; see `OpenFunction`.
        buckets: The greatest extents of these ranges, by name; by default four to each power of two.
        options: As of `mind_mlir.compile`.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: ``static_argnames`` names no parameter, ``max_signatures`` is below 1, ``promotion`` is
            none of the two, ``dynamic`` names no axis, ``buckets`` no open dimension,
            ``entry`` is given for a function of Python; or as `mind_mlir.compile`.
        VerificationError: A program breaks a rule, has no function ``entry`` (E2002), or several (E2102).
    """
    chosen = options_of(options, "jit", Options)
    if dynamic is None and buckets is not None:
        raise ValueError("buckets must be left out where no dimension is dynamic")
    static = argument_checks.names(static_argnames, "static_argnames")
    # What does not say it does as the function that calls it.
    promotes = (
        None
        if argument_checks.choice(promotion, ("standard", "strict"), "promotion") == "standard"
        else False
    )

    if find_kind(function) is not None:
        if static:
            raise ValueError("static_argnames must be left out for a program, whose parameters say it")
        if promotes is False:
            raise ValueError("promotion must be left out for a program, which converts with astype alone")
        from mind_mlir.runtime.program_compilation import staged_function  # noqa: PLC0415 -- functions of Python need no other language

        name = entry if entry is None else argument_checks.text(entry, "entry")
        made = staged_function(function, name, chosen, max_signatures)
        if made is not None:
            return made if dynamic is None else opened(made, dynamic, buckets)
    if entry is not None:
        raise ValueError("entry must be left out for a function of Python: it is the function of a program")

    def wrap(function: Any) -> Any:
        plain, subject = unbound(function)
        made = JitFunction(plain, chosen, static=static, max_signatures=max_signatures, promotes=promotes)
        if dynamic is not None:
            if subject is not None:
                raise ValueError("dynamic must be left out for a method: its object is an argument, too")
            return opened(made, dynamic, buckets)
        return made if subject is None else StagedMethod(made, subject)

    return wrap if function is None else wrap(function)
