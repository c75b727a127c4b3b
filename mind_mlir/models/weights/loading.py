"""`load_weights`: tensors of files by their names, mapped rather than read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.models.weights.errors import UnknownType, WeightsProblem, unknown_type, unreadable
from mind_mlir.models.weights.gguf import MAGIC, read_gguf
from mind_mlir.models.weights.mapped_file import MappedFile
from mind_mlir.models.weights.numpy_files import ARCHIVE_MAGIC, ARRAY_MAGIC, read_npy, read_npz
from mind_mlir.models.weights.safetensors import (
    INDEX,
    SINGLE,
    looks_like_safetensors,
    read_index,
    read_safetensors,
)
from mind_mlir.models.weights.tensors import Contents, Weight
from mind_mlir.support import argument_checks, pytrees
from mind_mlir.support.frozen import FrozenDict


class Weights(Mapping[str, "Weight"]):
    """The tensors of a file by their names; `load_weights` returns them.

    Each is an array that cannot be written to, or a `QuantizedWeights`. It is made when it is first asked
    for, as a view of the mapped file: what no program reads takes no memory, and processes that map one file
    share its pages. It is an argument of functions that are traced as a dict is, and pickles as its path.

    Attributes:
        path: The file.
        format: What it is: ``safetensors``, ``GGUF``, ``npz`` or ``npy``.
        metadata: What else it says: texts of safetensors; of GGUF numbers, texts, and lists of them.
    """

    def __init__(self, path: str, contents: Contents, *, dequantize: bool = False) -> None:
        """Hold what `load_weights` has read.

        Raises:
            TypeError: An argument is not of the type above.
        """
        self.path = argument_checks.text(path, "path")
        self.format = argument_checks.expect(contents, Contents, "contents", "the contents of a file").format
        self.metadata: Mapping[str, Any] = FrozenDict(contents.metadata)
        self._makers = contents.tensors
        self._dequantize = argument_checks.flag(dequantize, "dequantize")
        self._made: dict[str, Weight] = {}

    def __getitem__(self, name: str) -> Weight:
        """Return the tensor of a name.

        Raises:
            KeyError: There is none.
            ArtefactError: E6505, E6506: it is damaged, or of a type that cannot be read.
        """
        if name not in self._made:
            self._made[name] = _diagnosed(self.path, self._makers[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        counted = argument_checks.counted(self._makers, "tensor")
        return f"<Weights {brief(self.path)}: {counted}, {self.format}>"

    def __reduce__(self) -> tuple[Callable[..., Weights], tuple[str]]:
        return partial(load_weights, dequantize=self._dequantize), (self.path,)


pytrees.register_mapping(Weights)


@public
def load_weights(path: object, *, dequantize: bool = False) -> Weights:
    """Map the weights of a model: a mapping from the names of tensors to arrays that cannot be written to.

    The format is told by what is in the file: safetensors, the index in JSON of several such files, GGUF, an
    ``.npz`` archive or an ``.npy`` array. Nothing is read but its head, and nothing is copied: arrays are
    views of the file as the system maps it, except for those that lie at odd places, are compressed, or are
    not in row-major order, of which a copy is made once. bf16 and fp8 are ml_dtypes'. The file must not be
    changed as long as arrays of it are in use; who makes it shorter ends the process.

    Args:
        path: The file, or a directory with ``model.safetensors.index.json`` or ``model.safetensors``.
        dequantize: Whether quantised tensors of GGUF become arrays of f32, each when it is asked for. Else
            those of Q8_0 and Q4_0 are `QuantizedWeights`, and others are refused.

    Raises:
        ArtefactError: E6505, there is no such file, it is damaged, or of no format above; E6506, it has
            tensors of a type that is not read.
        UnsupportedError: E7003, a layout needs the package gguf, which is not installed.
        TypeError: An argument is not of the type above.
    """
    place = argument_checks.path(path, "path")
    dequantize = argument_checks.flag(dequantize, "dequantize")
    contents = _diagnosed(place, lambda: _contents(place, dequantize=dequantize))
    return Weights(str(Path(place).absolute()), contents, dequantize=dequantize)


def _contents(place: str, *, dequantize: bool) -> Contents:
    if place and "\0" not in place and Path(place).is_dir():
        found = next((name for name in (INDEX, SINGLE) if Path(place, name).exists()), None)
        if found is None:
            raise WeightsProblem(f"the directory has neither {INDEX} nor {SINGLE}")
        place = str(Path(place, found))
    return contents_of(MappedFile(place), dequantize=dequantize)


def contents_of(file: MappedFile, *, dequantize: bool) -> Contents:
    """Return what is in a file of any format.

    Raises:
        WeightsProblem: It is damaged, or of no format that is known.
        UnknownType: It has tensors of a type that is not read.
        UnsupportedError: E7003, the package gguf is needed, and not installed.
    """
    head = file.bytes(0, min(file.size, 8))
    if head.startswith(MAGIC):
        return read_gguf(file, dequantize=dequantize)
    if head.startswith(ARRAY_MAGIC):
        return read_npy(file)
    if head.startswith(ARCHIVE_MAGIC):
        return read_npz(file)
    if looks_like_safetensors(file):
        return read_safetensors(file)
    if head.lstrip().startswith(b"{"):
        return read_index(file)
    raise WeightsProblem("it is of no format that is known")


def _diagnosed(path: str, make: Callable[[], Any]) -> Any:
    """Return what ``make`` does; what it finds wrong is a diagnostic about the file at ``path``."""
    try:
        return make()
    except WeightsProblem as problem:
        raise unreadable(path, str(problem)) from None
    except UnknownType as problem:
        raise unknown_type(path, problem) from None
