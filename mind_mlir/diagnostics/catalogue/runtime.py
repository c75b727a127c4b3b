"""E60xx: running a program. E61xx: the arguments of a call. E70xx: what this compiler does not offer.

E71xx: what the system does not take or give. E72xx: what conversion targets do not take.
"""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import Entry

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
    Entry(
        code="E6001",
        title="index out of bounds",
        explanation=(
            "An index given at run time lies outside its axis. It is checked in compiled and "
            "interpreted code alike, before anything is read or written."
        ),
        context=("operation", "value", "index", "shape"),
        language="python",
        bad=_GATHER + "gather(x=x, i=i + 1)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    Entry(
        code="E6002",
        title="backend unavailable",
        explanation=(
            "The MLIR bindings that this compiler is built on are missing, or of a version it does "
            "not know. The message says which version to install."
        ),
    ),
    Entry(
        code="E6003",
        title="operation not implemented by the backend",
        explanation=(
            "A backend that knows only some operations was asked for another one. The CPU backend "
            "implements every operation of the reference." + _RESERVED
        ),
    ),
    Entry(
        code="E6004",
        title="allocation failed",
        explanation=("There is not enough memory for a value, or for compiling the program."),
        context=("shape", "dtype"),
    ),
    Entry(
        code="E6005",
        title="numeric overflow",
        explanation=("A check for overflow was asked for, and a value overflowed." + _RESERVED),
    ),
    Entry(
        code="E6006",
        title="NaN or infinity",
        explanation=("A check for NaN and infinities was asked for, and one appeared." + _RESERVED),
    ),
    Entry(
        code="E6007",
        title="time limit exceeded",
        explanation=("A time limit was set, and the program did not end within it." + _RESERVED),
    ),
    Entry(
        code="E6008",
        title="device error",
        explanation=("A device reported an error of its own. The CPU backend has none." + _RESERVED),
    ),
    Entry(
        code="E6009",
        title="integer division by zero",
        explanation=(
            "An element of an integer divisor is 0 when the program runs. It is checked in compiled and "
            "interpreted code alike, and no result is returned. Division of floats by zero is no error: it "
            "gives an infinity or NaN."
        ),
        context=("operation", "value"),
    ),
    Entry(
        code="E6101",
        title="argument missing",
        explanation=(
            "Every input of the module needs an array, and every output does where `out=` gives arrays."
        ),
        language="python",
        bad=_GATHER + "gather(x=x)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    Entry(
        code="E6102",
        title="argument that fits no input",
        explanation=("An argument has a name that no input has, comes twice, or is one too many."),
        language="python",
        bad=_GATHER + "gather(x=x, i=i, j=i)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    Entry(
        code="E6103",
        title="argument of another dtype",
        explanation=(
            "Arrays have exactly the dtype of their input: a conversion that nobody wrote would "
            "cost time or precision unseen."
        ),
        language="python",
        bad=_GATHER + "gather(x=x.astype(np.float64), i=i)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    Entry(
        code="E6104",
        title="argument of another shape",
        explanation=("Arrays have exactly the shape of their input; calls do not broadcast."),
        language="python",
        bad=_GATHER + "gather(x=x[:2], i=i)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    Entry(
        code="E6105",
        title="argument that is no array of numbers",
        explanation=(
            "An argument is a numpy array, or something that numpy can view as one, and holds numbers."
        ),
        language="python",
        bad=_GATHER + "gather(x=['a', 'b', 'c'], i=i)\n",
        good=_GATHER + "gather(x=x, i=i)\n",
    ),
    Entry(
        code="E6106",
        title="array that cannot be used in place",
        explanation=(
            "Arrays that outputs are written to (`out=`) are C-contiguous, aligned and writeable, and "
            "overlap neither inputs nor one another. Inputs that stay bound to a call (`bind`) are used as "
            "they lie, too: a copy would not see what is written to them later."
        ),
        language="python",
        bad=_GATHER + "gather(x=x, i=i, out=np.zeros(4, np.float32)[::2])\n",
        good=_GATHER + "gather(x=x, i=i, out=np.zeros(2, np.float32))\n",
    ),
    Entry(
        code="E6107",
        title="arguments that disagree about a symbolic dimension",
        explanation=(
            "A symbolic dimension ?B of a PTIR program is one extent in a call, wherever the types of the "
            "arguments say it."
        ),
        context=("symbol", "places", "extents"),
        language="python",
        bad=_SYMBOLIC + "add(np.ones(3, np.float32), np.ones(4, np.float32))\n",
        good=_SYMBOLIC + "add(np.ones(4, np.float32), np.ones(4, np.float32))\n",
    ),
    Entry(
        code="E7001",
        title="a form that this compiler does not support",
        explanation=(
            "The program is well-formed, but what it says is not supported where it was to go: the message "
            "says what, and the help line why."
        ),
    ),
    Entry(
        code="E7002",
        title="cannot lower an operation",
        explanation=(
            "A module given in MLIR form holds something that the stage does not take; the message says "
            "what it expects. The conversion to linalg, for one, works on functions of one block over "
            "`mind` operations on static tensors."
        ),
    ),
    Entry(
        code="E7003",
        title="a tool of this machine is missing",
        explanation=(
            "Something optional that was asked for needs a library or tool that is not installed; "
            "the help line says which."
        ),
    ),
    Entry(
        code="E7004",
        title="branches and loops are nested too deeply",
        explanation=(
            "Blocks that branch become branches and loops within one another, 64 deep at most. What "
            "follows a branch is within it as long as its two ways have not met again: so many returns "
            "one after the other, or a graph of blocks that jump to one another at will, nest deeply."
        ),
        context=("limit",),
        language="python",
        bad=_NESTED.format(70),
        good=_NESTED.format(7),
    ),
    Entry(
        code="E7201",
        title="an operation that a conversion target does not take",
        explanation=(
            "Each conversion target states which operations it takes; mind-mlir targets shows them. The help "
            "line says why this one is not among them, where the target says so."
        ),
        context=("target", "operation"),
        language="python",
        bad=_TARGET.format(dtype="f32", operation="Mul", more=""),
        good=_RIGHT,
    ),
    Entry(
        code="E7202",
        title="a dtype that a conversion target does not take",
        explanation=(
            "Each conversion target states which dtypes it has, and of which dtypes operands and results of "
            "each operation may be; mind-mlir targets shows them."
        ),
        context=("target", "dtype"),
        language="python",
        bad=_TARGET.format(dtype="i32", operation="Add", more=""),
        good=_RIGHT,
    ),
    Entry(
        code="E7203",
        title="a form of programs that a conversion target does not take",
        explanation=(
            "Each conversion target states which forms of programs it takes: symbolic dimensions, extents of "
            "0, regions, branches, calls, several exported functions, tuples in signatures, and how many "
            "dimensions; mind-mlir targets shows them."
        ),
        context=("target", "form"),
        language="python",
        bad=_TARGET.format(dtype="f32", operation="Add", more=_SECOND),
        good=_RIGHT,
    ),
    Entry(
        code="E7204",
        title="a conversion target of another package that cannot be used",
        explanation=(
            "A package says by an entry point of the group mind_mlir.conversion_targets that it ships a "
            "conversion target, but it cannot be loaded, is none, has another name than its entry point, or "
            "a name that is taken. Other targets are not affected."
        ),
        context=("target", "package", "reason"),
    ),
    Entry(
        code="E7101",
        title="an output cannot be written",
        explanation=(
            "The system does not take what a command writes: the disk is full, the place is missing or "
            "not yours to write to, or standard output is closed. A file that was there before is "
            "still there as it was."
        ),
        context=("path", "reason"),
        language="python",
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
    Entry(
        code="E7102",
        title="the system refuses something else",
        explanation=(
            "Something that the compiler needs of the system failed, such as another open file or a "
            "directory for temporary files. The message gives the reason that the system gives."
        ),
        context=("stage", "reason"),
    ),
    Entry(
        code="E7103",
        title="too little stack to compile with",
        explanation=(
            "MLIR and LLVM take up to a megabyte of stack, and a process that runs out of it ends. The stack "
            "of a process is limited by ulimit -s; that of a thread is chosen when it is started, by "
            "threading.stack_size in Python or by the C library, and some choose little. Calls of what has "
            "been compiled take hardly any."
        ),
        context=("needed", "found"),
        language="python",
        bad=_THREAD.format(kilobytes=256),
        good=_THREAD.format(kilobytes=8192),
    ),
    Entry(
        code="E7104",
        title="the system lets no memory become code",
        explanation=(
            "Policies such as PR_SET_MDWE of Linux, MemoryDenyWriteExecute of systemd and execmem of SELinux "
            "forbid that memory which has been written is run. LLVM, which makes the machine code, does not "
            "work under one. What is compiled does: programs in the cache, and bundles, are loaded from a "
            "file in memory there. So compile in another process, into a bundle or with the same cache."
        ),
    ),
)
