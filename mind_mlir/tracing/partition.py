"""`partition`: whole programs of which each rank of a mesh computes a part; and annotations in them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, Unpack, cast

import numpy as np

from mind_mlir.collectives.sharded_array import ShardedArray, held_part
from mind_mlir.collectives.team import run_ranks
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.mesh import Mesh
from mind_mlir.ir.sharding import Sharding, Spec
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.passes.forms import structured_form, verified
from mind_mlir.passes.partition import local_form
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.options import Options, options_of, takes
from mind_mlir.runtime.staged_values import STAGE
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.jit import JitFunction
from mind_mlir.tracing.sharding import spread_specs
from mind_mlir.tracing.trace import Trace, current_trace

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.runtime.function import CompiledFunction
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.support.pytrees import Form
    from mind_mlir.tracing.array import TracedArray

P = ParamSpec("P")
R = TypeVar("R")


@public
def with_sharding(x: Any, mesh: Mesh, sharding: Spec) -> TracedArray:
    """Return an array of a function that is traced, which the ranks of a mesh have in parts.

    The program then is one for all ranks: each computes a part of everything, as follows from what is
    annotated. What it computes stays the same.

    Args:
        x: The whole array.
        mesh: The ranks; all annotations of a program have the same ones.
        sharding: Which axes of the mesh divide which dimensions, as in ``"data,*"``.

    Raises:
        TypeError: An argument is not of the type above.
        TracingError: E2303, nothing is being traced.
        VerificationError: E4312, the mesh has no such axis; E3003, a dimension cannot be divided evenly.
    """
    argument_checks.expect(mesh, Mesh, "mesh", "a Mesh")
    trace = current_trace()
    return trace.emit("Shard", as_value(trace, x), mesh=str(mesh), sharding=str(Sharding(sharding)))


class _Program(NamedTuple):
    """A function compiled for arguments of some form and types.

    Attributes:
        run: What each rank runs on its parts.
        taken: The types of the whole arguments.
        given: How the arguments are divided.
        returned: How the results are.
        types: The types of the whole results.
        form: The form of the result.
    """

    run: CompiledFunction
    taken: tuple[TensorType, ...]
    given: tuple[Sharding, ...]
    returned: tuple[Sharding, ...]
    types: tuple[TensorType, ...]
    form: Form


class _Partitioned:
    """What `partition` returns, as an object."""

    def __init__(
        self,
        function: Callable[..., Any],
        mesh: Mesh,
        specs: tuple[Any, Any],
        *,
        gather: bool,
        options: CompileOptions,
    ) -> None:
        self.function, self.mesh, self.gather = function, mesh, gather
        self.in_specs, self.out_specs = specs
        self.name = getattr(function, "__name__", type(function).__name__)
        self._options = options
        self._jit = JitFunction(function, options)
        self._programs: dict[Hashable, _Program] = {}

    def __call__(self, *args: Any) -> Any:
        leaves, form = pytrees.flatten(args, f"the arguments of {self.name}")
        stage = STAGE.get()
        if isinstance(stage, Trace) and not any(isinstance(leaf, ShardedArray) for leaf in leaves):
            return self._traced(stage, leaves, form)
        program = self._program(args, leaves, form)
        arrays = [
            leaf if isinstance(leaf, ShardedArray) else np.asarray(leaf, type_.dtype.numpy)
            for leaf, type_ in zip(leaves, program.taken, strict=True)
        ]

        def run(rank: int) -> Sequence[Array]:
            pairs = zip(arrays, program.given, strict=True)
            found = program.run(*[self._part(leaf, spec, rank) for leaf, spec in pairs])
            return found if isinstance(found, tuple) else (found,)

        ranks = run_ranks(self.mesh, lambda rank: rank)
        results = run_ranks(self.mesh, run)
        found: list[Any] = []
        for place, (spec, type_) in enumerate(zip(program.returned, program.types, strict=True)):
            if not spec.names:
                found.append(results[0][place])
                continue
            parts = {rank: each[place] for rank, each in zip(ranks, results, strict=True)}
            whole = ShardedArray(self.mesh, spec, type_.extents, parts)
            found.append(whole.gather() if self.gather else whole)
        return program.form.unflatten(found)

    def _specs(self, given: Any, form: Form, what: str) -> list[Sharding | None]:
        return spread_specs(self.mesh, given, form, what, None)

    def _part(self, leaf: Any, spec: Sharding, rank: int) -> Any:
        if isinstance(leaf, ShardedArray):
            advice = "say so in in_specs, shard it so, or gather it"
            return held_part(leaf, self.mesh, spec, rank, taker=self.name, advice=advice)
        return np.asarray(leaf[spec.part(self.mesh, rank, leaf.shape)], order="C")

    def _traced(self, trace: Trace, leaves: Sequence[Any], form: Form) -> Any:
        """Append what it does to a trace: annotations say the same there."""
        given = self._annotated(trace, leaves, self._specs(self.in_specs, form, "in_specs"))
        returned = self.function(*form.unflatten(given))
        found, returned_form = pytrees.flatten(returned, f"the result of {self.name}")
        specs = self._specs(self.out_specs, returned_form, "out_specs")
        return returned_form.unflatten(self._annotated(trace, found, specs))

    def _annotated(self, trace: Trace, leaves: Sequence[Any], specs: Sequence[Sharding | None]) -> list[Any]:
        return [
            leaf
            if spec is None
            else trace.emit("Shard", as_value(trace, leaf), mesh=str(self.mesh), sharding=str(spec))
            for leaf, spec in zip(leaves, specs, strict=True)
        ]

    def _program(self, args: Sequence[Any], leaves: Sequence[Any], form: Form) -> _Program:
        specs = self._specs(self.in_specs, form, "in_specs")
        for place, leaf in enumerate(leaves):  # an array that is in parts says itself how
            if isinstance(leaf, ShardedArray) and specs[place] is None:
                specs[place] = leaf.sharding
        _, call = self._jit.flatten(args, {})
        types = self._jit.types_of(call, [_stand_in(leaf) for leaf in leaves])
        key = (call, types, tuple(specs))
        known = self._programs.get(key)
        if known is None:
            known = self._programs[key] = self._compiled(call, types, specs)
        return known

    def _compiled(
        self, form: Form, types: tuple[TensorType, ...], specs: Sequence[Sharding | None]
    ) -> _Program:
        module, returned_form = self._jit.module_for(form, types)
        returned = self._specs(self.out_specs, returned_form, "out_specs")
        local = local_form(structured_form(verified(module)), self.mesh, specs, returned)
        executable = Executable(local.module, self._options)
        run = executable[local.module.functions[0].name]
        return _Program(run, types, local.parameters, local.results, local.whole, returned_form)


def _stand_in(leaf: Any) -> Any:
    """Return what says the type of an argument."""
    if not isinstance(leaf, ShardedArray):
        return leaf
    dtype = DType.from_numpy(leaf.dtype)
    assert dtype is not None, "it is of some dtype of ours"
    return TensorType(dtype, leaf.shape)


@public
@takes(Options)
def partition(
    function: Callable[P, R],
    mesh: Mesh,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    gather: bool = True,
    **options: Unpack[Options],
) -> Callable[P, R]:
    """Return a function that computes the same as one of whole arrays, each rank of a mesh a part of it.

    In ``function``, arrays have the shapes of wholes, and nothing is said of ranks but where arrays are
    annotated (`with_sharding`, ``in_specs``, ``out_specs``). From that follows which part of everything each
    rank computes, and what is moved between them.

    Args:
        function: A function of arrays and containers of arrays, given by position.
        mesh: The ranks.
        in_specs: Which axes divide which dimensions of the arguments, as of `shard_map`; None, for all or for
            some of them, where it is to follow from the rest.
        out_specs: The same of the result.
        gather: Whether all get whole results; else those that are divided are `ShardedArray`.
        options: As of `mind_mlir.compile`.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: A sharding names no axis of the mesh, or has more dimensions than its array; an extent is
            no multiple of the number of its parts; specs do not go with the arguments.
        UnsupportedError: E7001, the function has collectives beside annotations.
        ExecutionError: E6201, the ranks cannot be spread over the processes; as `mind_mlir.distributed`.
    """
    if not callable(function):
        argument_checks.reject("function", "callable", function)
    argument_checks.expect(mesh, Mesh, "mesh", "a Mesh")
    chosen = options_of(options, "partition", Options)
    checked = argument_checks.flag(gather, "gather")
    made = _Partitioned(function, mesh, (in_specs, out_specs), gather=checked, options=chosen)

    @functools.wraps(function, updated=())
    def run(*args: Any) -> Any:
        return made(*args)

    return cast("Callable[P, R]", run)
