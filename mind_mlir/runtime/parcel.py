"""`Parcel`: an executable as a pickle holds it, its machine code with the module that it was made of.

    parcel  ::= header, facts, code, module, image*, piece*
    header  ::= what the envelope of the cache says of these parts: no bit of them can change without notice
    facts   ::= JSON: the release that made it, the options, which images and pieces are what
    code    ::= a program as `CompiledCode.to_parts` writes it, without its data; empty where none can travel
    module  ::= a pickle of the module, whose large literals are pieces
    image   ::= machine code of the runtime itself that calls need
    piece   ::= a large constant as it is, which stands here once, whoever refers to it

Code, module and images are compressed, to a third: schedulers send them with each call.

Who unpickles one reads nothing of it before it is used: the code then, and the module where somebody asks for
that. Who hands it on, as a scheduler does, never looks inside.
"""

from __future__ import annotations

import json
import pickle
import threading
import zlib
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.cache.envelope import digest_of, header
from mind_mlir.diagnostics import ArtefactError, Diagnostic
from mind_mlir.diagnostics.display import clipped
from mind_mlir.image.compiled import CompiledCode
from mind_mlir.image.errors import CodeError
from mind_mlir.image.loading import host_machine
from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL, operations_of
from mind_mlir.passes.forms import without_custom_calls
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.carried_images import accept_images, carried_images
from mind_mlir.support.options import CompileOptions
from mind_mlir.support.version import VERSION
from mind_mlir.target import missing_features, refused_features

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function, Module

    Part: TypeAlias = bytes | memoryview
    #: Header, facts, code, module, images, pieces.
    Parts: TypeAlias = tuple[bytes, bytes, bytes, bytes, tuple[bytes, ...], tuple[Part, ...]]

#: Stands where entries of the cache have their key.
_KEY = digest_of(b"mind_mlir parcel").hexdigest()
#: The first protocol of pickles that hands large buffers to others.
_OUT_OF_BAND = 5
#: The types of the parts.
_KINDS = [bytes, bytes, bytes, bytes, tuple, tuple]
#: Of zlib's levels, the one that is quick: others gain a tenth.
_LEVEL = 1


