"""Programs with collectives, and what the processes that run them send.

``mpiexec -n 4 python planned_programs.py``: each process runs them all, and the first one writes what each
has sent in each of them as JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import mind_mlir
from mind_mlir import distributed
from mind_mlir.collectives.world import current_world, is_even
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.interface import interface_of

_AXES = {"data=4,model=2": ("data", "model", "data,model"), "data=2,model=2,pipe=2": ("model", "pipe,data")}
_OPERATIONS = (
    ("AllReduce", "kind=sum", (1033,)),
    ("AllReduce", "kind=max", (5, 7, 3)),
    ("AllReduce", "kind=mean", (1,)),
    ("ReduceScatter", "axis=0, kind=sum", (40, 7)),
    ("ReduceScatter", "axis=1, kind=min", (3, 8)),
    ("AllGather", "axis=1", (7, 3)),
    ("AllToAll", "split_axis=0, concat_axis=1", (16, 5)),
    ("BroadcastFrom", "root=1", (11,)),
    ("Shift", "offset=1", (13,)),
    ("Shift", "offset=-3", (13,)),
)
_LOOP = """\
func @main(%x: tensor<f32[37, 3]>, %w: tensor<f32[3, 3]>) -> (tensor<f32[37, 3]>) {
^entry:
  %zero = ConstI64 {value=2} : tensor<i64[]>
  %end = ConstI64 {value=9} : tensor<i64[]>
  %step = ConstI64 {value=3} : tensor<i64[]>
  br ^test(%zero, %x)
^test(%i: tensor<i64[]>, %v: tensor<f32[37, 3]>):
  %more = Compare (%i, %end) {op=LessEqual} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %p = call @layer(%v, %w) : tensor<f32[37, 3]>
  %q = call @layer(%p, %w) : tensor<f32[37, 3]>
  %j = Add (%i, %step) : tensor<i64[]>
  br ^test(%j, %q)
^done:
  return %v
}

internal func @layer(%v: tensor<f32[37, 3]>, %w: tensor<f32[3, 3]>) -> (tensor<f32[37, 3]>) {
^entry:
  %p = MatMul (%v, %w) : tensor<f32[37, 3]>
  %r = AllReduce (%p) {mesh="data=4,model=2", axes="data", kind=mean} : tensor<f32[37, 3]>
  %s = Shift (%r) {mesh="data=4,model=2", axes="data,model"} : tensor<f32[37, 3]>
  return %s
}
"""
#: Sums that are started before the products, small ones together.
EARLY = """\
%0 = Input {name="x"} : tensor<f32[128, 128]>
%1 = MatMul (%0, %0) : tensor<f32[128, 128]>
%2 = AllReduce (%1) {mesh="data=4,model=2", axes="data", kind=mean} : tensor<f32[128, 128]>
%3 = ReduceScatter (%0) {mesh="data=4,model=2", axes="data", axis=1} : tensor<f32[128, 32]>
%4 = Sum (%0) {axes=[0], keepdims=false} : tensor<f32[128]>
%5 = AllReduce (%4) {mesh="data=4,model=2", axes="data"} : tensor<f32[128]>
%6 = MatMul (%1, %0) : tensor<f32[128, 128]>
%7 = MatMul (%6, %6) : tensor<f32[128, 128]>
%8 = Add (%7, %2) : tensor<f32[128, 128]>
outputs: %8, %3, %5
"""
_ANNOTATED = """\
%0 = Input {name="x"} : tensor<f32[64, 24]>
%1 = Input {name="w"} : tensor<f32[24, 40]>
%2 = Input {name="v"} : tensor<f32[40, 12]>
%3 = Shard (%0) {mesh="data=4,model=2", sharding="data"} : tensor<f32[64, 24]>
%4 = Shard (%1) {mesh="data=4,model=2", sharding="*,model"} : tensor<f32[24, 40]>
%5 = MatMul (%3, %4) : tensor<f32[64, 40]>
%6 = Exp (%5) : tensor<f32[64, 40]>
%7 = MatMul (%6, %2) : tensor<f32[64, 12]>
%8 = Mean (%7) {axes=[0], keepdims=false} : tensor<f32[12]>
outputs: %7, %8
"""


def _flat(mesh: str, axes: str) -> str:
    """Return a program of all operations."""
    count = mind_mlir.Mesh(mesh).extent(axes)
    inputs, lines, outputs = [], [], []
    for place, (opcode, attributes, shape) in enumerate(_OPERATIONS):
        extents = list(shape)
        if opcode == "ReduceScatter":
            extents[int(attributes[5])] //= count
        elif opcode == "AllGather":
            extents[1] *= count
        elif opcode == "AllToAll":
            extents = [extents[0] // count, extents[1] * count]
        inputs.append(f'%x{place} = Input {{name="x{place}"}} : tensor<f32{list(shape)}>')
        facts = f'{{mesh="{mesh}", axes="{axes}", {attributes}}}'
        lines.append(f"%y{place} = {opcode} (%x{place}) {facts} : tensor<f32{extents}>")
        outputs.append(f"%y{place}")
    return "\n".join([*inputs, *lines, f"outputs: {', '.join(outputs)}"])


def programs() -> list[mind_mlir.Module]:
    """Return the programs, of 8 ranks each."""
    found = [_flat(mesh, axes) for mesh, several in _AXES.items() for axes in several]
    for text in (_LOOP, EARLY, _ANNOTATED):
        found += [text, text.replace("data=4,model=2", "model=2,data=4")]
    return [mind_mlir.parse(text) for text in found]


def sent_by(module: mind_mlir.Module) -> int:
    """Run a program, compiled where that makes another one of it, and return what this process has sent."""
    parameters = interface_of(module.functions[0]).parameters
    arguments = {each.name: np.ones(each.shape, each.dtype) for each in parameters}
    before = distributed.bytes_sent()
    if any(each.opcode == "MatMul" for function in module.functions for each in function.entry.operations):
        mind_mlir.compile(module, opt_level=0)(**arguments)
    else:
        mind_mlir.interpret(module, arguments)
    return distributed.bytes_sent() - before


if __name__ == "__main__":
    count = distributed.process_count()
    modules = [each for each in programs() if is_even(mind_mlir.Mesh(mesh_text(each)), count)]
    own = [sent_by(each) for each in modules]
    all_sent = [json.loads(each) for each in current_world().gathered(json.dumps(own).encode(), "counts")]
    if distributed.process_index() == 0:
        json.dump(list(zip(*all_sent, strict=True)), sys.stdout)
