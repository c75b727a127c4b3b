"""`mind-mlir machine`, and processors as targets of forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli_harness import SUM, invoke, succeed

from mind_mlir.target import host_target, named_target

if TYPE_CHECKING:
    import pytest


def test_it_shows_this_machine_and_others() -> None:
    assert succeed("machine") == f"{host_target().in_words()}\n"
    assert succeed("machine", "native") == succeed("machine")
    target, rates = succeed("machine", "sapphirerapids").splitlines()
    assert target.endswith("fused multiply-add, masks; L1 48 KB, L2 2048 KB, L3 32768 KB")
    assert rates == (
        "rates: a multiply-add 0.15 ns, other vectors 0.17; L2 149 GB/s, L3 26.4 after 37.9 ns, "
        "memory 12 after 120; past the cache 1.2 x; stated"
    )


def test_it_measures_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke("machine", "--measure")
    assert (result.exit_code, "there is no cache" in result.stderr) == (2, True)
    calls: list[None] = []
    monkeypatch.setattr("mind_mlir.profiling.rates.measure_anew", lambda: calls.append(None))
    succeed("machine", "--measure")
    assert len(calls) == 1
    result = invoke("machine", "avx2", "--measure")
    assert (result.exit_code, len(calls)) == (2, 1)
    assert "name no processor" in result.stderr


def test_the_variable_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_RATES", "guessed")
    for arguments in (("machine",), ("compile", "-", "--emit=linalg", "--target=avx2")):
        result = invoke(*arguments, stdin=SUM)
        assert result.exit_code == 2
        assert "MIND_MLIR_RATES must be measured or stated, not 'guessed'" in result.stderr


def test_it_knows_no_other() -> None:
    result = invoke("machine", "sapphirerapid")
    assert result.exit_code == 2
    assert "there is no processor 'sapphirerapid'; did you mean sapphirerapids?" in result.stderr


def test_forms_are_for_any_processor() -> None:
    text = succeed("compile", "-", "--emit=schedule", "--target=znver2", stdin=SUM)
    assert text.startswith(named_target("znver2").in_words())
    result = invoke("compile", "-", "--emit=schedule", "--target=neoverse-v1", stdin=SUM)
    assert result.exit_code == 2
    assert "is not one of 'native', 'sse'" in result.stderr
