"""Python objects that somebody may pass where something else belongs: numbers, lists, arrays, and traps."""

from __future__ import annotations

import array
import collections
import decimal
import enum
import fractions
import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import mind_mlir
from mind_mlir import Builder, DType, Module, ModuleBuilder, TensorType
from mind_mlir.diagnostics import SourceText
from mind_mlir.ir import attributes
from mind_mlir.ir.attributes import PaddingMode, TensorLiteral
from mind_mlir.ir.module import Block, CoreOperation, Function, Functions, Parameter, Result, Return
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import SymbolicDim, TupleType

if TYPE_CHECKING:
    from collections.abc import Callable

#: Called with what their annotations do not promise, but their documentation does.
Padding: Any = attributes.Padding
create: Any = CoreOperation.create


class Mine(Exception):  # noqa: N818 -- stands for whatever a caller's own code raises
    """Raised by the objects below; must arrive unchanged."""


def refuse(*_: object, **__: object) -> Any:
    raise Mine


_HOOKS = ("__array__", "__index__", "__float__", "__iter__", "__len__", "__eq__", "__bool__", "__fspath__")
#: Classes of which one special method raises, and one of which all do.
HOSTILE = [
    type(f"Raising{hook.strip('_')}", (), {hook: refuse, "__hash__": object.__hash__}) for hook in _HOOKS
]
HOSTILE.append(type("RaisingAll", (), dict.fromkeys((*_HOOKS, "__hash__", "__repr__", "__str__"), refuse)))


class LyingInt(int):
    def __index__(self) -> int:
        raise Mine

    def __eq__(self, other: object) -> bool:
        raise Mine

    __hash__ = int.__hash__


