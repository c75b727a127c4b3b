"""Digests of what compiled programs compute: no bit may change where only the code is made better.

    python tests/digests.py --write FILE    on the tree before the change
    python tests/digests.py --against FILE  on the tree after it; ends with 1 where a digest differs

The programs are the examples, the examples of every operation and their gradients, and 500 networks, graphs
and attentions, some of them with their gradients. They are compiled for AVX2, so that the same bits are
expected of every processor that has it. Which bits a NaN has is not compared. `tests/digests.json` is of an
earlier tree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import zlib
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
FOLDERS = ("", "ops", "properties", "languages/mind")
sys.path[:0] = [str(ROOT), *(str(TESTS / folder) for folder in FOLDERS)]

import harness  # noqa: E402 -- of the folders above
import networks  # noqa: E402 -- of the folders above
import programs_of_mind as mind  # noqa: E402 -- of the folders above
from layers import layers  # noqa: E402 -- of the folders above

import mind_mlir  # noqa: E402 -- of the path that is given, or the one installed
from mind_mlir import DType, MindError, Module, TensorType  # noqa: E402 -- like that
from mind_mlir.ops.example_types import dtypes_of  # noqa: E402 -- like that
from mind_mlir.ops.registry import all_ops  # noqa: E402 -- like that
from mind_mlir.support import pytrees  # noqa: E402 -- like that

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    #: A name, a program, and what it is run with: numbers of its parameters' types where nothing is said.
    Run = tuple[str, Module, Mapping[str, Any]]

KEPT = TESTS / "digests.json"
#: How many programs are generated.
GENERATED = 500


def runs() -> Iterator[Run]:
    """Yield all programs by their names."""
    for path in sorted((ROOT / "examples").rglob("*.ir")):
        yield str(path.relative_to(ROOT)), mind_mlir.load(path), {}
    yield from of_mind()
    for record in sorted(all_ops(), key=lambda record: record.opcode):
        if record.collective:  # what these compute, `tests/ops/test_collectives.py` knows to the last bit
            continue
        chosen = dtypes_of(record)
        uses = harness.uses_of(record, DType.F32 if DType.F32 in chosen else chosen[0])
        for number, use in enumerate(uses):
            yield from of_use(f"{record.opcode} {number}", use)
    kinds = (networks.attentions, networks.graphs, layers)
    for number in range(GENERATED):
        kind = kinds[number % len(kinds)]
        module = kind(Random(number))  # noqa: S311 -- a program, the same each time
        if number % 2 and kind is not layers:
            module = mind_mlir.differentiate(module, cotangents="given").module
        yield f"{kind.__name__} {number}", module, {}


def of_mind() -> Iterator[Run]:
    """Yield functions of the `.mind` examples, in f64."""
    random = np.random.default_rng(1)
    state = {"params": mind.mlp_params(random), "velocity": mind.mlp_params(random)}
    text, following = random.integers(0, 11, (2, 3, 5))
    plate = mind.drawn(random, 6, 7)
    matrix = mind.symmetric(np.array([4.0, 2.0, 0.5, 0.25]), random)
    functions: list[tuple[str, str, dict[str, Any]]] = [
        (
            "mlp",
            "step",
            {"s": state, "x": mind.drawn(random, 5, 3), "y": mind.drawn(random, 5, 2), "rate": 0.1},
        ),
        ("heat", "diffuse", {"start": plate, "rate": 0.2, "steps": 5}),
        ("heat", "look_back", {"start": plate, "seen": plate + 1, "rate": 0.2, "steps": 4}),
        ("newton", "speed", {"mean": 1.25, "eccentricity": 0.6}),
        ("newton", "minimum", {"a": 3.0}),
        ("power_iteration", "sensitivity", {"a": matrix, "start": np.ones(4), "tolerance": 1e-14}),
        ("transformer", "learn", {"p": mind.transformer_model(random), "text": text, "next": following}),
    ]
    for file, function, arguments in functions:
        source = (ROOT / "examples" / f"{file}.mind").read_text(encoding="utf-8")
        program = mind_mlir.parse(source.replace("f32", "f64"), f"{file}.mind", format="mind")
        module = mind_mlir.compile(program, function=function).lower(**arguments).module
        named: dict[str, Any] = {}
        for parameter, each in arguments.items():
            leaves, form = pytrees.flatten(each)
            named.update(zip(form.names(parameter), leaves, strict=True))
        yield f"examples/{file}.mind {function}", module, named


def of_use(name: str, use: harness.Use) -> Iterator[Run]:
    """Yield an example of an operation, and its gradient where it has one."""
    if not use.types:
        return
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    given = {
        f"x0_{index}": each if each.size else np.zeros([max(extent, 1) for extent in each.shape], each.dtype)
        for index, each in enumerate(harness.random_operands(use, rng))
    }
    module = harness.build([use])
    yield name, module, given
    try:
        gradient = mind_mlir.differentiate(module, cotangents="given", extensions=True).module
    except MindError:
        return
    yield f"{name} gradient", gradient, given


def argument(rng: np.random.Generator, type_: TensorType) -> Any:
    """Return numbers of a type: small ones, where they are integers."""
    numbers = rng.standard_normal(type_.extents)
    dtype = type_.dtype.numpy
    if type_.dtype is DType.I1:
        return numbers < 0.7
    if np.issubdtype(dtype, np.integer):
        return np.abs(numbers * 2).astype(dtype)
    return numbers.astype(dtype)


def digest(module: Module, given: Mapping[str, Any]) -> str:
    """Return the digest of the results of a module, or what is raised in their place."""
    try:
        compiled = mind_mlir.compile(module, target="avx2", threads=1, cache=False)
        rng = np.random.default_rng(1)
        arguments = {**{each.name: argument(rng, each.type) for each in compiled.parameters}, **given}
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
    found = {name: digest(module, given) for name, module, given in runs()}
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
