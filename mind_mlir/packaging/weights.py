"""Weights outside of code: the file that a bundle maps, which lies in it or elsewhere."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.arguments.tensors import bind
from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.image.entry import Entry, count, item, items
from mind_mlir.image.errors import CodeError
from mind_mlir.ir.entry import exported
from mind_mlir.ir.interface import Parameter, interface_of
from mind_mlir.ir.types import DType
from mind_mlir.models.weights.errors import UnknownType, WeightsProblem, unreadable
from mind_mlir.models.weights.loading import contents_of, load_weights
from mind_mlir.models.weights.mapped_file import MappedFile
from mind_mlir.models.weights.safetensors import header_of
from mind_mlir.packaging.errors import unsupported
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module

#: What the name of a file of weights in a bundle ends with.
ENDING = ".safetensors"
#: Of a file that is not read whole, so much is compared with its digest: more than its head, mostly.
_HEAD_BYTES = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """What a manifest says of a file of weights.

    Attributes:
        file: Its name in the bundle, or its path, seen from the bundle.
        size: How many bytes it has.
        digest: Their SHA-256, in hexadecimal digits.
        head_digest: That of the first of them, a mebibyte at most.
        names: The tensors that are parameters of functions of the same names.
    """

    file: str
    size: int
    digest: str
    head_digest: str
    names: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as what JSON has."""
        return {
            "file": self.file,
            "bytes": self.size,
            "sha256": self.digest,
            "head_sha256": self.head_digest,
            "names": list(self.names),
        }

    @classmethod
    def from_json(cls, data: object) -> WeightsFile:
        """Return what `to_json` made ``data`` of; a `CodeError` where it made something else."""
        digests = item(data, "sha256", str), item(data, "head_sha256", str)
        names = tuple(items(data, "names"))
        if not all(map(_DIGEST.match, digests)) or not all(isinstance(name, str) for name in names):
            raise CodeError("what it says of a file of weights is malformed")
        return cls(item(data, "file", str), count(data, "bytes"), *digests, names)

    def mapped(self, directory: int, *, whole: bool) -> dict[str, Array]:
        """Return the weights, seen from the open ``directory`` of the bundle.

        Args:
            directory: The descriptor of the directory.
            whole: Whether all of the file is read, and compared with its digest.

        Raises:
            CodeError: They are not those that the bundle was written for.
        """
        try:
            file = MappedFile(self.file, directory)
            if file.size != self.size:
                raise CodeError(f"{self.file} has {file.size} bytes instead of {self.size}")
            compared = file.size if whole else min(file.size, _HEAD_BYTES)
            with memoryview(file.bytes_in_place(compared)) as data:
                found = hashlib.sha256(data).hexdigest()
            if found != (self.digest if whole else self.head_digest):
                raise CodeError(f"{self.file} was changed after the bundle was written")
            tensors = contents_of(file, dequantize=True).tensors
            if missing := [name for name in self.names if name not in tensors]:
                raise CodeError(f"{self.file} has no weights '{missing[0]}'")
            return {name: np.asarray(tensors[name]()) for name in self.names}
        except (WeightsProblem, UnknownType) as error:
            raise CodeError(f"{self.file}: {error}") from None


def fixed_for(entry: Entry, weights: Mapping[str, Array]) -> dict[int, Array]:
    """Return the weights of a function by the places of its parameters (CodeError: one does not fit)."""
    fixed: dict[int, Array] = {}
    for place, parameter in enumerate(entry.parameters):
        array = weights.get(parameter.name)
        if array is None:
            continue
        try:
            (fixed[place],) = bind([parameter], (array,), {})
        except ArgumentError as error:
            raise CodeError(error.diagnostics[0].message) from None
    return fixed


