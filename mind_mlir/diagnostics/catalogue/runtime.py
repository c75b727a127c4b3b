"""E60xx: running a program. E61xx: the arguments of a call. E70xx: what this compiler does not offer.

E71xx: what the system does not take or give. E72xx: what conversion targets do not take.
"""

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
_NESTED = """\
import mind_mlir
import numpy as np
tests = "".join(f"^t{{i}}:\\n  cond_br %p, ^t{{i + 1}}, ^out\\n" for i in range({}))
last = tests.count("cond_br")
mind_mlir.interpret(mind_mlir.parse(f'''
func @main(%p: tensor<i1[]>, %x: tensor<f32[]>) -> (tensor<f32[]>) {{{{
^entry:
  br ^t0
{{tests}}^t{{last}}:
  %y = Add (%x, %x) : tensor<f32[]>
  return %y
^out:
  return %x
}}}}
'''), {{"p": np.array(True), "x": np.zeros((), np.float32)}})
"""
_TARGET = """\
import mind_mlir
from mind_mlir.conversion import ConversionTarget, LegalityTable, OperationRule, convert
from mind_mlir.ir.types import DType
rules = {{"Add": OperationRule((DType.F32, DType.F64))}}
table = LegalityTable(operations=rules, functions=False)
sums = ConversionTarget(name="sums", summary="sums", suffix=".txt", legality=table, convert=str)
convert(mind_mlir.parse('''
func @main(%x: tensor<{dtype}[]>) -> (tensor<{dtype}[]>) {{
^entry:
  %y = {operation} (%x, %x) : tensor<{dtype}[]>
  return %y
}}
{more}'''), sums)
"""
_RIGHT = _TARGET.format(dtype="f32", operation="Add", more="")
_SECOND = """func @other(%x: tensor<f32[]>) -> (tensor<f32[]>) {
^entry:
  return %x
}
"""
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

_THREAD = """\
import threading
import mind_mlir
module = mind_mlir.parse('''
%0 = Input {{name="x"}} : tensor<f32[3]>
outputs: %0
''')
errors = []
def work():
    try:
        mind_mlir.compile(module, cache=False)
    except mind_mlir.MindError as error:
        errors.append(error)
before = threading.stack_size({kilobytes} << 10)
try:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
finally:
    threading.stack_size(before)
if errors:
    raise errors[0]
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
    CatalogueEntry(
        "E6004: allocation failed",
        "There is not enough memory for a value, or for compiling the program.",
        context=("shape", "dtype"),
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
    CatalogueEntry(
        "E6009: integer division by zero",
        "An element of an integer divisor is 0 when the program runs. It is checked in compiled and "
        "interpreted code alike, and no result is returned. Division of floats by zero is no error: it "
        "gives an infinity or NaN.",
        context=("operation", "value"),
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
    CatalogueEntry(
        "E7001: a form that this compiler does not support",
        "The program is well-formed, but what it says is not supported where it was to go: the message "
        "says what, and the help line why.",
    ),
    CatalogueEntry(
        "E7002: cannot lower an operation",
        "A module given in MLIR form holds something that the stage does not take; the message says "
        "what it expects. The conversion to linalg, for one, works on functions of one block over "
        "`mind` operations on static tensors.",
    ),
    CatalogueEntry(
        "E7003: a tool of this machine is missing",
        "Something optional that was asked for needs a library or tool that is not installed; "
        "the help line says which.",
    ),
    in_python(
        "E7004: branches and loops are nested too deeply",
        "Blocks that branch become branches and loops within one another, 64 deep at most. What "
        "follows a branch is within it as long as its two ways have not met again: so many returns "
        "one after the other, or a graph of blocks that jump to one another at will, nest deeply.",
        context=("limit",),
        bad=_NESTED.format(70),
        good=_NESTED.format(7),
    ),
    in_python(
        "E7201: an operation that a conversion target does not take",
        "Each conversion target states which operations it takes; mind-mlir targets shows them. The help "
        "line says why this one is not among them, where the target says so.",
        context=("target", "operation"),
        bad=_TARGET.format(dtype="f32", operation="Mul", more=""),
        good=_RIGHT,
    ),
    in_python(
        "E7202: a dtype that a conversion target does not take",
        "Each conversion target states which dtypes it has, and of which dtypes operands and results of "
        "each operation may be; mind-mlir targets shows them.",
        context=("target", "dtype"),
        bad=_TARGET.format(dtype="i32", operation="Add", more=""),
        good=_RIGHT,
    ),
    in_python(
        "E7203: a form of programs that a conversion target does not take",
        "Each conversion target states which forms of programs it takes: symbolic dimensions, extents of "
        "0, regions, branches, calls, several exported functions, tuples in signatures, and how many "
        "dimensions; mind-mlir targets shows them.",
        context=("target", "form"),
        bad=_TARGET.format(dtype="f32", operation="Add", more=_SECOND),
        good=_RIGHT,
    ),
    CatalogueEntry(
        "E7204: a conversion target of another package that cannot be used",
        "A package says by an entry point of the group mind_mlir.conversion_targets that it ships a "
        "conversion target, but it cannot be loaded, is none, has another name than its entry point, or "
        "a name that is taken. Other targets are not affected.",
        context=("target", "package", "reason"),
    ),
    in_python(
        "E7101: an output cannot be written",
        "The system does not take what a command writes: the disk is full, the place is missing or "
        "not yours to write to, or standard output is closed. A file that was there before is "
        "still there as it was.",
        context=("path", "reason"),
        bad="""\
from mind_mlir.outputs.files import write_file
write_file("no/such/directory/out.ir", b"")
""",
        good="""\
import os
from mind_mlir.outputs.files import write_file
write_file(os.devnull, b"")
""",
    ),
    CatalogueEntry(
        "E7102: the system refuses something else",
        "Something that the compiler needs of the system failed, such as another open file or a "
        "directory for temporary files. The message gives the reason that the system gives.",
        context=("stage", "reason"),
    ),
    in_python(
        "E7103: too little stack to compile with",
        "MLIR and LLVM take up to a megabyte of stack, and a process that runs out of it ends. The stack "
        "of a process is limited by ulimit -s; that of a thread is chosen when it is started, by "
        "threading.stack_size in Python or by the C library, and some choose little. Calls of what has "
        "been compiled take hardly any.",
        context=("needed", "found"),
        bad=_THREAD.format(kilobytes=256),
        good=_THREAD.format(kilobytes=8192),
    ),
    CatalogueEntry(
        "E7104: the system lets no memory become code",
        "Policies such as PR_SET_MDWE of Linux, MemoryDenyWriteExecute of systemd and execmem of SELinux "
        "forbid that memory which has been written is run. LLVM, which makes the machine code, does not "
        "work under one. What is compiled does: programs in the cache, and bundles, are loaded from a "
        "file in memory there. So compile in another process, into a bundle or with the same cache.",
    ),
)
