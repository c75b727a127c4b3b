"""Bundles in Python: numpy is all that loading and calling one takes.

The object of a bundle is linked here, without the system's linker, and so the machine code that runs is the
same that C programs run.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.display import brief, display_path
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.image.entry import Entry, check_entries
from mind_mlir.image.errors import CodeError, LoadingError
from mind_mlir.image.image import WORD
from mind_mlir.image.linking import link
from mind_mlir.image.loading import host_machine
from mind_mlir.ir.entry import DEFAULT_ENTRY
from mind_mlir.packaging.errors import damaged, foreign, missing_tool
from mind_mlir.packaging.manifest import MANIFEST, MOST_BYTES, Manifest, digest_of
from mind_mlir.packaging.pool import RUNNER
from mind_mlir.packaging.weights import fixed_for
from mind_mlir.runtime.function import CompiledFunction, native_function
from mind_mlir.runtime.function_set import FunctionSet
from mind_mlir.runtime.native import NativeModule
from mind_mlir.runtime.threads import shared_pool
from mind_mlir.support import argument_checks
from mind_mlir.support.artefact_kinds import OBJECT
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.interrupts import held
from mind_mlir.support.notebooks import shown_by
from mind_mlir.target import missing_features, refused_features

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array


class Bundle(FunctionSet):
    """Compiled functions from a bundle; `mind_mlir.load_bundle` returns one.

    Called, it is its function ``main``, or the only one; ``bundle["f"]`` is any of them. They are called as
    those of an `Executable`: calls check their arguments, never write to them, and return fresh arrays, or
    write to those that ``out=`` gives. It pickles as its path.

    Attributes:
        path: The directory.
        library: What the names of its C functions begin with.
        machine: The machine that it is for.
        features: What its code needs of the processor, as Linux calls it.
        entries: What its functions take, return and check, by name, in the order of the program.
        functions: Its functions, in the same way.
        default: That which a call runs: ``main``, or the only one; None where there is neither.
    """

    _repr_html_ = shown_by("programs.bundle")

    def __init__(
        self,
        path: str,
        manifest: Manifest,
        native: NativeModule,
        weights: Mapping[str, Array] | None = None,
    ) -> None:
        """Hold what `load_bundle` has loaded.

        Raises:
            CodeError: Weights do not fit the functions.
            KeyError: The code has no such function as the manifest says.
            TypeError: An argument is of another kind: only `load_bundle` makes these.
        """
        argument_checks.expect(manifest, Manifest, "manifest", "the manifest of a bundle")
        argument_checks.expect(native, NativeModule, "native", "native code (mind_mlir.load_bundle loads it)")
        made = {entry.name: _callable(entry, native, path, weights or {}) for entry in manifest.entries}
        functions = FrozenDict(made)
        entries = FrozenDict(
            {entry.name: replace(entry, parameters=made[entry.name].parameters) for entry in manifest.entries}
        )
        alone = next(iter(functions.values())) if len(functions) == 1 else None
        super().__init__(functions, functions.get(DEFAULT_ENTRY, alone))
        self.path = argument_checks.text(path, "path")
        self.library, self.machine, self.features = manifest.library, manifest.machine, manifest.features
        self.entries: Mapping[str, Entry] = entries

    def __repr__(self) -> str:
        return f"<Bundle {brief(self.path)}: {self._names()}>"

    def __reduce__(self) -> tuple[Callable[[str], Bundle], tuple[str]]:
        return load_bundle, (self.path,)


@public
def load_bundle(path: object, *, check_weights: bool = False) -> Bundle:
    """Load a bundle, which `mind_mlir.package` or ``mind-mlir compile --emit=bundle`` has written.

    Needs numpy only, and ml_dtypes for programs with bf16, fp8 or integers of 4 bits. A bundle is code: load
    those alone whose origin you trust. Digests tell what was changed by accident, not who wrote it.

    Args:
        path: The directory, a string or `os.PathLike`.
        check_weights: Whether a file of weights is read whole and compared with its digest; else its size
            and its head are compared, and it is mapped.

    Raises:
        ArtefactError: E6501, it is no bundle, or a byte of it was changed, lost or added; E6502, it is for
            another machine, or this processor lacks instructions that it uses; E6503, its dtypes need
            ml_dtypes, which is not installed.
        UnsupportedError: E7104, a policy of the system lets no new code run.
        TypeError: ``path`` is no path, or ``check_weights`` no truth value.
        ValueError: The variable ``MIND_MLIR_NUM_THREADS`` is wrong.
        MemoryError: There is no memory for it.
    """
    place = argument_checks.path(path, "path")
    whole = argument_checks.flag(check_weights, "check_weights")
    try:
        manifest, files, weights = read_bundle(Path(place), check_weights=whole)
    except ImportError as error:  # a dtype of an input or output
        raise missing_tool(
            "ml_dtypes",
            f"'{display_path(place)}' has arrays of bf16, fp8 or integers of 4 bits, which need ml_dtypes",
            "install it: pip install ml_dtypes",
            [str(error)],
        ) from None
    if manifest.machine != host_machine():
        raise foreign(place, f"the machine {manifest.machine}", host_machine())
    if missing := missing_features(manifest.features):
        refused = refused_features() if any(name.startswith("amx") for name in missing) else ""
        found = "; ".join(filter(None, (f"without {', '.join(missing)}", refused)))
        raise foreign(place, f"a processor with {', '.join(missing)}", found)
    try:
        return Bundle(str(Path(place).absolute()), manifest, _native(manifest, files[OBJECT]), weights)
    except LoadingError as error:
        raise foreign(place, f"another system: {error}", f"{platform.system()} on {host_machine()}") from None
    except CodeError as error:
        raise damaged(place, f"its code cannot be used: {error}") from None


@held()
def _native(manifest: Manifest, code: bytes) -> NativeModule:
    """Return the code of a bundle in memory.

    Raises:
        CodeError: It cannot be loaded, or is not what the manifest says.
    """
    image = link([code])
    check_entries(manifest.entries, image)
    native = NativeModule(image)
    places = {symbol.name: symbol.offset for symbol in image.symbols}
    if RUNNER in places:
        configure = f"{manifest.library}_set_num_threads"
        if not (image.writable <= places[RUNNER] <= image.size - WORD and configure in places):
            raise CodeError("its pool of threads has another form")
        runner = ctypes.c_void_p.from_address(native.address_of(RUNNER))
        runner.value = shared_pool(runner.value or 0, native.address_of(configure), native)
    return native


def _callable(
    entry: Entry, native: NativeModule, path: str, weights: Mapping[str, Array]
) -> CompiledFunction:
    """Return a function of a bundle, which takes what are no weights."""
    fixed = fixed_for(entry, weights)
    code = native_function(native, entry, fixed)
    rest = tuple([each for place, each in enumerate(entry.parameters) if place not in fixed])
    taken = replace(entry, parameters=rest)
    return CompiledFunction(taken, code, lambda _: None, (_function, (path, entry.name)))


def _function(path: str, name: str) -> CompiledFunction:
    """Return what a pickled function stands for."""
    return load_bundle(path)[name]


#: How often a bundle is read that somebody replaces meanwhile.
_ATTEMPTS = 50


def read_bundle(
    path: Path, *, check_weights: bool = False
) -> tuple[Manifest, dict[str, bytes], Mapping[str, Array]]:
    """Return what a bundle says of itself, its files by what they are, and its weights.

    A bundle that is replaced while it is read is read again: what is returned comes from one bundle.

    Raises:
        ArtefactError: E6501, it is not as it was written.
        MemoryError: There is no memory for a file.
    """
    for attempt in range(_ATTEMPTS):
        try:
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            raise damaged(path, "there is nothing of that name") from None
        except NotADirectoryError:
            raise damaged(path, "a bundle is a directory") from None
        except (OSError, ValueError) as error:  # such as a NUL character in the path
            raise damaged(path, getattr(error, "strerror", None) or str(error)) from None
        try:
            return _read(directory, check_weights=check_weights)
        except CodeError as error:
            if attempt == _ATTEMPTS - 1 or not _is_replaced(path, directory):
                raise damaged(path, str(error)) from None
        finally:
            os.close(directory)
    raise AssertionError("the last attempt returns or raises")


def _is_replaced(path: Path, directory: int) -> bool:
    """Return whether ``path`` is another directory now than that which is open."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(directory))
    except OSError:
        return True


