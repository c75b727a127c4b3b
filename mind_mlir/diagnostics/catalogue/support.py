"""E70xx: what this compiler does not offer. E71xx: what the system does not take or give.

E72xx: what conversion targets do not take.
"""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, in_python

_SORT = """\
import numpy as np
import mind_mlir
import mind_mlir.numpy as mnp
f = mind_mlir.jit(lambda x: mnp.sort(x, axis={}), dynamic={{"x": {{0: "rows"}}}})
f(np.ones((5, 3)))
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
        "E7001: a form that this compiler does not support",
        "The program is well-formed, but what it says is not supported where it was to go: the message "
        "says what, and the help line why.",
        bad=_SORT.format(0),
        good=_SORT.format(1),
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
