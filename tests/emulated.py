"""Programs compiled for AArch64 and run under an emulator, as images that `emulated_loader.c` maps."""

from __future__ import annotations

import importlib.util
import math
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.image.linking import link
from mind_mlir.packaging.objects import object_of
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.image.entry import Entry
    from mind_mlir.image.image import Image
    from mind_mlir.ir.module import Module
    from mind_mlir.target import Target

#: What runs code of AArch64, and what makes the program that loads it.
EMULATOR, COMPILER = "qemu-aarch64", "aarch64-linux-gnu-gcc"
_LIBRARIES = "/usr/aarch64-linux-gnu"
_LOADER = Path(__file__).with_name("emulated_loader.c")
_NAME_BYTES, _WORD = 64, 8
_SECONDS = 120
#: What the memory of an argument is for: an output, an input, and what nobody looks at.
_TAKEN, _GIVEN, _NEITHER = range(3)


def missing_tool() -> str | None:
    """Return the name of a program that running code of AArch64 lacks here, if any."""
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite"
    return next((tool for tool in (EMULATOR, COMPILER) if shutil.which(tool) is None), None)


@dataclass(frozen=True, slots=True)
class Crossed:
    """A program for AArch64.

    Attributes:
        image: Its code.
        entries: Its functions.
        data: The object that the image was linked of.
    """

    image: Image
    entries: tuple[Entry, ...]
    data: bytes


def crossed(module: Module, target: Target) -> Crossed:
    """Return a program for a target of another machine; one thread runs it."""
    made = object_of(module, CompileOptions(threads=1), library="lib", target=target)
    return Crossed(link([made.data]), made.entries, made.data)


def build_loader(folder: Path) -> Path:
    """Return the loader, which it builds in ``folder``."""
    program = folder / "loader"
    command = [COMPILER, "-std=c11", "-O1", "-Wall", "-Werror", "-o", str(program), str(_LOADER)]
    subprocess.run([*command, "-Wl,--no-as-needed", "-lm", "-ldl"], check=True)
    return program


def run_c(command: Sequence[str], processor: str = "max") -> bytes:
    """Run a program for AArch64 on an emulated processor, and return what it writes.

    Raises:
        CalledProcessError: It ends with another status than 0.
    """
    emulated = [EMULATOR, "-cpu", processor, "-L", _LIBRARIES, *command]
    return subprocess.run(emulated, stdout=subprocess.PIPE, check=True, timeout=_SECONDS).stdout


def run_crossed(
    loader: Path, program: Crossed, calls: Sequence[tuple[str, Sequence[Any]]]
) -> list[list[Any]]:
    """Call functions of a program under the emulator, and return the outputs of each call.

    Args:
        loader: What `build_loader` has made.
        program: The program.
        calls: Names of functions, and arrays for their parameters in order.

    Raises:
        CalledProcessError: The program does not end as it should.
    """
    entries = {entry.name: entry for entry in program.entries}
    image = program.image
    job = [_numbers(image.size, image.text, image.constants, len(image.memory)), bytes(image.memory)]
    job.append(_numbers(len(image.rebased), *image.rebased.tolist()))
    job.append(_numbers(len(image.imports)))
    for each in image.imports:
        job += [
            each.symbol.encode().ljust(_NAME_BYTES, b"\0"),
            _numbers(len(each.places), *each.places.tolist()),
        ]
    job.append(_numbers(len(calls)))
    for name, arrays in calls:
        job.append(_call(image, entries[name], arrays))
    with tempfile.TemporaryDirectory() as folder:
        written, answer = Path(folder, "job"), Path(folder, "answer")
        written.write_bytes(b"".join(job))
        run_c([str(loader), str(written), str(answer)])
        data = memoryview(answer.read_bytes())
    results = []
    for name, _ in calls:
        found, data = _outputs(entries[name], data)
        results.append(found)
    return results


def _numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def _call(image: Image, entry: Entry, arrays: Sequence[Any]) -> bytes:
    """Return a call: where the entry is, and the size of each argument, with its bytes where it is given."""
    pieces = []
    for array in arrays:
        data = np.ascontiguousarray(array).tobytes()
        pieces.append(_numbers(len(data), _GIVEN) + data + bytes(-len(data) % _WORD))
    pieces += [_numbers(size, _TAKEN) for size in _sizes(entry)]
    if entry.checks:
        pieces.append(_numbers(2 * _WORD * len(entry.checks), _NEITHER))
    pieces.append(_numbers(entry.scratch_bytes, _NEITHER))
    return _numbers(image.offset_of(entry.symbol), len(pieces)) + b"".join(pieces)


def _sizes(entry: Entry) -> list[int]:
    return [math.prod(each.type.extents) * each.type.dtype.itemsize for each in entry.outputs]


def _outputs(entry: Entry, data: memoryview) -> tuple[list[Any], memoryview]:
    found = []
    for output, size in zip(entry.outputs, _sizes(entry), strict=True):
        found.append(np.frombuffer(data[:size], output.type.dtype.numpy).reshape(output.type.extents))
        data = data[size:]
    return found, data
