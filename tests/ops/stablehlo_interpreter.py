"""Runs StableHLO programs on the reference interpreter of the bindings, each in a process of its own.

The interpreter ends the process on what it does not support. A server that has loaded it forks for each
program, so that a program costs some milliseconds.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import TracebackType

Array = np.ndarray[Any, np.dtype[Any]]

SERVER = """
import os, pickle, sys
import numpy as np
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

def constant(array, spelled):
    type_ = ir.Type.parse(spelled)
    if array.dtype == np.bool_:
        words = str(array.tolist()).lower() if array.size else ""
        return ir.Attribute.parse(f"dense<{words}> : {spelled}")
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array).reshape(-1).view(np.uint8), type=type_)

def run(text, arguments):
    context = ir.Context()
    _stablehlo.register_dialect(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        given = [constant(array, spelled) for array, spelled in arguments]
        return [np.array(each) for each in _stablehlo.eval_module(module, given)]

source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
while True:
    try:
        text, arguments = pickle.load(source)
    except EOFError:
        break
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = run(text, arguments)
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        with os.fdopen(writer, "wb") as stream:
            pickle.dump(found, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    pickle.dump(pickle.loads(data) if data else "the interpreter ended the process", target)
    target.flush()
"""


class Interpreter:
    """The server; use it as a context manager.

    Attributes:
        count: How many programs have been run.
    """

    def __init__(self) -> None:
        self.count = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, text: str, arguments: list[tuple[Array, str]]) -> list[Array]:
        """Return the results of function main of a module.

        Raises:
            AssertionError: The interpreter refuses the program or ends.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.count += 1
        pickle.dump((text, arguments), self._process.stdin)
        self._process.stdin.flush()
        found = pickle.load(self._process.stdout)  # noqa: S301 -- from our own child
        assert not isinstance(found, str), f"{found}\n{text}"
        return list(found)
