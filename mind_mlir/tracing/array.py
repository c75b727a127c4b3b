"""`TracedArray`: what a function of Python is given for an array while it is traced."""

# To type checkers it is an array of numpy, whose methods take less here.
# mypy: disable-error-code="assignment, misc, override"

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from mind_mlir.ir.types import DType, format_shape
from mind_mlir.support import argument_checks
from mind_mlir.tracing import indexing, numpy_functions, operators, reductions
from mind_mlir.tracing.conversion import as_dtype
from mind_mlir.tracing.places import refuse
from mind_mlir.tracing.trace import current_trace
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.tracing.updates import Places

    #: Type checkers take it for an array of numpy, as which functions are written that are traced.
    _Numpy: TypeAlias = np.ndarray[Any, np.dtype[Any]]
else:
    _Numpy = object

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_CONDITION = (
    "write mind_mlir.cond(condition, then, otherwise) or mind_mlir.while_loop(condition, body, init); "
    "elementwise, mind_mlir.numpy.where, and & | ~ for and, or, not"
)


class _Operator(Protocol[R_co]):
    """A method of an operator of Python."""

    def __get__(self, array: Any, owner: Any = None) -> Callable[[Any], R_co]:
        """Return it bound to the array at its side."""


def _operators(call: Callable[[Any, Any], R]) -> tuple[_Operator[R], _Operator[R]]:
    """Return the methods of an operator of Python: with the array at its left, and at its right."""

    def left(self: Any, other: Any) -> R:  # a function, which a class binds to its objects
        return call(self, other)

    return cast("tuple[_Operator[R], _Operator[R]]", (left, lambda self, other: call(other, self)))


def _elementwise(opcode: str) -> tuple[_Operator[TracedArray], _Operator[TracedArray]]:
    return _operators(partial(operators.binary, opcode))


def _comparison(op: str) -> _Operator[TracedArray]:
    return _operators(partial(operators.compare, op))[0]


