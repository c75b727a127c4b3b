"""`mind-mlir explain` knows every code."""

from __future__ import annotations

import pytest
from cli_harness import invoke, succeed

from mind_mlir.diagnostics.codes import CATALOGUE

#: The public catalogue of the language: first and last code of each part.
PUBLIC = {
    f"E{code}"
    for first, last in ((1001, 1006), (2001, 2007), (3001, 3010), (4001, 4011), (5001, 5005), (6001, 6008))
    for code in range(first, last + 1)
}


def test_the_public_catalogue_is_complete() -> None:
    assert set(CATALOGUE) >= PUBLIC


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_every_code_is_explained(code: str) -> None:
    text = succeed("explain", code)
    assert text.startswith(f"{code}: {CATALOGUE[code].title}")
    assert CATALOGUE[code].explanation in text


def test_a_code_in_lower_case_and_several_codes() -> None:
    text = succeed("explain", "e3001", "E4003")
    assert text.index("E3001: ") < text.index("E4003: ")


def test_the_list_has_every_code_once() -> None:
    lines = succeed("explain", "--list").splitlines()
    assert [line.split()[0] for line in lines] == sorted(CATALOGUE)


def test_an_unknown_code_is_a_usage_error_that_names_the_nearest() -> None:
    result = invoke("explain", "E30001")
    assert result.exit_code == 2
    assert "did you mean E3001" in result.stderr


@pytest.mark.parametrize("args", [(), ("--list", "E3001")])
def test_a_code_or_the_list(args: tuple[str, ...]) -> None:
    assert invoke("explain", *args).exit_code == 2
