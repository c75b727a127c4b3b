"""E60xx: running a program. E61xx: the arguments of a call."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, in_python

_GATHER = """\
import mind_mlir
import numpy as np
gather = mind_mlir.compile(mind_mlir.parse('''
%0 = Input {name="x"} : tensor<f32[3]>
%1 = Input {name="i"} : tensor<i64[2]>
%2 = Gather (%0, %1) : tensor<f32[2]>
outputs: %2
'''))
x = np.zeros(3, np.float32)
i = np.array([0, 2])
"""
_QUOTIENT = "import numpy as np\nimport mind_mlir.numpy as mnp\n"
_REPEATED = _QUOTIENT + "mnp.broadcast_to(np.ones(1, np.float32), (1 << {},))\n"
_LOGARITHM = """\
import mind_mlir
import numpy as np
log = mind_mlir.jit(lambda x: mind_mlir.numpy.log(x), check_nan=True)
"""
_RESERVED = " This compiler does not report it."
_SYMBOLIC = """\
import numpy as np
import mind_mlir
from mind_mlir.ir.types import SymbolicDim, TensorType
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, ValueRef
ROW = TensorType("f32", (SymbolicDim("B"),))
body = (Instruction(2, Operation("ElementwiseBinary", "Add"), (ValueRef(0), ValueRef(1)), ROW),)
add = mind_mlir.compile(Program((Function("main", (ROW, ROW), (0, 1), body, (ROW,), (2,)),)))
"""


ENTRIES = (
    in_python(
        "E6001: index out of bounds",
        "An index given at run time lies outside its axis. It is checked in compiled and "
        "interpreted code alike, before anything is read or written.",
        context=("operation", "value", "index", "shape"),
        bad=_GATHER + "gather(x=x, i=i + 1)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    CatalogueEntry(
        "E6002: backend unavailable",
        "The MLIR bindings that this compiler is built on are missing, or of a version it does "
        "not know. The message says which version to install.",
    ),
    CatalogueEntry(
        "E6003: operation not implemented by the backend",
        "A backend that knows only some operations was asked for another one. The CPU backend "
        "implements every operation of the reference." + _RESERVED,
    ),
    in_python(
        "E6004: allocation failed",
        "There is not enough memory for a value, or for compiling the program.",
        context=("shape", "dtype"),
        bad=_REPEATED.format(46),
        good=_REPEATED.format(6),
    ),
    CatalogueEntry(
        "E6005: numeric overflow",
        "A check for overflow was asked for, and a value overflowed." + _RESERVED,
    ),
    in_python(
        "E6006: NaN or infinity",
        "A check for NaN and infinities was asked for (`check_nan`, `--trap-nan`), and a result holds one. "
        "The operation that made it is named: where a NaN is computed of numbers that are none, or an "
        "infinity of finite numbers. A constant or an argument that is infinite makes none. The NaN of an "
        "argument that comes through to the results is reported as that. In a gradient, the place is that "
        "of the operation whose derivative it is.",
        context=("operation", "value", "index", "found"),
        bad=_LOGARITHM + "log(np.array([1.0, 0.0]))\n",
        good=_LOGARITHM + "log(np.array([1.0, 0.5]))\n",
    ),
    CatalogueEntry(
        "E6007: time limit exceeded",
        "A time limit was set, and the program did not end within it." + _RESERVED,
    ),
    CatalogueEntry(
        "E6008: device error",
        "A device reported an error of its own. The CPU backend has none." + _RESERVED,
    ),
    in_python(
        "E6009: integer division by zero",
        "An element of an integer divisor is 0 when the program runs. It is checked in compiled and "
        "interpreted code alike, and no result is returned. Division of floats by zero is no error: it "
        "gives an infinity or NaN.",
        context=("operation", "value"),
        bad=_QUOTIENT + "mnp.div(np.array([6, 7]), np.array([2, 0]))\n",
        good=_QUOTIENT + "mnp.div(np.array([6.0, 7.0]), np.array([2.0, 0.0]))\n",
    ),
    in_python(
        "E6101: argument missing",
        "Every input of the module needs an array, and every output does where `out=` gives arrays.",
        bad=_GATHER + "gather(x=x)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    in_python(
        "E6102: argument that fits no input",
        "An argument has a name that no input has, comes twice, or is one too many.",
        bad=_GATHER + "gather(x=x, i=i, j=i)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    in_python(
        "E6103: argument of another dtype",
        "Arrays have exactly the dtype of their input: a conversion that nobody wrote would "
        "cost time or precision unseen.",
        bad=_GATHER + "gather(x=x.astype(np.float64), i=i)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    in_python(
        "E6104: argument of another shape",
        "Arrays have exactly the shape of their input; calls do not broadcast.",
        bad=_GATHER + "gather(x=x[:2], i=i)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    in_python(
        "E6105: argument that is no array of numbers",
        "An argument is a numpy array, or something that numpy can view as one, and holds numbers.",
        bad=_GATHER + "gather(x=['a', 'b', 'c'], i=i)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    in_python(
        "E6106: array that cannot be used in place",
        "Arrays that outputs are written to (`out=`) are C-contiguous, aligned and writeable, and "
        "overlap neither inputs nor one another. Inputs that stay bound to a call (`bind`) are used as "
        "they lie, too: a copy would not see what is written to them later.",
        bad=_GATHER + "gather(x=x, i=i, out=np.zeros(4, np.float32)[::2])\n",
        good=_GATHER + "gather(x=x, i=i, out=np.zeros(2, np.float32))\n",
    ),
    in_python(
        "E6107: arguments that disagree about a symbolic dimension",
        "A symbolic dimension ?B of a PTIR program is one extent in a call, wherever the types of the "
        "arguments say it.",
        context=("symbol", "places", "extents"),
        bad=_SYMBOLIC + "add(np.ones(3, np.float32), np.ones(4, np.float32))\n",
        good=_SYMBOLIC + "add(np.ones(4, np.float32), np.ones(4, np.float32))\n",
    ),
)
