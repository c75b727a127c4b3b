"""A `StagedFunction` of a class, bound to an object."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from mind_mlir.diagnostics.tracebacks import public, trim
from mind_mlir.runtime.staged_arguments import as_static
from mind_mlir.support import argument_checks, pytrees

if TYPE_CHECKING:
    from mind_mlir.profiling.profile import TimeProfile
    from mind_mlir.runtime.lowered import Lowered
    from mind_mlir.runtime.staged import StagedFunction
    from mind_mlir.runtime.staged_gradient import Pullback
    from mind_mlir.support.pytrees import Form
    from mind_mlir.tools.explorer.report import ExplorerReport


P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class StagedMethod(Generic[P, R_co]):
    """A function of a class, bound to an object of it.

    An object that is a container of arrays (a dataclass) is an argument like any other. Of another one,
    arrays that the function reads are inputs of the program, taken from the object at each call; the rest of
    what it reads decides on the program, and another one is made where that has changed. An object whose
    class is not written in Python must be hashable: the program is made for that object.
    """

    BORDER_NOTE = ", which becomes a program for arguments, arrays or their types: f.lower(x).module"

    def __init__(self, function: StagedFunction, instance: object) -> None:
        """Bind ``function`` to ``instance``."""
        self.__func__, self.__self__ = function, instance

    def __repr__(self) -> str:
        return f"<bound method {self.__func__.name} of {argument_checks.describe(self.__self__)}>"

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function, the object first."""
        try:
            found: R_co = self.__func__(self.first(), *args, **kwargs)
        except Exception as error:
            trim(error)
            raise
        return found

    @public
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Return the program (see `StagedFunction.lower`); arrays of the object are its last inputs."""
        return self.__func__.lower(self.first(), *args, **kwargs)

    @public
    def profile(self, *args: Any, **kwargs: Any) -> TimeProfile:
        """Return where the time of a call goes (see `StagedFunction.profile`)."""
        return self.__func__.profile(self.first(), *args, **kwargs)

    @public
    def explore(self, *args: Any, **kwargs: Any) -> ExplorerReport:
        """Return a page of what becomes of the program (see `StagedFunction.explore`)."""
        return self.__func__.explore(self.first(), *args, **kwargs)

    def grad(self, argnums: Any = 0) -> StagedMethod[P, Any]:
        """Return the gradients; arguments are counted without the object (see `StagedFunction.grad`)."""
        return StagedMethod(self.__func__.grad(_behind_self(argnums)), self.__self__)

    def value_and_grad(self, argnums: Any = 0) -> StagedMethod[P, tuple[R_co, Any]]:
        """Return result and gradients, counted as `grad` does (see `StagedFunction.value_and_grad`)."""
        return StagedMethod(self.__func__.value_and_grad(_behind_self(argnums)), self.__self__)

    @public
    def vjp(self, *args: P.args, **kwargs: P.kwargs) -> tuple[R_co, Pullback]:
        """Return the result and what takes cotangents back (see `StagedFunction.vjp`)."""
        from mind_mlir.runtime.staged_gradient import Pullback  # noqa: PLC0415 -- its base class knows methods

        first = self.first()
        return self.__func__(first, *args, **kwargs), Pullback(
            self.__func__, (first, *args), kwargs, skipped=1
        )

    def first(self) -> object:
        """Return the argument that stands for the object; this one says that what is read of it is noted."""
        watched = self.__func__.watches(type(self.__self__))
        if watched:
            return self
        return self.__self__ if watched is None else as_static(self.__self__, "self")


class Held:
    """The object of a method in the form of its arguments: equal to all others of its class.

    Attributes:
        cls: That class.
        get: Returns the object, as long as it lives.
    """

    __slots__ = ("cls", "get")

    def __init__(self, value: object) -> None:
        self.cls = pytrees.stood_for(type(value))
        try:
            self.get: Any = weakref.ref(value)
        except TypeError:  # objects of its class cannot be watched
            self.get = lambda: value

    def __hash__(self) -> int:
        return hash(self.cls)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and other.cls is self.cls


def subject_of(form: Form) -> Any:
    """Return the object that arguments of ``form`` begin with where they are those of a method."""
    first = form.parts[0].parts[:1]
    is_method = first and first[0].container is not None and first[0].container.cls is StagedMethod
    return first[0].fixed[0][1].get() if is_method else None


def _behind_self(argnums: Any) -> Any:
    if isinstance(argnums, (tuple, list)):
        return tuple([_behind_self(each) for each in argnums])
    number = argument_checks.whole(argnums)
    return argnums if number is None or number < 0 else number + 1


pytrees.register(
    pytrees.Container(
        StagedMethod,
        lambda value, _: ((), (), (("self", Held(value.__self__)),), ()),
        lambda form, _: form.fixed[0][1],
        lambda form: f"<{form.fixed[0][1].cls.__name__}>",
    )
)
