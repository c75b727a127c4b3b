"""LLVM's engines, which make objects of modules; nothing is run by them.

They are driven through MLIR's C API, where LLVM works without the interpreter lock.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from mind_mlir.codegen.ahead import Ahead, making
from mind_mlir.codegen.written import written
from mind_mlir.diagnostics import Diagnostic, InternalError, UnsupportedError
from mind_mlir.image.pages import forbidden, may_become_code
from mind_mlir.mlir.bindings import Handle, StringRef, c_function, handle_of, ir
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.mlir.bindings import Module, Operation

#: What stands for the address of what an object refers to: it is never followed.
_ELSEWHERE = 1 << 12
#: Seconds between two looks for interrupts while LLVM works.
_LOOK = 0.05


class Engine:
    """LLVM's engine for one module, which makes its machine code. Several may be made at the same time."""

    def __init__(self, module: Module, *, opt_level: int, pic: bool = False) -> None:
        """Make an engine, and let it see what ``module`` only declares.

        Args:
            module: A module of the LLVM dialect. Where others are made of modules of its context at the same
                time, that has multi-threading on.
            opt_level: LLVM's level of optimisation, 0 to 3.
            pic: Whether the code is position-independent, as objects for linkers are.

        Raises:
            UnsupportedError: E7001, objects of this system are not ELF files: it is not Linux. E7104, a
                policy of the system lets no memory become code.
            InternalError: LLVM does not take the module; what it has to say is on standard error.
        """
        if not hasattr(os, "memfd_create"):
            words = f"code is made from ELF files, on Linux alone, and this system is {platform.system()}"
            raise UnsupportedError(Diagnostic("E7001", words, help="interpret the program, or use Linux"))
        # LLVM makes code of what it never runs, and does not survive that it may not.
        if not may_become_code():
            raise forbidden(
                "LLVM cannot compile",
                "compile in a process without it, with the same cache or into a bundle: both run here",
            )
        numbers, flags = [ctypes.c_int] * 2, [ctypes.c_bool] * 2
        create = _function("Create", Handle, Handle, *numbers, ctypes.c_void_p, *flags)
        self._handle = create(handle_of(module), opt_level, 0, None, True, pic)
        self._made = False
        if not self._handle.ptr:
            raise _refused(module)
        define = _function("RegisterSymbol", None, Handle, StringRef, ctypes.c_void_p)
        # Once each: an engine that is told twice is damaged. A module may declare a kernel several times.
        for symbol in {_symbol(op) for op in module.body.operations if _declares(op)}:
            if not symbol.startswith("llvm."):  # engines link what they have made, and complain otherwise
                define(self._handle, StringRef.of(symbol), _ELSEWHERE)

    def make(self, symbol: str) -> bool:
        """Make the code, by looking up something that the module defines; return whether that went well."""
        look_up = _function("Lookup", ctypes.c_void_p, Handle, StringRef)
        with fixed():  # LLVM folds with the C library's functions
            self._made = bool(look_up(self._handle, StringRef.of(symbol)))
        return self._made

    def object(self) -> bytes:
        """Return the object that `make` has made; nothing where that failed.

        Raises:
            UnsupportedError: E7102, the system refuses what writing it takes. It may be asked for again.
        """
        dump = _function("DumpToObjectFile", None, Handle, StringRef)
        return written(lambda path: dump(self._handle, StringRef.of(path))) if self._made else b""

    def destroy(self) -> None:
        """Give back what it holds."""
        _function("Destroy", None, Handle)(self._handle)

    @staticmethod
    def close(*engines: Engine) -> None:
        """Give back what engines hold, in a thread if there is a core for that: it takes milliseconds."""

        def give_back() -> None:
            for engine in engines:
                engine.destroy()

        with making:
            Ahead(give_back).leave()


@functools.cache
def _function(name: str, result: Any, *arguments: Any) -> Any:
    return c_function(f"mlirExecutionEngine{name}", result, *arguments)


