"""Digests of what compiled programs compute: no bit may change where only the code is made better.

    python tests/digests.py --write FILE    on the tree before the change
    python tests/digests.py --against FILE  on the tree after it; ends with 1 where a digest differs

The programs are the examples, the example of every operation, and 500 networks, graphs and attentions, some
of them with their gradients. They are compiled for AVX2, so that the same bits are expected of every
processor that has it. Which bits a NaN has is not compared. `tests/digests.json` is of an earlier tree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
sys.path[:0] = [str(each) for each in (ROOT, TESTS, TESTS / "ops", TESTS / "properties")]

import networks  # noqa: E402 -- of the folder above
from harness import parse_type  # noqa: E402 -- of the folder above
from layers import layers  # noqa: E402 -- of the folder above

import mind_mlir  # noqa: E402 -- of the path that is given, or the one installed
from mind_mlir import Builder, DType, MindError, Module, TensorType  # noqa: E402 -- like that
from mind_mlir.ops.registry import all_ops  # noqa: E402 -- like that

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ops.opdef import Example, OpDef

KEPT = TESTS / "digests.json"
#: How many programs are generated.
GENERATED = 500


def programs() -> Iterator[tuple[str, Module]]:
    """Yield all programs by their names."""
    for path in sorted((ROOT / "examples").rglob("*.ir")):
        yield str(path.relative_to(ROOT)), mind_mlir.load(path)
    for record in sorted(all_ops(), key=lambda record: record.opcode):
        for number, example in enumerate(record.examples):
            module = of_example(record, example)
            if module is not None:
                yield f"{record.opcode} {number}", module
    kinds = (networks.attentions, networks.graphs, layers)
    for number in range(GENERATED):
        kind = kinds[number % len(kinds)]
        module = kind(Random(number))  # noqa: S311 -- a program, the same each time
        if number % 2 and kind is not layers:
            module = mind_mlir.differentiate(module, cotangents="given").module
        yield f"{kind.__name__} {number}", module


def of_example(record: OpDef, example: Example) -> Module | None:
    """Return an example of an operation as a program, or None where one operation is none."""
    builder = Builder()
    operands = []
    try:
        for index, text in enumerate(example.operands):
            dtype = DType.F32 if DType.F32 in record.operand(index).dtypes else DType.SI64
            operands.append(builder.input(f"x{index}", parse_type(text, dtype)))
        attributes: dict[str, Any] = dict(example.attributes)
        return builder.build([builder.emit(record.opcode, *operands, **attributes)])
    except (MindError, TypeError, ValueError):
        return None


def argument(rng: np.random.Generator, type_: TensorType) -> Any:
    """Return numbers of a type: small ones, where they are integers."""
    numbers = rng.standard_normal(type_.extents)
    dtype = type_.dtype.numpy
    if type_.dtype is DType.I1:
        return numbers < 0.7
    if np.issubdtype(dtype, np.integer):
        return np.abs(numbers * 2).astype(dtype)
    return numbers.astype(dtype)


def digest(module: Module) -> str:
    """Return the digest of the results of a module, or what is raised in their place."""
    try:
        compiled = mind_mlir.compile(module, target="avx2", threads=1, cache=False)
        if "main" not in compiled.functions:
            return "no main"
        rng = np.random.default_rng(1)
        arguments = {each.name: argument(rng, each.type) for each in compiled.parameters}
        results = compiled(**arguments)
    except MindError as error:
        return str(error).partition("\n")[0]
    hashed = hashlib.sha256()
    for each in results:
        found = np.ascontiguousarray(each)
        if found.dtype.kind not in "iub":
            wide = found.astype(np.complex128)
            found = np.where(np.isnan(wide), np.complex128(0), wide)
            hashed.update(np.isnan(wide).tobytes())
        hashed.update(f"{each.dtype} {each.shape}".encode() + found.tobytes())
    return hashed.hexdigest()[:12]


def main() -> int:
    """Run as the module says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the digests")
    parser.add_argument("--against", type=Path, metavar="FILE", default=KEPT, help="what they shall be")
    options = parser.parse_args()
    found = {name: digest(module) for name, module in programs()}
    if options.write is not None:
        options.write.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
        print(f"{len(found):,} digests are in {options.write}")
        return 0
    kept = json.loads(options.against.read_text(encoding="utf-8"))
    others = [name for name in {**kept, **found} if kept.get(name) != found.get(name)]
    for name in others:
        print(f"{name}: {found.get(name)}, was {kept.get(name)}")
    print(f"{len(found) - len(others):,} of {len(found):,} digests are those of {options.against}")
    return bool(others)


if __name__ == "__main__":
    sys.exit(main())
