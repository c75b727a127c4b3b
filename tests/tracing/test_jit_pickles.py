"""Copies and pickles of functions that `mind_mlir.jit` returns."""

from __future__ import annotations

import copy
import io
import marshal
import pickle
from types import CellType, FunctionType
from typing import Any

import numpy as np
import pytest

from mind_mlir import TracingError, jit
from mind_mlir.runtime.staged_method import StagedMethod


class Weighted:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @jit
    def loss(self, x: Any) -> Any:
        return (x * x).sum() * self.factor


@jit
def doubled(x: Any) -> Any:
    return x + x


def cubed(x: Any) -> Any:
    return x**3


def test_copies_and_pickles() -> None:
    assert copy.deepcopy(doubled) is doubled
    assert pickle.loads(pickle.dumps(doubled)) is doubled  # noqa: S301 -- our own
    again = pickle.loads(pickle.dumps(jit(cubed, check_nan=True)))  # noqa: S301 -- our own
    assert (again.options.check_nan, float(again(2.0))) == (True, 8)
    with pytest.raises((pickle.PicklingError, AttributeError), match=r"Can't (pickle|get) .*lambda"):
        pickle.dumps(jit(lambda x: x))
    with pytest.raises(TracingError, match="a pickle asks for the numbers"):
        jit(lambda x: pickle.dumps([x]))(np.ones(3, np.float32))


class ByValue(pickle.Pickler):
    """Takes functions that other processes do not know apart, as cloudpickle does; those alone."""

    def reducer_override(self, thing: Any) -> Any:
        if not isinstance(thing, FunctionType) or "<locals>" not in thing.__qualname__:
            return NotImplemented
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return rebuilt, (marshal.dumps(thing.__code__), thing.__name__, thing.__qualname__, cells)


def rebuilt(code: bytes, name: str, qualified: str, cells: list[Any]) -> Any:
    made = FunctionType(marshal.loads(code), globals(), name, None, tuple(map(CellType, cells)))  # noqa: S302 -- ours
    made.__qualname__ = qualified
    return made


def test_functions_that_no_other_process_knows_are_pickled_by_value() -> None:
    factor = 3.0

    @jit(static_argnames="count")
    def scaled(x: Any, count: int) -> Any:
        return doubled(x) * factor * count

    things: tuple[Any, ...] = (scaled, scaled.grad(), Weighted(1.0).loss)
    for thing in things:
        data = io.BytesIO()
        ByValue(data).dump(thing)
        again = pickle.loads(data.getvalue())  # noqa: S301 -- our own
        args = (np.float32(2),) if isinstance(thing, StagedMethod) else (np.float32(2), 5)
        np.testing.assert_array_equal(again(*args), thing(*args))
        pickle.Pickler.dump(ByValue(io.BytesIO()), again)
    assert pickle.loads(pickle.dumps(Weighted.loss)) is Weighted.loss  # noqa: S301 -- our own
