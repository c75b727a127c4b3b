"""E43xx: PTIR programs, beyond what holds for all modules (ptir-v0.4.md, ptir-formats.md)."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import in_python

_HEAD = """\
from mind_mlir.ir.types import SymbolicDim, TensorType, TupleType
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, Region
from mind_mlir.languages.ptir.program import TupleElement, ValueRef
from mind_mlir.languages.ptir.to_module import to_module
F32, I1 = TensorType("f32", (2,)), TensorType("i1")
NEG = Operation("ElementwiseUnary", "Neg")
"""
_ELEMENT = (
    _HEAD
    + """\
body = (Instruction(1, NEG, (TupleElement(0, {index}),), F32),)
pair = TupleType((F32, F32))
to_module(Program((Function("main", (pair,), (0,), body, (F32,), (1,)),)))
"""
)
_COND = (
    _HEAD
    + """\
regions = tuple(Region(n, (F32,), (Instruction(1, NEG, (ValueRef(0),), F32),), (F32,)) for n in (0, 1))
cond = Operation("Cond", fields={{"true_region": 0, "false_region": {region}}})
body = (Instruction(2, cond, (ValueRef(0), ValueRef(1)), F32),)
to_module(Program((Function("main", (I1, F32), (0, 1), body, (F32,), (2,)),), regions))
"""
)
_SYMBOL = (
    _HEAD
    + """\
from mind_mlir.languages.ptir.symbols import bind
ROW = TensorType("f32", (SymbolicDim("B"),))
body = (Instruction(1, NEG, (ValueRef(0),), ROW),)
program = Program((Function("main", (ROW,), (0,), body, (ROW,), (1,)),))
to_module({program})
"""
)
_DOUBLING = (
    _HEAD
    + """\
regions = [Region(0, (I1, F32), (Instruction(2, NEG, (ValueRef(1),), F32),), (F32,))]
def inner(n):
    operation = Operation("Cond", fields={{"true_region": n, "false_region": n}})
    return Instruction(2, operation, (ValueRef(0), ValueRef(0), ValueRef(1)), F32)
regions += [Region(n, (I1, F32), (inner(n - 1),), (F32,)) for n in range(1, {count})]
body = (inner({count} - 1),)
to_module(Program((Function("main", (I1, F32), (0, 1), body, (F32,), (2,)),), tuple(regions)))
"""
)

_CUSTOM = """\
from mind_mlir import Builder, TensorType
builder = Builder(profile="ptir-v0.4")
x = builder.parameter(TensorType("f32", (2,)), "x")
builder.emit("CustomCall", *[x] * {count}, target="{target}")
"""

ENTRIES = (
    in_python(
        "E4301: not an element of a tuple",
        "An operand %4[1] is an element of a value of tuple type, counted from 0. Others take tensors; "
        "a whole tuple is an operand only of those that run regions. Tuples nest 64 deep at most.",
        context=("issue",),
        bad=_ELEMENT.format(index=2),
        good=_ELEMENT.format(index=1),
    ),
    in_python(
        "E4302: no such region",
        "Cond, While and Scan name regions of their program by id; no two have the same.",
        context=("region",),
        bad=_COND.format(region=7),
        good=_COND.format(region=1),
    ),
    in_python(
        "E4303: symbolic dimension that is not bound",
        "A dimension ?B stands for one extent wherever a program says so. A call binds it by the shapes "
        "of its arguments; whatever is done without arguments needs to be told, as by bindings={'B': 4}.",
        context=("symbol",),
        bad=_SYMBOL.format(program="program"),
        good=_SYMBOL.format(program="bind(program, {'B': 4})"),
    ),
    in_python(
        "E4304: regions too large",
        "A region is copied to each place where it is run, with what it runs itself. So a chain of regions "
        "that each run the next one twice doubles at every step. The limit is 4,000,000 instructions.",
        context=("size", "limit"),
        bad=_DOUBLING.format(count=40),
        good=_DOUBLING.format(count=4),
    ),
    in_python(
        "E4310: custom call that is not implemented",
        "A custom call names a function by its target, such as mind.gelu.v1: a namespace, a name and a "
        "version. It has to be registered (mind_mlir.register_custom_call) in the process that verifies, "
        "runs or compiles the program. There is no fallback.",
        context=("operation", "value", "target"),
        bad=_CUSTOM.format(target="mind.gelu.v9", count=1),
        good=_CUSTOM.format(target="mind.gelu.v1", count=1),
    ),
    in_python(
        "E4311: custom call that its target does not take",
        "What is registered for a custom call says how many operands it takes, and of which types. An "
        "expansion into operations has to give what its type rule says, and must not lead to itself.",
        context=("operation", "value", "target"),
        bad=_CUSTOM.format(target="mind.gelu.v1", count=2),
        good=_CUSTOM.format(target="mind.gelu.v1", count=1),
    ),
)