class Making:
    """The object of a module, which a thread may be making."""

    def __init__(self, module: Module, symbol: str, *, opt_level: int) -> None:
        """Begin to make it, in a thread if there is a core for that; the caller holds `ahead.making`.

        Args:
            module: A module of the LLVM dialect, which must not be changed until the object is there.
            symbol: Something that it defines, which others may refer to.
            opt_level: LLVM's level of optimisation, 0 to 3.

        Raises:
            InternalError: LLVM does not take the module; what it has to say is on standard error.
        """
        self._module: Module | None = module
        self._engine = Engine(module, opt_level=opt_level)
        self._making = Ahead(partial(self._engine.make, symbol))
        self._data = b""
        self._error: InternalError | None = None

    def object(self) -> bytes:
        """Return the object; any thread may call this, again where the system had no descriptor for it.

        Raises:
            InternalError: LLVM makes no code of the module.
        """
        self._making.wait()
        with making:
            if self._module is not None:
                self._data = self._engine.object()
                self._error = None if self._data else _refused(self._module)
                self._module = None
                Engine.close(self._engine)
        if self._error is not None:
            raise self._error
        return self._data


class _Objects:
    """The objects of modules of one context, while threads make them."""

    def __init__(self, units: Sequence[tuple[Module, str, int]], *, pic: bool) -> None:
        self._units, self._pic = units, pic
        self.data = [b""] * len(units)
        self.errors: list[Exception] = []
        self.made = [threading.Event() for _ in units]
        self._engines: list[Engine] = []
        self._lock, self._is_left = threading.Lock(), False

    def make(self, number: int) -> None:
        """Make one of them; whichever thread this is, what it raises is the caller's."""
        module, symbol, level = self._units[number]
        try:
            engine = Engine(module, opt_level=level, pic=self._pic)
            try:
                if engine.make(symbol):
                    self.data[number] = engine.object()
            finally:
                self._keep(engine)
        except Exception as error:
            self.errors.append(error)
        finally:
            self.made[number].set()

    def _keep(self, engine: Engine) -> None:
        """Note an engine, to be closed with the others, or close it where nobody waits for these."""
        with self._lock:
            if self._is_left:
                engine.destroy()
            else:
                self._engines.append(engine)

    def close(self) -> None:
        """Give back what the engines hold, when all is made."""
        Engine.close(*self._engines)

    def leave(self) -> None:
        """Wait for nothing: threads that are in LLVM give back what they hold when they come out."""
        with self._lock:
            self._is_left = True
            for engine in self._engines:
                engine.destroy()


def make_objects(
    units: Sequence[tuple[Module, str, int]], *, pic: bool = False, takes_long: bool = False
) -> list[bytes]:
    """Return the objects of modules of one context, which are made at the same time.

    Args:
        units: Modules, something that each defines and that others may refer to, and levels of optimisation.
        pic: Whether the code is position-independent.
        takes_long: Whether this thread looks for interrupts meanwhile, while others make all of them.

    Raises:
        InternalError: LLVM does not take a module; what it has to say is on standard error.
    """
    objects = _Objects(units, pic=pic)
    with _several(units[0][0], len(units)):
        with making:
            others = [Ahead(partial(objects.make, number)) for number in range(not takes_long, len(units))]
        if takes_long:
            _look_for_interrupts(objects, others)
        else:
            objects.make(0)
        for other in others:
            other.wait()
    objects.close()
    if objects.errors:
        raise objects.errors[0]
    for (module, _, _), data in zip(units, objects.data, strict=True):
        if not data:
            raise _refused(module)
    return objects.data


def _look_for_interrupts(objects: _Objects, threads: Sequence[Ahead]) -> None:
    """Return when all is made that has a thread; an interrupt leaves them behind."""
    try:
        for thread, made in zip(threads, objects.made, strict=True):
            while thread.has_thread and not made.wait(_LOOK):
                deliver()
    except BaseException:
        objects.leave()
        raise


@contextmanager
def _several(module: Module, count: int) -> Iterator[None]:
    """Let so many threads work in the context of ``module``."""
    context = module.context
    if count > 1:
        context.enable_multithreading(True)
    yield
    if count > 1:  # after an exception there may be threads that work on, and nothing else uses the context
        context.enable_multithreading(False)


def _refused(module: Module) -> InternalError:
    return InternalError("codegen", "LLVM makes no code of the module", str(module))


def _declares(op: Operation) -> bool:
    if op.operation.name == "llvm.func":
        return not op.regions[0].blocks
    return (
        op.operation.name == "llvm.mlir.global" and "value" not in op.attributes and not op.regions[0].blocks
    )


def _symbol(op: Operation) -> str:
    return str(ir.StringAttr(op.attributes["sym_name"]).value)
