"""Networks of flax as jax lowered them agree with jax; neither need be there: texts are kept."""

from __future__ import annotations

import numpy as np
import pytest
import recorded

import mind_mlir

NETWORKS = recorded.read(recorded.PATH.with_name("flax_networks.npy.gz"))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_flax_agree_with_jax(name: str) -> None:
    network = NETWORKS[name]
    found = mind_mlir.compile(mind_mlir.from_stablehlo(network.text))(*network.arguments)
    for one, other in zip(found if isinstance(found, tuple) else [found], network.results, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5)
