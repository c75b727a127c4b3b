"""Gradients of functions that are compiled for their arguments: functions of the same kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from mind_mlir.diagnostics import AutodiffError, Diagnostic
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.runtime.staged import StagedFunction
from mind_mlir.runtime.staged_values import WeakType
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.support.notebooks import shown_by

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.types import TensorType
    from mind_mlir.languages.staging import Instance, Unit
    from mind_mlir.support.pytrees import Form

P = ParamSpec("P")
R = TypeVar("R")

_KINDS = inspect.Parameter


class GradientFunction(StagedFunction, Generic[P, R]):
    """The gradients of a function, or its result and these; `mind_mlir.grad` makes one."""

    def __init__(self, function: StagedFunction, argnums: Any, *, with_value: bool) -> None:
        """Hold what is to be differentiated.

        Args:
            function: The function, which returns one float.
            argnums: The arguments to differentiate with respect to: the place or the name of one, or several.
            with_value: Whether the result is returned, too.

        Raises:
            TypeError: ``argnums`` is no integer, no name, and no sequence of these.
            ValueError: There is no such parameter, one is named twice, or none at all.
        """
        self.function = function
        self.closes = function.closes
        self.with_value = with_value
        signature = function.__signature__
        several = isinstance(argnums, (tuple, list))
        given = list(argnums) if several else [argnums]
        self.paths = tuple([_path(signature, each) for each in given])
        if not given or len(set(self.paths)) < len(given):
            raise ValueError("argnums must be different arguments, one at least")
        self.several = several
        for _, name in self.paths:
            if name in function.static:
                raise ValueError(f"argnums must be arguments that are no static ones, not {name!r}")
        prefix = "value_and_grad" if with_value else "grad"
        super().__init__(
            f"{prefix}_{function.name}",
            signature,
            function.options,
            static=sorted(function.static),
            max_signatures=function.max_signatures,
        )

    _repr_html_ = shown_by("programs.gradient_function")

    if TYPE_CHECKING:  # it takes what the function does

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
            """Return the gradients (see `StagedFunction.__call__`)."""

    def _made_of(self) -> Any:
        argnums = tuple([name if place is None else place for place, name in self.paths])
        return _gradient, (self.function, argnums if self.several else argnums[0], self.with_value)

    def watches(self, cls: type) -> bool | None:
        """Return whether what is read of objects of ``cls`` is noted, as of the function's."""
        return self.function.watches(cls)

    def steps(self) -> Callable[[StagedFunction, Form, Sequence[Any]], Any] | None:
        """Return what runs it operation by operation, as it does the function."""
        return self.function.steps()

    def reading(self, subject: object) -> Any:
        """Return what notes what is read of objects, as of the function's."""
        return self.function.reading(subject)

    def flatten(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Form]:
        """Return the leaves of a call's arguments, and their form, as the function has them."""
        return self.function.flatten(args, kwargs)

    def types_of(self, form: Form, leaves: Sequence[Any]) -> tuple[TensorType, ...]:
        """Return the types of the leaves of arguments, as the function has them."""
        return self.function.types_of(form, leaves)

    def stage(self, unit: Unit, form: Form, types: Sequence[TensorType]) -> Instance:
        """Differentiate the function for arguments of a form and of types; see `StagedFunction.stage`.

        Raises:
            AutodiffError: E5005, an argument has no floats; E5103, the result is not one float; or as
                `mind_mlir.differentiate`.
        """
        instance = self.function.instance(unit, form, types)
        result = instance.results[0] if instance.results else None
        if len(instance.results) != 1 or result is None or result.shape or not result.dtype.is_float:
            raise AutodiffError(_not_scalar(self.function.name, instance.results))
        chosen = [_leaves_of(form, path) for path in self.paths]
        wrt = [place for places, _ in chosen for place in places]
        names = self.names(form)
        for place in wrt:
            if not types[place].dtype.is_float:
                raise AutodiffError(_not_float(names[place], types[place]))
        if not wrt:
            raise AutodiffError(_nothing(self.function.name))
        derivative = unit.derivative(instance, wrt)
        forms = [part for _, part in chosen]
        gradients = _tuple_form(forms) if self.several else forms[0]
        weak = _weak(types, wrt)
        if self.with_value:
            of_value = instance.weak or (False,)
            form = _tuple_form([instance.form, gradients])
            return replace(derivative, form=form, weak=(*of_value, *weak))
        made = unit.without_first(derivative, f"grad_{self.function.name}", gradients)
        return replace(made, weak=weak)


