"""Where collectives are started and finished, which go together, and that bits are the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Mesh
from mind_mlir import numpy as mnp
from mind_mlir.collectives.team import run_ranks
from mind_mlir.ir.analysis.effects import FINISH, START
from mind_mlir.passes.forms import FrontHalf
from mind_mlir.passes.overlap import BUCKET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir import Module
    from mind_mlir.ir.module import Block, CoreOperation

#: A product of two of these is much to compute, and their sum over ranks is small.
WIDE = "tensor<f32[128, 128]>"
SUM = '{mesh="data=2", axes="data"}'


def optimized(text: str) -> Module:
    return FrontHalf().run(mind_mlir.parse(text), "optimized")


def words(block: Block) -> list[str]:
    """Return what a block does: starts and finishes by what they start, others by their opcodes."""
    started: dict[int, str] = {}
    found = []
    for op in block.operations:
        target = op.attributes.get("target")
        if target == START:
            started[op.value_id] = f"%{op.operands[0]}"
            found.append(f"start {facts(op)['bucket']}")
        elif target == FINISH:
            assert op.operands[0] in started, "what is finished has been started in the same block"
            found.append("finish")
        elif op.opcode not in ("Input", "ConstF32"):
            found.append(op.opcode)
        found += [f"{op.opcode}: {' '.join(words(region))}" for region in op.regions]
    return found


def facts(op: CoreOperation) -> dict[str, Any]:
    return {name: each["value"] for name, each in json.loads(str(op.attributes["attrs"])).items()}


def program(lines: Sequence[str], outputs: str) -> str:
    head = [f'%x = Input {{name="x"}} : {WIDE}', f'%w = Input {{name="w"}} : {WIDE}']
    return "\n".join([*head, *lines, f"outputs: {outputs}"])


def done(text: str) -> list[str]:
    return words(optimized(text).functions[0].entry)


def test_what_is_reduced_in_the_end_starts_where_it_is_known() -> None:
    text = program(
        [
            f"%a = MatMul (%x, %w) : {WIDE}",
            f"%b = MatMul (%a, %w) : {WIDE}",
            "%half = ConstF32 {value=0.5} : tensor<f32[]>",
            f"%halves = BroadcastTo (%half) {{result_shape=[128, 128]}} : {WIDE}",
            f"%scaled = Mul (%a, %halves) : {WIDE}",
            f"%s = AllReduce (%scaled) {SUM} : {WIDE}",
            f"%t = AllReduce (%b) {SUM} : {WIDE}",
            f"%u = Sub (%x, %s) : {WIDE}",
            f"%v = Sub (%w, %t) : {WIDE}",
        ],
        "%u, %v",
    )
    assert done(text) == [
        *("BroadcastTo", "MatMul", "Mul", "start 0", "MatMul"),
        # What is known last is read at once: nothing is gained by starting it.
        *("AllReduce", "finish", "Sub", "Sub"),
    ]


def test_results_that_nothing_reads_are_waited_for_at_the_end() -> None:
    text = program(
        [
            f"%a = MatMul (%x, %w) : {WIDE}",
            f"%s = AllReduce (%a) {SUM} : {WIDE}",
            f"%b = MatMul (%a, %w) : {WIDE}",
        ],
        "%s, %b",
    )
    assert done(text) == ["MatMul", "start 0", "MatMul", "finish"]


def test_what_takes_little_time_is_not_worth_it() -> None:
    small = WIDE.replace("128", "8")
    text = program(
        [
            f"%a = MatMul (%x, %w) : {WIDE}",
            f"%s = AllReduce (%a) {SUM} : {WIDE}",
            f"%b = Add (%a, %w) : {WIDE}",
        ],
        "%s, %b",
    )
    assert done(text.replace(WIDE, small)) == ["MatMul", "AllReduce", "Add"]


def small_sums(count: int, width: int, mesh: str = SUM) -> str:
    type_ = f"tensor<f32[{width}]>"
    inputs = [f'%x{i} = Input {{name="x{i}"}} : {type_}' for i in range(count)]
    sums = [f"%s{i} = AllReduce (%x{i}) {mesh} : {type_}" for i in range(count)]
    return "\n".join([*inputs, *sums, "outputs: " + ", ".join(f"%s{i}" for i in range(count))])


def test_small_ones_go_together_up_to_a_size() -> None:
    assert done(small_sums(3, 10)) == ["start 0"] * 3 + ["finish"] * 3
    assert done(small_sums(1, 10)) == ["AllReduce"]
    quarter = BUCKET // 16
    assert done(small_sums(6, quarter)) == ["start 0"] * 4 + ["start 1"] * 2 + ["finish"] * 6
    (block,) = optimized(small_sums(6, quarter)).functions[0].blocks
    members = [facts(op)["members"] for op in block.operations if op.attributes.get("target") == START]
    assert members == [4] * 4 + [2] * 2


def test_what_waits_for_another_one_is_in_no_bucket_with_it() -> None:
    text = program(
        [
            f"%s = AllReduce (%x) {SUM} : {WIDE}",
            f"%t = AllReduce (%s) {SUM} : {WIDE}",
            f"%u = AllReduce (%w) {SUM} : {WIDE}",
        ],
        "%t, %u",
    )
    # %u is known from the start, and the second sum is read by nothing before the end.
    assert done(text) == ["start 0", "start 0", "finish", "AllReduce", "finish"]


def test_one_that_is_known_later_takes_no_time_from_others() -> None:
    text = program(
        [
            f"%s = AllReduce (%x) {SUM} : {WIDE}",
            f"%a = MatMul (%x, %w) : {WIDE}",
            f"%t = AllReduce (%a) {SUM} : {WIDE}",
        ],
        "%s, %t",
    )
    assert done(text) == ["start 0", "MatMul", "AllReduce", "finish"]


def test_axes_are_apart() -> None:
    text = small_sums(3, 10, '{mesh="a=2,b=2", axes="a"}')
    before, after = text.rsplit('axes="a"', 1)
    assert done(f'{before}axes="b"{after}') == ["start 0"] * 2 + ["AllReduce"] + ["finish"] * 2


LOOP = f"""func @main(%x: {WIDE}, %w: {WIDE}, %n: tensor<i64[]>) -> ({WIDE}) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  br ^head(%x, %zero)
^head(%u: {WIDE}, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {{op=Less}} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %s = AllReduce (%u) {SUM} : {WIDE}
  %r = AllReduce (%w) {SUM} : {WIDE}
  %y = MatMul (%u, %w) : {WIDE}
  %t = Tanh (%y) : {WIDE}
  %z = Add (%t, %s) : {WIDE}
  %v = Add (%z, %r) : {WIDE}
  %one = ConstI64 {{value=1}} : tensor<i64[]>
  %next = Add (%i, %one) : tensor<i64[]>
  br ^head(%v, %next)
^done:
  return %u
}}
"""


def test_what_is_started_in_a_loop_is_finished_there() -> None:
    (loop,) = [word for word in done(LOOP) if "start" in word]
    assert loop.count("start 0") == loop.count("finish") == 2
    assert loop.index("start") < loop.index("MatMul") < loop.index("finish")


def results(text: str, mesh: Mesh, *, overlap: bool, interpreted: bool = False) -> list[tuple[Any, ...]]:
    """Return what each rank makes of operands of its own."""
    module = mind_mlir.parse(text)
    if interpreted:
        module = replace(FrontHalf().run(module, "optimized"), profile="core-functions")
    off = [] if overlap else ["overlap"]
    call = mind_mlir.compile(module, disabled_passes=off, interpret=interpreted, threads=1)
    random = np.random.default_rng(3)
    given = [
        [
            np.asarray(2)
            if parameter.name == "n"
            else random.standard_normal(parameter.type.extents).astype(np.float32)
            for parameter in call.parameters
        ]
        for _ in range(mesh.size)
    ]
    return run_ranks(mesh, lambda rank: call(*given[rank]))


@pytest.mark.parametrize("text", [LOOP, small_sums(7, 1000), small_sums(3, BUCKET // 8)], ids=range(3))
def test_each_rank_has_the_same_bits(text: str) -> None:
    mesh = Mesh("data=2")
    without, compiled = (results(text, mesh, overlap=overlap) for overlap in (False, True))
    interpreted = results(text, mesh, overlap=True, interpreted=True)
    for rank in range(2):
        for one, other, oracle in zip(without[rank], compiled[rank], interpreted[rank], strict=True):
            assert one.tobytes() == other.tobytes()
            np.testing.assert_allclose(one, oracle, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_gradients_of_a_network_have_the_same_bits(count: int) -> None:
    mesh = Mesh(f"data={count}")
    random = np.random.default_rng(1)
    layers = [
        (random.standard_normal((64, 64), np.float32) / 8, random.standard_normal(64, np.float32))
        for _ in range(4)
    ]
    x, y = (random.standard_normal((256, 64), np.float32) for _ in range(2))

    def loss(layers: Any, x: Any, y: Any) -> Any:
        for w, b in layers:
            x = mnp.tanh(x @ w + b)
        return mnp.mean((x - y) * (x - y))

    def step(layers: Any, x: Any, y: Any) -> Any:
        _, gradient = mind_mlir.value_and_grad(loss)(layers, x, y)
        return [[mind_mlir.all_reduce(each, "data", kind="mean") for each in pair] for pair in gradient]

    found = [
        mind_mlir.shard_map(step, mesh, ("", "data,*", "data,*"), "", threads=1, disabled_passes=off)(
            layers, x, y
        )
        for off in ((), ("overlap",))
    ]
    for one, other in zip(*found, strict=True):
        assert [np.asarray(each).tobytes() for each in one] == [np.asarray(each).tobytes() for each in other]
