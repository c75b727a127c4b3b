"""Bundles and kept code that are damaged on purpose, under digests that are right again.

So the damage reaches those who read deepest. Whatever it is, loading ends in one of our errors or goes well,
and takes no more memory than files of this size are worth; nothing is called.

Arguments: a seed, and how many of each kind.
"""

from __future__ import annotations

import json
import random
import resource
import struct
import sys
import tempfile
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from mind_mlir.cache.codes import read_code
from mind_mlir.image import elf
from mind_mlir.image.errors import CodeError
from mind_mlir.packaging.manifest import MANIFEST, BundleFile, sealed
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.native import NativeModule
from mind_mlir.support.artefact_kinds import OBJECT

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.image.compiled import CompiledCode

PROGRAM = """\
func @pick(%x: tensor<f32[4, 3]>, %i: tensor<i64[2]>) -> (tensor<f32[2, 3]>) {
^entry:
  %y = Gather (%x, %i) : tensor<f32[2, 3]>
  return %y
}
func @main(%x: tensor<f32[4, 3]>, %n: tensor<i32[3]>, %d: tensor<i32[]>) -> (tensor<f32[4]>, tensor<i32[3]>) {
^entry:
  %e = Exp (%x) : tensor<f32[4, 3]>
  %s = Sum (%e) {axes=[1], keepdims=false} : tensor<f32[4]>
  %q = Div (%n, %d) : tensor<i32[3]>
  return %s, %q
}
"""
#: What loading may take besides what the process has already.
ROOM = 512 << 20
NUMBERS = (
    *(0, 1, 2, 7, 8, 63, 4095, 4096, 65535, 65536),
    *(1 << 31, (1 << 32) - 1, 1 << 62, 1 << 63, (1 << 64) - 1),
)
VALUES: tuple[Any, ...] = (
    *(-1, 1.5, True, None, "", "x", "../x", "\0", "\ud800", "f" * 5000, [], {}, [[]], [0] * 9, {"a": [1]}),
    *(*NUMBERS, 10**30),
)


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Return bytes that differ from ``data`` somewhere, mostly at both ends: there objects have tables."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        size = draw.choice((1, 2, 4, 8))
        span = min(len(found), draw.choice((64, 4096, len(found))))
        at = draw.choice((0, len(found) - span)) + draw.randrange(max(1, span - size)) // size * size
        kind = draw.randrange(10)
        if kind < 6:
            number = draw.choice((*NUMBERS, len(data), len(data) - 1, draw.randrange(len(data))))
            found[at : at + size] = struct.pack("<Q", number)[:size]
        elif kind < 8:
            found[at] ^= 1 << draw.randrange(8)
        elif kind == 8:
            other = draw.randrange(len(found))
            found[at : at + 64] = found[other : other + 64]
        else:
            del found[at : at + draw.choice((1, 24, 64, len(found)))]
        if len(found) < 8:
            break
    return bytes(found)


def misstated(data: bytes, draw: random.Random) -> bytes:
    """Return an object of which some fields of its tables are others."""
    found = bytearray(data)
    header = np.frombuffer(found, elf._HEADER, 1)
    sections = np.frombuffer(found, elf._SECTION, int(header["section_count"][0]), int(header["sections"][0]))
    tables = [header, sections, sections]
    for section in sections:
        dtype = {2: elf._SYMBOL, 4: elf._RELOCATION}.get(int(section["kind"]))
        if dtype is not None and section["size"]:
            rows = int(section["size"]) // dtype.itemsize
            tables.append(np.frombuffer(found, dtype, rows, int(section["offset"])))
    for _ in range(draw.choice((1, 1, 2, 4))):
        table = draw.choice(tables)
        name = draw.choice(table.dtype.names or ())
        if name == "ident":
            continue
        row, bits = draw.randrange(len(table)), 8 * table.dtype[name].itemsize
        number = draw.choice((*NUMBERS, int(table[name][row]) + draw.choice((-1, 1, 8)), len(data)))
        table[name][row] = np.uint64(number % (1 << bits)).astype(table.dtype[name])
    return bytes(found)


