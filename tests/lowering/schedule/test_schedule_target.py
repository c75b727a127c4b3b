from __future__ import annotations

from mind_mlir.target import BASELINE, Target, host_target, target_from_features

AVX512 = frozenset(("fma", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"))


def test_features_decide() -> None:
    assert target_from_features("x86_64", AVX512).vector_bytes == 64
    assert target_from_features("x86_64", AVX512).masks
    assert target_from_features("x86_64", AVX512 - {"avx512vl"}).vector_bytes == 32
    assert target_from_features("x86_64", frozenset(("avx2",))) == Target(vector_bytes=32)
    assert target_from_features("x86_64", frozenset(("avx2", "fma"))).fma


def test_nothing_detected_gives_the_baseline() -> None:
    for machine, baseline in BASELINE.items():
        assert target_from_features(machine, frozenset()) == baseline
    assert target_from_features("unheard of", frozenset()) == Target()


def test_caches_override_the_defaults() -> None:
    target = target_from_features("x86_64", frozenset(), {1: 1 << 15, 2: 1 << 20, 4: 1 << 30})
    assert (target.l1_bytes, target.l2_bytes, target.l3_bytes) == (1 << 15, 1 << 20, Target().l3_bytes)


def test_lanes() -> None:
    assert Target(vector_bytes=64).lanes(32) == 16
    assert Target(vector_bytes=16).lanes(64) == 2
    assert Target(vector_bytes=16).lanes(256) == 1


def test_host_is_always_the_same() -> None:
    assert host_target() is host_target()
