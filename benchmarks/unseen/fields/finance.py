"""Prices of options, and statistics of prices over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.unseen.program import Unseen

if TYPE_CHECKING:
    from numpy.random import Generator

    from benchmarks.unseen.libraries import Library


def _black_scholes(lib: Library, spot: Any, strike: Any, years: Any) -> Any:
    rate, sigma = 0.03, 0.25

    def normal(x: Any) -> Any:
        return 0.5 * (1 + lib.erf(x / np.sqrt(2)))

    spread = sigma * lib.np.sqrt(years)
    d1 = (lib.np.log(spot / strike) + (rate + sigma * sigma / 2) * years) / spread
    d2 = d1 - spread
    paid = strike * lib.np.exp(-rate * years)
    call = spot * normal(d1) - paid * normal(d2)
    return call, call - spot + paid


def _options(random: Generator, size: int) -> tuple[Any, ...]:
    return 50 + 50 * random.random(size), 50 + 50 * random.random(size), 0.1 + random.random(size)


def _binomial(lib: Library, spot: Any, strike: Any) -> Any:
    """Return what American puts are worth, by trees of 200 steps."""
    steps, up, rate = 200, 1.02, 1.0001
    chance = (rate - 1 / up) / (up - 1 / up)
    exponent = lib.np.arange(steps + 1, dtype=np.float64)

    def back(index: Any, value: Any) -> Any:
        step = steps - 1 - index
        price = spot[:, None] * up ** (2 * exponent[:-1] - step)
        held = (chance * value[:, 1:] + (1 - chance) * value[:, :-1]) / rate
        best = lib.np.maximum(held, strike[:, None] - price)
        return lib.np.concatenate([best, value[:, -1:]], axis=1)

    last = lib.np.maximum(strike[:, None] - spot[:, None] * up ** (2 * exponent - steps), 0.0)
    return lib.fori_loop(0, steps, back, last)[:, 0]


def _trends(lib: Library, prices: Any) -> Any:
    """Return the difference of moving averages over 10 and 50 days, and how far prices fell at most."""
    sums = lib.np.cumsum(prices, axis=1)

    def average(days: int) -> Any:
        return (sums[:, days:] - sums[:, :-days]) / days

    fallen = 1 - prices / lib.cummax(prices, axis=1)
    return average(10)[:, 40:] - average(50), fallen.max(axis=1)


def _portfolio(lib: Library, prices: Any, weights: Any) -> Any:
    """Return the covariance of daily returns, what a portfolio risks, and what each part adds to it."""
    returns = prices[1:] / prices[:-1] - 1
    centered = returns - returns.mean(axis=0)
    covariance = centered.T @ centered / (returns.shape[0] - 1)
    risk = lib.np.sqrt(weights @ covariance @ weights)
    return covariance, risk, weights * (covariance @ weights) / risk


PROGRAMS = [
    Unseen(name="black_scholes", inputs=_options, small=101, usual=200_000, code=_black_scholes, bound=1e-10),
    Unseen(
        name="binomial",
        inputs=lambda random, n: _options(random, n)[:2],
        small=3,
        usual=64,
        code=_binomial,
        bound=1e-10,
    ),
    Unseen(
        name="trends",
        inputs=lambda random, n: (np.exp(np.cumsum(random.normal(0, 0.01, (64, n)), axis=1)),),
        small=101,
        usual=5000,
        code=_trends,
        bound=1e-8,
    ),
    Unseen(
        name="portfolio",
        inputs=lambda random, n: (1 + random.random((4 * n, n)), random.random(n)),
        small=11,
        usual=300,
        code=_portfolio,
        bound=1e-10,
    ),
]
