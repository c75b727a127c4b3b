"""Suggestions are near in spelling, by one rule."""

from __future__ import annotations

import pytest

from mind_mlir.support.suggestions import did_you_mean, nearest

NAMES = ("requantize", "relu", "max", "mean", "maximum", "Transpose", "concatenate", "x", "int", "low")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("percentile", None), ("interp", None), ("nanmean", None), ("y", None), ("sax", "max"),
        ("X", "x"), ("rleu", "relu"), ("reluu", "relu"), ("maen", "mean"), ("lower", "low"),
        ("transpse", "Transpose"), ("concatinate", "concatenate"), ("", None), ("q" * 10_000, None),
    ],
)  # fmt: skip
def test_the_nearest_name(written: str, meant: str | None) -> None:
    assert nearest(written, NAMES) == meant
    assert did_you_mean(written, NAMES) == (f"; did you mean {meant}?" if meant else "")


def test_of_several_the_first_of_the_nearest() -> None:
    assert nearest("sunn", ["sum", "sun", "sin"]) == "sun"
    assert nearest("sam", ["sum", "sim"]) == "sum"
