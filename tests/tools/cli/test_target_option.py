"""`--target` of `mind-mlir run` and `compile`, on a machine that lacks what the target has."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest
from cli_harness import SUM, invoke, succeed

import mind_mlir
from mind_mlir.target import VARIABLE, host, host_target

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="targets of x86-64")

MUST = "must be one of native, sse, which this machine runs code for; code for 'avx512' can be printed here"
CHECK = pytest.mark.parametrize("check", [[], ["--check"]], ids=["run", "check"])


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this machine have the instructions that any of its kind has."""
    monkeypatch.setattr(host, "host_flags", lambda: frozenset({"sse2"}))
    monkeypatch.delenv(VARIABLE, raising=False)
    host_target.cache_clear()
    yield
    host_target.cache_clear()


def test_the_library_refuses_code_that_the_machine_lacks() -> None:
    with pytest.raises(ValueError, match=f"^target {MUST}"):
        mind_mlir.compile(mind_mlir.parse(SUM), target="avx512")


@CHECK
def test_run_refuses_code_that_the_machine_lacks(check: list[str]) -> None:
    refused = invoke("run", "-", "--input=ones", "--target=avx512", *check, stdin=SUM)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"Error: --target {MUST}" in refused.stderr


@CHECK
def test_the_variable_is_refused_and_the_option_comes_first(
    check: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "avx512")
    refused = invoke("run", "-", "--input=ones", *check, stdin=SUM)
    assert refused.exit_code == 2
    assert f"Error: {VARIABLE} {MUST}" in refused.stderr
    with pytest.raises(ValueError, match=f"^{VARIABLE} {MUST}"):
        mind_mlir.compile(mind_mlir.parse(SUM))
    succeed("run", "-", "--input=ones", "--target=sse", *check, stdin=SUM)


def test_what_compiles_nothing_takes_any_target() -> None:
    assert succeed("run", "-", "--input=ones", "--target=avx512", "--interpret", stdin=SUM) == succeed(
        "run", "-", "--input=ones", "--target=sse", stdin=SUM
    )


@pytest.mark.parametrize("form", ["schedule", "llvm", "asm"])
def test_code_for_another_machine_can_be_printed(form: str) -> None:
    if form == "asm":
        pytest.importorskip("capstone")
        pytest.importorskip("elftools")
    text = succeed("compile", "-", "--target=avx512", f"--emit={form}", stdin=SUM)
    assert {"schedule": "of 64 bytes", "llvm": "x86-64-v4", "asm": "{k1}"}[form] in text