def _gradient(function: StagedFunction, argnums: Any, with_value: bool) -> GradientFunction[..., Any]:
    return function.value_and_grad(argnums) if with_value else function.grad(argnums)


class Pullback:
    """Takes cotangents of a function's result to those of its arguments; `mind_mlir.vjp` makes one."""

    def __init__(
        self, function: StagedFunction, args: Sequence[Any], kwargs: dict[str, Any], *, skipped: int = 0
    ) -> None:
        """Hold the function, and its arguments, of which the first ``skipped`` are no one's business."""
        self._pulling = function.pulling()
        self._args, self._kwargs, self._skipped = args, kwargs, skipped

    def __repr__(self) -> str:
        return f"<Pullback of {self._pulling.function.name}>"

    @public
    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Return the cotangent of each positional argument, in the form of that; None for one without floats.

        Args:
            cotangent: Arrays in the form, and of the types, of the function's result.

        Raises:
            AutodiffError: E5104, ``cotangent`` is not of the form or types of the result; or as
                `mind_mlir.differentiate`.
        """
        found: tuple[Any, ...] = self._pulling(cotangent, self._args, self._kwargs)
        return found[self._skipped :]


class PullbackFunction(StagedFunction):
    """The cotangents of a function's arguments, as a function of those of its results and its arguments."""

    repeats = True

    def __init__(self, function: StagedFunction) -> None:
        """Hold what is to be differentiated."""
        self.function = function
        self.closes = function.closes
        kind = _KINDS.POSITIONAL_ONLY
        signature = inspect.Signature([_KINDS(name, kind) for name in ("cotangent", "args", "kwargs")])
        super().__init__(f"vjp_{function.name}", signature, function.options)

    def _made_of(self) -> Any:
        return StagedFunction.pulling, (self.function,)

    def steps(self) -> Callable[[StagedFunction, Form, Sequence[Any]], Any] | None:
        """Return what runs it operation by operation, as it does the function."""
        return self.function.steps()

    def reading(self, subject: object) -> Any:
        """Return what notes what is read of objects, as of the function's."""
        return self.function.reading(subject)

    def subject(self, form: Form) -> Any:
        """Return the object whose method is differentiated, if it is watched."""
        return self.function.subject(form.parts[0].parts[1])

    def flatten(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Form]:
        """Return the leaves of the cotangents and the arguments."""
        cotangent, given, named = args
        leaves, form = self.function.flatten(given, named)
        more, result = pytrees.flatten(cotangent, "cotangent")
        return [*more, *leaves], _tuple_form([_tuple_form([result, form]), _EMPTY])

    def names(self, form: Form) -> list[str]:
        """Return what each leaf is called."""
        result, arguments = form.parts[0].parts
        return [*result.names("cotangent"), *self.function.names(arguments)]

    def stage(self, unit: Unit, form: Form, types: Sequence[TensorType]) -> Instance:
        """Differentiate the function; see `StagedFunction.stage`."""
        result, arguments = form.parts[0].parts
        given = list(types[result.count :])
        instance = self.function.instance(unit, arguments, given)
        self._check(instance, result, types[: result.count])
        positional = arguments.parts[0]
        kept: list[tuple[list[int], Form]] = []
        begin = 0
        for part in positional.parts:
            places = list(range(begin, begin + part.count))
            begin += part.count
            is_float = bool(places) and all(given[place].dtype.is_float for place in places)
            kept.append((places, part) if is_float else ([], _EMPTY))
        wrt = [place for places, _ in kept for place in places]
        if not wrt:
            raise AutodiffError(_nothing(self.function.name))
        derivative = unit.derivative(instance, wrt, cotangents=True)
        own, count = len(instance.parameters), result.count

        def build(name: str) -> Function:
            builder = unit.builder()
            cotangents = [
                builder.parameter(type_.strong if isinstance(type_, WeakType) else type_)
                for type_ in types[:count]
            ]
            parameters = [builder.parameter(type_) for type_ in derivative.parameters[:own]]
            weights = [
                value if value.type == type_ else builder.emit("Cast", value, dtype=type_.dtype)
                for value, type_ in zip(cotangents, instance.results, strict=True)
                if type_.dtype.is_float
            ]
            results = unit.call(builder, derivative, [*parameters, *weights])
            return builder.function(name, results[len(instance.results) :], public=False)

        made = unit.define(self.name, build, _tuple_form([part for _, part in kept]))
        return replace(made, weak=_weak(given, wrt))

    def _check(self, instance: Instance, form: Form, types: Sequence[TensorType]) -> None:
        """Check that the cotangents are what the result is."""
        different = instance.form.difference(form, "the result")
        if different is not None:
            raise AutodiffError(_cotangent(self.function.name, different))
        for name, wanted, found in zip(form.names("cotangent"), instance.results, types, strict=True):
            same = wanted.dtype is found.dtype or isinstance(found, WeakType)
            if wanted.shape != found.shape or not same:
                raise AutodiffError(_cotangent(self.function.name, f"{name} is {found}, the result {wanted}"))