class _Pickled:
    """The base of what is pickled as the parts of a parcel."""

    def parts(self) -> Parts:
        """Return what is pickled."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        from mind_mlir.runtime.executable import received  # noqa: PLC0415 -- which holds one of these

        *parts, pieces = self.parts()
        wrapped = map(pickle.PickleBuffer, pieces) if protocol >= _OUT_OF_BAND else map(bytes, pieces)
        return received, (*parts, tuple(wrapped))


class Parcel(_Pickled):
    """An executable that has been made here, as others get it; nothing is written before it is pickled."""

    def __init__(
        self, module: Module, options: CompileOptions, entry: str | None, code: CompiledCode | None = None
    ) -> None:
        """Hold what an executable is made of; there is no code of one that runs operations one by one."""
        self._made = module, options, entry, code
        self._parts: Parts | None = None

    @property
    def module(self) -> Module:
        """Return the module, as it was given."""
        return self._made[0]

    def parts(self) -> Parts:
        """Return what is pickled."""
        if self._parts is None:
            self._parts = _parts(*self._made)
        return self._parts


class ReceivedParcel(_Pickled):
    """A parcel that came with a pickle.

    Attributes:
        lock: Held by who opens it.
    """

    def __init__(self, parts: Parts) -> None:
        """Hold the parts; nothing is read yet (E6501: they are those of no parcel)."""
        if [type(each) for each in parts] != _KINDS:
            raise _damaged("it has another form than this release writes")
        self._parts = parts
        self.lock = threading.RLock()

    def parts(self) -> Parts:
        """Return what is pickled: the same again."""
        return self._parts

    @property
    def digest(self) -> bytes:
        """Return what tells it from others."""
        return self._parts[0]

    @property
    def size(self) -> int:
        """Return how many bytes it has."""
        _, facts, code, module, images, pieces = self._parts
        return sum(memoryview(each).nbytes for each in (facts, code, module, *images, *pieces))

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """Return what the parcel says of itself.

        Raises:
            ArtefactError: E6501, it is damaged.
        """
        try:
            if bytes(self.digest) != _header(*self._parts[1:]):
                raise _damaged("its bytes were changed after it was written")
            facts: dict[str, Any] = json.loads(self._parts[1])
        except (TypeError, ValueError) as error:  # what no pickle of ours holds
            raise _damaged(str(error)) from None
        return facts

    @property
    def entry(self) -> str | None:
        """Return the function that a call runs, where that is not ``main`` or the only one."""
        found: str | None = self._facts["entry"]
        return found

    @cached_property
    def options(self) -> CompileOptions:
        """Return what the caller chose."""
        given = {name: _hashable(value) for name, value in self._facts["options"].items()}
        try:
            return CompileOptions(**{**given, "disabled_passes": frozenset(given["disabled_passes"])})
        except (KeyError, TypeError):  # of a release that has other options
            raise self._of_another_release() from None

    @cached_property
    def module(self) -> Module:
        """Return the module, as it was given."""
        literals = [self._parts[5][place] for place in self._facts["literals"]]
        try:
            module: Module = pickle.loads(_unpacked(self._parts[3]), buffers=literals)  # noqa: S301 -- a pickle held it
        except Exception as error:
            if self._facts["release"] == VERSION:
                raise
            raise self._of_another_release() from error
        return module

    def code(self) -> CompiledCode | None:
        """Return the code, or None where none came along.

        Raises:
            ArtefactError: E6501, the parcel is damaged; E6502, this process does not run its code.
        """
        facts, (_, _, written, _, images, pieces) = self._facts, self._parts
        if not written:
            return None
        if facts["release"] != VERSION:
            raise self._of_another_release()
        try:
            data = [memoryview(pieces[place]) for place in facts["data"]]
            code = CompiledCode.from_bytes(_unpacked(written), data)
            if code.image.machine != host_machine():
                raise _foreign(f"the machine {code.image.machine}", f"this machine is {host_machine()}")
            if missing := missing_features(code.features):
                refused = refused_features() if any(name.startswith("amx") for name in missing) else ""
                lacking = "; ".join(filter(None, (f"this one lacks {', '.join(missing)}", refused)))
                raise _foreign(f"a processor with {', '.join(missing)}", lacking)
            accept_images(dict(zip(facts["images"], map(_unpacked, images), strict=True)))
        except CodeError as error:
            raise _damaged(str(error)) from None
        return code

    def _of_another_release(self) -> ArtefactError:
        return _foreign(f"mind_mlir {self._facts['release']}", f"this is mind_mlir {VERSION}")


def _parts(module: Module, options: CompileOptions, entry: str | None, code: CompiledCode | None) -> Parts:
    """Return the parts of the parcel of an executable."""
    pieces = _Pieces()
    literals: list[int] = []
    written = pickle.dumps(
        module, _OUT_OF_BAND, buffer_callback=lambda each: literals.append(pieces.place(each.raw()))
    )
    if code is not None and (options.debug or _calls_functions(module)):
        code = None
    data = [] if code is None else [pieces.place(memoryview(each.data)) for each in code.data]
    images = {} if code is None else carried_images(code)
    facts = {
        "release": VERSION,
        "options": {each.name: _plain(getattr(options, each.name)) for each in fields(options)},
        "entry": entry,
        "data": data,
        "literals": literals,
        "images": list(images),
    }
    text = json.dumps(facts, separators=(",", ":")).encode()
    program = b"" if code is None else _packed(b"".join(code.to_parts(with_data=False)))
    parts = text, program, _packed(written), tuple(map(_packed, images.values())), tuple(pieces.found)
    return (_header(*parts), *parts)


def _calls_functions(module: Module) -> bool:
    """Return whether code of a module calls functions of this process, whose addresses are a part of it."""

    def calls(functions: Sequence[Function]) -> bool:
        return any(op.opcode == CUSTOM_CALL for each in functions for op in operations_of(each.blocks))

    return calls(module.functions) and calls(without_custom_calls(verify(module)).functions)


class _Pieces:
    """Large constants, each of which is found once."""

    def __init__(self) -> None:
        self.found: list[Part] = []
        self._places: dict[bytes, int] = {}

    def place(self, piece: memoryview) -> int:
        """Return the place of a constant, which is added where it is not there yet."""
        place = self._places.setdefault(digest_of(piece).digest(), len(self.found))
        if place == len(self.found):
            self.found.append(piece.toreadonly())
        return place


def _header(
    facts: bytes, code: bytes, module: bytes, images: Sequence[bytes], pieces: Sequence[Part]
) -> bytes:
    return header(_KEY, [facts, code, module, *images, *pieces])


def _packed(data: bytes) -> bytes:
    return zlib.compress(data, _LEVEL)


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise _damaged(str(error)) from None


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _damaged(reason: str) -> ArtefactError:
    return ArtefactError(
        Diagnostic(
            "E6501",
            f"cannot load a pickled executable: {clipped(reason)}",
            help="pickle it again, with the same release of mind_mlir, and send its bytes as they are",
            context={"path": "a pickle", "reason": reason},
        )
    )


def _foreign(needed: str, found: str) -> ArtefactError:
    return ArtefactError(
        Diagnostic(
            "E6502",
            f"a pickled executable holds code that does not run here: it needs {clipped(needed)}",
            notes=(found,),
            help="compile it for the least processor among the machines, as with target='avx2' or "
            "MIND_MLIR_TARGET=avx2; or install torch-mlir here, to compile it anew",
            context={"path": "a pickle", "needed": needed, "found": found},
        )
    )