class LyingStr(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise Mine

    def split(self, *_: Any) -> Any:
        raise Mine


class LyingList(list[Any]):
    def __iter__(self) -> Any:
        return itertools.repeat(1, 3)


class Subarray(np.ndarray[Any, Any]):
    pass


class LyingPadding(attributes.Padding):
    def __init__(self, mode: Any) -> None:
        object.__setattr__(self, "mode", mode)


class Number(enum.IntEnum):
    ONE = 1


class Dictionary(dict[Any, Any]):
    pass


def itself() -> list[Any]:
    inner: list[Any] = []
    inner.extend([inner, inner])
    return inner


def module() -> Module:
    b = Builder()
    x, p = b.input("x", TensorType(DType.F32, (2, 3))), b.input("p", TensorType(DType.I1, (2, 3)))
    return b.build([b.emit("Sum", b.emit("Select", p, x, x), axes=[0])])


def broken_module() -> Module:
    operation = create(3, "Add", [1, 7], {"axes": [1]}, TensorType(DType.F32, (2,)))
    return Module.flat([operation], [9])


def functions(broken: bool = False) -> Module:
    """Return a module with a loop, a branch and a call; or one of which nothing is as it should be."""
    m = ModuleBuilder()
    vector, number = TensorType(DType.F32, (2, 3)), TensorType(DType.SI64)
    main = m.function("main", {"x": vector, "p": TensorType(DType.I1)}, [vector])
    twice = m.function("twice", {"a": vector}, [vector], public=False)
    twice.entry.return_(twice.entry.emit("Add", *twice.parameters * 2))
    head, body, done = main.block(vector, number), main.block(), main.block()
    main.entry.branch(head, main.parameters[0], main.entry.constant(0, DType.SI64))
    x, i = head.parameters
    head.cond_branch(head.emit("Compare", i, head.constant(3, DType.SI64), op="Less"), body, done)
    body.branch(head, *body.call("twice", x), body.emit("Add", i, body.constant(1, DType.SI64)))
    done.return_(x)
    built = m.build()
    if not broken:
        return built
    first, *others = built.functions[0].blocks
    strange = create(1, "Cond", [99], {}, TupleType(()), regions=[Block((), Return((1,))), first])
    call = create(70, "Call", [], {"callee": "main"}, vector, others=[Result(70, number)])
    entry = replace(first, operations=(strange, call, *first.operations), parameters=(Parameter(0, number),))
    return replace(built, functions=Functions([replace(built.functions[0], blocks=(entry, *others, entry))]))


MODULE = module()
FUNCTIONS = functions()
EXECUTABLE = mind_mlir.compile(MODULE, opt_level=0)
X, P = np.ones((2, 3), np.float32), np.array([[1, 2, 0]] * 2, np.uint8).view(np.bool_)
FOREIGN = Builder().input("x", TensorType(DType.F32, (2, 3)))
OPERATION = MODULE.operations[2]

NUMBERS: list[Any] = [
    0,
    1,
    -1,
    2,
    3,
    7,
    2**31,
    2**63,
    2**64,
    -(2**63),
    10**39,
    10**5000,
    True,
    0.0,
    -0.0,
    1.5,
    2.0,
]
NUMBERS += [
    1e39,
    1e300,
    float("nan"),
    float("inf"),
    1j,
    np.float32(1.5),
    np.int64(1),
    np.bool_(True),
    np.uint8(3),
]
NUMBERS += [
    np.longdouble(3),
    ml_dtypes.bfloat16(1),
    decimal.Decimal("1e400"),
    decimal.Decimal("sNaN"),
    Number.ONE,
]
NUMBERS += [
    decimal.Decimal("1e-999999"),
    fractions.Fraction(1, 3),
    LyingInt(1),
    np.array(2),
    np.datetime64("2020-01-01"),
]
TEXTS: list[Any] = [
    "",
    "x",
    "p",
    "y",
    "f32",
    "i64",
    "Same",
    "valid",
    "unit",
    "given",
    "asm",
    "core",
    "llvm",
    "a\0b",
]
TEXTS += [
    "\ud800",
    "%0 = Neg (%1)",
    "self",
    LyingStr("x"),
    np.str_("f32"),
    b"x",
    "Less",
    "core-v1",
    "x" * 5000,
]
LISTS: list[Any] = [
    [],
    (),
    [0],
    (0, 1),
    [1, 0],
    [[1, 2], [3, 4]],
    [[1], [2, 3]],
    [[0, 1], [1, 0]],
    range(2),
    itself(),
]
LISTS += [
    {"x": X, "p": P},
    {"x": X},
    {3: X},
    {},
    Dictionary(x=X, p=P),
    collections.defaultdict(list),
    {1, 2},
    ["x"],
]
LISTS += [
    ["x", 3],
    [None],
    LyingList([1]),
    collections.UserList([1]),
    array.array("i", [1, 2]),
    memoryview(b"ab"),
]
LISTS += [
    ["unit"],
    [True, 2],
    [[0.5, "a"]],
    collections.deque([1]),
    bytearray(b"ab"),
    [[[[1]]]],
    [X, X],
    [10**5000],
]
ARRAYS: list[Any] = [
    X,
    P,
    X.T,
    X[:0],
    X.astype(">f4"),
    X.astype(object),
    np.ma.masked_array(X, X > 0),
    X.view(Subarray),
]
ARRAYS += [
    np.ma.masked_array(X),
    np.asmatrix(X),
    np.zeros(2, [("a", "i4")]),
    np.array(["a"]),
    np.zeros(2, "V3"),
    P[:1],
]
ARRAYS += [
    np.array([1.5, 2]),
    np.array([2**63], np.uint64),
    X.astype(ml_dtypes.bfloat16),
    np.array([1e300]),
    np.array([1, 0]),
]
ARRAYS += [
    X.astype(complex),
    np.lib.stride_tricks.as_strided(X, (2, 3), (0, 4)),
    np.array([1, 2], np.longdouble),
    np.array([3], np.float16),
]
KINDS: list[Any] = [
    None,
    ...,
    NotImplemented,
    object(),
    type,
    int,
    np.float32,
    np.dtype("int8"),
    np.dtype(">i4"),
    print,
]
KINDS += [
    DType.F32,
    DType.I1,
    DType.SI64,
    DType.FP8_E4M3,
    DType.CF32,
    TensorType(DType.F32, (2, 3)),
    TensorType(DType.F32),
]
KINDS += [
    TensorType(DType.SI32, (2**40, 2**40)),
    TensorType(DType.F32, (SymbolicDim("B"),)),
    TensorType(DType.F32, (-1,)),
]
KINDS += [
    TupleType((TensorType(DType.F32),)),
    Padding(PaddingMode.SAME),
    PaddingMode.CUSTOM,
    Padding("Custom", [[1]]),
    LyingPadding("Sme"),
    Padding.__new__(Padding),
]
KINDS += [
    TensorLiteral.of([1, 2], DType.SI64),
    TensorLiteral.of(1.5, DType.F32),
    MODULE,
    broken_module(),
    Module(Functions()),
]
KINDS += [
    Module(Functions(MODULE.functions * 2)),
    Module(MODULE.functions, "odd"),
    Function("f", ()),
    MODULE.body,
    OPERATION,
    FOREIGN,
]
KINDS += [
    FUNCTIONS,
    functions(broken=True),
    Module(Functions(), "core-functions"),
    Module(MODULE.functions, "core-functions"),
    Module(Functions([Function("f", (), result_types=())]), "core-functions"),
]
KINDS += [
    Return((0,)),
    Block((), Return(())),
    EXECUTABLE,
    SourceText("a", "%0"),
    lambda *_: None,
    refuse,
    Path("/nowhere"),
]
KINDS += [
    SymbolicDim("B"),
    mind_mlir.Diagnostic("E1101", "m"),
    ValueError("x"),
    mind_mlir.Location(SourceText("a", "b"), 1, 1),
]
KINDS += [SourceInfo.at(mind_mlir.Location(SourceText("a", "b"), 1, 1))]
FRESH: list[Callable[[], Any]] = [
    lambda: (n for n in ["x"]),
    lambda: iter([1, 2]),
    lambda: map(int, "12"),
    Builder,
]
FRESH += HOSTILE

#: Makers of all of them: what is used up, or changes, is made anew each time.
POOL = [lambda value=value: value for value in (*NUMBERS, *TEXTS, *LISTS, *ARRAYS, *KINDS)] + FRESH