class TracedArray(TracedValue, _Numpy):
    """An array whose elements are known when the program runs, and whose dtype and shape are known now.

    It has numpy's operators and methods; `mind_mlir.numpy` has functions for all other operations.
    """

    __slots__ = ()

    #: Beside arrays of numpy, the operators here decide.
    __array_priority__ = 1000

    def __repr__(self) -> str:
        numbers = self.trace.numbers_of(self.value)
        return f"<TracedArray {self.value.type}>" if numbers is None else repr(numbers)

    def __str__(self) -> str:
        numbers = self.trace.numbers_of(self.value)
        return repr(self) if numbers is None else str(numbers)

    def __format__(self, spec: str) -> str:
        numbers = self.trace.numbers_of(self.value)
        return format(str(self) if numbers is None or self.ndim else numbers.item(), spec)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return numpy's dtype of the elements."""
        return self.value.type.dtype.numpy

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self.value.type.rank

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.value.type.element_count

    @property
    def itemsize(self) -> int:
        """Return the bytes that an element takes."""
        return self.value.type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Return the bytes that all elements take."""
        return self.size * self.itemsize

    @property
    def T(self) -> TracedArray:  # noqa: N802 -- numpy's name
        """Return it with its dimensions in reverse order."""
        return self.transpose()

    @property
    def real(self) -> TracedArray:
        """The real parts."""
        return self._by("real")

    @property
    def imag(self) -> TracedArray:
        """The imaginary parts, of real numbers zeros."""
        return self._by("imag")

    @property
    def at(self) -> Places:
        """Return what makes arrays with other elements at some places: ``x.at[i].set(y)``."""
        from mind_mlir.tracing.updates import Places  # noqa: PLC0415 -- few programs need it

        return Places(self)

    if TYPE_CHECKING:  # they would be numpy's otherwise
        __add__: _Operator[TracedArray]
        __radd__: _Operator[TracedArray]
        __sub__: _Operator[TracedArray]
        __rsub__: _Operator[TracedArray]
        __mul__: _Operator[TracedArray]
        __rmul__: _Operator[TracedArray]
        __truediv__: _Operator[TracedArray]
        __rtruediv__: _Operator[TracedArray]
        __floordiv__: _Operator[TracedArray]
        __rfloordiv__: _Operator[TracedArray]
        __mod__: _Operator[TracedArray]
        __rmod__: _Operator[TracedArray]
        __pow__: _Operator[TracedArray]
        __rpow__: _Operator[TracedArray]
        __matmul__: _Operator[TracedArray]
        __rmatmul__: _Operator[TracedArray]
        __and__: _Operator[TracedArray]
        __rand__: _Operator[TracedArray]
        __or__: _Operator[TracedArray]
        __ror__: _Operator[TracedArray]
        __xor__: _Operator[TracedArray]
        __rxor__: _Operator[TracedArray]
        __lshift__: _Operator[TracedArray]
        __rlshift__: _Operator[TracedArray]
        __rshift__: _Operator[TracedArray]
        __rrshift__: _Operator[TracedArray]
        __lt__: _Operator[TracedArray]
        __le__: _Operator[TracedArray]
        __gt__: _Operator[TracedArray]
        __ge__: _Operator[TracedArray]

    __add__, __radd__ = _elementwise("Add")
    __sub__, __rsub__ = _elementwise("Sub")
    __mul__, __rmul__ = _elementwise("Mul")
    __truediv__, __rtruediv__ = _operators(operators.divide)
    __floordiv__, __rfloordiv__ = _operators(operators.floor_divide)
    __mod__, __rmod__ = _operators(operators.remainder)
    __divmod__, __rdivmod__ = _operators(operators.quotient_and_remainder)
    __pow__, __rpow__ = _operators(operators.power)
    __matmul__, __rmatmul__ = _operators(operators.matmul)
    __and__, __rand__ = _elementwise("And")
    __or__, __ror__ = _elementwise("Or")
    __xor__, __rxor__ = _elementwise("Xor")
    __lshift__, __rlshift__ = _elementwise("ShiftLeft")
    __rshift__, __rrshift__ = _operators(operators.shift_right)
    __lt__, __le__ = _comparison("Less"), _comparison("LessEqual")
    __gt__, __ge__ = _comparison("Greater"), _comparison("GreaterEqual")
    __eq__ = _comparison("Equal")  # elementwise, as numpy's
    __ne__ = _comparison("NotEqual")  # elementwise, as numpy's
    __hash__ = None  # == compares elements, so there is no hash

    def __neg__(self) -> TracedArray:
        return operators.unary("Neg", self)

    def __pos__(self) -> TracedArray:
        return self

    def __abs__(self) -> TracedArray:
        return operators.absolute(self)

    def __invert__(self) -> TracedArray:
        return operators.unary("Not", self)

    def __getitem__(self, index: Any) -> TracedArray:
        return indexing.get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        refuse(
            "E2306",
            "a traced array cannot be written to",
            "write x = x.at[index].set(value), which is a new array; .add adds there",
        )

    def __len__(self) -> int:
        if not self.ndim:
            refuse("E2302", "a traced scalar has no length", "give the function an array of rank 1 or more")
        return self.shape[0]

    def __iter__(self) -> Iterator[TracedArray]:
        return iter([self[place] for place in range(len(self))])

    def __bool__(self) -> bool:
        numbers = self.trace.numbers_of(self.value)
        if numbers is None:
            shown = f"{self.value.type.dtype}{format_shape(self.shape)}"
            refuse("E2301", f"the truth value of a traced array ({shown}) is not known yet", _CONDITION)
        return bool(numbers)

    def __int__(self) -> int:
        return int(self._numbers("int(x)", "write x.astype('i64')"))

    def __float__(self) -> float:
        return float(self._numbers("float(x)", "write x.astype('f64')"))

    def __complex__(self) -> complex:
        return complex(self._numbers("complex(x)", "numbers stay arrays in the program"))

    def __index__(self) -> int:
        numbers = self._numbers(
            "a Python index or range(x)",
            "index a traced array with it, loop with mind_mlir.fori_loop, or name the argument in "
            "jit(..., static_argnames=...), which then is a plain number",
        )
        return numbers.__index__()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        help_ = "use the functions of mind_mlir.numpy in the place of numpy's"
        return np.array(self._numbers("numpy.asarray(x)", help_), *args, **kwargs)

    def item(self, *args: Any) -> Any:
        """Return an element as a number of Python, where it is known (E2302: not before the program runs)."""
        return self._numbers("x.item()", "numbers stay arrays in the program").item(*args)

    def tolist(self) -> Any:
        """Return the elements as lists, where they are known (E2302: not before the program runs)."""
        help_ = "numbers stay arrays in the program; for x in xs goes through its rows"
        return self._numbers("x.tolist()", help_).tolist()

    def _numbers(self, asked: str, help: str) -> Array:
        """Return the numbers, which are known where operations run one by one."""
        numbers = self.trace.numbers_of(self.value)
        if numbers is None:
            shown = f"{self.value.type.dtype}{format_shape(self.shape)}"
            refuse(
                "E2302",
                f"{asked} asks for the numbers of a traced array ({shown}), which are not known yet",
                help,
            )
        return numbers

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_functions.universal(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_functions.function_of(function)(*args, **kwargs)

    def __copy__(self) -> TracedArray:
        return self

    def __deepcopy__(self, memo: object) -> TracedArray:
        return self

    def __reduce__(self) -> Any:
        help_ = "pickle what the function returns when it is called"
        return self._numbers("a pickle", help_).__reduce__()

    def astype(self, dtype: Any) -> TracedArray:
        """Return it with elements of ``dtype``: a dtype's name, or numpy's dtype."""
        trace = current_trace()
        wanted, value = as_dtype(dtype), trace.value(self)
        if value.type.dtype is wanted:
            return trace.wrap(value)
        return trace.emit("Cast", value, dtype=wanted)

    def reshape(self, *shape: Any) -> TracedArray:
        """Return the elements in another shape, one extent of which may be -1; as numpy's."""
        trace = current_trace()
        listed = shape[0] if len(shape) == 1 and argument_checks.whole(shape[0]) is None else shape
        extents = [
            argument_checks.integer(extent, "each extent of shape")
            for extent in argument_checks.items(listed, "shape", "integers")
        ]
        return trace.emit("Reshape", trace.value(self), new_shape=extents, weak=self.weak)

    def ravel(self) -> TracedArray:
        """Return the elements as a vector."""
        return self.reshape(-1)

    flatten = ravel

    def transpose(self, *axes: Any) -> TracedArray:
        """Return it with its dimensions in the order of ``axes``, by default reversed; as numpy's."""
        trace = current_trace()
        listed = axes[0] if len(axes) == 1 and argument_checks.whole(axes[0]) is None else axes
        if listed is None or not axes:
            order = list(range(self.ndim))[::-1]
        else:
            order = reductions.axes_of(listed, self.ndim)
        return trace.emit("Transpose", trace.value(self), permutation=order, weak=self.weak)

    def swapaxes(self, axis1: int, axis2: int) -> TracedArray:
        """Return it with two dimensions exchanged."""
        one, two = reductions.axes_of((axis1, axis2), self.ndim)
        order = list(range(self.ndim))
        order[one], order[two] = two, one
        return self.transpose(order)

    def squeeze(self, axis: Any = None) -> TracedArray:
        """Return it without the dimensions ``axis``, or without all of extent 1."""
        trace = current_trace()
        unit = [place for place, extent in enumerate(self.shape) if extent == 1]
        axes = unit if axis is None else reductions.axes_of(axis, self.ndim)
        return trace.emit("Squeeze", trace.value(self), axes=axes, weak=self.weak)

    def sum(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> TracedArray:
        """Return the sum along ``axis``, or of all; of truth values and integers, in i64 or ui64."""
        if dtype is not None:
            return reductions.total(self, axis, as_dtype(dtype), keepdims=keepdims)
        return reductions.reduce(reductions.counted(self), "Sum", axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> TracedArray:
        """Return the mean along ``axis``, or of all."""
        return reductions.mean(self if dtype is None else self.astype(dtype), axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> TracedArray:
        """Return the greatest element along ``axis``, or of all; NaN where one is."""
        return reductions.reduce(self, "Max", axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> TracedArray:
        """Return the least element along ``axis``, or of all; NaN where one is."""
        return reductions.reduce(self, "Min", axis, keepdims=keepdims)

    def prod(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> TracedArray:
        """Return the product along ``axis``, or of all; of truth values and integers, in i64 or ui64."""
        terms = reductions.counted(self) if dtype is None else self.astype(dtype)
        return reductions.product(terms, axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> TracedArray:
        """Return whether all elements along ``axis`` are true, or not 0."""
        return reductions.reduce(self.astype(DType.I1), "Min", axis, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> TracedArray:
        """Return whether an element along ``axis`` is true, or not 0."""
        return reductions.reduce(self.astype(DType.I1), "Max", axis, keepdims=keepdims)

    def argmax(self, axis: Any = None, *, keepdims: bool = False) -> TracedArray:
        """Return where the greatest element is, as i64: along ``axis``, or among all in row-major order."""
        return reductions.argmax(self, axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, *, keepdims: bool = False) -> TracedArray:
        """Return where the least element is, as `argmax`."""
        return reductions.argmax(self, axis, keepdims=keepdims, least=True)

    def std(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> TracedArray:
        """Return the standard deviation along ``axis``, or of all; as `mind_mlir.numpy.std`."""
        return self._by("std", axis, ddof=ddof, keepdims=keepdims)

    def var(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> TracedArray:
        """Return the variance along ``axis``, or of all; as `mind_mlir.numpy.var`."""
        return self._by("var", axis, ddof=ddof, keepdims=keepdims)

    def cumsum(self, axis: Any = None) -> TracedArray:
        """Return the sums up to each element along ``axis``; as `mind_mlir.numpy.cumsum`."""
        return self._by("cumsum", axis)

    def argsort(self, axis: Any = -1) -> TracedArray:
        """Return the indices that sort it along ``axis``; as `mind_mlir.numpy.argsort`."""
        return self._by("argsort", axis)

    def repeat(self, repeats: int, axis: Any = None) -> TracedArray:
        """Return it with each element repeated; as `mind_mlir.numpy.repeat`."""
        return self._by("repeat", repeats, axis)

    def take(self, indices: Any, axis: Any = None) -> TracedArray:
        """Return its parts at ``indices`` of ``axis``; as `mind_mlir.numpy.take`."""
        return self._by("take", indices, axis)

    def _by(self, name: str, *args: Any, **kwargs: Any) -> TracedArray:
        made: TracedArray = numpy_functions.named(name)(self, *args, **kwargs)
        return made

    def clip(self, min: Any = None, max: Any = None) -> TracedArray:  # noqa: A002 -- names of numpy
        """Return each element, or the limit that it is beyond."""
        low = self if min is None else operators.binary("Maximum", self, min)
        return low if max is None else operators.binary("Minimum", low, max)

    def dot(self, other: Any) -> TracedArray:
        """Return the product of vectors or matrices."""
        return operators.matmul(self, other)

    def copy(self) -> TracedArray:
        """Return it: traced arrays never change."""
        return self
