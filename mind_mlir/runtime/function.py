"""`CompiledFunction`: one function of a compiled module, which Python calls with numpy arrays."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

import numpy as np

from mind_mlir.arguments.tensors import address, bind, fits
from mind_mlir.collectives.team import first_rank, run_ranks
from mind_mlir.diagnostics import ArgumentError, Diagnostic, ExecutionError, Location
from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.image.entry import Entry
from mind_mlir.ir.allocation import allocation_failed
from mind_mlir.ir.interface import Interface
from mind_mlir.ir.mesh import mesh_of
from mind_mlir.ir.types import DType
from mind_mlir.runtime.buffers import as_outputs, check_outputs, input_problems, output_fits
from mind_mlir.runtime.call import Called
from mind_mlir.runtime.call_record import OUT, CallRecord
from mind_mlir.runtime.memory import pool
from mind_mlir.runtime.native import NativeFunction, NativeModule
from mind_mlir.runtime.watched import WatchedCalls, written
from mind_mlir.support import argument_checks
from mind_mlir.support.callbacks import calling
from mind_mlir.support.notebooks import shown_by

if TYPE_CHECKING:
    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.ir.attributes import Array


class _HasSignature(Protocol):
    def signature(self) -> inspect.Signature: ...


class SignatureDescriptor:
    """The signature of a call, for `inspect.signature` and completion in editors."""

    def __get__(self, function: _HasSignature | None, owner: type) -> inspect.Signature:
        if function is None:
            raise AttributeError("a class has the signature of its constructor")
        return function.signature()


class CompiledFunction(Called):
    """A function compiled to native code, one of those of an `Executable`.

    Calls check their arguments, never write to them, and return fresh arrays. The interpreter lock is
    released while native code runs, and any number of threads may call one function at the same time.

    Attributes:
        name: Its name in the module.
        parameters: The inputs, in order.
        results: The types of the outputs, in order.
        result_names: What the program calls these; ``output_0`` where it does not.
    """

    _repr_html_ = shown_by("programs.compiled_function")

    def __init__(
        self,
        entry: Entry,
        native: NativeFunction | None,
        place_of: Callable[[Check], Location | None],
        reload: tuple[Callable[..., CompiledFunction], tuple[object, ...]],
        watched: WatchedCalls | None = None,
    ) -> None:
        """Hold what has been compiled: what says where checks look, and what a pickle is made of.

        Calls that are ``watched`` stay in Python; there is no code where these run operations one by one.

        Raises:
            TypeError: ``entry`` or ``native`` is none: only what compiles or loads code makes these.
        """
        argument_checks.expect(entry, Entry, "entry", "an Entry")
        if watched is None or not watched.interprets:
            argument_checks.expect(
                native, NativeFunction, "native", "native code (mind_mlir.compile makes it)"
            )
        super().__init__()
        self.name = entry.name
        self.parameters = entry.parameters
        self.results = tuple(output.type for output in entry.outputs)
        self._interface = Interface(entry.name, entry.parameters, entry.outputs)
        self.result_names = self._interface.output_names
        self._code, self._watched, self._mesh = native, watched, entry.mesh
        self._checks, self._place_of = entry.checks, place_of
        self._reload = reload
        # What a call allocates: the outputs and, behind them, the status that the checks are judged by.
        self._layouts = [(type_.extents, type_.dtype.numpy) for type_ in self.results]
        if self._checks:
            self._layouts.append(((2 * len(self._checks),), DType.SI64.numpy))
        self._new = [pool.allocator(type_.extents, type_.dtype.numpy) for type_ in self.results]
        #: Whether ``out=`` is for outputs: it is an input where one is called so.
        self._takes_out = all(parameter.name != OUT for parameter in self.parameters)
        #: More than one where threads made them at the same time: each may be in use until the end.
        self._records: list[CallRecord] = []

    def __str__(self) -> str:
        return str(self._interface)

    def __repr__(self) -> str:
        return f"<CompiledFunction {brief(str(self._interface))}>"

    __signature__ = SignatureDescriptor()

    @property
    def scratch_bytes(self) -> int:
        """Return how much memory each running call takes for intermediate values."""
        return self._native.scratch_bytes

    def signature(self) -> inspect.Signature:
        """Return what a call takes and returns, which is what `inspect.signature` says, too.

        An input whose name is none in Python can only be given by position or with ``**``: there is no
        signature that says so, and this one then takes anything.
        """
        names = [parameter.name for parameter in self.parameters]
        kinds = inspect.Parameter
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
            parameters = [
                kinds(p.name, kinds.POSITIONAL_OR_KEYWORD, annotation=str(p.type)) for p in self.parameters
            ]
        else:
            parameters = [kinds("args", kinds.VAR_POSITIONAL), kinds("kwargs", kinds.VAR_KEYWORD)]
        return inspect.Signature(parameters, return_annotation=f"({', '.join(map(str, self.results))})")

    def __reduce__(self) -> tuple[Callable[..., CompiledFunction], tuple[object, ...]]:
        return self._reload

    @public
    def __call__(self, /, *args: object, **kwargs: object) -> tuple[Array, ...]:
        """Run the function on numpy arrays, given by position or by input name.

        With ``out=``, an array or a tuple with one for each output, results are written there and these
        arrays are returned. They must have exactly the dtypes and shapes of the outputs, be C-contiguous,
        aligned and writeable, and overlap neither inputs nor one another. Where a run-time check fails, what
        they hold is not defined. Of a function that has an input called ``out``, that is what ``out=`` gives.

        Returns:
            One fresh C-contiguous array for each output, or those given, always as a tuple.

        Raises:
            ArgumentError: The arguments do not fit the inputs, or ``out`` the outputs (E61xx).
            ExecutionError: E6001, an index was out of bounds; E6004, the memory for outputs or intermediate
                values could not be had; E6009, an integer was divided by zero.
        """
        return self._call(args, kwargs)

    _call_python = __call__

    @public
    def bind(self, /, *args: object, **kwargs: object) -> BoundFunction:
        """Return this function bound to its arguments and outputs, for loops that use the same arrays again.

        Everything is checked once here. Calling what is returned, without arguments, runs the function on
        what the arrays hold then, writes the same outputs each time, and returns them: who needs a result
        beyond the next call copies it. Double buffering is two of them, each of which reads what the other
        has written::

            forth = step.bind(a, out=b)
            back = step.bind(b, out=a)

        Args:
            args: The inputs by position, as in a call. Arrays are used in place, so they must be C-contiguous
                and aligned; numbers and nested lists are taken once.
            kwargs: The inputs by name, and ``out=``, as in a call; fresh arrays unless given.

        Raises:
            ArgumentError: The arguments do not fit the inputs, or ``out`` the outputs (E61xx).
            ExecutionError: E6004, there is no memory for the outputs.
        """
        arrays, outputs = self._accept(args, *self._split(kwargs), in_place=True)
        return BoundFunction(self, arrays, self._fresh() if outputs is None else outputs)

    def _call(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Array, ...]:
        """Run the function on arguments by position and by name; as calling it does."""
        if OUT in kwargs and self._takes_out:
            arrays, outputs = self._accept(args, *self._split(kwargs), in_place=False)
        else:
            arrays, outputs = bind(self.parameters, args, kwargs), None
        results = self._run(arrays, outputs)
        if self._words is None:
            self.speed_up(self._take_record)
        return results

    def speed_up(self, make: Callable[[], object]) -> None:
        """Make calls native, but those that are given fewer arrays than the code takes."""
        if self.may_be_native:
            super().speed_up(make)

    @property
    def may_be_native(self) -> bool:
        """Return whether calls may be native: none that are watched, run on a mesh, or have fixed arrays."""
        return self._watched is None and not self._native.fixed and not self._mesh

    @property
    def _native(self) -> NativeFunction:
        assert self._code is not None, "what runs operations one by one has no code, and needs none"
        return self._code

    def _take_record(self) -> None:
        self._records.append(record := self._new_record())
        self._words = record.words

    def _split(self, kwargs: Mapping[str, object]) -> tuple[dict[str, object], object]:
        """Return the inputs that are given by name, and what is given for the outputs."""
        named = dict(kwargs)
        return named, named.pop(OUT, None) if self._takes_out else None

    def _accept(
        self, args: Sequence[object], named: Mapping[str, object], out: object, *, in_place: bool
    ) -> tuple[list[Array], tuple[Array, ...] | None]:
        """Return the arrays that inputs are read from, and those for the outputs if ``out`` gives any."""
        findings: list[Diagnostic] = []
        arrays: list[Array] = []
        try:
            arrays = bind(self.parameters, args, named)
        except ArgumentError as error:
            findings += error.diagnostics
        given = [*args, *(named.get(parameter.name) for parameter in self.parameters[len(args) :])]
        read = list(zip(self.parameters, given, arrays, strict=False))
        if in_place:
            findings += [problem for each in read for problem in input_problems(*each)]
        outputs = None if out is None else as_outputs(out, len(self.results), findings)
        if outputs:
            memory = [
                (parameter.name, array)
                for parameter, value, copy in read
                for array in ((value, copy) if isinstance(value, np.ndarray) else (copy,))
            ]
            findings += check_outputs(self._interface.outputs, outputs, memory)
        if findings:
            raise ArgumentError(findings)
        return arrays, cast("tuple[Array, ...] | None", outputs)

    def _accept_in_place(
        self, inputs: Sequence[object], outputs: Sequence[object]
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return arrays that a function is to be bound to, all of them by position."""
        arrays, given = self._accept(inputs, {}, tuple(outputs), in_place=True)
        return tuple(arrays), given or ()

    def _fresh(self) -> tuple[Array, ...]:
        """Return arrays for the outputs."""
        try:
            return tuple([new() for new in self._new])
        except MemoryError as error:
            raise self._no_memory() from error

    def _no_memory(self) -> ExecutionError:
        what = f"the outputs and {self._native.scratch_bytes} bytes of scratch memory"
        return allocation_failed(what, self.results)

    def _run(self, arrays: Sequence[Array], outputs: tuple[Array, ...] | None) -> tuple[Array, ...]:
        """Run the function on arrays that have been checked: on a mesh, once for each rank here.

        Such a call returns the results of the first of these ranks; all are given the same arrays.
        """
        if not self._mesh:
            return self._run_once(arrays, outputs)
        mesh = mesh_of(self._mesh)
        first = first_rank(mesh)

        def run(rank: int) -> tuple[Array, ...]:
            with calling():
                return self._run_once(arrays, outputs if rank == first else None)

        return run_ranks(mesh, run)[0]

    def _run_once(self, arrays: Sequence[Array], outputs: tuple[Array, ...] | None) -> tuple[Array, ...]:
        watched = self._watched
        if watched is not None and watched.interprets:
            results = tuple(watched.run(arrays))
            return results if outputs is None else written(results, outputs)
        if outputs is None:
            outputs = self._fresh()
        if not self._checks:
            self._invoke([*arrays, *outputs])
        else:
            status = np.empty(2 * len(self._checks), np.int64)
            self._invoke([*arrays, *outputs, status])
            self._raise_for(status.tolist())
        if watched is not None:
            watched.check(arrays, outputs)
        return outputs

    def _invoke(self, arrays: Sequence[Array]) -> None:
        watched = self._watched
        try:
            with nullcontext() if watched is None else watched.called():
                self._native.call([address(array) for array in arrays])
        except MemoryError as error:
            raise self._no_memory() from error

    def _new_record(self, bound: tuple[Sequence[Array], tuple[Array, ...]] | None = None) -> CallRecord:
        return self._record(bound)

    def staged_record(self, *, single: bool) -> CallRecord:
        """Return a record for a `StagedFunction` (see `CallRecord`)."""
        return self._record(None, staged=True, single=argument_checks.flag(single, "single"))

    def _record(
        self,
        bound: tuple[Sequence[Array], tuple[Array, ...]] | None,
        *,
        staged: bool = False,
        single: bool = False,
    ) -> CallRecord:
        inputs = [(parameter.name, parameter.type) for parameter in self.parameters]
        ranges = [check.allowed for check in self._checks]
        return CallRecord(self._native, inputs, self.results, ranges, bound, staged=staged, single=single)

    def _raise_for(self, status: Sequence[int]) -> None:
        ends = zip(status[::2], status[1::2], strict=True)
        judged = (
            check.judge(smallest, largest, self._place_of(check))
            for check, (smallest, largest) in zip(self._checks, ends, strict=True)
            if check.judge(smallest, largest) is not None
        )
        # What is printed has been computed twice, and checked so.
        different = {(each.code, each.message, each.location): each for each in judged if each is not None}
        findings = list(different.values())
        if findings:
            if any(finding.location is not None for finding in findings):
                from mind_mlir.languages.mind.elaboration.wording import as_written  # noqa: PLC0415 -- loads much, which bundles do without

                findings = as_written(findings)
            raise ExecutionError(findings)


