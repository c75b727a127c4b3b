"""E4312 and E4313: meshes in programs. E62xx: ranks and processes that run a program together."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, in_python

_REDUCE = (
    '%0 = Input {{name="x"}} : tensor<f32[2]>\n'
    '%1 = AllReduce (%0) {{mesh="{}", axes="data"}} : tensor<f32[2]>\n'
    "{}outputs: %1\n"
)
_SECOND = '%2 = AllReduce (%1) {mesh="data=3", axes="data"} : tensor<f32[2]>\n'
_BRANCH = """\
import numpy as np
import mind_mlir
mesh = mind_mlir.Mesh("data=2")
def f(x):
    add = lambda x: mind_mlir.all_reduce(x, "data")
    return mind_mlir.cond({}, add, lambda x: {}, x)
mind_mlir.shard_map(f, mesh, "", "")(np.ones(3))
"""
_ANY = "mind_mlir.axis_index('data') == 0"

ENTRIES = (
    CatalogueEntry(
        "E4312: mesh or axes of a collective that are none",
        "A collective says the mesh that it is for, with the sizes of all its axes (data=2,model=4), and the "
        "axes along which the ranks of a group differ (data, or data,model).",
        context=("operation", "value"),
        bad=_REDUCE.format("model=2", ""),
        good=_REDUCE.format("data=2", ""),
    ),
    CatalogueEntry(
        "E4313: several meshes in a module",
        "A module runs once for each rank of its mesh, so all its collectives are of one.",
        context=("operation", "value", "mesh", "other"),
        bad=_REDUCE.format("data=2", _SECOND),
        good=_REDUCE.format("data=2", _SECOND.replace("=3", "=2")),
    ),
    CatalogueEntry(
        "E6201: mesh that does not fit the processes",
        "The ranks of a mesh are spread evenly over the processes: each has a box of the mesh, whole inner "
        "axes and a part of one. And a program of a mesh that runs another one runs one of the same mesh.",
    ),
    in_python(
        "E6202: ranks that do different collectives",
        "All ranks of a group come to the same collectives, of the same operands' types, in the same order. "
        "The notes say where each of them was.",
        bad=_BRANCH.format(_ANY, "mind_mlir.all_reduce(x, 'data', kind='max')"),
        good=_BRANCH.format(_ANY, "mind_mlir.all_reduce(x, 'data')"),
    ),
    in_python(
        "E6203: deadlock",
        "Ranks wait for one another, or for ranks that have ended, so that none can go on. The notes say "
        "where each of them waits.",
        bad=_BRANCH.format(_ANY, "x"),
        good=_BRANCH.format("True", "x"),
    ),
    CatalogueEntry(
        "E6204: process that has ended",
        "A process of those that run a program together is gone, or does not answer. The others end, since "
        "they could only wait for it.",
    ),
    CatalogueEntry(
        "E6205: MPI that cannot be used",
        "A launcher of MPI has started this process, and mpi4py is missing, or finds no MPI, or one without "
        "threads.",
    ),
    CatalogueEntry(
        "E6206: mesh that a program cannot be planned for",
        "A plan may be asked for with other sizes of the axes than the program says, where its shapes allow "
        "it: what collectives gather, scatter or exchange has shapes of its own mesh, and annotations divide "
        "dimensions evenly. A program without collectives has no mesh, and one process runs it. Layouts, and "
        "arguments in parts, are those of programs with annotations.",
    ),
)
