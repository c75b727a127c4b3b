"""Rates of processors: as data, and what may depend on them and what may not."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.lowering.emission.stores import past_caches
from mind_mlir.lowering.schedule.contraction.case import ProductCase
from mind_mlir.lowering.schedule.contraction.choice import choose_schedule
from mind_mlir.lowering.schedule.contraction.geometry import Geometry, Loop
from mind_mlir.target import (
    FEATURES,
    PROCESSORS,
    X86_64,
    Target,
    artefact_target,
    host_target,
    named,
    named_target,
)
from mind_mlir.target.host import target_from_features
from mind_mlir.target.rates import FIGURES, REFERENCE, Rates

AVX512 = named_target("avx512")
#: A machine whose vectors are four times as fast, and whose memory is four times as slow; and another one.
FAST, SLOW = (
    dataclasses.replace(
        REFERENCE,
        **{
            name: getattr(REFERENCE, name)
            * (computing if name in ("multiply_add_ns", "vector_ns") else moving)
            for name in FIGURES[:-1]
        },
    )
    for computing, moving in ((0.25, 4.0), (4.0, 0.25))
)


def product(target: Target, n: int = 2048, *, m: int = 2048) -> ProductCase:
    loops = Geometry(Loop(n, 0, 1, 1), (Loop(m, n, 0, n),), (), (Loop(n, 1, n, 0),), (0, 0, 0))
    return ProductCase(loops, 32, target)


def test_figures_are_rounded_to_powers_of_the_root_of_two() -> None:
    for noise in (0.93, 1.0, 1.07):
        near = Rates(*(2.0**power * noise for power in range(-4, 4)))
        exact = Rates(*(2.0**power for power in range(-4, 4)), measured=True)
        assert near.rounded(near) == exact


def test_figures_that_are_far_off_are_drawn_in() -> None:
    wild = Rates(*[1e9, 1e-9] * 4)
    found = wild.rounded(REFERENCE)
    for name in FIGURES:
        assert 1 / 5 < getattr(found, name) / getattr(REFERENCE, name) < 5
    assert found.rounded(REFERENCE) == found


def test_processors_state_sound_rates() -> None:
    for name, processor in PROCESSORS.items():
        rates = processor.rates
        assert rates.l2_byte_ns <= rates.l3_byte_ns <= rates.byte_ns, name
        assert rates.l3_latency_ns < rates.latency_ns, name
        assert not rates.measured
        assert artefact_target(f"{processor.machine}-linux", cpu=name).rates == rates


def test_a_machine_has_the_rates_of_the_processor_that_it_is_most_like() -> None:
    features = PROCESSORS["sapphirerapids"].features  # but for tiles, which a system may keep to itself
    flags = {word for name in features for word in FEATURES[X86_64][name].linux if "amx" not in word}
    found = target_from_features(X86_64, frozenset(flags), {1: 48 << 10, 2: 2 << 20, 3: 105 << 20})
    assert found.rates == PROCESSORS["sapphirerapids"].rates
    assert target_from_features("x86_64", frozenset(), {2: 0}).rates == REFERENCE
    assert target_from_features("riscv64", frozenset()).rates in [each.rates for each in PROCESSORS.values()]


def test_levels_have_the_same_rates() -> None:
    assert {named_target(name).rates for name in ("sse", "avx2", "avx512", "amx")} == {REFERENCE}
    assert not host_target().rates.measured


def test_panels_are_asked_for_in_more_steps_where_the_last_level_cache_answers_late() -> None:
    assert choose_schedule(product(AVX512)).fetch_steps == 1
    late = named_target("sapphirerapids")
    assert late.rates.l3_latency_ns > 30
    assert choose_schedule(product(late)).fetch_steps == 2
    assert choose_schedule(product(late, 64)).fetch_steps == 1, "there is no next panel"
    assert choose_schedule(product(late, m=24)).fetch_steps == 1, "there are too few tiles to ask"


def test_stores_go_past_the_cache_unless_they_are_slower() -> None:
    size = 1 << 28
    assert past_caches(size, size, AVX512)
    assert not past_caches(AVX512.l2_bytes, size, AVX512)
    slower = dataclasses.replace(AVX512, rates=dataclasses.replace(REFERENCE, streaming_gain=0.7))
    assert not past_caches(size, size, slower)


@pytest.mark.parametrize("rates", [FAST, SLOW], ids=["fast", "slow"])
def test_no_measured_rate_changes_how_products_are_summed(rates: Rates) -> None:
    for level in ("sse", "avx2", "avx512"):
        target = named_target(level)
        other = dataclasses.replace(target, rates=rates)
        for n in (1, 7, 40, 64, 100, 517, 1000, 4096):
            for m in (1, 3, 16, 24, 100, 641):
                one, two = (choose_schedule(product(each, n, m=m)) for each in (target, other))
                for name in ("strategy", "rows", "vectors", "kc"):
                    assert getattr(one, name) == getattr(two, name)


def sums(x: mnp.Array) -> tuple[mnp.Array, ...]:
    """Return sums over all, along rows and across, up to each element, and relative to a maximum."""
    below = mnp.exp(x - x.max(axis=1, keepdims=True)) if x.size else x
    squares = x * x
    shares = below / below.sum(axis=1, keepdims=True)
    return squares.sum(axis=0), squares.sum(axis=1), x.sum(), mnp.cumsum(x, axis=1), shares, x.T @ x


@pytest.mark.parametrize("shape", [(3, 7001), (301, 300), (40_009, 17), (1, 1), (0, 5), (5, 0)], ids=str)
def test_no_measured_rate_changes_a_bit(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads may share a loop on one machine and not on another; what is summed up when is the same."""
    x, host = np.random.default_rng(1).standard_normal(shape).astype("f"), host_target()
    module = mind_mlir.jit(sums).lower(x).module
    found: list[list[bytes]] = []
    for rates in (REFERENCE, FAST, SLOW):
        monkeypatch.setattr(named, "host_target", partial(dataclasses.replace, host, rates=rates))
        found.append([result.tobytes() for result in mind_mlir.compile(module, target="native")(x)])
    assert found[0] == found[1] == found[2]


def test_what_they_change_is_how_much_work_threads_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above rests on."""
    x, host, texts = np.ones((300, 300), "f"), host_target(), []
    module = mind_mlir.jit(sums).lower(x).module
    for rates in (FAST, SLOW):
        monkeypatch.setattr(named, "host_target", partial(dataclasses.replace, host, rates=rates))
        texts.append(mind_mlir.compile(module, target="native").as_text("schedule"))
    assert texts[0] != texts[1]


def test_the_variable_says_whether_rates_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_RATES", "guessed")
    wrong = "MIND_MLIR_RATES must be measured or stated, not 'guessed'"
    with pytest.raises(ValueError, match=wrong):
        named_target("native")
    assert named_target("avx2").rates == REFERENCE
