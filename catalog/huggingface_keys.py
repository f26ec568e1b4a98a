"""Names in a Hugging Face config.json: keys of each figure, what a model_type fixes without printing it, and what has
no closed form here. How they are read is in huggingface.py."""

from __future__ import annotations

from dataclasses import dataclass

KEYS: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups"),
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels"),
    "ffn": ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "experts": ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "num_moe_experts"),
    "topk": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k", "experts_per_token"),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "shared_ffn": ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim"),
    "expert_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size"),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_nope_dim": ("qk_nope_head_dim",),
    "qk_rope_dim": ("qk_rope_head_dim",),
    "v_head_dim": ("v_head_dim",),
    "window_tokens": ("sliding_window", "sliding_window_size", "attention_chunk_size", "window_size"),
    "sparse_topk": ("index_topk",),
    "max_context": ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len"),
}
TEXT_PARTS = ("text_config", "llm_config", "language_config")
ACTIVATIONS = ("hidden_act", "hidden_activation", "activation_function", "activation")
GATING = ("silu", "swish", "swiglu", "geglu", "reglu", "situ")
LAYER_KINDS = {
    **dict.fromkeys(("full_attention", "full", "global", "global_attention", "attention"), "full"),
    **dict.fromkeys(("sliding_attention", "chunked_attention", "local", "local_attention"), "window"),
    "linear_attention": "linear",
}
STATE_SPACE = "has layers with a state space, for which there is no closed form here"
UNSUPPORTED = {
    **dict.fromkeys(
        ("mamba_d_state", "mamba_num_heads", "mamba_n_heads", "ssm_state_size", "layers_block_type"), STATE_SPACE
    ),
    "hybrid_override_pattern": STATE_SPACE,
    "block_types": STATE_SPACE,
    "is_encoder_decoder": "is an encoder with a decoder; only decoders are planned for",
    "compress_ratios": "compresses the KV cache between tokens, for which there is no closed form here",
    "share_q_dim": "factorises the attention matrices, for which there is no closed form here",
    "altup_num_inputs": "runs several streams through a layer, for which there is no closed form here",
    "enable_moe_block": "has a dense block and experts side by side in a layer, for which there is no closed form here",
    "routed_expert_hidden_size": "runs the experts in a narrower width, for which there is no closed form here",
    "moe_latent_size": "runs the experts in a narrower width, for which there is no closed form here",
}
MOST_LAYERS = 10_000


@dataclass(frozen=True, slots=True)
class Family:
    """What the code of a model_type fixes and its config does not print. `ffn_per_hidden`: inner width where no key states it;
    `every`: one layer in so many attends to all; `expert_is_ffn`: intermediate_size is the width of an expert;
    `shared`: experts that every token visits."""

    gated: bool = True
    tied: bool = False
    ffn_per_hidden: int = 0
    every: int = 0
    expert_is_ffn: bool = False
    shared: int = 0


_GATED = (
    "baichuan", "chatglm", "deepseek", "deepseek_v2", "deepseek_v3", "deepseek_v32", "exaone4", "glm", "glm4", "glm4_moe",
    "glm_moe_dsa", "granite", "internlm2", "internlm3", "kimi_k2", "kimi_linear", "llama", "mimo", "minicpm3", "mistral", "ministral",
    "olmo", "olmo2", "olmo3", "olmoe", "phi3", "qwen2", "qwen2_moe", "qwen2_vl_text", "qwen3", "qwen3_moe", "qwen3_next",
    "qwen3_vl_text", "qwen3_5_text", "qwen3_5_moe_text", "seed_oss", "smollm3", "stablelm",
)  # fmt: skip
FAMILIES: dict[str, Family] = {
    **dict.fromkeys(_GATED, Family()),
    **dict.fromkeys(("mixtral", "phimoe", "minimax", "minimax_m2"), Family(expert_is_ffn=True)),
    **dict.fromkeys(
        ("gemma", "cohere", "ernie4_5", "ernie4_5_moe", "hunyuan_v1_dense", "hunyuan_v1_moe"), Family(tied=True)
    ),
    "gemma2": Family(tied=True, every=2),
    **dict.fromkeys(("gemma3", "gemma3_text"), Family(tied=True, every=6)),
    "cohere2": Family(tied=True, every=4),
    "gpt_oss": Family(expert_is_ffn=True, every=2),
    **dict.fromkeys(("llama4", "llama4_text"), Family(expert_is_ffn=True, every=4, shared=1)),
    **dict.fromkeys(("gpt2", "gpt_bigcode", "bloom", "falcon"), Family(gated=False, tied=True, ffn_per_hidden=4)),
    **dict.fromkeys(("gptj", "codegen"), Family(gated=False, ffn_per_hidden=4)),
    **dict.fromkeys(("gpt_neox", "phi", "nemotron"), Family(gated=False)),
    **dict.fromkeys(("opt", "starcoder2"), Family(gated=False, tied=True)),
}
