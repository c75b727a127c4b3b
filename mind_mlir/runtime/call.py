"""Calls without Python in between: the native method ``__call__`` of compiled functions (`call.mlir`).

It is compiled once in a process, when functions have been called a few times, and then takes the place of the
methods ``__call__`` that are written in Python. These go on doing what it leaves to them: the first call of a
function, arguments that do not fit as they are, calls at the same time, and every error.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from collections.abc import Callable
from string import Template
from typing import TYPE_CHECKING, Self, TypeVar

from mind_mlir.image.loading import Loaded, process_symbol
from mind_mlir.runtime.call_abi import addresses, layout
from mind_mlir.runtime.call_record import WORDS
from mind_mlir.runtime.kept_images import find_image, keep_image, runtime_text
from mind_mlir.support.interrupts import held
from mind_mlir.support.releasing import for_ever
from mind_mlir.support.speed_ups import Attempts

if TYPE_CHECKING:
    from mind_mlir.image.image import Image
    from mind_mlir.ir.attributes import Array

T = TypeVar("T")

#: After so many calls from Python, native ones pay: compiling them takes as long as thousands of calls.
CALLS_BEFORE = 100

_TEXTS = ("call_arrays", "call")
_DIALECTS = ("arith", "cf", "func", "llvm", "scf")
_PASSES = """
inline, symbol-dce, cse, convert-scf-to-cf, convert-cf-to-llvm, convert-arith-to-llvm, convert-func-to-llvm
"""

_PYTHON_METHOD = "_call_python"
_METH_KEYWORDS, _METH_FASTCALL = 0x2, 0x80


class Called:
    """The base of classes whose method ``__call__`` has a native form.

    They define ``__call__`` and call the same function ``_call_python``. Their objects have a record once
    they may be called natively.
    """

    #: `call.mlir` finds the first slot by its place; CPython has them in the order of their names.
    __slots__ = ("_words", "_words_attempts")

    def __init__(self) -> None:
        #: The record's words, or None.
        self._words: Array | None = None
        self._words_attempts = Attempts(1, CALLS_BEFORE)

    def __copy__(self) -> Self:
        return self  # nothing about it can be changed

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def speed_up(self, make: Callable[[], object]) -> None:
        """Have ``make`` give this object its record, if calls are native; what it raises fails no call.

        This is for objects without one, after each call from Python that went well.
        """
        if _NativeCalls.available is None:
            _NativeCalls.attempts.take(enable)
        if _NativeCalls.available:
            self._words_attempts.take(make)

    def __init_subclass__(cls) -> None:
        """Give a class that comes later the native method, too."""
        super().__init_subclass__()
        if Called in cls.__bases__ and _NativeCalls.address is not None:
            _install(cls, _NativeCalls.address)


class _MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _NativeCalls:
    """The state of native calls in this process."""

    #: To make native code: after some calls from Python.
    attempts = Attempts(CALLS_BEFORE, CALLS_BEFORE)
    #: Whether there are native calls; None before that is known.
    available: bool | None = None
    #: Where the native method is, once there is one.
    address: int | None = None
    #: Its code, once that is at hand.
    image: Image | None = None


@held()
def enable() -> bool:
    """Make calls native now, if they can be here, and return whether they can.

    Two threads may do so at the same time; then either's code is in use.

    Raises:
        Exception: The system does not give what making or loading code takes, or a variable of the
            environment is wrong. Calls go on in Python, and this may be called again.
    """
    if _NativeCalls.available is None:
        text = _text()
        if text is None:
            _NativeCalls.available = False
            return False
        try:
            address = _load(text)
        except ImportError:  # without the bindings, as where bundles are run, calls go on in Python
            _NativeCalls.available = False
            return False
        for kind in Called.__subclasses__():
            _install(kind, address)
        _NativeCalls.available, _NativeCalls.address = True, address
    return _NativeCalls.available


def _is_exported(name: str) -> bool:
    """Return whether CPython's function ``name`` can be called from outside of it."""
    return hasattr(ctypes.pythonapi, name)


def own_image() -> tuple[str, Image] | None:
    """Return the text of the native method in this process, and its code; None where calls stay in Python.

    Raises:
        Exception: As `enable`; ImportError where the code is not at hand, and there are no bindings.
    """
    text = _text()
    return None if text is None else (text, _image(text))


def _text() -> str | None:
    """Return the text of the native method, or None where this interpreter does not have what it takes."""
    offsets, text = layout(), runtime_text(*_TEXTS)
    if offsets is None or not all(map(_is_exported, re.findall(r"@(Py\w+)", text))):
        return None
    return Template(text).substitute(WORDS, **offsets)


def _image(text: str) -> Image:
    if _NativeCalls.image is None:
        image = find_image(text, None)
        if image is None:
            image = _compile(text)
            keep_image(text, None, image)
        _NativeCalls.image = image
    return _NativeCalls.image


def _load(text: str) -> int:
    """Return the address of the native method."""
    image = _image(text)
    objects = {**addresses(), "mind.python_method": id(for_ever(sys.intern(_PYTHON_METHOD)))}
    return for_ever(Loaded(image, lambda name: objects.get(name) or _function(name))).address_of("mind_call")


def _compile(text: str) -> Image:
    from mind_mlir.codegen.library import compile_text  # noqa: PLC0415 -- as above
    from mind_mlir.mlir.bindings import ir, new_context  # noqa: PLC0415 -- which calls from Python do without
    from mind_mlir.mlir.passes import run_passes  # noqa: PLC0415 -- as above

    with new_context(_DIALECTS), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_passes(module, _PASSES)
        # A fifth is saved without LLVM's passes, and calls are as quick: MLIR has inlined everything.
        text = "\n".join(map(str, module.body.operations))
        return compile_text(text, opt_level=0, anywhere=True)


def _function(name: str) -> int | None:
    """Return where a function of CPython, or one of the C library, is."""
    if not _is_exported(name):
        return process_symbol(name)
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


def _install(kind: type[Called], address: int) -> None:
    taken = inspect.signature(kind.__call__).parameters.values()
    plain = inspect.Signature([each.replace(annotation=each.empty) for each in taken])
    doc = f"__call__{str(plain).replace('self', '$self', 1)}\n--\n\n{kind.__call__.__doc__}"
    definition = _MethodDefinition(b"__call__", address, _METH_FASTCALL | _METH_KEYWORDS, doc.encode())
    new_method = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        ("PyDescr_NewMethod", ctypes.pythonapi)
    )
    method = new_method(kind, ctypes.addressof(for_ever(definition)))
    setattr(kind, "__call__", method)  # noqa: B010 -- mypy wants no assignments to methods
