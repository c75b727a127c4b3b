"""Calls everything public with arbitrary Python objects; run as a process of its own.

    border_child.py PART CALLS SCRATCH

A call may return, raise one of the documented exceptions, or raise what an object of ours raised. A
`TypeError` or `ValueError` counts as documented only where `support/argument_checks.py`, a guard that names a
parameter, or Python itself when it binds the arguments, has raised it. What is being called stands in the
file SCRATCH, for the case that the process ends without a word.
"""

from __future__ import annotations

import faulthandler
import inspect
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostile import EXECUTABLE, FUNCTIONS, MODULE, OPERATION, POOL, Mine, broken_module
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import mind_mlir
from mind_mlir import Builder, DType, MindError, Module, ModuleBuilder, TensorType
from mind_mlir.diagnostics import SourceText, tracebacks
from mind_mlir.ir.attributes import Padding, TensorLiteral
from mind_mlir.ir.module import (
    Block,
    Branch,
    CondBranch,
    Function,
    Functions,
    Parameter,
    Result,
    Return,
    Target,
    Yield,
)
from mind_mlir.ir.types import SymbolicDim, TupleType
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Callable

#: Calls with one builder.
BATCH = 25

#: Names of keyword arguments: those of the API, of all attributes, and others.
KEYWORDS = sorted(
    {
        "wrt",
        "cotangents",
        "extensions",
        "verify",
        "opt_level",
        "observer",
        "source",
        "x",
        "p",
        "dtype",
        "nosuch",
        "regions",
        "defines",
    }
    | {attribute.name for record in all_ops() for attribute in record.attributes}
)
OPCODES = [record.opcode for record in all_ops()]
anything = st.sampled_from(POOL).map(lambda make: make())
#: For calls of another form than the signature asks for.
keywords = st.dictionaries(st.sampled_from(KEYWORDS), anything, max_size=2)


def public_methods(kind: type) -> list[str]:
    """Return the names of the methods and properties of ``kind`` that are ours and public."""
    names = {name for base in kind.__mro__ if base.__module__.startswith("mind_mlir") for name in vars(base)}
    return sorted(name for name in names if not name.startswith("_") and name != "load")


def instances() -> list[Any]:
    """Return an instance of every public class."""
    error = MindError(mind_mlir.Diagnostic("E1101", "m"))
    made = [
        MODULE,
        broken_module(),
        Module(Functions()),
        EXECUTABLE,
        OPERATION,
        TensorType(DType.F32, (2,)),
        DType.F32,
        error,
    ]
    made += [TensorType(DType.F32, (SymbolicDim("B"),)), mind_mlir.differentiate(MODULE)]
    made += [mind_mlir.Location(SourceText("a", "b"), 1, 1), mind_mlir.Diagnostic("E1101", "m")]
    made += [mind_mlir.InternalError("llvm", "m", "r")]
    target = Target("b", (0,))
    made += [target, Return((0,)), Yield((0,)), Branch(target), CondBranch(0, target, target)]
    made += [Parameter(0, TensorType(DType.F32)), Result(0, TensorType(DType.F32)), MODULE.functions[0]]
    made += [MODULE.body, EXECUTABLE["main"], FUNCTIONS, FUNCTIONS.functions["main"]]
    return made


def targets() -> dict[str, list[tuple[str, Callable[..., Any]]]]:
    """Return what is called, by part."""
    # An Enum's own lookup is Python's.
    api = [(name, getattr(mind_mlir, name)) for name in mind_mlir.__all__ if name != "DType"]
    methods: list[tuple[str, Callable[..., Any]]] = []
    for instance in instances():
        for name in public_methods(type(instance)):
            if callable(getattr(type(instance), name, None)):
                methods.append((f"{type(instance).__name__}.{name}", getattr(instance, name)))
            else:
                methods.append(
                    (f"{type(instance).__name__}.{name}", lambda i=instance, n=name: getattr(i, n, None))
                )
    methods += [
        ("Executable()", lambda p, x: EXECUTABLE(p=p, x=x)),
        ("Executable(*)", EXECUTABLE),
        ("CompiledFunction(*)", EXECUTABLE["main"]),
    ]
    methods.append(("TensorLiteral.of", TensorLiteral.of))
    methods += [
        (kind.__name__, kind)
        for kind in (
            *(Padding, TensorLiteral, TupleType, Block, Function, Parameter, Result),
            *(Return, Yield, Target, Branch, CondBranch),
        )
    ]
    compiling = ("Executable", "compile")
    return {
        "functions": [entry for entry in api if entry[0] not in compiling] + methods,
        "compile": [entry for entry in api if entry[0] in compiling],
    }


