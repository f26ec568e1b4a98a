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
    "topk": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "moe_topk",
        "moe_top_k",
        "moe_k",
        "experts_per_token",
        "experts_top_k",
        "top_k_experts",
    ),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "shared_ffn": (
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "share_expert_dim",
        "shared_intermediate_size",
    ),
    "expert_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size", "expert_hidden_dim"),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_nope_dim": ("qk_nope_head_dim",),
    "qk_rope_dim": ("qk_rope_head_dim",),
    "v_head_dim": ("v_head_dim",),
    "window_tokens": ("sliding_window", "sliding_window_size", "attention_chunk_size", "window_size"),
    "sparse_topk": ("index_topk",),
    "index_heads": ("index_n_heads",),
    "index_dim": ("index_head_dim",),
    "o_lora_rank": ("o_lora_rank",),
    "o_groups": ("o_groups",),
    "expert_hidden": ("routed_expert_hidden_size", "moe_latent_size"),
    "max_context": (
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "seq_length",
        "max_seq_len",
        "model_max_length",
    ),
}
WIDE = (
    "intermediate_size_mlp",
    "dense_intermediate_size",
    "prefix_dense_intermediate_size",
)  # keys of dense blocks beside layers with experts
TIED = ("tie_word_embeddings", "use_embedding_sharing", "tie_embedding", "tied_embeddings")
OUTPUT_GATES = (
    "attn_output_gate",
    "attention_output_gate",
    "mla_use_output_gate",
    "gated_mla",
    "use_gqa_gate",
)  # as wide as the output
TEXT_PARTS = ("text_config", "llm_config", "language_config")
ACTIVATIONS = ("hidden_act", "hidden_activation", "activation_function", "activation")
PLAIN = (
    "relu",
    "gelu_new",
    "gelu_fast",
    "gelu_python",
)  # activations of blocks with two matrices, where the code is not known
LAYER_KINDS = {
    **dict.fromkeys(("full_attention", "full", "global", "global_attention", "attention"), "full"),
    **dict.fromkeys(("sliding_attention", "chunked_attention", "local", "local_attention"), "window"),
    **dict.fromkeys(("linear_attention", "kda", "lightning"), "linear"),
    **dict.fromkeys(("sparse_attention", "deepseek_sparse_attention", "minimax_m3_sparse"), "sparse"),
}
UNSUPPORTED = {
    "block_types": "catalog.config_unsupported_kinds",
    "block_configs": "catalog.config_unsupported_block_shapes",
    "attn_layer_period": "catalog.config_unsupported_first_mamba",
    "is_encoder_decoder": "catalog.config_unsupported_encoder_decoder",
    "share_q_dim": "catalog.config_unsupported_factorised_attention",
    "altup_num_inputs": "catalog.config_unsupported_streams",
    "mamba_d_ssm": "catalog.config_unsupported_side_by_side",
    "num_kv_shared_layers": "catalog.config_unsupported_shared_caches",
    "hidden_size_per_layer_input": "catalog.config_unsupported_layer_embeddings",
    "use_cla": "catalog.config_unsupported_next_cache",
    "num_loops": "catalog.config_unsupported_loops",
    "loop_num": "catalog.config_unsupported_loops",
    "total_ut_steps": "catalog.config_unsupported_loops",
    "ngram_vocab_size_ratio": "catalog.config_unsupported_ngrams",
    "cross_attention_layers": "catalog.config_unsupported_cross_attention",
    "num_noise_heads": "catalog.config_unsupported_noise_heads",
    "cca_time0": "catalog.config_unsupported_convolved_latent",
    "qk_dim_factor": "catalog.config_unsupported_mlstm",
}
# Keys whose ending says that they change a shape: one that is not read refuses the config.
SHAPING = (
    "_head_dim",
    "_key_value_heads",
    "_hidden_size",
    "_attention_heads",
    "_intermediate_size",
    "_lora_rank",
    "_latent_size",
    "_dense_layers",
    "_shared_layers",
    "_loops",
    "_hidden_dim",
    "_ffn_hidden_size",
    "_attention_heads_per_layer",
    "_key_value_heads_per_layer",
)
READ = frozenset((
    "num_dense_layers", "num_attention_heads_per_layer", "dense_intermediate_size", "prefix_dense_intermediate_size", "qk_head_dim", "q_head_dim",
    "global_head_dim", "num_global_key_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_num_key_heads", "linear_num_value_heads",
    "swa_head_dim", "swa_num_key_value_heads", "swa_num_attention_heads", "swa_v_head_dim", "mamba_head_dim",
    "moe_shared_expert_intermediate_size", "mamba_num_heads", "mtp_num_hidden_layers", "intermediate_size_mlp",
))  # fmt: skip
ELSEWHERE = (
    "vision_",
    "audio_",
    "image_",
    "mtp_",
    "draft_",
    "projector_",
    "encoder_",
    "mm_",
    "per_layer_input",
)  # keys of other parts
MOST_LAYERS = 10_000


@dataclass(frozen=True, slots=True)
class Family:
    """What the code of a model_type fixes and its config does not print. `ffn_per_hidden`: inner width where no key states it;
    `every`: one layer in this number attends to all; `expert_is_ffn`: intermediate_size is the width of an expert;
    `shared`: experts that every token visits; `output_gate`: full attention has a gate as wide as its output."""

    gated: bool = True
    tied: bool = False
    ffn_per_hidden: int = 0
    every: int = 0
    expert_is_ffn: bool = False
    shared: int = 0
    output_gate: bool = False


_GATED = (
    "baichuan", "chatglm", "deepseek", "deepseek_v2", "deepseek_v3", "deepseek_v32", "exaone4", "glm", "glm4", "glm4_moe",
    "glm_moe_dsa", "granite", "internlm2", "internlm3", "kimi_k2", "kimi_linear", "llama", "mimo", "minicpm3", "mistral", "ministral",
    "olmo", "olmo2", "olmo3", "olmoe", "phi3", "qwen2", "qwen2_moe", "qwen2_vl_text", "qwen3", "qwen3_moe",
    "qwen3_vl_text", "seed_oss", "deepseek_v4", "mimo_v2_flash", "step3p5", "smollm3", "stablelm",
    "bailing_hybrid", "git", "glm4_moe_lite", "hy_v3", "hy_v4", "laguna", "longcat_flash", "mellum", "mimo_v2", "ministral3", "mistral4",
    "mistral_large3", "qwen3_vl_moe", "qwen3_vl_moe_text", "sarvam_mla", "solar_open2", "telechat3",
)  # fmt: skip
FAMILIES: dict[str, Family] = {
    **dict.fromkeys(_GATED, Family()),
    **dict.fromkeys(
        ("mixtral", "phimoe", "minimax", "minimax_m2", "minimax_m3", "minimax_m3_vl", "inkling_mm_model"),
        Family(expert_is_ffn=True),
    ),
    **dict.fromkeys(("afmoe", "muse_glimmer_text"), Family(output_gate=True)),
    **dict.fromkeys(("lfm2", "lfm2_moe"), Family(tied=True)),
    "cohere2_moe": Family(tied=True, every=4, expert_is_ffn=True),
    **dict.fromkeys(
        ("gemma", "cohere", "ernie4_5", "ernie4_5_moe", "hunyuan_v1_dense", "hunyuan_v1_moe"), Family(tied=True)
    ),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), Family(output_gate=True)
    ),
    **dict.fromkeys(("gemma4", "gemma4_text", "gemma4_unified_text"), Family(tied=True)),
    **dict.fromkeys(("nemotron_h",), Family(gated=False)),
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