def changed(fields: Any, draw: random.Random) -> Any:
    """Return data of JSON that differs from ``fields`` in one place."""
    fields = json.loads(json.dumps(fields))
    place: Any = fields
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = draw.choice(list(keys))
        inner = place[key]
        if isinstance(inner, (dict, list)) and len(inner) and draw.random() < 0.85:
            place = inner
            continue
        kind = draw.randrange(8)
        if kind == 0:
            del place[key]
        elif kind == 1 and isinstance(place, list):
            place.append(inner)
        elif kind == 2 and isinstance(inner, int):
            place[key] = inner + draw.choice((-1, 1, 8, 4096))
        else:
            place[key] = draw.choice(VALUES)
        return fields


def load_object(folder: Path, fields: Any, name: str, whole: bytes, draw: random.Random) -> None:
    """Load a bundle whose object is damaged."""
    data = draw.choice((damaged, misstated))(whole, draw)
    file = BundleFile.of(name, data)
    fields["files"][OBJECT] |= {"bytes": file.size, "sha256": file.digest}
    (folder / name).write_bytes(data)
    (folder / MANIFEST).write_bytes(sealed(fields))
    mind_mlir.load_bundle(folder)


def load_manifest(folder: Path, fields: Any, draw: random.Random) -> None:
    """Load a bundle whose manifest says something else."""
    (folder / MANIFEST).write_bytes(sealed(changed(fields, draw)))
    mind_mlir.load_bundle(folder)


def load_kept(parts: list[bytes], module: mind_mlir.Module, draw: random.Random) -> None:
    """Load kept code whose header says something else, or whose bytes are others."""
    length = int.from_bytes(parts[0][:8], "little")
    header = json.loads(parts[0][8 : 8 + length])
    behind = b"".join(parts[1:])
    if draw.random() < 0.8:
        text = json.dumps(changed(header, draw)).encode()
        content = len(text).to_bytes(8, "little") + text
        content += bytes(-len(content) % 64) + behind[len(parts[1]) if len(parts[0]) % 64 else 0 :]
    else:
        content = damaged(b"".join(parts), draw)
    code = read_code(memoryview(bytes(64) + content))
    NativeModule(code.image, code.data)


def try_all(kind: str, count: int, load: Callable[[random.Random], None], seed: str) -> int:
    """Return how many of ``count`` attempts were errors of ours; print what was something else."""
    refused = 0
    for number in range(count):
        try:
            load(random.Random(f"{seed} {kind} {number}"))  # noqa: S311 -- of damage
        except (mind_mlir.ArtefactError, CodeError):
            refused += 1
        except BaseException:
            print(f"{kind} {number}: {traceback.format_exc()}")
    return refused


def main(seed: str, count: int) -> None:
    """Damage files in ``count`` ways of each kind."""
    module = mind_mlir.parse(PROGRAM, "net.ir")
    with tempfile.TemporaryDirectory() as name:
        folder = mind_mlir.package(module, Path(name, "net"), threads=1, debug=True)
        mind_mlir.load_bundle(folder)
        fields = json.loads((folder / MANIFEST).read_bytes())
        del fields["sha256"]
        file = fields["files"][OBJECT]["name"]
        whole = (folder / file).read_bytes()
        made: list[CompiledCode] = []
        keep = Executable._load

        def load_and_tell(self: Executable, code: CompiledCode) -> Any:
            made.append(code)
            return keep(self, code)

        Executable._load = load_and_tell  # type: ignore[method-assign] # to see the code
        mind_mlir.compile(module, cache=False)
        parts = [bytes(part) for part in made[0].to_parts()]
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
        loads: dict[str, Callable[[random.Random], None]] = {
            "manifest": partial(load_manifest, folder, fields),
            "kept": partial(load_kept, parts, module),
            "object": lambda draw: load_object(folder, json.loads(json.dumps(fields)), file, whole, draw),
        }
        for kind, load in loads.items():
            refused = try_all(kind, count, load, seed)
            print(f"{kind}: {refused} of {count} refused", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
