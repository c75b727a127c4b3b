"""Models of timm; each is called with two images of so many pixels a side."""

from __future__ import annotations

from typing import Any

from benchmarks.models.entry import Entry


def _row(
    name: str, side: int, *, sized: bool = False, trains: bool = False, quick: bool = False, **small: Any
) -> Entry:
    """Return a row; a model that is ``sized`` has to know how large its images are."""
    settings = {"side": side, "num_classes": 10, **({"img_size": side} if sized else {}), **small}
    return Entry(f"timm_{name}", "timm", name, small=settings, trains=trains, quick=quick)


ENTRIES = (
    _row("beit_base_patch16_224", 32, sized=True, embed_dim=48, depth=2, num_heads=3),
    _row("cait_xxs24_224", 32, sized=True, trains=True, embed_dim=48, depth=2, num_heads=4),
    _row("coat_tiny", 32, sized=True),
    _row("convit_tiny", 32, sized=True, embed_dim=48, depth=3, num_heads=4, local_up_to_layer=2),
    _row("convmixer_768_32", 32),
    _row("crossvit_tiny_240", 240),
    _row("cspresnet50", 32),
    _row("deit_tiny_patch16_224", 32, sized=True, trains=True, quick=True, depth=3),
    _row("dla34", 32),
    _row("edgenext_xx_small", 64),
    _row("efficientformer_l1", 224),
    _row("eva02_tiny_patch14_224", 28, sized=True, depth=3),
    _row("focalnet_tiny_srf", 32),
    _row("ghostnet_100", 32, trains=True),
    _row("hrnet_w18_small", 64),
    _row("levit_128s", 224),
    _row("mixer_s32_224", 64, sized=True, trains=True),
    _row("mobilevit_xxs", 64),
    _row("nf_resnet26", 32),
    _row("pit_ti_224", 224),
    _row("poolformer_s12", 32, trains=True),
    _row("pvt_v2_b0", 64),
    _row("repvgg_a0", 32),
    _row("res2net50_26w_4s", 32),
    _row("resmlp_12_224", 32, sized=True),
    _row("resnest14d", 32),
    _row("sequencer2d_s", 56, img_size=56, layers=(1, 1, 1, 1)),
    _row("skresnet18", 32),
    _row("tf_efficientnetv2_b0", 32),
    _row("twins_pcpvt_small", 64, sized=True, depths=(1, 1, 1, 1)),
    _row("volo_d1_224", 64, sized=True),
    _row("xception41", 64),
    _row("xcit_nano_12_p16_224", 32, sized=True, depth=2),
)
