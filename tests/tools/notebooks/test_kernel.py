"""A real kernel: the notebook of the examples runs, errors show diagnostics, interrupts end what runs.

It takes the extra ``notebook``, which `make test-notebooks` installs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
jupyter_client = pytest.importorskip("jupyter_client")

pytestmark = pytest.mark.filterwarnings("default")  # of libraries that are no part of the other tests

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "examples" / "tour.ipynb"
#: Seconds within which a kernel says something.
PATIENCE = 120
PREPARED = """
import numpy as np
import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.support import progress

def deep(x, count):
    for number in range(count):
        x = mnp.tanh(x * number + 1) + mnp.cumsum(x, axis=1)
    return x

x = np.ones((3, 5), np.float32)
twice = mind_mlir.jit(lambda x: x * 2)
"""


class Kernel:
    """A kernel, and what it says."""

    def __init__(self) -> None:
        self.manager = jupyter_client.KernelManager()
        self.manager.start_kernel(cwd=str(ROOT))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def run(self, code: str, *, interrupt_at: str | None = None) -> tuple[str, list[dict[str, Any]]]:
        """Run a cell, and return how it ended and what it has shown; interrupt it when it prints a word."""
        wanted = self.client.execute(code)
        messages: list[dict[str, Any]] = []
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != wanted:
                continue
            messages.append(message)
            if message["msg_type"] == "stream" and message["content"]["text"].strip() == interrupt_at:
                self.manager.interrupt_kernel()
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while (reply := self.client.get_shell_msg(timeout=PATIENCE))["parent_header"]["msg_id"] != wanted:
            pass
        return reply["content"].get("ename", reply["content"]["status"]), messages

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    found = Kernel()
    try:
        assert found.run(PREPARED)[0] == "ok"
        yield found
    finally:
        found.close()


def texts(messages: list[dict[str, Any]], kind: str) -> list[str]:
    return [each["content"]["data"].get(kind, "") for each in messages if "data" in each["content"]]


def test_the_notebook_of_the_examples_runs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    client = nbclient.NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3")
    client.execute(cwd=str(NOTEBOOK.parent))
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    html = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert len(html) >= 4
    assert all(each.startswith('<div class="mind-mlir">') for each in html)
    (error,) = [output for output in shown if output.output_type == "error"]
    assert error.ename == "VerificationError"
    assert "error[E3001]" in re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback))


def test_an_error_shows_the_diagnostic_and_no_stack(kernel: Kernel) -> None:
    status, messages = kernel.run("def wrong():\n    return mnp.add(x, np.ones(4, np.float32))\n\nwrong()")
    assert status == "VerificationError"
    (error,) = [each["content"]["traceback"] for each in messages if each["msg_type"] == "error"]
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in error]
    assert "\x1b[1;31m" in "".join(error)
    assert re.fullmatch(r"  Cell In\[\d+\], line 4: wrong\(\)", plain[1])
    assert plain[3].startswith("error[E3001]")
    assert not any("mind_mlir/" in line for line in plain)


def test_a_long_compilation_shows_how_far_it_is(kernel: Kernel) -> None:
    code = (
        "progress._AFTER, progress._EVERY = 0.0, 0.001\nmind_mlir.jit(deep, static_argnames='count')(x, 8); 0"
    )
    status, messages = kernel.run(code)
    assert status == "ok"
    shown = [text for text in texts(messages, "text/html") if "<progress" in text]
    assert any("(" in text and "operations): " in text for text in shown)
    (first, *updates) = [each for each in messages if each["msg_type"].endswith("display_data")]
    assert first["msg_type"] == "display_data"
    assert {each["msg_type"] for each in updates} == {"update_display_data"}
    assert updates[-1]["content"]["data"] == {"text/plain": "", "text/html": ""}
    kernel.run("progress._AFTER, progress._EVERY = 1.0, 0.25")


@pytest.mark.parametrize(
    "work",
    [
        "mind_mlir.jit(deep, static_argnames='count')(x, 30 + n % 30)",  # another program each time
        "twice(x)",
        "spin(np.int64(10**13))",  # for days
    ],
)
def test_an_interrupt_ends_what_runs_and_leaves_all_usable(kernel: Kernel, work: str) -> None:
    spin = "spin = mind_mlir.jit(lambda n: mind_mlir.fori_loop(0, n, lambda i, s: s * 0.5 + i, 0.0))\n"
    code = f"{spin}spin(np.int64(1))\nprint('begun', flush=True)\nfor n in range(10**9):\n    {work}"
    status, _ = kernel.run(code, interrupt_at="begun")
    assert status == "KeyboardInterrupt"
    status, messages = kernel.run("mind_mlir.jit(deep, static_argnames='count')(x, 3).shape, twice(x).sum()")
    assert status == "ok"
    assert "(3, 5)" in "".join(texts(messages, "text/plain"))


def test_results_complete(kernel: Kernel) -> None:
    assert (
        kernel.run("made = twice.lower(x).compile(); got = mind_mlir.jit(lambda x: {'loss': x})(x)")[0]
        == "ok"
    )
    for code, wanted in (
        ("made.resu", "results"),
        ("got['l", "loss"),
        ("mind_mlir.vj", "vjp"),
    ):
        identity = kernel.client.complete(code)
        while True:
            reply = kernel.client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"]["msg_id"] == identity:
                break
        assert any(wanted in match for match in reply["content"]["matches"]), reply["content"]
