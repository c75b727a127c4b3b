"""Targets of artefacts, which are made of names and say all that their code needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mind_mlir.target import (
    FEATURES,
    artefact_target,
    host_architecture,
    host_features,
    host_target,
    missing_features,
    named_target,
    processors_of,
    required_features,
    runs_here,
    triple_of,
)
from mind_mlir.target.processors import PROCESSORS

ON_X86 = pytest.mark.skipif(host_architecture() != "x86_64", reason="a processor of x86-64 without a system")


@pytest.mark.parametrize("cpu", PROCESSORS)
def test_processors_need_exactly_what_they_have(cpu: str) -> None:
    machine = PROCESSORS[cpu].machine
    target = artefact_target(f"{machine}-linux", cpu=cpu)
    assert required_features(target) == tuple(sorted(PROCESSORS[cpu].features))
    assert set(required_features(target)) <= set(FEATURES[machine])
    assert target.machine == machine
    assert target.cpu in ("generic", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


@pytest.mark.parametrize(
    ("target", "cpu", "features", "vectors", "needed"),
    [
        ("x86_64-linux", None, None, 16, ""),
        ("x86_64-linux", None, "+avx", 16, "avx sse3 sse4.1 sse4.2 ssse3"),
        ("avx512", None, "-avx512dq", 32, "avx512vl avx512f fma"),
        ("x86_64-pc-linux-gnu", "haswell", "-avx2,+avx512f", 32, "avx512f avx2 f16c"),
        ("aarch64-unknown-linux-gnu", "neoverse-v1", "-fullfp16", 16, "bf16 i8mm lse"),
    ],
)
def test_features_change_schedules_and_what_is_needed(
    target: str, cpu: str | None, features: str | None, vectors: int, needed: str
) -> None:
    found = artefact_target(target, cpu=cpu, features=features)
    assert found.vector_bytes == vectors
    assert set(needed.split()) <= set(required_features(found))
    if not cpu:
        assert not needed or "avx512" in needed or set(needed.split()) == set(required_features(found))


def test_what_implies_a_feature_goes_with_it() -> None:
    found = required_features(artefact_target("x86_64-linux", cpu="znver4", features="-avx512f"))
    assert "avx2" in found
    assert not [name for name in found if name.startswith("avx512")]
    arm = artefact_target("aarch64-linux", cpu="neoverse-v2", features="-fullfp16")
    assert not {"fullfp16", "fp16fml", "sve", "sve2"} & set(required_features(arm))


def test_dots_and_processors_reach_the_schedules() -> None:
    assert artefact_target("x86_64-linux", cpu="cascadelake").integer_dots
    assert not artefact_target("x86_64-linux", cpu="skylake-avx512").integer_dots
    assert artefact_target("x86_64-linux", cpu="skylake-avx512", features="+avx512bf16").bf16_dots
    sapphire = artefact_target("x86_64-linux", cpu="sapphirerapids")
    assert (sapphire.bf16_tiles, sapphire.integer_tiles) == (True, True)
    without = artefact_target("x86_64-linux", cpu="sapphirerapids", features="-amx-tile")
    assert not {name for name in required_features(without) if name.startswith("amx")}
    assert (without.bf16_tiles, without.integer_tiles, without.bf16_dots) == (False, False, True)
    added = artefact_target("avx512", features="+avx512bf16,+amx-bf16")
    assert (added.bf16_tiles, added.integer_tiles) == (True, False)
    assert artefact_target("x86_64-linux", cpu="icelake-server").l2_bytes == 1280 << 10
    arm = artefact_target("aarch64-linux")
    assert (arm.vector_registers, arm.fma, arm.half, triple_of(arm)) == (
        *(32, True, True),
        "aarch64-unknown-linux-gnu",
    )


def test_this_machine_is_spelled_out() -> None:
    found = artefact_target("native")
    assert found.cpu
    assert set(required_features(found)) == host_features()
    assert runs_here(found)
    host = host_target()
    assert (found.vector_bytes, found.fma, found.l2_bytes) == (host.vector_bytes, host.fma, host.l2_bytes)
    assert missing_features(["no such feature", *sorted(host_features())]) == ("no such feature",)


def test_the_environment_names_the_target_of_artefacts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_TARGET", "avx2")
    assert artefact_target() == named_target("avx2")
    monkeypatch.setenv("MIND_MLIR_TARGET", "pdp11")
    with pytest.raises(ValueError, match="MIND_MLIR_TARGET must be one of"):
        artefact_target()
    assert artefact_target("aarch64-linux").machine == "aarch64"


@pytest.mark.parametrize(
    ("target", "cpu", "features", "message"),
    [
        ("arm", None, None, "target must be one of native, sse, .*, aarch64-linux, not the str 'arm'"),
        ("x86_64-linux", "haswel", None, "target_cpu must be one of native, .*; did you mean 'haswell'[?]"),
        ("x86_64-linux", "generic", None, "a processor of x86_64, not 'generic'; say target aarch64-linux"),
        ("avx2", "haswell", None, "target_cpu cannot be given with target 'avx2'"),
        ("avx2", None, "+avx512_vnni", "features of x86_64 must .*; did you mean 'avx512vnni'[?]"),
        ("avx2", None, "fma", "features must each begin with [+] or -, such as [+]fma, not 'fma'"),
        ("avx2", None, "-", "features of x86_64 must"),
        pytest.param(None, "neoverse-n1", None, "say target aarch64-linux", marks=ON_X86),
        pytest.param("aarch64-linux", "native", None, "target_cpu cannot be 'native'", marks=ON_X86),
    ],
)
def test_wrong_names_are_errors_with_a_way_out(
    target: str | None, cpu: str | None, features: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        artefact_target(target, cpu=cpu, features=features)


def test_other_types_are_errors() -> None:
    with pytest.raises(TypeError, match="target_cpu must be a string"):
        artefact_target(None, cpu=3)


def test_code_for_another_machine_does_not_run_here() -> None:
    other = "aarch64" if host_architecture() == "x86_64" else "x86_64"
    assert not runs_here(artefact_target(f"{other}-linux"))
    assert processors_of(other)


def test_names_are_there_without_numpy_and_the_bindings() -> None:
    code = "import sys, mind_mlir.target; sys.exit(any(m in sys.modules for m in ('numpy', 'torch_mlir')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
