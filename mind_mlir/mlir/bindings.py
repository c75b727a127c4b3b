"""The one module that imports the MLIR Python bindings.

Everything else says ``from mind_mlir.mlir.bindings import ir, linalg, ...``. The distribution is
``torch-mlir`` (namespace ``torch_mlir``); setting ``MIND_MLIR_BINDINGS=mlir`` selects upstream's namespace
instead where a build of it is installed. The bindings carry few type stubs, so their names are ``Any`` to the
type checker.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.mlir.later import put_off
from mind_mlir.mlir.stack import check_stack
from mind_mlir.support.interrupts import held

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The torch-mlir release that this compiler is tested with; MLIR promises no stable API between releases.
PINNED_VERSION = "20261001"

NAMESPACE = os.environ.get("MIND_MLIR_BINDINGS", "torch_mlir")


class BindingsError(ImportError):
    """The MLIR bindings are missing or of a version that this compiler does not know."""


def _check_version() -> None:
    if NAMESPACE not in ("torch_mlir", "mlir"):
        raise BindingsError(f"MIND_MLIR_BINDINGS must be 'torch_mlir' or 'mlir', not {NAMESPACE!r}")
    if NAMESPACE == "mlir":
        return  # a build of one's own: there is no release number to compare
    if _has_pinned():
        return
    import importlib.metadata  # noqa: PLC0415 -- takes 15 ms

    try:
        found = importlib.metadata.version("torch-mlir")
    except importlib.metadata.PackageNotFoundError:
        raise BindingsError(
            f"the MLIR bindings are not installed; run: pip install torch-mlir=={PINNED_VERSION}"
        ) from None
    if found.split("+")[0] != PINNED_VERSION:
        raise BindingsError(
            f"torch-mlir {found} is installed, but this release of mind-mlir is built for {PINNED_VERSION}; "
            f"run: pip install torch-mlir=={PINNED_VERSION}"
        )


def _has_pinned() -> bool:
    """Return whether the bindings that Python finds are of the release that pip has put beside them."""
    spec = importlib.util.find_spec(NAMESPACE)
    places = [] if spec is None else spec.submodule_search_locations or []
    return any(Path(f"{place}-{PINNED_VERSION}.dist-info").is_dir() for place in places)


@held()  # a dialect is registered once in a process, at whatever point its import ends
def _load(name: str) -> Any:
    return importlib.import_module(f"{NAMESPACE}.{name}")


_check_version()
check_stack()

#: Dialects of which no classes are asked for when MLIR is loaded: theirs would take half of that time.
_PUT_OFF = ("affine", "bufferization", "complex", "irdl", "linalg", "llvm", "math")
for _dialect in _PUT_OFF:
    put_off(f"{NAMESPACE}.dialects.{_dialect}")

ir: Any = _load("ir")
passmanager: Any = _load("passmanager")
execution_engine: Any = _load("execution_engine")

arith: Any = _load("dialects.arith")
complex_: Any = _load("dialects.complex")
func: Any = _load("dialects.func")
irdl: Any = _load("dialects.irdl")
# Functions and types alone: operations of these are created by `structured` and `llvm_operations`.
linalg: Any = _load("_mlir_libs._mlirDialectsLinalg")
llvm: Any = _load("_mlir_libs._mlirDialectsLLVM")
math: Any = _load("dialects.math")
memref: Any = _load("dialects.memref")
scf: Any = _load("dialects.scf")
tensor: Any = _load("dialects.tensor")
vector: Any = _load("dialects.vector")


#: Dialects whose operations have no classes in the bindings.
_CLASSLESS = ("chlo", "mind", "sdy", "stablehlo", "vhlo")


def _note_classless() -> None:
    """Let the bindings know the dialects without classes: else they search for these at each operation."""
    for dialect in _CLASSLESS:
        name = f"{NAMESPACE}.dialects.{dialect}"
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = ModuleType(name, "A dialect whose operations have no classes of their own.")


_note_classless()


def stablehlo() -> Any:
    """Return the bindings of StableHLO: dialect, passes, portable artifacts and reference interpreter.

    Raises:
        BindingsError: This build of the bindings has none.
    """
    try:
        return _load("_mlir_libs._stablehlo")
    except ImportError as error:
        raise BindingsError(f"the bindings '{NAMESPACE}' have no StableHLO: {error}") from error


PassManager: Any = passmanager.PassManager
MLIRError: Any = ir.MLIRError

# The bindings are untyped; these aliases say in signatures what is meant.
Context: TypeAlias = Any
Module: TypeAlias = Any
Operation: TypeAlias = Any
OpOperand: TypeAlias = Any
Value: TypeAlias = Any
Type: TypeAlias = Any
Attribute: TypeAlias = Any
Block: TypeAlias = Any
AffineExpr: TypeAlias = Any
AffineMap: TypeAlias = Any
MLIRLocation: TypeAlias = Any

#: The dialects that our stages use. Loading only these makes a context five times cheaper than loading all.
DIALECTS = (
    "affine",
    "arith",
    "bufferization",
    "cf",
    "complex",
    "func",
    "linalg",
    "llvm",
    "math",
    "memref",
    "scf",
    "tensor",
    "ub",
    "vector",
)


def new_context(dialects: Iterable[str] = DIALECTS, *, unregistered: bool = False) -> Context:
    """Return a fresh context with ``dialects`` loaded and multi-threading off.

    Python-defined verifiers and multi-threaded verification do not mix, and one context per compilation
    keeps compilations on different threads apart.

    Args:
        dialects: Names of dialects.
        unregistered: Accept operations of other dialects, too, and check nothing about them.
    """
    context = ir.Context(load_on_create_dialects=tuple(dialects))
    context.enable_multithreading(False)
    context.allow_unregistered_dialects = unregistered
    return context


def add_dialect_package(package: str) -> None:
    """Let the bindings look for the Python module of a dialect in ``package``, too."""
    if package not in ir._globals.dialect_search_modules:
        ir._globals.append_dialect_search_prefix(package)


class Handle(ctypes.Structure):
    """A handle of MLIR's C API: of a module, an attribute, an engine."""

    _fields_ = (("ptr", ctypes.c_void_p),)


