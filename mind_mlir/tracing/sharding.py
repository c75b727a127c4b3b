"""`shard_map`: functions that each rank of a mesh runs on its part of the data; and what they do together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, cast

import numpy as np

from mind_mlir.collectives.sharded_array import JOIN, ShardedArray, held_part
from mind_mlir.collectives.team import run_ranks
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.mesh import Mesh
from mind_mlir.ir.sharding import Sharding
from mind_mlir.runtime.options import Options, options_of, takes
from mind_mlir.runtime.staged_values import STAGE
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.jit import JitFunction
from mind_mlir.tracing.places import refuse
from mind_mlir.tracing.trace import Trace, current_trace
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.support.pytrees import Form
    from mind_mlir.tracing.array import TracedArray

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_MESH: ContextVar[Mesh | None] = ContextVar("mind_mlir_mesh", default=None)


def current_mesh(function: str) -> Mesh:
    """Return the mesh of the `shard_map` that is being traced (E2326: there is none)."""
    mesh = _MESH.get()
    if mesh is None:
        refuse(
            "E2326",
            f"{function} is used outside of shard_map",
            "call it in a function that mind_mlir.shard_map runs: that says which mesh it is of",
        )
    return mesh


def _together(opcode: str, x: Any, axes: str | Sequence[str], **attributes: Any) -> TracedArray:
    names = axes if isinstance(axes, str) else ",".join(argument_checks.names(axes, "axes"))
    mesh, trace = current_mesh(f"a collective ({opcode})"), current_trace()
    return trace.emit(opcode, as_value(trace, x), mesh=str(mesh), axes=names, **attributes)


@public
def all_reduce(x: Any, axes: str | Sequence[str], kind: str = "sum") -> TracedArray:
    """Return the sum over the ranks along ``axes``, element by element; each of them has it.

    The bits do not depend on how many processes the ranks are spread over.

    Args:
        x: The array of each rank.
        axes: An axis of the mesh, or several.
        kind: ``"sum"``, ``"mean"``, ``"max"`` or ``"min"``.

    Raises:
        TracingError: E2326, no `shard_map` is around it.
        VerificationError: E4312, the mesh has no such axis; E1103, E2005, ``kind`` is none for the dtype.
    """
    return _together("AllReduce", x, axes, kind=kind)


@public
def reduce_scatter(x: Any, axes: str | Sequence[str], axis: int = 0, kind: str = "sum") -> TracedArray:
    """Return this rank's part, along ``axis``, of what `all_reduce` returns.

    Raises:
        TracingError: As `all_reduce`.
        VerificationError: As `all_reduce`; E3003, the extent is no multiple of the number of ranks.
    """
    return _together("ReduceScatter", x, axes, axis=axis, kind=kind)


@public
def all_gather(x: Any, axes: str | Sequence[str], axis: int = 0) -> TracedArray:
    """Return the arrays of all ranks along ``axes``, next to one another along ``axis``.

    Raises:
        TracingError: As `all_reduce`.
        VerificationError: E4312, the mesh has no such axis; E3004, the array has no such axis.
    """
    return _together("AllGather", x, axes, axis=axis)


@public
def all_to_all(x: Any, axes: str | Sequence[str], split_axis: int, concat_axis: int) -> TracedArray:
    """Return part ``i`` along ``split_axis`` of each rank's array, in rank ``i``, along ``concat_axis``.

    Raises:
        TracingError: As `all_reduce`.
        VerificationError: As `all_gather`; E3003, the extent is no multiple of the number of ranks.
    """
    return _together("AllToAll", x, axes, split_axis=split_axis, concat_axis=concat_axis)


@public
def broadcast_from(x: Any, axes: str | Sequence[str], root: int = 0) -> TracedArray:
    """Return the array of the rank at place ``root`` along ``axes``.

    Raises:
        TracingError: As `all_reduce`.
        VerificationError: E4312, the mesh has no such axis; E1103, there is no such rank.
    """
    return _together("BroadcastFrom", x, axes, root=root)


@public
def shift(x: Any, axes: str | Sequence[str], offset: int = 1) -> TracedArray:
    """Return the array of the rank ``offset`` places before along ``axes``, which are a ring.

    Raises:
        TracingError: As `all_reduce`.
        VerificationError: E4312, the mesh has no such axis.
    """
    return _together("Shift", x, axes, offset=offset)


@public
def axis_index(axes: str | Sequence[str]) -> TracedArray:
    """Return the place of this rank along ``axes``, an integer from 0 on.

    Raises:
        TracingError: As `all_reduce`.
        VerificationError: E4312, the mesh has no such axis.
    """
    names = axes if isinstance(axes, str) else ",".join(argument_checks.names(axes, "axes"))
    return current_trace().emit("AxisIndex", mesh=str(current_mesh("axis_index")), axes=names)


def spread_specs(mesh: Mesh, given: Any, form: Form, what: str, of_none: T) -> list[Sharding | T]:
    """Return the sharding of each leaf: a spec is for all leaves of the part that it stands for.

    Args:
        mesh: The ranks.
        given: A sharding, or a container of them.
        form: That of the arrays.
        what: What messages call the specs.
        of_none: What stands for None.
    """
    specs, spec_form = pytrees.flatten(given, what)
    waiting, found = iter(specs), list[Sharding | T]()

    def fill(spec: Form, part: Form) -> None:
        if spec.container is None:
            found.extend([Sharding(next(waiting))] * part.count)
        elif not spec.parts:  # None
            found.extend([of_none] * part.count)
        elif len(spec.parts) != len(part.parts) or spec.keys != part.keys:
            raise ValueError(
                f"{what} must be shardings such as 'data,*', in containers like those of the arrays, of "
                f"which each is a * here: {spec} cannot stand for {part} in {what}={given!r}"
            )
        else:
            for each, inner in zip(spec.parts, part.parts, strict=True):
                fill(each, inner)

    fill(spec_form, form)
    for spec in found:
        for name in spec.names if isinstance(spec, Sharding) else ():
            mesh.names(name)
    return found


class _ShardMap:
    """What `shard_map` returns, as an object."""

    def __init__(
        self, function: Callable[..., Any], mesh: Mesh, specs: tuple[Any, Any], *, gather: bool, options: Any
    ) -> None:
        self.function, self.mesh, self.gather = function, mesh, gather
        self.in_specs, self.out_specs = specs
        self.name = getattr(function, "__name__", type(function).__name__)

        @functools.wraps(function, updated=())
        def local(*args: Any) -> Any:
            return self._run_local(*args)

        self._local = JitFunction(local, options)

    def __call__(self, *args: Any) -> Any:
        around = _MESH.get()
        if around is not None:
            refuse(
                "E2327",
                f"shard_map of {self.name}, over {self.mesh}, is called within one over {around}",
                "give the outer one a mesh with the axes of both, and call the function itself",
            )
        leaves, form = pytrees.flatten(args, f"the arguments of {self.name}")
        specs = self._specs(self.in_specs, form, "in_specs")
        stage = STAGE.get()
        if isinstance(stage, Trace) and not any(isinstance(leaf, ShardedArray) for leaf in leaves):
            return self._traced(stage, leaves, form, specs)

        def run(rank: int) -> Any:
            parts = [self._part(leaf, spec, rank) for leaf, spec in zip(leaves, specs, strict=True)]
            return self._local(*form.unflatten(parts))

        results = run_ranks(self.mesh, run)
        if self.gather:
            return results[0]
        return self._together(results)

    def _specs(self, given: Any, form: Form, what: str) -> list[Sharding]:
        return spread_specs(self.mesh, given, form, what, Sharding())

    def _part(self, leaf: Any, spec: Sharding, rank: int) -> Any:
        """Return what a rank is given of an argument."""
        if isinstance(leaf, ShardedArray):
            advice = "shard it so, or gather it"
            return held_part(leaf, self.mesh, spec, rank, taker=self.name, advice=advice)
        if not spec.names:
            return leaf
        array = np.asarray(leaf)
        return array[spec.part(self.mesh, rank, array.shape)]

    def _run_local(self, *args: Any, whole: bool = False) -> Any:
        """Run the function on the parts of a rank, and give what all are to have to all."""
        token = _MESH.set(self.mesh)
        try:
            returned = self.function(*args)
        finally:
            _MESH.reset(token)
        if not (self.gather or whole):
            return returned
        leaves, form = pytrees.flatten(returned, f"the result of {self.name}")
        specs = self._specs(self.out_specs, form, "out_specs")
        trace = current_trace()
        return form.unflatten(
            [self._joined(trace, leaf, spec) for leaf, spec in zip(leaves, specs, strict=True)]
        )

    def _joined(self, trace: Trace, leaf: Any, spec: Sharding) -> Any:
        value = as_value(trace, leaf)
        spec.counts(self.mesh, value.type.rank)
        return trace.emit(JOIN, value, mesh=str(self.mesh), sharding=str(spec))

    def _traced(self, trace: Trace, leaves: Sequence[Any], form: Form, specs: Sequence[Sharding]) -> Any:
        """Append what it does to a trace, in which all ranks have whole arrays."""
        mesh, given = str(self.mesh), list(leaves)
        for place, (leaf, spec) in enumerate(zip(leaves, specs, strict=True)):
            if isinstance(leaf, (TracedValue, np.ndarray)):
                value = as_value(trace, leaf)
                given[place] = trace.emit("TakePart", value, mesh=mesh, sharding=str(spec))
        return self._run_local(*form.unflatten(given), whole=True)

    def _together(self, results: Sequence[Any]) -> Any:
        """Return what the ranks of this process return, as arrays in parts."""
        flat = [pytrees.flatten(each, f"the result of {self.name}") for each in results]
        form = flat[0][1]
        specs = self._specs(self.out_specs, form, "out_specs")
        ranks = run_ranks(self.mesh, lambda rank: rank)
        found = []
        for place, spec in enumerate(specs):
            parts: dict[int, Array] = {
                rank: leaves[place] for rank, (leaves, _) in zip(ranks, flat, strict=True)
            }
            first = parts[ranks[0]]
            counts = spec.counts(self.mesh, first.ndim)
            shape = tuple([extent * count for extent, count in zip(first.shape, counts, strict=True)])
            found.append(ShardedArray(self.mesh, spec, shape, parts) if spec.names else first)
        return form.unflatten(found)


@public
@takes(Options)
def shard_map(
    function: Callable[P, R],
    mesh: Mesh,
    in_specs: Any,
    out_specs: Any,
    *,
    gather: bool = True,
    **options: Unpack[Options],
) -> Callable[P, R]:
    """Return a function that each rank of a mesh runs on its parts of the arguments.

    What is returned takes whole arrays, or arrays that are in parts already (`ShardedArray`), runs
    ``function`` compiled, once for each rank, and puts the results together. In ``function``, arrays have the
    shapes of parts, and `all_reduce` and its like work with the other ranks. It may be used within functions
    that are traced, and be differentiated. A process runs as many ranks as the mesh has for each: alone, it
    runs all of them, with the same results to the last bit.

    Args:
        function: A function of arrays and containers of arrays, given by position.
        mesh: The ranks.
        in_specs: Which axes divide which dimensions of the arguments: one sharding for all, or a tuple with
            one for each argument; of a container of arrays, one for all of them, or a container of shardings.
            A sharding is a text such as ``"data,*"`` (`Sharding`); the empty one is for what all ranks have.
        out_specs: The same of the result. Of what is not divided along an axis, all ranks along it must have
            equal results.
        gather: Whether all get whole results; else those that are divided are `ShardedArray`.
        options: As of `mind_mlir.compile`.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: A sharding names no axis of the mesh, or has more dimensions than its array; an extent is
            no multiple of the number of its parts; specs do not go with the arguments.
        ExecutionError: E6201, the ranks cannot be spread over the processes; as `mind_mlir.distributed`.
    """
    if not callable(function):
        argument_checks.reject("function", "callable", function)
    argument_checks.expect(mesh, Mesh, "mesh", "a Mesh")
    chosen = options_of(options, "shard_map", Options)
    specs = (in_specs, out_specs)
    mapped = _ShardMap(function, mesh, specs, gather=argument_checks.flag(gather, "gather"), options=chosen)

    @functools.wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise TypeError(
                f"{mapped.name} takes its arguments by position, as in_specs are in order: "
                f"give {', '.join(kwargs)} so, or bind them with functools.partial"
            )
        return mapped(*args)

    return cast("Callable[P, R]", public(run))
