"""Models of transformers that read images and sounds, or read one text and write another."""

from __future__ import annotations

from typing import Any

from benchmarks.models.entry import Entry

_WORDS = {"vocab_size": 99}
_PAIR = {
    **_WORDS,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
}
_T5 = {**_WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
_BERT = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
_VIT = {**_BERT, "image_size": 32, "patch_size": 8}
_SOUND = {
    **_BERT,
    "vocab_size": 32,
    "conv_dim": (32, 32),
    "conv_stride": (5, 2),
    "conv_kernel": (10, 3),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "num_feat_extract_layers": 2,
}


def _row(
    name: str,
    architecture: str,
    inputs: str,
    small: dict[str, Any],
    *,
    trains: bool = True,
    quick: bool = False,
    **more: Any,
) -> Entry:
    """Return a row; ``more`` settings are of the small size."""
    return Entry(
        name, "transformers", architecture, inputs, small={**small, **more}, trains=trains, quick=quick
    )


_CLIP = {
    "text_config": {**_BERT, **_WORDS, "eos_token_id": 98, "pad_token_id": 1, "bos_token_id": 0},
    "vision_config": _VIT,
    "projection_dim": 32,
}
ENTRIES = (
    _row("ast", "AST", "spectrum", _BERT, trains=False, num_mel_bins=32, max_length=64),
    _row("bart", "Bart", "two texts", _PAIR),
    _row("blenderbot", "Blenderbot", "two texts", _PAIR, trains=False),
    _row("clip", "CLIP", "text and image", _CLIP),
    _row("convnext", "ConvNext", "image", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}),
    _row("data2vec_audio", "Data2VecAudio", "sound", _SOUND, trains=False, conv_pos_kernel_size=5),
    _row("deit_hf", "DeiT", "image", _VIT),
    _row("dinov2", "Dinov2", "image", _VIT),
    _row("hubert", "Hubert", "sound", _SOUND, trains=False),
    _row("marian", "Marian", "two texts", _PAIR, pad_token_id=0, decoder_start_token_id=1),
    _row("mbart", "MBart", "two texts", _PAIR, trains=False),
    _row("mt5", "MT5ForConditionalGeneration", "two texts", _T5, trains=False),
    _row("pegasus", "Pegasus", "two texts", _PAIR),
    _row(
        "perceiver",
        "Perceiver",
        "features",
        {"d_model": 32, "num_latents": 16, "d_latents": 64, "num_self_attends_per_block": 2},
        trains=False,
        num_self_attention_heads=2,
        num_cross_attention_heads=2,
    ),
    _row(
        "poolformer",
        "PoolFormer",
        "image",
        {"hidden_sizes": [16, 32, 64, 64], "depths": [1, 1, 1, 1]},
        trains=False,
    ),
    _row(
        "pvt",
        "Pvt",
        "image",
        {"image_size": 32, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]},
        trains=False,
        num_attention_heads=[1, 2, 3, 4],
    ),
    _row(
        "regnet",
        "RegNet",
        "image",
        {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
        trains=False,
        groups_width=8,
    ),
    _row(
        "segformer",
        "Segformer",
        "image",
        {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [4, 2], "hidden_sizes": [16, 32]},
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
    ),
    _row(
        "siglip",
        "Siglip",
        "text and image",
        {"text_config": {**_BERT, **_WORDS}, "vision_config": _VIT},
        trains=False,
    ),
    _row(
        "swin",
        "Swin",
        "image",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4]},
        window_size=4,
    ),
    _row("t5", "T5ForConditionalGeneration", "two texts", _T5, quick=True),
    _row("vilt", "Vilt", "text and image", {**_VIT, **_WORDS}, trains=False),
    _row("vit", "ViT", "image", _VIT, quick=True),
    _row("vit_mae", "ViTMAE", "image and noise", _VIT, trains=False, mask_ratio=0.0),
    _row("wav2vec2", "Wav2Vec2", "sound", _SOUND),
    _row(
        "whisper",
        "WhisperForConditionalGeneration",
        "sound and text",
        _PAIR,
        num_mel_bins=20,
        max_source_positions=50,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    ),
    _row("yolos", "Yolos", "image", _VIT, trains=False, image_size=[32, 32], num_detection_tokens=5),
)