class StringRef(ctypes.Structure):
    """`MlirStringRef` of MLIR's C API."""

    _fields_ = (("data", ctypes.c_char_p), ("length", ctypes.c_size_t))

    @classmethod
    def of(cls, text: str) -> StringRef:
        """Return a reference to ``text``."""
        data = text.encode()
        return cls(data, len(data))


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of MLIR's C API. It runs without the interpreter lock, which the bindings' own hold.

    Raises:
        BindingsError: The bindings do not show it.
    """
    try:
        found: Any = getattr(ctypes.CDLL(execution_engine._execution_engine.__file__), name)
    except (AttributeError, OSError) as error:
        raise BindingsError(f"the bindings '{NAMESPACE}' do not show {name}: {error}") from error
    found.argtypes, found.restype = arguments, result
    return found


def handle_of(thing: Any) -> Handle:
    """Return the handle of an object of the bindings; it is valid as long as that lives."""
    capsule = thing._CAPIPtr
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.argtypes, name.restype = (ctypes.py_object,), ctypes.c_char_p
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    return Handle(pointer(capsule, name(capsule)))


def raw_elements(attribute: Any, itemsize: int) -> bytes:
    """Return the data of a `DenseElementsAttr`, also of element types that numpy lacks; of a splat, once.

    Args:
        attribute: A `DenseElementsAttr`; it is not empty.
        itemsize: The bytes of an element.

    Raises:
        BindingsError: The bindings do not show the data.
    """
    data_of = c_function("mlirDenseElementsAttrGetRawData", ctypes.c_void_p, Handle)
    count = 1 if attribute.is_splat else len(attribute)
    return ctypes.string_at(data_of(handle_of(attribute)), count * itemsize)
