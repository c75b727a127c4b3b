"""A `StagedFunction` of a class, bound to an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir import border, trees
from mind_mlir.runtime.staged_arguments import as_static

if TYPE_CHECKING:
    from mind_mlir.runtime.lowered import Lowered
    from mind_mlir.runtime.staged import StagedFunction
    from mind_mlir.runtime.staged_gradient import Pullback


class StagedMethod:
    """A function of a class, bound to an object of it.

    An object that is a container of arrays (a dataclass) is an argument like any other. Of another one, which
    must be hashable, the program is made for that object: what it holds is read while the function is traced.
    """

    def __init__(self, function: StagedFunction, instance: object) -> None:
        """Bind ``function`` to ``instance``."""
        self.__func__, self.__self__ = function, instance
        self._first = as_static(instance, "self") if trees.is_leaf(instance) else instance

    def __repr__(self) -> str:
        return f"<bound method {self.__func__.name} of {border.describe(self.__self__)}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, the object first."""
        return self.__func__(self._first, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Return the program (see `StagedFunction.lower`)."""
        return self.__func__.lower(self._first, *args, **kwargs)

    def grad(self, argnums: Any = 0) -> StagedMethod:
        """Return the gradients; arguments are counted without the object (see `StagedFunction.grad`)."""
        return StagedMethod(self.__func__.grad(_behind_self(argnums)), self.__self__)

    def value_and_grad(self, argnums: Any = 0) -> StagedMethod:
        """Return result and gradients, counted as `grad` does (see `StagedFunction.value_and_grad`)."""
        return StagedMethod(self.__func__.value_and_grad(_behind_self(argnums)), self.__self__)

    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, Pullback]:
        """Return the result and what takes cotangents back (see `StagedFunction.vjp`)."""
        from mind_mlir.runtime.staged_gradient import Pullback  # noqa: PLC0415 -- its base class knows methods

        result = self.__func__(self._first, *args, **kwargs)
        return result, Pullback(self.__func__, (self._first, *args), kwargs, skipped=1)


def _behind_self(argnums: Any) -> Any:
    if isinstance(argnums, (tuple, list)):
        return tuple([_behind_self(each) for each in argnums])
    number = border.whole(argnums)
    return argnums if number is None or number < 0 else number + 1