def _read(directory: int, *, check_weights: bool) -> tuple[Manifest, dict[str, bytes], Mapping[str, Array]]:
    """Return what is in an open directory: its files are those of one bundle, whatever takes its name."""
    manifest = Manifest.from_bytes(_contents(directory, MANIFEST, MOST_BYTES, exactly=False))
    files = {}
    for role, file in manifest.files.items():
        data = _contents(directory, file.name, file.size, exactly=True)
        if digest_of(data) != file.digest:
            raise CodeError(f"{file.name} was changed after it was written")
        files[role] = data
    described = manifest.weights
    return manifest, files, described.mapped(directory, whole=check_weights) if described else {}


def _contents(directory: int, name: str, size: int, *, exactly: bool) -> bytes:
    """Return the bytes of a file, which has ``size`` of them, or at most so many."""
    try:
        # What is no file, such as a pipe that nobody writes to, must not be waited for.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=directory)
    except FileNotFoundError:
        raise CodeError(f"{name} is missing") from None
    except OSError as error:
        raise CodeError(f"{name} cannot be read: {error.strerror}") from None
    with contextlib.ExitStack() as open_files:
        open_files.callback(os.close, descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CodeError(f"{name} is no file")
        if status.st_size > size or (exactly and status.st_size != size):
            what = f"{size}" if exactly else f"at most {size}"
            raise CodeError(f"{name} has {status.st_size} bytes instead of {what}")
        try:
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(size + 1)
        except OSError as error:
            raise CodeError(f"{name} cannot be read: {error.strerror}") from None
    if len(data) != status.st_size:
        raise CodeError(f"{name} was changed while it was read")
    return data
