"""Models of transformers that read a text: encoders and decoders."""

from __future__ import annotations

from typing import Any

from benchmarks.models.entry import Entry

_WORDS = {"vocab_size": 99}
_BERT = {
    **_WORDS,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
}
_LLAMA = {**_BERT, "num_attention_heads": 4, "num_key_value_heads": 2}
_GPT2 = {**_WORDS, "n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 64}
_OPT = {**_BERT, "ffn_dim": 128, "word_embed_proj_dim": 64}


def _row(
    name: str,
    architecture: str,
    small: dict[str, Any],
    *,
    inputs: str = "text",
    trains: bool = True,
    quick: bool = False,
    **more: Any,
) -> Entry:
    """Return a row; ``more`` settings are of the small size."""
    return Entry(
        name, "transformers", architecture, inputs, small={**small, **more}, trains=trains, quick=quick
    )


ENTRIES = (
    _row("albert", "Albert", _BERT, embedding_size=32),
    _row("bert", "Bert", _BERT, inputs="masked text", quick=True),
    _row("big_bird", "BigBird", _BERT, trains=False, attention_type="original_full"),
    _row("biogpt", "BioGpt", _BERT, trains=False),
    _row("bloom", "BloomForCausalLM", {**_WORDS, "hidden_size": 64, "n_layer": 2, "n_head": 2}),
    _row("camembert", "Camembert", _BERT, trains=False, pad_token_id=1),
    _row("codegen", "CodeGenForCausalLM", {**_GPT2, "n_head": 4, "rotary_dim": 8}, trains=False),
    _row("cohere", "CohereForCausalLM", _LLAMA, trains=False),
    _row("convbert", "ConvBert", _BERT, trains=False, embedding_size=32),
    _row("ctrl", "CTRL", _GPT2, trains=False, dff=128),
    _row("deberta_v2", "DebertaV2", _BERT, relative_attention=True, pos_att_type=["p2c", "c2p"]),
    _row("distilbert", "DistilBert", {**_WORDS, "dim": 64, "n_layers": 2, "n_heads": 2, "hidden_dim": 128}),
    _row("electra", "Electra", _BERT, embedding_size=32),
    _row("ernie", "Ernie", _BERT, trains=False),
    _row("falcon", "FalconForCausalLM", _BERT, ffn_hidden_size=128),
    _row("fnet", "FNet", _BERT, trains=False),
    _row("gemma", "GemmaForCausalLM", _LLAMA, head_dim=16),
    _row("gemma2", "Gemma2ForCausalLM", _LLAMA, trains=False, head_dim=16, query_pre_attn_scalar=16),
    _row("gpt2", "GPT2LMHead", _GPT2, quick=True),
    _row("gpt_bigcode", "GPTBigCodeForCausalLM", _GPT2, trains=False),
    _row(
        "gpt_neo",
        "GPTNeoForCausalLM",
        _WORDS,
        hidden_size=64,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
        window_size=8,
    ),
    _row("gpt_neox", "GPTNeoXForCausalLM", _BERT),
    _row("gptj", "GPTJForCausalLM", {**_GPT2, "n_head": 4, "rotary_dim": 8}, trains=False),
    _row("granite", "GraniteForCausalLM", _LLAMA, trains=False),
    _row("llama", "LlamaForCausalLM", _LLAMA, quick=True),
    _row("longformer", "Longformer", _BERT, trains=False, attention_window=8),
    _row("mamba", "MambaForCausalLM", {**_WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}),
    _row(
        "mamba2",
        "Mamba2ForCausalLM",
        {**_WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
        trains=False,
        num_heads=8,
        head_dim=8,
        n_groups=2,
        chunk_size=8,
    ),
    _row("mistral", "MistralForCausalLM", _LLAMA, sliding_window=8),
    _row("mixtral", "MixtralForCausalLM", _LLAMA, num_local_experts=4),
    _row(
        "mobilebert",
        "MobileBert",
        _BERT,
        trains=False,
        num_hidden_layers=2,
        embedding_size=32,
        intra_bottleneck_size=32,
        true_hidden_size=32,
        num_attention_heads=2,
    ),
    _row("modernbert", "ModernBert", _BERT, trains=False, pad_token_id=0),
    _row("mpt", "MptForCausalLM", {**_WORDS, "d_model": 64, "n_heads": 2, "n_layers": 2}, trains=False),
    _row("nystromformer", "Nystromformer", _BERT, trains=False),
    _row("olmo", "OlmoForCausalLM", _LLAMA, trains=False),
    _row("opt", "OPTForCausalLM", _OPT),
    _row("phi", "PhiForCausalLM", _BERT),
    _row("phi3", "Phi3ForCausalLM", _LLAMA, trains=False, pad_token_id=0),
    _row("qwen2", "Qwen2ForCausalLM", _LLAMA),
    _row("qwen3", "Qwen3ForCausalLM", _LLAMA, trains=False, head_dim=16),
    _row("roberta", "Roberta", _BERT, pad_token_id=1),
    _row("roformer", "RoFormer", _BERT, trains=False),
    _row("rwkv", "RwkvForCausalLM", {**_WORDS, "hidden_size": 32, "num_hidden_layers": 2}, trains=False),
    _row("squeezebert", "SqueezeBert", _BERT, trains=False, embedding_size=64),
    _row("stablelm", "StableLmForCausalLM", _LLAMA, trains=False),
    _row("starcoder2", "Starcoder2ForCausalLM", _LLAMA, trains=False),
    _row("xlm_roberta", "XLMRoberta", _BERT, trains=False, pad_token_id=1),
    _row(
        "xlnet", "XLNet", {**_WORDS, "d_model": 64, "n_layer": 2, "n_head": 2, "d_inner": 128}, trains=False
    ),
)
