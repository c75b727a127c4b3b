"""Arrays of other libraries, such as torch's tensors: dtypes that numpy lacks, and refusals."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import MindError


class Tensor:
    """What torch's tensors are for numpy."""

    def __init__(self, array: Any, dtype: str, *, requires_grad: bool = False) -> None:
        self.array, self.dtype, self.requires_grad = array, dtype, requires_grad

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor with conjugate bit set.")

    def __dlpack__(self) -> None:
        raise AssertionError("numpy lacks the dtype")

    def view(self, dtype: Any) -> Any:
        return self.array.view(dtype)


def test_tensors_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "othertorch", SimpleNamespace(int16=np.int16, uint8=np.uint8))
    twice = mind_mlir.jit(lambda x: x + x)
    for name in ("bfloat16", "float8_e4m3fn"):
        array = np.array([1, 2, 3], name)
        found = twice(Tensor(array, f"othertorch.{name}"))
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array + array)
    wrong = {
        "needs gradients.*pass x.detach()": Tensor(None, "othertorch.float32", requires_grad=True),
        "with conjugate bit set": Tensor(None, "othertorch.complex64"),
    }
    compiled = twice.lower(np.zeros(3, np.float32)).compile()
    for reason, tensor in wrong.items():
        for call, code in ((twice, "E2305"), (compiled, "E6105"), (lambda x: twice(1) + twice(x), "E2305")):
            with pytest.raises(MindError, match=reason) as caught:
                call(tensor)
            assert caught.value.code == code