@dataclass(frozen=True, slots=True)
class GivenWeights:
    """Weights that a bundle is to be written with.

    Attributes:
        arrays: Those that functions take, by name.
        file: Where they are already; None where the bundle is to have them.
    """

    arrays: Mapping[str, Array]
    file: str | None

    def described(self, library: str, bundle: Path) -> tuple[WeightsFile, dict[str, Sequence[memoryview]]]:
        """Return what the manifest says of them, and the file that is written beside it, if any, by name."""
        names = tuple(self.arrays)
        if self.file is not None:
            return _referred(self.file, bundle, names), {}
        # The widest elements come first, so that all lie where the processor reads them.
        order = sorted(names, key=lambda name: -self.arrays[name].dtype.itemsize)
        types = {name: (DType.from_numpy(self.arrays[name].dtype), self.arrays[name].shape) for name in order}
        parts = [memoryview(header_of({name: (_known(d), shape) for name, (d, shape) in types.items()}))]
        parts += [self.arrays[name].reshape(-1).view(np.uint8).data for name in order]
        whole, head, left = hashlib.sha256(), hashlib.sha256(), _HEAD_BYTES
        for part in parts:
            whole.update(part)
            head.update(part[:left])
            left -= min(left, part.nbytes)
        size = sum(part.nbytes for part in parts)
        file_name = f"{library}{ENDING}"
        described = WeightsFile(file_name, size, whole.hexdigest(), head.hexdigest(), names)
        return described, {file_name: parts}


def _referred(path: str, bundle: Path, names: tuple[str, ...]) -> WeightsFile:
    """Return what a manifest says of a file that stays where it is."""
    where = os.path.relpath(os.path.realpath(path), bundle.resolve())
    try:
        with Path(path).open("rb") as file:
            head = hashlib.sha256(file.read(_HEAD_BYTES)).hexdigest()
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from None
    return WeightsFile(where, size, digest, head, names)


def _known(dtype: DType | None) -> DType:
    assert dtype is not None, "arguments are of dtypes that there are"
    return dtype


def given_weights(module: Module, weights: object) -> GivenWeights:
    """Return weights for the parameters of the exported functions of a module that are called as they are.

    Args:
        module: The module.
        weights: Arrays by name, each for a parameter; or the path of a file that stays where it is.

    Raises:
        ArgumentError: E6102, a name is no parameter, or none of the file's is; E6103, E6104, E6105: an array
            does not fit.
        ArtefactError: E6505, E6506: the file cannot be read; E6504, it is an index of several.
        TypeError: It is neither.
    """
    functions = [interface_of(function).parameters for function in exported(module)]
    known = list(dict.fromkeys(each.name for parameters in functions for each in parameters))
    if isinstance(weights, (str, os.PathLike)):
        path = argument_checks.path(weights, "weights")
        found = load_weights(path, dequantize=True)
        if found.path != os.path.abspath(path) or _is_index(path):  # noqa: PTH100 -- as `Weights.path` is made
            raise unsupported("weights", "a bundle refers to one file of weights, not to several")
        given = {name: found[name] for name in known if name in found}
        if not given:
            advice = f"the inputs are: {', '.join(known) or 'none'}"
            raise ArgumentError(Diagnostic("E6102", "the file has weights for no input", help=advice))
        return GivenWeights(_checked(functions, given), path)
    expected = "a mapping from names to arrays, or the path of a file"
    mapping = argument_checks.mapping(weights, "weights", expected)
    named = {argument_checks.text(name, "each name in weights"): value for name, value in mapping.items()}
    if unknown := [name for name in named if name not in known]:
        message = f"weights '{unknown[0]}' are no input{did_you_mean(unknown[0], known)}"
        raise ArgumentError(
            Diagnostic("E6102", message, help=f"the inputs are: {', '.join(known) or 'none'}")
        )
    return GivenWeights(_checked(functions, named), None)


def _is_index(path: str) -> bool:
    if Path(path).is_dir():
        return True
    try:
        with Path(path).open("rb") as file:
            return file.read(1) == b"{"
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from None


def _checked(functions: Sequence[Sequence[Parameter]], given: Mapping[str, object]) -> dict[str, Array]:
    """Return the arrays as calls read them; each function's are checked against its parameters."""
    found: dict[str, Array] = {}
    for parameters in functions:
        taken = [each for each in parameters if each.name in given]
        arrays = bind(taken, (), {each.name: given[each.name] for each in taken})
        found |= dict(zip((each.name for each in taken), arrays, strict=True))
    return found
