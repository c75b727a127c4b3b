"""E232x: branches and loops of functions of Python that are traced."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import in_python

_HEAD = "import numpy, mind_mlir\nx = numpy.ones(3, numpy.float32)\n"

ENTRIES = (
    in_python(
        "E2320: branches that return different things",
        "One of the functions that cond is given runs, which is known when the program does. So both "
        "return arrays of the same dtypes and shapes, in the same containers; a number takes the dtype "
        "of the array in its place.",
        bad=_HEAD + "mind_mlir.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), x)\n",
        good=_HEAD + "mind_mlir.cond(x.sum() > 0, lambda x: x, lambda x: x * 0, x)\n",
    ),
    in_python(
        "E2321: step of a loop that changes what is carried",
        "What a loop carries has the same containers, dtypes and shapes in all steps: the function of "
        "the step returns what it takes. That of scan returns a pair of this and an output. A number "
        "takes the dtype of what follows on it.",
        bad=_HEAD + "mind_mlir.fori_loop(0, 3, lambda i, s: s.astype('f64'), x)\n",
        good=_HEAD + "mind_mlir.fori_loop(0, 3, lambda i, s: s * 2, x)\n",
    ),
    in_python(
        "E2322: condition that is no scalar",
        "What decides on a branch, or on whether a loop goes on, is one truth value, or a number, which "
        "is true where it is not 0.",
        bad=_HEAD + "mind_mlir.while_loop(lambda x: x < 9, lambda x: x * 2, x)\n",
        good=_HEAD + "mind_mlir.while_loop(lambda x: (x < 9).all(), lambda x: x * 2, x)\n",
    ),
    in_python(
        "E2323: arrays without a common length",
        "The arrays that scan takes slices of have a leading axis, of one length, which is how many "
        "steps there are; without arrays, the argument length says it.",
        bad=_HEAD + "mind_mlir.scan(lambda s, v: (s + v[0], v[1]), 0.0, (x, x[:2]))\n",
        good=_HEAD + "mind_mlir.scan(lambda s, v: (s + v[0], v[1]), 0.0, (x[:2], x[:2]))\n",
    ),
    in_python(
        "E2324: branch or loop without arrays",
        "Branches return an array at least, and loops carry one: what functions of a program do besides "
        "happens once, while they are traced.",
        bad=_HEAD + "mind_mlir.fori_loop(0, 3, lambda i, s: print(i), None)\n",
        good=_HEAD + "mind_mlir.fori_loop(0, 3, lambda i, s: s + i, x)\n",
    ),
    in_python(
        "E2325: bound of a loop that is no integer",
        "fori_loop counts through integers: its bounds are integer scalars of one dtype.",
        bad=_HEAD + "mind_mlir.fori_loop(0, x.sum(), lambda i, s: s + i, x)\n",
        good=_HEAD + "mind_mlir.fori_loop(0, x.size, lambda i, s: s + i, x)\n",
    ),
)
