"""LLVM's engines, which make objects of modules; nothing is run by them."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.bindings import code_maker, create_engine, ir
from mind_mlir.codegen.ahead import Ahead, making
from mind_mlir.diagnostics import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.bindings import ExecutionEngine, Module, Operation

#: What stands for the address of what an object refers to: it is never followed.
_ELSEWHERE = ctypes.c_void_p(1 << 12)


class Making:
    """The object of a module, which a thread may be making."""

    def __init__(self, module: Module, symbol: str, *, opt_level: int, pic: bool = False) -> None:
        """Begin to make it, in a thread if there is a core for that; the caller holds `ahead.making`.

        Args:
            module: A module of the LLVM dialect, which must not be changed until the object is there.
            symbol: Something that it defines: what an engine finds, `library.append_addresses` adds.
            opt_level: LLVM's level of optimisation, 0 to 3.
            pic: Whether the code is position-independent, as objects for linkers are.

        Raises:
            InternalError: LLVM does not take the module; what it has to say is on standard error.
        """
        #: Until there is an object; two threads may both have it make one.
        self._engine: ExecutionEngine | None = _engine(module, opt_level=opt_level, pic=pic)
        self._making = Ahead(code_maker(self._engine, symbol))
        self._data = b""

    def object(self) -> bytes:
        """Return the object; any thread may call this."""
        engine = self._engine
        if engine is not None:
            self._making.wait()
            self._data = _dump(engine)
            self._engine = None
        return self._data


def make_objects(units: Sequence[tuple[Module, str, int]], *, pic: bool = False) -> list[bytes]:
    """Return the objects of modules of one context, which are made at the same time.

    Args:
        units: Modules, something that each defines, and levels of optimisation, as `Making` takes them.
        pic: Whether the code is position-independent.

    Raises:
        InternalError: LLVM does not take a module; what it has to say is on standard error.
    """
    made: list[ExecutionEngine] = [None] * len(units)

    def make(number: int) -> None:
        module, symbol, level = units[number]
        try:
            engine = create_engine(module, opt_level=level, pic=pic, dumps=True)
        except RuntimeError:
            return
        _stand_in(engine, module)
        code_maker(engine, symbol)()
        made[number] = engine

    with _several(units[0][0], len(units)):
        with making:
            others = [Ahead(partial(make, number)) for number in range(1, len(units))]
        make(0)
        for other in others:
            other.wait()
    objects = [b"" if engine is None else _dump(engine) for engine in made]
    for (module, _, _), data in zip(units, objects, strict=True):
        if not data:
            raise _refused(module)
    return objects


@contextmanager
def _several(module: Module, count: int) -> Iterator[None]:
    """Let so many threads work in the context of ``module``."""
    context = module.context
    if count > 1:
        context.enable_multithreading(True)
    try:
        yield
    finally:
        if count > 1:
            context.enable_multithreading(False)


def _engine(module: Module, *, opt_level: int, pic: bool) -> ExecutionEngine:
    try:
        engine = create_engine(module, opt_level=opt_level, pic=pic, dumps=True)
    except RuntimeError:
        raise _refused(module) from None
    _stand_in(engine, module)
    return engine


def _refused(module: Module) -> InternalError:
    return InternalError("codegen", "LLVM makes no code of the module", str(module))


def _stand_in(engine: ExecutionEngine, module: Module) -> None:
    """Define what ``module`` only declares: engines link what they have made, and complain otherwise."""
    # Once each: an engine that is told twice is damaged. A module may declare a kernel several times.
    for symbol in {_symbol(op) for op in module.body.operations if _declares(op)}:
        if not symbol.startswith("llvm."):
            engine.raw_register_runtime(symbol, _ELSEWHERE)


def _declares(op: Operation) -> bool:
    if op.operation.name == "llvm.func":
        return not op.regions[0].blocks
    return (
        op.operation.name == "llvm.mlir.global" and "value" not in op.attributes and not op.regions[0].blocks
    )


def _symbol(op: Operation) -> str:
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


def _dump(engine: ExecutionEngine) -> bytes:
    """Return what an engine has made; nothing where that failed."""
    file = os.memfd_create("object")
    try:
        engine.dump_to_object_file(f"/proc/self/fd/{file}")
        return os.pread(file, os.fstat(file).st_size, 0)
    finally:
        os.close(file)
