"""What each collective computes of different operands in each rank: interpreted, compiled, differentiated."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from harness import build, edge_operands, random_operands, uses_of

import mind_mlir
from mind_mlir import Mesh, Sharding
from mind_mlir.collectives.team import run_ranks
from mind_mlir.ir.types import DType
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.numbers import widened
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness import Use

    from mind_mlir import Module
    from mind_mlir.ops.opdef import OpDef

Array = np.ndarray[Any, np.dtype[Any]]
COLLECTIVES = [record for record in all_ops() if record.collective]
CASES = [
    pytest.param(record, dtype, id=f"{record.opcode}-{dtype.core_name if dtype else 'any'}")
    for record in COLLECTIVES
    for dtype in dtypes_of(record)
]
JOINS = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum}


def joined(kind: str, arrays: Sequence[Array]) -> Array:
    """Join two arrays, or four as two pairs: a tree over more is tested in `test_tree.py`."""
    join: Callable[[Array, Array], Array] = JOINS[kind]
    while len(arrays) > 1:
        arrays = [join(arrays[i], arrays[i + 1]) for i in range(0, len(arrays), 2)]
    return arrays[0]


def expected(record: OpDef, use: Use, shards: Sequence[Sequence[Array]]) -> list[Array]:
    """Return what the documents say of each rank, from the operands of all ranks."""
    attributes = {each.name: each.default for each in record.attributes} | dict(use.attributes)
    mesh = Mesh(str(attributes["mesh"]))
    if record.opcode in ("TakePart", "JoinParts"):
        sharding = Sharding(str(attributes["sharding"]))
        return [_parts(record.opcode, mesh, sharding, rank, shards) for rank in range(mesh.size)]
    axes = str(attributes["axes"])
    found = []
    for rank in range(mesh.size):
        group = _group(mesh, rank, axes.split(","))
        place = group.index(rank)
        if record.opcode == "AxisIndex":
            found.append(np.asarray(place))
            continue
        found.append(_one(record.opcode, attributes, [shards[each][0] for each in group], place))
    return found


def _group(mesh: Mesh, rank: int, axes: Sequence[str]) -> list[int]:
    names = list(mesh.axes)
    places = dict(enumerate(product(*(range(size) for size in mesh.axes.values()))))
    own = dict(zip(names, places[rank], strict=True))
    alike = [
        other
        for other, place in places.items()
        if all(dict(zip(names, place, strict=True))[name] == own[name] for name in names if name not in axes)
    ]
    return sorted(alike, key=lambda other: [places[other][names.index(name)] for name in axes])


def _one(opcode: str, attributes: Any, operands: Sequence[Array], place: int) -> Array:
    count = len(operands)
    if opcode in ("AllReduce", "ReduceScatter"):
        total = joined(attributes["kind"], operands)
        if attributes["kind"] == "mean":
            total = np.asarray(total / np.asarray(count, total.dtype), total.dtype)
        return (
            total if opcode == "AllReduce" else np.asarray(np.split(total, count, attributes["axis"])[place])
        )
    if opcode == "AllGather":
        return np.asarray(np.concatenate(operands, attributes["axis"]))
    if opcode == "AllToAll":
        parts = [np.split(each, count, attributes["split_axis"])[place] for each in operands]
        return np.asarray(np.concatenate(parts, attributes["concat_axis"]))
    if opcode == "BroadcastFrom":
        return np.asarray(operands[attributes["root"]])
    assert opcode == "Shift"
    return np.asarray(operands[(place - attributes["offset"]) % count])


def _parts(
    opcode: str, mesh: Mesh, sharding: Sharding, rank: int, shards: Sequence[Sequence[Array]]
) -> Array:
    if opcode == "TakePart":
        (whole,) = shards[rank]
        return whole[sharding.part(mesh, rank, whole.shape)]
    local = shards[0][0].shape
    shape = tuple(
        extent * count for extent, count in zip(local, sharding.counts(mesh, len(local)), strict=True)
    )
    whole = np.empty(shape, shards[0][0].dtype)
    for other in range(mesh.size):
        if all(
            mesh.coordinates(other)[name] == mesh.coordinates(rank)[name] for name in sharding.missing(mesh)
        ):
            whole[sharding.part(mesh, other, shape)] = shards[other][0]
    return whole


def each_rank(mesh: Mesh, run: Callable[[dict[str, Array]], Any], given: Sequence[Any]) -> list[Any]:
    """Return what ``run`` returns for the arguments of each rank."""
    return run_ranks(mesh, lambda rank: run(given[rank]))


@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_compiled_and_interpreted_ranks_have_what_the_documents_say(
    record: OpDef, dtype: DType | None
) -> None:
    uses = [use for use in uses_of(record, dtype) if all(type_.element_count for type_ in use.types)]
    mesh = Mesh(str(uses[0].attributes["mesh"]))
    module = build(uses)
    compiled = mind_mlir.compile(module)
    for values in (random_operands, edge_operands):
        rng = np.random.default_rng(20261129)
        shards = [[values(use, rng) for use in uses] for _ in range(mesh.size)]
        given = [
            {f"x{number}_0": operands[0] for number, operands in enumerate(own) if operands} for own in shards
        ]
        results = each_rank(mesh, lambda arguments: compiled(**arguments), given)
        again = each_rank(mesh, lambda arguments: mind_mlir.interpret(module, arguments), given)
        for number, use in enumerate(uses):
            with np.errstate(all="ignore"):
                wanted = expected(record, use, [own[number] for own in shards])
            for rank in range(mesh.size):
                for found in (results[rank][number], again[rank][number]):
                    assert found.dtype == wanted[rank].dtype
                    words = f"rank {rank} of {use}"
                    np.testing.assert_array_equal(widened(found), widened(wanted[rank]), words)


def test_empty_operands_meet_as_others_do() -> None:
    module = mind_mlir.parse(
        '%0 = Input {name="x"} : tensor<f32[2, 3]>\n'
        "%1 = Slice (%0) {starts=[0, 0], ends=[0, 3], steps=[1, 1]} : tensor<f32[0, 3]>\n"
        '%2 = AllReduce (%1) {mesh="data=2", axes="data"} : tensor<f32[0, 3]>\n'
        '%3 = AllGather (%2) {mesh="data=2", axes="data", axis=1} : tensor<f32[0, 6]>\n'
        "%4 = Sum (%3) : tensor<f32[]>\noutputs: %4\n"
    )
    (total,) = mind_mlir.compile(module)(np.ones((2, 3), np.float32))
    assert total == 0


DIFFERENTIABLE = [pytest.param(each, id=each.opcode) for each in COLLECTIVES if callable(each.derivative)]


@pytest.mark.parametrize("record", DIFFERENTIABLE)
def test_derivatives_are_those_of_the_sum_over_ranks(record: OpDef) -> None:
    """At the border of `shard_map`, where all ranks compute the same outside, they are those of one rank."""
    rng = np.random.default_rng(7)
    for use in uses_of(record, DType.F64):
        if use.types[0].dtype is not DType.F64 or not use.types[0].element_count:
            continue
        mesh = Mesh(str(use.attributes["mesh"]))
        module = build([use])
        gradient = mind_mlir.differentiate(module, cotangents="given", extensions=True).module
        back = mind_mlir.compile(gradient)
        alike = _alike(record.opcode, mesh, use)

        def drawn(shape: tuple[int, ...], alike: Sequence[int], mesh: Mesh = mesh) -> list[Array]:
            """Draw an array for each rank: the same where ranks are to have the same."""
            found = [rng.standard_normal(shape) for _ in range(mesh.size)]
            return [found[other] for other in alike]

        def run(operands: Sequence[Array], module: Module = module, mesh: Mesh = mesh) -> list[Array]:
            given = [{"x0_0": x} for x in operands]
            return each_rank(mesh, lambda arguments: mind_mlir.interpret(module, arguments)[0], given)

        operands, directions = (drawn(use.types[0].extents, alike) for _ in range(2))
        weights = drawn(
            run(operands)[0].shape, [0] * mesh.size if record.opcode == "JoinParts" else range(mesh.size)
        )
        given = [{"x0_0": x, "cotangent_0": w} for x, w in zip(operands, weights, strict=True)]
        slopes = [results[1] for results in each_rank(mesh, partial(_called, back), given)]
        found = [float((g * d).sum()) for g, d in zip(slopes, directions, strict=True)]
        ends = []
        for step in (1e-6, -1e-6):
            moved = run([x + step * d for x, d in zip(operands, directions, strict=True)])
            ends.append([float((w * y).sum()) for w, y in zip(weights, moved, strict=True)])
        wanted = [(one - two) / 2e-6 for one, two in zip(*ends, strict=True)]
        one_rank = slice(1)
        total = sum(found[one_rank] if record.opcode == "TakePart" else found)
        expected_total = sum(wanted[one_rank] if record.opcode == "JoinParts" else wanted)
        assert total == pytest.approx(expected_total, rel=1e-6, abs=1e-7), str(use)


def _called(executable: mind_mlir.Executable, arguments: dict[str, Array]) -> Any:
    return executable(**arguments)


def _alike(opcode: str, mesh: Mesh, use: Use) -> list[int]:
    """Return for each rank the first one that has an equal operand."""
    if opcode == "TakePart":
        return [0] * mesh.size
    if opcode != "JoinParts":
        return list(range(mesh.size))
    missing = Sharding(str(use.attributes.get("sharding", ""))).missing(mesh)
    return [min(_group(mesh, rank, missing)) if missing else rank for rank in range(mesh.size)]
