"""Runs programs that check themselves, as StableHLO's own interpreter tests do, through the compiler.

    python tests/languages/stablehlo/suite.py DIR...          # or: make stablehlo DIR=...

Each ``.mlir`` file in the directories holds programs, divided by ``// -----``. What a program's
``check.expect_...`` operations look at becomes its result, which is interpreted and compiled in a process of
its own, and compared with what they expect. Prints a line for each kind of outcome, and leaves with 1 where a
program fails or ends its process.
"""

from __future__ import annotations

import collections
import os
import pickle
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mind_mlir
import mind_mlir.interpreter
import mind_mlir.runtime.compilation  # here rather than in each child
from mind_mlir.languages.stablehlo.parsing import new_context
from mind_mlir.languages.stablehlo.rules.types import Unsupported, tensor_type
from mind_mlir.languages.stablehlo.rules.types import literal as elements
from mind_mlir.mlir.bindings import ir

_CHECK = re.compile(
    r"^\s*check\.(\w+)\s+(?:(%[\w#$.-]+),\s*(dense<[^%]*>)\s*:\s*(tensor<[^{}%]*?>)|.*?)\s*$",
    re.MULTILINE,
)
_FUNCTION = re.compile(
    r"(func\.func\s+(?:public\s+|private\s+)?@[\w.$-]+\(\))(\s*(?:attributes\s*\{[^}]*\}\s*)?\{)"
)
_END = re.compile(r"^\s*(?:func\.)?return\s*$", re.MULTILINE)
#: How near floats have to be that need only be near, by the bytes of an element; 1e-3 is the check's own.
_NEAR = {1: 0.13, 2: 0.02, 4: 1e-3, 8: 1e-3}
#: A program that takes longer than this many seconds has failed.
_LIMIT = 60


class NotRun(Exception):  # noqa: N818 -- an outcome rather than an error
    """A program that says something else than what a value is to be."""


@dataclass(frozen=True)
class Outcome:
    """What came of a program: ``pass``, ``unsupported`` or ``fail``, and why."""

    kind: str
    why: str = ""


def rewritten(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a program whose checked values are its results, and for each the check and the numbers."""
    checks, results, types = [], [], []
    for check, value, numbers, type_ in _CHECK.findall(text):
        if check not in ("expect_eq_const", "expect_almost_eq_const") or not value:
            raise NotRun(f"check.{check}")
        results.append(value)
        types.append(type_)
        checks.append((check, f"{numbers} : {type_}"))
    if not checks:
        raise NotRun("nothing is checked")
    body = _CHECK.sub("", text)
    first = text.index("check.")
    heads = [each for each in _FUNCTION.finditer(body) if each.start() < first]
    ends = list(_END.finditer(body))
    if not heads or not ends:
        raise NotRun("a function with arguments")
    head = heads[-1]
    end = next(each for each in ends if each.start() > head.start())
    listed = ", ".join(types)
    body = f"{body[: end.start()]}\n  func.return {', '.join(results)} : {listed}{body[end.end() :]}"
    return f"{body[: head.start()]}{head[1]} -> ({listed}){head[2]}{body[head.end() :]}", checks


def check(text: str) -> Outcome:
    """Run a program both ways, and compare what it gives with what it expects."""
    try:
        program, checks = rewritten(text)
        with new_context():
            expected = [_expected(literal) for _, literal in checks]
        module = mind_mlir.from_stablehlo(program)
    except NotRun as reason:
        return Outcome("unsupported", f"the test: {reason}")
    except Unsupported as reason:
        return Outcome("unsupported", str(reason))
    except mind_mlir.UnsupportedError as error:
        return Outcome("unsupported", "; ".join(_reason(each.message) for each in error.diagnostics[:2]))
    except mind_mlir.ParseError as error:
        return Outcome("unsupported", f"the bindings do not parse it: {error.diagnostics[0].message[:60]}")
    compiled = mind_mlir.compile(module)
    name = next(each.name for each in module.functions if each.public and not each.parameters)
    for way, found in (
        ("interpreted", mind_mlir.interpret(module, {}, function=name)),
        ("compiled", compiled[name]()),
    ):
        for (kind, _), one, other in zip(checks, found, expected, strict=True):
            if not agree(kind, np.asarray(one), other):
                return Outcome("fail", f"{way}: {one!r} rather than {other!r}")
    return Outcome("pass")


def _expected(literal: str) -> Any:
    numbers, _, spelled = literal.rpartition(" : ")
    type_ = tensor_type(ir.Type.parse(spelled))
    if type_.element_count == 0:
        return np.zeros(type_.extents, type_.dtype.numpy)
    return np.broadcast_to(elements(f"{numbers} : ", type_)[0], type_.extents)


def _reason(message: str) -> str:
    """Return a finding without its places."""
    return re.sub(r" \([^)]*\)", "", message)


def agree(kind: str, found: Any, expected: Any) -> bool:
    """Return whether an array is as a check wants it."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if kind == "expect_eq_const":
        both = np.array_equal(found, expected)
        same = found == expected
        return both or bool(np.all(same | (np.isnan(found) & np.isnan(expected))))
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    bytes_ = found.dtype.itemsize // (2 if found.dtype.kind == "c" else 1)
    near = _NEAR[bytes_]
    return bool(np.allclose(found.astype(wide), expected.astype(wide), rtol=near, atol=near, equal_nan=True))


def guarded(text: str) -> Outcome:
    """Check a program in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_LIMIT)
        try:
            outcome = check(text)
        except BaseException as error:
            outcome = Outcome("fail", f"{type(error).__name__}: {error}"[:300])
        with os.fdopen(writer, "wb") as stream:
            pickle.dump(outcome, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(child, 0)
    if not data:
        return Outcome("fail", f"the process ended with {os.waitstatus_to_exitcode(status)}")
    found = pickle.loads(data)  # noqa: S301 -- from our own child
    assert isinstance(found, Outcome)
    return found


def programs(path: Path) -> list[tuple[str, str]]:
    """Return the programs in a file, and what each is called."""
    parts = re.split(r"^// -----.*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [(f"{path.name}:{number}", part) for number, part in enumerate(parts) if part.strip()]


def main(directories: list[str]) -> int:
    """Run all programs below some directories, and print the scoreboard."""
    files = sorted(path for directory in directories for path in Path(directory).rglob("*.mlir"))
    if not files:
        print("give a directory with .mlir files: make stablehlo DIR=stablehlo/stablehlo/tests/interpret")
        return 2
    reasons: collections.Counter[str] = collections.Counter()
    count: collections.Counter[str] = collections.Counter()
    for path in files:
        for name, text in programs(path):
            outcome = guarded(text)
            count[outcome.kind] += 1
            if outcome.kind == "unsupported":
                reasons[outcome.why] += 1
            elif outcome.kind == "fail":
                print(f"FAIL {name}: {outcome.why}")
    for why, number in sorted(reasons.items(), key=lambda each: (-each[1], each[0])):
        print(f"{number:5}  {why}")
    print(f"pass {count['pass']}, unsupported {count['unsupported']}, fail {count['fail']}")
    return 1 if count["fail"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
