"""The rates of this machine: measured once, kept beside the cache, and the same for all processes."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mind_mlir.profiling import rates
from mind_mlir.target import host_target
from mind_mlir.target.rates import FIGURES, Rates

if TYPE_CHECKING:
    from pathlib import Path

STATED = host_target().rates


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where a cache is that is switched on."""
    monkeypatch.setenv("MIND_MLIR_CACHE", "on")
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def measuring(monkeypatch: pytest.MonkeyPatch, *factors: float) -> list[Rates]:
    """Let measuring find these multiples of what is stated, one after the other; return what it still may."""
    found = [dataclasses.replace(STATED, byte_ns=STATED.byte_ns * each).rounded(STATED) for each in factors]
    monkeypatch.setattr(rates, "_measured", lambda: found.pop(0))
    return found


def test_what_is_measured_is_kept(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = measuring(monkeypatch, 2.0, 0.5)
    first = rates.machine_rates()
    assert first.measured
    assert rates.machine_rates() == first
    assert len(left) == 1, "measured once"
    assert [path.suffix for path in kept.iterdir()] == [".json"]
    rates.measure_anew()
    assert rates.machine_rates() != first


def test_the_first_process_decides(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quicker = dataclasses.replace(STATED, byte_ns=STATED.byte_ns * 2).rounded(STATED)

    def late() -> Rates:
        (file,) = (path for path in kept.iterdir() if path.suffix != ".json")
        text = json.dumps({name: getattr(quicker, name) for name in FIGURES})
        file.with_suffix(".json").write_text(text)  # as another process does meanwhile
        return STATED.rounded(STATED)

    monkeypatch.setattr(rates, "_measured", late)
    assert rates.machine_rates() == quicker
    assert [path.suffix for path in kept.iterdir()] == [".json"]


def test_nothing_is_measured_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = measuring(monkeypatch, 2.0)
    assert rates.machine_rates() == STATED  # there is no cache
    monkeypatch.setenv("MIND_MLIR_CACHE", "on")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert rates.machine_rates() == STATED
    monkeypatch.setenv("MIND_MLIR_CACHE", "perhaps")
    assert rates.machine_rates() == STATED
    assert len(left) == 1
    monkeypatch.setenv("MIND_MLIR_CACHE", "off")
    with pytest.raises(FileNotFoundError, match="there is no cache"):
        rates.measure_anew()


def test_what_goes_wrong_while_measuring_stops_nobody(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> Rates:
        raise MemoryError

    monkeypatch.setattr(rates, "_measured", failing)
    assert rates.machine_rates() == STATED
    assert list(kept.iterdir()) == []


def test_a_file_system_may_have_no_links(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path, file: Path) -> None:
        raise PermissionError(file)

    monkeypatch.setattr(os, "link", refused)
    measuring(monkeypatch, 2.0)
    assert rates.machine_rates().measured
    assert [path.suffix for path in kept.iterdir()] == [".json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"byte_ns": 1}', json.dumps(dict.fromkeys(FIGURES, "x")), "\udcff"], ids=repr
)
def test_what_is_no_rates_is_not_read(text: str, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 2.0)
    rates.machine_rates()
    (file,) = kept.iterdir()
    file.write_bytes(text.encode(errors="surrogateescape"))
    assert rates.machine_rates() == STATED


@pytest.mark.parametrize("number", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_numbers_that_cannot_be_are_not_believed(
    number: float, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, 1.0)
    rates.machine_rates()
    (file,) = kept.iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "byte_ns": number}))
    found = rates.machine_rates()
    assert found == STATED or found.byte_ns < 5 * STATED.byte_ns


def test_processes_compile_for_what_the_first_has_measured(kept: Path) -> None:
    program = "from mind_mlir.target import named_target; print(named_target('native').rates)"
    environment = {**os.environ, "MIND_MLIR_RATES": "measured"}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    )
    assert first == second
    assert "measured=True" in first
    assert [path.name for path in kept.iterdir() if path.name.startswith("rates-")]
