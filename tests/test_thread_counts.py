"""Every example gives the same bits at any number of threads, and the same dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from control_references import EXAMPLES as CONTROL
from test_examples import EXAMPLES as FOLDER
from test_examples import REFERENCES, random_arguments

import mind_mlir
from mind_mlir.support.stages import FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COUNTS = (1, 2, 3, 4)
FLAT = ("attention.ir", "conv.ir", "mlp_loss.ir")


@pytest.fixture(autouse=True)
def _usual_threads() -> Iterator[None]:
    before = mind_mlir.get_num_threads()
    yield
    mind_mlir.set_num_threads(before)


def bits(executable: mind_mlir.Executable, arguments: Mapping[str, Any], threads: int) -> list[bytes]:
    mind_mlir.set_num_threads(threads)
    return [output.tobytes() for output in executable(**arguments)]


@pytest.mark.parametrize("name", [*REFERENCES, *(f"control/{name}.ir" for name in CONTROL)])
def test_results_are_the_same_bits(name: str) -> None:
    module = mind_mlir.load(FOLDER / name)
    control = name.removeprefix("control/").removesuffix(".ir")
    arguments = CONTROL[control][1] if control in CONTROL else random_arguments(module)
    executable = mind_mlir.compile(module)
    alone, *others = (bits(executable, arguments, threads) for threads in COUNTS)
    assert all(found == alone for found in others)
    assert bits(mind_mlir.compile(module, threads=1), arguments, 4) == alone


@pytest.mark.parametrize("name", FLAT)
def test_gradients_are_the_same_bits(name: str) -> None:
    module = mind_mlir.differentiate(mind_mlir.load(FOLDER / name), extensions=True).module
    executable = mind_mlir.compile(module)
    alone, *others = (bits(executable, random_arguments(module), threads) for threads in COUNTS)
    assert all(found == alone for found in others)


def test_dumps_do_not_depend_on_the_setting() -> None:
    """A module is the same however many threads are to run it; `threads=1` alone leaves loops plain."""
    module = mind_mlir.load(FOLDER / "attention.ir")
    found: list[list[str]] = []
    for threads in (2, 3, 4):
        mind_mlir.set_num_threads(threads)
        executable = mind_mlir.compile(module)
        found.append([executable.as_text(form) for form in FORMS])
    assert found[0] == found[1] == found[2]