def parameters(call: Callable[..., Any]) -> tuple[int, list[str]]:
    """Return how many arguments must be given by position, and the names of those that need not be."""
    own = [
        p
        for p in inspect.signature(call).parameters.values()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    needed = [p for p in own if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    return len(needed), [p.name for p in own if p not in needed]


def documented(error: BaseException) -> bool:
    """Return whether ``error`` is one that the public functions may raise."""
    if isinstance(error, (MindError, Mine)):
        return True
    if not isinstance(error, (TypeError, ValueError)):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    last = Path(frames[-1].filename)
    if last == Path(__file__) or str(last) == tracebacks.__file__:
        return True  # the arguments do not fit the signature
    return last.name == "argument_checks.py" or " must be " in str(error)


def attempt(name: str, call: Callable[..., Any], arguments: Any, keyword: dict[str, Any]) -> Any:
    try:
        return call(*arguments, **keyword)
    except BaseException as error:
        if documented(error):
            return None
        types = [type(argument).__name__ for argument in arguments]
        traceback.print_exc()
        sys.stderr.write(f"{name}({types}, {sorted(keyword)}) raised {type(error).__name__}\n")
        sys.stderr.flush()
        # Hypothesis would run the batch again to print what it drew, and there are integers of 5,000 digits.
        os._exit(1)


def quietly(calls: int) -> settings:
    """Return the settings of as many calls, in batches."""
    return settings(
        max_examples=-(-calls // BATCH),
        derandomize="MIND_MLIR_FUZZ" not in os.environ,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        # A call says by itself what it was given; to look for a smaller batch takes longer than all the rest.
        phases=(Phase.explicit, Phase.generate),
    )


def operation(
    data: st.DataObject, values: list[Any], arguments: list[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments for `emit` that come close to some operation."""
    operands = data.draw(st.lists(st.sampled_from(values), max_size=3))
    opcode = data.draw(st.sampled_from(OPCODES))
    schema = next(record for record in all_ops() if record.opcode == opcode).attributes
    return [opcode, *operands, *arguments[2:]], {a.name: data.draw(anything) for a in schema}


def check_functions(calls: int, scratch: Path) -> None:
    """Build functions of blocks, sometimes as they are meant to be, and look at what was built."""
    types = [TensorType(DType.F32, (2, 3)), TensorType(DType.SI64), TensorType(DType.I1)]
    methods = {
        "module": ("function", "build"),
        "function": ("block",),
        "block": ("emit", "emit_all", "constant", "call", "region", "branch", "cond_branch", "return_"),
    }
    targets = [(kind, name) for kind, names in methods.items() for name in names]
    targets += [("block", "emit")] * 4 + [("block", name) for name in ("branch", "cond_branch", "return_")]

    @quietly(calls)
    @given(st.data())
    def batch(data: st.DataObject) -> None:
        module = ModuleBuilder()
        functions: list[Any] = [module.function("main", dict(zip("xnp", types, strict=True)), types[:1])]
        blocks: list[Any] = [functions[0].entry, functions[0].block(*types)]
        values: list[Any] = [*functions[0].parameters, *blocks[1].parameters]
        for _ in range(BATCH):
            kind, name = data.draw(st.sampled_from(targets))
            instances: list[Any] = {"module": [module], "function": functions, "block": blocks}[kind]
            instance = data.draw(st.sampled_from(instances))
            known: st.SearchStrategy[Any] = st.sampled_from([*values, *blocks, *functions, *types])
            given_: list[Any] = data.draw(st.lists(known | anything, max_size=4))
            keyword = data.draw(keywords) if data.draw(st.integers(0, 4)) == 0 else {}
            if name == "emit":
                given_, keyword = operation(data, values, given_)
            scratch.write_text(f"{kind}.{name} {list(map(type, given_))} {sorted(keyword)}")
            made = attempt(f"{kind}.{name}", getattr(instance, name), given_, keyword)
            for kept in made if type(made) is tuple else (made,):
                for kept_in in (values, blocks, functions):
                    if type(kept) is type(kept_in[0]):
                        kept_in.append(kept)
        for block in blocks:
            attempt("return_", block.return_, [functions[0].parameters[0]], {})
        built = attempt("build", module.build, [], {})
        if built is not None:
            attempt("verify", mind_mlir.verify, [built], {})
            attempt("str", str, [built], {})

    batch()


def check(part: str, calls: int, scratch: Path) -> None:
    entries = targets().get(part, [])

    @quietly(calls)
    @given(st.data())
    def batch(data: st.DataObject) -> None:
        builder = Builder()
        values = [builder.input("x", TensorType(DType.F32, (2, 3))), builder.constant([0, 1], DType.SI64)]
        for _ in range(BATCH):
            arguments = data.draw(st.lists(anything, max_size=3))
            keyword = data.draw(keywords)
            if part != "builder":
                index = data.draw(st.integers(0, len(entries) - 1))
                name, call = entries[index]
                if data.draw(st.integers(0, 9)):  # mostly as many arguments as there are parameters
                    positional, optional = parameters(call)
                    arguments = [data.draw(anything) for _ in range(positional)]
                    keyword = {n: data.draw(anything) for n in optional if data.draw(st.booleans())}
            else:
                method = data.draw(st.sampled_from(["emit"] * 5 + ["input", "constant", "copy", "build"]))
                name, call = method, getattr(builder, method)
                if method == "emit":
                    arguments, more = operation(data, values, arguments)
                    keyword |= more
            scratch.write_text(f"{name} {list(map(type, arguments))} {sorted(keyword)}")
            made = attempt(name, call, arguments, keyword)
            if part == "builder" and type(made) is type(values[0]):
                values.append(made)
        if part == "builder":
            built = builder.build(values[-2:])
            attempt("verify", mind_mlir.verify, [built], {})
            attempt("print_module", mind_mlir.print_module, [built], {})

    batch()


def main() -> None:
    faulthandler.enable()
    warnings.simplefilter("error")
    part, calls, scratch = sys.argv[1:]
    if part == "blocks":
        check_functions(int(calls), Path(scratch))
    else:
        check(part, int(calls), Path(scratch))


if __name__ == "__main__":
    main()
