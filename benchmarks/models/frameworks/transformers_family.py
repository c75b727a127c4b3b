"""Models of transformers, by the names of their classes; all that draws at random while they train is off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import transformers

if TYPE_CHECKING:
    from benchmarks.models.entry import Entry

#: What a class of a model ends with where it is more than the model itself.
_HEADS = ("ForCausalLM", "ForConditionalGeneration", "LMHead")


def build(entry: Entry, *, real: bool) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return a model, and the arguments that it is called with."""
    base = entry.architecture
    for head in _HEADS:
        base = base.removesuffix(head)
    config = getattr(transformers, f"{base}Config")(**entry.settings(real=real))
    config.use_cache = False
    whole = base != entry.architecture and not entry.architecture.endswith("LMHead")
    model = getattr(transformers, entry.architecture if whole else f"{entry.architecture}Model")(config)
    return model, (), _inputs(entry.inputs, config, real=real)


def _inputs(kind: str, config: Any, *, real: bool) -> dict[str, Any]:
    """Return arguments of a kind for a model."""
    length = 128 if real else 16
    words = config.get_text_config()
    text = torch.randint(3, words.vocab_size - 1, (2, length)) if hasattr(words, "vocab_size") else None
    if kind == "text":
        return {"input_ids": text}
    if kind == "masked text":
        mask = torch.ones(2, length, dtype=torch.int64)
        mask[1, length // 2 :] = 0
        return {"input_ids": text, "attention_mask": mask}
    if kind == "two texts":
        assert text is not None
        return {"input_ids": text, "decoder_input_ids": text[:, : length // 2]}
    if kind == "image":
        return {"pixel_values": _image(config)}
    if kind == "image and noise":  # which says how patches are shuffled, and is drawn unless it is given
        image = _image(config)
        return {"pixel_values": image, "noise": torch.rand(2, (image.shape[-1] // config.patch_size) ** 2)}
    if kind == "text and image":
        image = _image(getattr(config, "vision_config", config))
        return {"input_ids": text, "pixel_values": image}
    if kind == "sound":
        return {"input_values": torch.randn(2, 16000 if real else 1000)}
    if kind == "spectrum":
        return {"input_values": torch.randn(2, config.max_length, config.num_mel_bins)}
    if kind == "features":
        return {"inputs": torch.randn(2, length, config.d_model)}
    assert kind == "sound and text", kind
    assert text is not None
    frames = torch.randn(2, config.num_mel_bins, 2 * config.max_source_positions)
    return {"input_features": frames, "decoder_input_ids": text[:, : length // 2]}


def _image(config: Any) -> Any:
    side = getattr(config, "image_size", 32)
    sides = side if isinstance(side, (list, tuple)) else (side, side)
    return torch.randn(2, 3, *sides)