class BoundFunction(Called):
    """A compiled function bound to arrays, which `CompiledFunction.bind` and `Executable.bind` make.

    Calling it runs the function on what its inputs hold at that moment and writes its outputs, the same
    arrays each time. The interpreter lock is released meanwhile; two threads that call it at once write to
    the same outputs.

    Attributes:
        function: The function.
        inputs: The arrays that are read, in the order of the parameters.
        outputs: The arrays that are written, in the order of the results; what a call returns.
    """

    def __init__(self, function: CompiledFunction, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Bind ``function``, as `CompiledFunction.bind` does.

        Raises:
            ArgumentError: The arrays do not fit, or cannot be used in place (E61xx).
            TypeError: An argument is of another kind.
        """
        super().__init__()
        self.function = argument_checks.expect(function, CompiledFunction, "function", "a CompiledFunction")
        given = argument_checks.items(inputs, "inputs", "a sequence of arrays")
        places = argument_checks.items(outputs, "outputs", "a sequence of arrays")
        self.inputs, self.outputs = function._accept_in_place(given, places)
        self._records: list[CallRecord] = []  # as in a `CompiledFunction`

    def __repr__(self) -> str:
        return f"<BoundFunction {brief(str(self.function))}>"

    @public
    def __call__(self) -> tuple[Array, ...]:
        """Run the function on what `inputs` hold now, and return `outputs`.

        Raises:
            ArgumentError: An array has been changed since in a way that makes it unfit (E61xx): another
                shape or dtype, write protection, bytes that are no truth values.
            ExecutionError: E6001, an index was out of bounds; E6004, the memory for intermediate values could
                not be had; E6009, an integer was divided by zero. What the outputs hold then is not defined.
        """
        function = self.function
        if not (
            all(map(fits, self.inputs, function.parameters))
            and all(map(output_fits, self.outputs, function._interface.outputs))
        ):
            function._accept_in_place(self.inputs, self.outputs)
        function._run(self.inputs, self.outputs)
        if self._words is None and function.may_be_native:
            self.speed_up(self._take_record)
        return self.outputs

    def _take_record(self) -> None:
        self._records.append(record := self.function._new_record((self.inputs, self.outputs)))
        self._words = record.words

    _call_python = __call__

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a BoundFunction stands for arrays in this process; pickle its function and bind it anew"
        )


def native_function(
    module: NativeModule, entry: Entry, fixed: Mapping[int, Array] | None = None
) -> NativeFunction:
    """Return the code of ``entry``, which is one of those of ``module``.

    ``fixed`` are arrays for some of its parameters, by their places, which its calls are not given.
    """
    pointers = len(entry.parameters) + len(entry.outputs) + bool(entry.checks)
    return NativeFunction(module, entry.symbol, pointers, entry.scratch_bytes, fixed)
