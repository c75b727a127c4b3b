"""ONNX's own tests of operators, run through `from_onnx`: what agrees, what is refused, and what differs."""

from __future__ import annotations

import pkgutil
import warnings
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import mind_mlir
from mind_mlir.diagnostics import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Tests whose results are random numbers, which have a dtype and a shape alone.
RANDOM = ("bernoulli", "training_dropout")
#: Tests whose results were made with narrower numbers than ours: of a transform there and back in f32.
_ROUNDED = ("dft_inverse",)
#: Tests of random numbers that are none: nothing is dropped.
_NOT_RANDOM = ("zero_ratio",)


class Outcome(NamedTuple):
    """What came of a test: it ``passed``, was ``refused`` with a reason, or ``failed``."""

    name: str
    verdict: str
    reason: str = ""


@cache
def cases(*, quick: bool = False) -> dict[str, Any]:
    """Return the tests by name; the package makes them in memory.

    The tests of pooling take three quarters of the time; ``quick`` leaves them out.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import node  # noqa: PLC0415 -- makes all tests when they are asked for

        if not quick:
            return {case.name: case for case in node.collect_testcases(None)}
        for module in pkgutil.iter_modules(node.__path__):
            if not module.name.endswith("pool"):
                import_module(f"{node.__name__}.{module.name}")
        return {case.name: case for case in node._NodeTestCases}  # what importing them has made


def run(name: str, *, quick: bool = False, **options: Any) -> Outcome:
    """Run a test, and say what came of it."""
    case = cases(quick=quick)[name]
    try:
        model = mind_mlir.from_onnx(case.model, **options)
        for given, wanted in case.data_sets:
            found = model(*map(_plain, given))
            difference = _difference(
                name, case, _listed(found, len(wanted)), [_plain(each) for each in wanted]
            )
            if difference:
                return Outcome(name, "failed", difference)
    except UnsupportedError as error:
        return Outcome(name, "refused", str(error.diagnostics[0].message))
    except Exception as error:  # whatever it is, the test fails
        return Outcome(name, "failed", f"{type(error).__name__}: {error}".replace("\n", " ")[:400])
    return Outcome(name, "passed")


def _plain(value: Any) -> Any:
    if hasattr(value, "SerializeToString"):
        from onnx import numpy_helper  # noqa: PLC0415 -- few values are protos

        name = type(value).__name__
        if name == "SequenceProto":
            return numpy_helper.to_list(value)
        return numpy_helper.to_optional(value) if name == "OptionalProto" else numpy_helper.to_array(value)
    return list(value) if isinstance(value, tuple) else value


def _listed(found: Any, count: int) -> Sequence[Any]:
    return found if isinstance(found, tuple) and count != 1 else (found,)


def _difference(name: str, case: Any, found: Sequence[Any], wanted: Sequence[Any]) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} results in the place of {len(wanted)}"
    atol = max(case.atol, 1e-6) if any(word in name for word in _ROUNDED) else case.atol
    is_random = any(word in name for word in RANDOM) and not any(word in name for word in _NOT_RANDOM)
    for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
        text = _of_values(one, other, case.rtol, atol, is_random=is_random)
        if text:
            return f"result {at}: {text}"
    return ""


def _of_values(one: Any, other: Any, rtol: float, atol: float, *, is_random: bool) -> str:
    if isinstance(other, list):
        if not isinstance(one, list) or len(one) != len(other):
            return "another sequence"
        texts = (_of_values(a, b, rtol, atol, is_random=is_random) for a, b in zip(one, other, strict=True))
        return next(filter(None, texts), "")
    if other is None or one is None:
        return "" if one is other else "an optional that is empty, or is not"
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype}{list(one.shape)} in the place of {other.dtype}{list(other.shape)}"
    if is_random:
        return ""
    if one.dtype.kind not in "fciub":
        # Two units in the last place of bf16, as the package's own runner allows.
        rtol = max(rtol, 2**-6) if one.dtype.name == "bfloat16" else rtol
        one, other = one.astype(np.float32), other.astype(np.float32)
    try:
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""
