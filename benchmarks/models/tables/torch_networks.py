"""Networks of `benchmarks.models.networks` in torch, by the function that builds each."""

from __future__ import annotations

from benchmarks.models.entry import Entry


def _row(file: str, function: str, width: int = 16, *, quick: bool = False) -> Entry:
    return Entry(
        f"torch_{function}",
        "torch",
        f"torch_{file}.{function}",
        small={"width": width},
        always={"width": 256},
        quick=quick,
    )


ENTRIES = (
    _row("fields", "autoencoder", 8),
    _row("fields", "gan_discriminator", 8),
    _row("fields", "gan_generator", 8),
    _row("fields", "graph_attention"),
    _row("fields", "normalising_flow"),
    _row("fields", "perceptron", 32, quick=True),
    _row("fields", "radiance_field", 32),
    _row("fields", "unet", 8, quick=True),
    _row("fields", "variational", 8),
    _row("sequences", "elman"),
    _row("sequences", "gru_both_ways"),
    _row("sequences", "linear_attention"),
    _row("sequences", "lstm", quick=True),
    _row("sequences", "mixture_of_experts"),
    _row("sequences", "recommender"),
    _row("sequences", "state_space"),
    _row("sequences", "transformer"),
    _row("sequences", "wavenet"),
)
