"""Networks of `benchmarks.models.networks` in flax, by the function that builds each."""

from __future__ import annotations

from benchmarks.models.entry import Entry


def _row(file: str, function: str, width: int = 16, *, trains: bool = True, quick: bool = False) -> Entry:
    return Entry(
        f"flax_{function}",
        "flax",
        f"flax_{file}.{function}",
        small={"width": width},
        always={"width": 256},
        trains=trains,
        quick=quick,
    )


ENTRIES = (
    *(_row("attention", name) for name in ("bert", "conformer", "fnet", "gpt", "llama", "mlp_mixer")),
    *(_row("attention", name) for name in ("perceiver", "swin", "switch_experts", "t5", "vit")),
    *(_row("fields", name) for name in ("capsules", "gaussian_process", "graph_attention")),
    *(_row("fields", name) for name in ("graph_convolution", "hopfield", "neural_equation")),
    *(_row("fields", name) for name in ("normalising_flow", "point_set", "recommender", "siren")),
    _row("fields", "perceptron", quick=True),
    *(_row("images", name, 8) for name in ("convnext", "denoiser", "densenet", "gan_generator", "lenet")),
    *(_row("images", name, 8) for name in ("mobilenet", "resnet", "resnext", "spatial_transformer")),
    *(_row("images", name, 8) for name in ("squeeze_excite", "variational_autoencoder", "vgg")),
    *(_row("sequences", name) for name in ("both_ways", "gru", "linear_attention", "linear_recurrence")),
    *(_row("sequences", name) for name in ("lstm", "mamba", "rwkv", "tagger", "wavenet")),
    _row("sequences", "conv_lstm", 4),
)