def _path(signature: inspect.Signature, argnum: Any) -> tuple[int | None, str]:
    """Return the place among the positional arguments, if it has one, and the name of an argument."""
    parameters = list(signature.parameters.values())
    places = [
        each for each in parameters if each.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)
    ]
    if isinstance(argnum, str):
        name = argument_checks.text(argnum, "argnums")
        if name not in signature.parameters:
            known = ", ".join(signature.parameters) or "none"
            raise ValueError(f"argnums must be parameters ({known}), not {name!r}")
        place = next((at for at, each in enumerate(places) if each.name == name), None)
        return place, name
    number = argument_checks.whole(argnum)
    if number is None:
        argument_checks.reject("argnums", "an integer, a name, or a sequence of these", argnum)
    gathers = any(each.kind is _KINDS.VAR_POSITIONAL for each in parameters)
    if number < 0 and not gathers:
        number += len(places)
    if number < 0 or (number >= len(places) and not gathers):
        found = argument_checks.describe(argnum)
        raise ValueError(f"argnums must be places of the {len(places)} positional parameters, not {found}")
    return number, places[number].name if number < len(places) else f"{number}"


def _leaves_of(form: Form, path: tuple[int | None, str]) -> tuple[range, Form]:
    """Return where the leaves of an argument are among all, and its form."""
    positional, named = form.parts
    place, name = path
    if place is not None:
        if place >= len(positional.parts):
            raise ValueError(f"argnums must be arguments of the call, which has no argument {place}")
        found = positional.slices()[place]
        return range(found.start, found.stop), positional.parts[place]
    at = named.keys.index(name)
    found = named.slices()[at]
    return range(positional.count + found.start, positional.count + found.stop), named.parts[at]


def _tuple_form(parts: Sequence[Form]) -> Form:
    """Return the form of a tuple of values of some forms."""
    shape = pytrees.flatten((None,) * len(parts))[1]
    return pytrees.Form(shape.container, parts=tuple(parts))


def _weak(types: Sequence[TensorType], wrt: Sequence[int]) -> tuple[bool, ...]:
    """Return of each gradient whether it takes the dtype of what it meets, as its argument does."""
    return tuple([isinstance(types[place], WeakType) for place in wrt])


_EMPTY = pytrees.flatten(None)[1]


def _not_scalar(name: str, results: Sequence[TensorType]) -> Diagnostic:
    found = str(results[0]) if len(results) == 1 else f"{len(results)} arrays"
    return Diagnostic(
        "E5103",
        f"the gradient of {name} is asked for, which returns {found}, not one float",
        help="return a scalar, such as a mean; for other results, mind_mlir.vjp takes their cotangents",
        context={"found": found},
    )


def _not_float(name: str, type_: TensorType) -> Diagnostic:
    return Diagnostic(
        "E5005",
        f"'{name}' has dtype {type_.dtype.core_name}; only floating-point arguments are differentiable",
        help="choose others with argnums, or pass it as floats: x.astype('f32')",
        context={"input": name, "found": type_.dtype.core_name},
    )


def _nothing(name: str) -> Diagnostic:
    return Diagnostic(
        "E5005",
        f"no argument of {name} to differentiate with respect to holds floats",
        help="choose others with argnums",
    )


def _cotangent(name: str, problem: str) -> Diagnostic:
    return Diagnostic(
        "E5104",
        f"the cotangent is not like the result of {name}: {problem}",
        help="pass arrays of the dtypes and shapes of the result, in the same containers",
    )
