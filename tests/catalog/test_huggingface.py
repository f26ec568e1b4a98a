"""Architectures read from Hugging Face configs: the same shapes as our records, the published sizes, and honest refusals.

The configs are typed as their publishers print them, cut to the keys that describe the shape.
"""

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog import Catalog, CatalogError
from catalog.errors import Wrong
from catalog.huggingface import from_config
from catalog.huggingface_keys import KEYS, UNSUPPORTED
from catalog.units import BILLION
from models.transformer.architecture import parameter_counts
from models.transformer.attention import kv_bytes
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger
from tests.conftest import few_of

CATALOG = Catalog.load()
DENSE = {"hidden_act": "silu", "tie_word_embeddings": False}

CONFIGS = {
    "Llama-3.1-8B": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, **DENSE,
    },
    "Llama-3.2-1B": {
        "model_type": "llama", "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32,
        "num_hidden_layers": 16, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
        "hidden_act": "silu", "tie_word_embeddings": True,
    },
    "Llama-2-7b-hf": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32,
        "vocab_size": 32000, "max_position_embeddings": 4096, **DENSE,
    },
    "Qwen2.5-7B": {
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28,
        "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 131072, "max_window_layers": 28,
        "sliding_window": 131072, "use_sliding_window": False, **DENSE,
    },
    "Qwen3-32B": {
        "model_type": "qwen3", "head_dim": 128, "hidden_size": 5120, "intermediate_size": 25600, "num_attention_heads": 64,
        "num_hidden_layers": 64, "num_key_value_heads": 8, "vocab_size": 151936, "max_position_embeddings": 40960,
        "sliding_window": None, "use_sliding_window": False, **DENSE,
    },
    "phi-2": {
        "model_type": "phi", "hidden_act": "gelu_new", "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 51200, "max_position_embeddings": 2048, "tie_word_embeddings": False,
    },
    "GPT-3 175B": {
        "model_type": "gpt2", "activation_function": "gelu_new", "n_embd": 12288, "n_head": 96, "n_layer": 96, "n_positions": 2048,
        "n_inner": None, "vocab_size": 50257,
    },
    "Mistral-7B-v0.1": {
        "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768, "sliding_window": 4096, **DENSE,
    },
    "Gemma-2-9b": {
        "model_type": "gemma2", "head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 3584, "intermediate_size": 14336, "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8,
        "vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window": 4096,
    },
    "Gemma-3-1b-it": {
        "model_type": "gemma3_text", "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152,
        "intermediate_size": 6912, "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1, "vocab_size": 262144,
        "max_position_embeddings": 32768, "sliding_window": 512, "sliding_window_pattern": 6,
    },
    "Gemma-3-27b-it": {
        "model_type": "gemma3", "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304},
        "text_config": {
            "model_type": "gemma3_text", "head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32,
            "num_hidden_layers": 62, "num_key_value_heads": 16, "vocab_size": 262144, "sliding_window": 1024,
        },
    },
    "Mixtral-8x7B-v0.1": {
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
        "max_position_embeddings": 32768, "sliding_window": None, **DENSE,
    },
    "Qwen3-235B-A22B": {
        "model_type": "qwen3_moe", "head_dim": 128, "hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536,
        "num_attention_heads": 64, "num_hidden_layers": 94, "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8,
        "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 40960, "sliding_window": None, **DENSE,
    },
    "gpt-oss-120b": {
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"],
        },
        "model_type": "gpt_oss", "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "intermediate_size": 2880,
        "layer_types": ["sliding_attention", "full_attention"] * 18, "num_attention_heads": 64, "num_hidden_layers": 36,
        "num_key_value_heads": 8, "num_local_experts": 128, "num_experts_per_tok": 4, "experts_per_token": 4, "sliding_window": 128,
        "vocab_size": 201088, "max_position_embeddings": 131072, "tie_word_embeddings": False,
    },
    "DeepSeek-V3": {
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
        "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
        "num_attention_heads": 128, "num_hidden_layers": 61, "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1, "vocab_size": 129280,
        "n_group": 8, "topk_group": 4,
        "max_position_embeddings": 163840, **DENSE,
    },
    "DeepSeek-V2-Lite (16B)": {
        "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_attention_heads": 16, "num_hidden_layers": 27, "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1, "q_lora_rank": None, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840, **DENSE,
    },
    "Kimi-K2.5": {
        "quantization_config": {
            "quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
            "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"],
        },
        "model_type": "kimi_k25", "tie_word_embeddings": False, "vision_config": {"hidden_size": 1152},
        "text_config": {
            "model_type": "kimi_k2", "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
            "num_attention_heads": 64, "num_hidden_layers": 61, "num_key_value_heads": 64, "n_routed_experts": 384, "n_shared_experts": 1,
            "num_experts_per_tok": 8, "first_k_dense_replace": 1, "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840, "max_position_embeddings": 262144,
        },
    },
    "GLM-4.5-Air": {
        "model_type": "glm4_moe", "head_dim": 128, "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_attention_heads": 96, "num_hidden_layers": 46, "num_key_value_heads": 8, "n_routed_experts": 128, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1, "vocab_size": 151552,
        "max_position_embeddings": 131072, **DENSE,
    },
    "Llama-4-Maverick-17B-128E-Instruct": {
        "model_type": "llama4", "vision_config": {"hidden_size": 1408},
        "text_config": {
            "model_type": "llama4_text", "attention_chunk_size": 8192, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120,
            "interleave_moe_layer_step": 2, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "no_rope_layers": [],
            "num_attention_heads": 40, "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 128,
            "num_experts_per_tok": 1, "vocab_size": 202048, "max_position_embeddings": 1048576,
        },
    },
    "Hunyuan-A13B": {
        "model_type": "hunyuan_v1_moe", "attention_head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 3072,
        "moe_intermediate_size": [3072] * 32, "moe_topk": [8] * 32, "num_shared_expert": [1] * 32, "num_experts": 64, "moe_layer_num_skipped": 0,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "use_cla": False, "vocab_size": 128167,
        "max_position_embeddings": 32768, "tie_word_embeddings": True,
    },
    "ERNIE-4.5-21B-A3B": {
        "model_type": "ernie4_5_moe", "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 12288, "moe_intermediate_size": 1536,
        "moe_k": 6, "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": 27,
        "moe_layer_interval": 1, "num_attention_heads": 20, "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 103424,
        "max_position_embeddings": 131072, "tie_word_embeddings": True,
    },
    "Qwen3-Next-80B-A3B": {
        "model_type": "qwen3_next", "full_attention_interval": 4, "head_dim": 256, "hidden_size": 2048, "intermediate_size": 5120,
        "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_attention_heads": 16, "num_hidden_layers": 48,
        "num_key_value_heads": 2, "num_experts": 512, "num_experts_per_tok": 10, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "vocab_size": 151936, "max_position_embeddings": 262144, **DENSE,
    },
}  # fmt: skip

# where a config says more than our record, or the record has another reading: figure -> what the config says
DIFFERENT = {"Llama-4-Maverick-17B-128E-Instruct": {"window_layers": 36, "window_tokens": 8192}}
SIZES = {name: CATALOG.get("architectures", name).value("total_parameters") for name in CONFIGS}  # published parameters  # fmt: skip
MATTERS_NOT = {
    "kv_heads": lambda shape: shape.mla,
    "head_dim": lambda shape: shape.mla,
    "ffn": lambda shape: not dense_layers(shape),
}


def dense_layers(shape):
    return shape.dense_layers if shape.experts else shape.layers


def catalog_with(name, config, **entry):
    return Catalog.load(blocks=[{"architectures": [{"name": name, "config": config, **entry}]}])


def parsed(config, **entry):
    catalog = catalog_with("mine", config, **entry)
    return shape_of(catalog.get("architectures", "mine"), Ledger(catalog))


def problems(call):
    with pytest.raises(CatalogError) as error:
        call()
    found = dict(error.value.problems)
    assert all(isinstance(message, Wrong) for message in found.values()), "a sentence without a code"
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_gives_the_shape_of_our_record(name):
    ours, theirs = shape_of(CATALOG.get("architectures", name), Ledger(CATALOG)), parsed(CONFIGS[name])
    ours = dataclasses.replace(ours, **DIFFERENT.get(name, {}))
    for field in dataclasses.fields(ours):
        if not MATTERS_NOT.get(field.name, lambda shape: False)(ours):
            assert getattr(theirs, field.name) == getattr(ours, field.name), field.name


@pytest.mark.parametrize("name", SIZES)
def test_a_config_gives_the_published_number_of_parameters(name):
    # published sizes are cut to two digits ("21B" for 21.8 billion), and the parts for images and the norms are not counted
    assert parameter_counts(parsed(CONFIGS[name])).total == pytest.approx(SIZES[name], rel=0.04)


def test_every_figure_says_where_it_comes_from():
    for name, config in CONFIGS.items():
        flat = {**config, **config.get("text_config", {})}
        for figure, entry in from_config(config, name)["figures"].items():
            stated = [key for key in flat if key in entry["note"]]
            assert stated or "assumed" in entry["note"] or figure in ("dense_layers", "spread_dense"), (
                name,
                figure,
                entry["note"],
            )


def test_nothing_is_assumed_where_the_config_says_all():
    notes = json.dumps(from_config(CONFIGS["Qwen3-235B-A22B"], "x"))
    assert "assumed" not in notes


def test_what_is_assumed_stands_in_the_notes_and_with_a_figure():
    entry = from_config(
        {
            key: CONFIGS["Llama-3.1-8B"][key]
            for key in CONFIGS["Llama-3.1-8B"]
            if key not in ("tie_word_embeddings", "num_key_value_heads")
        },
        "x",
    )
    assert "one for each attention head" in entry["figures"]["kv_heads"]["note"]
    assert "hidden size / attention heads" in entry["figures"]["head_dim"]["note"]
    assert "tie_word_embeddings is absent" in entry["figures"]["vocab"]["note"]
    assert all(
        words in entry["text"]["note"]
        for words in ("kv_heads = 32 assumed", "head_dim = 128 assumed", "tie_word_embeddings is absent")
    )


NEW = {
    "model_type": "brand_new",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_hidden_layers": 12,
    "vocab_size": 32000,
}


def test_an_unknown_model_type_is_read_by_its_keys():
    shape = parsed({**NEW, "num_key_value_heads": 4, "hidden_act": "silu", "tie_word_embeddings": False})
    assert (shape.layers, shape.kv_heads, shape.head_dim, shape.gated, shape.tied) == (12, 4, 64, True, False)
    assert parsed({**NEW, "hidden_act": "gelu"}).gated  # code that is not known never loses a matrix
    assert not parsed({**NEW, "hidden_act": "relu2"}).gated
    note = from_config({**NEW, "hidden_act": "gelu"}, "x")["text"]["note"]
    assert (
        "its code is not known here" in note
        and "three matrices in a feed-forward block, from the activation gelu" in note
    )


def test_experts_without_a_width_of_their_own_are_assumed_only_where_the_code_is_unknown():
    moe = {**NEW, "hidden_act": "silu", "num_experts": 8, "num_experts_per_tok": 2}
    assert "assumed" in from_config(moe, "x")["figures"]["expert_ffn"]["note"]
    assert "config.moe_intermediate_size" in problems(lambda: from_config({**moe, "model_type": "qwen3_moe"}, "x"))


def test_missing_keys_are_listed_all_at_once_with_a_remedy():
    found = problems(lambda: from_config({"model_type": "brand_new", "num_experts": 8}, "x"))
    assert set(found) == {f"config.{key}" for key in (
        "num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "hidden_act")}  # fmt: skip
    assert (
        'add it (or n_layer, n_layers, num_layers), or state it beside the config: "figures": {"layers"'
        in found["config.num_hidden_layers"]
    )
    found = problems(lambda: from_config({**NEW, "hidden_act": "silu", "kv_lora_rank": 512, "num_experts": 8}, "x"))
    assert set(found) == {
        "config.num_experts_per_tok",
        "config.qk_nope_head_dim",
        "config.qk_rope_head_dim",
        "config.v_head_dim",
    }


def test_a_part_that_leaves_out_the_defaults_of_its_class_is_not_guessed():
    # as the 4B of Gemma 3 is printed
    text = {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    found = problems(lambda: parsed({"model_type": "gemma3", "text_config": text}))
    at = "catalog.architectures[0].config.text_config"
    assert set(found) == {
        f"{at}.{key}" for key in ("num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size")
    }
    beside = {
        name: {"value": value, "note": "class default"}
        for name, value in (("heads", 8), ("kv_heads", 4), ("head_dim", 256), ("vocab", 262144))
    }
    ours = shape_of(CATALOG.get("architectures", "Gemma-3-4b-it"), Ledger(CATALOG))
    assert parsed({"model_type": "gemma3", "text_config": text}, figures=beside) == ours


@pytest.mark.parametrize("key", UNSUPPORTED)
def test_what_has_no_closed_form_is_refused_by_name(key):
    assert f"config.{key}" in problems(lambda: from_config({**CONFIGS["Llama-3.1-8B"], key: 3}, "x"))
    from_config({**CONFIGS["Llama-3.1-8B"], key: None}, "x")


@pytest.mark.parametrize(("key", "value", "words"), [
    ("num_hidden_layers", 10**6, "whole number from 1 to"), ("num_hidden_layers", "many", "whole number"), ("num_hidden_layers", True, "whole number"),
    ("num_attention_heads", 32.5, "whole number"), ("num_key_value_heads", 5, "divisor of the 32 attention heads"), ("hidden_size", -4096, "whole number"),
    ("hidden_size", [4096, 2048], "differs between"), ("layer_types", ["full_attention"], "one item for each of the 32 layers"),
    ("layer_types", ["mamba"] * 32, "mamba"), ("architectures", ["BertForMaskedLM"], "encoder"), ("sliding_window", float("nan"), "whole number"),
])  # fmt: skip
def test_a_malformed_key_is_named(key, value, words):
    found = problems(lambda: from_config({**CONFIGS["Llama-3.1-8B"], key: value}, "x"))
    assert words in found[f"config.{key}"] and len(found) == 1


def test_impossible_experts_are_named():
    moe = CONFIGS["DeepSeek-V3"]
    assert (
        "at most the 256 experts"
        in problems(lambda: from_config({**moe, "num_experts_per_tok": 300}, "x"))["config.num_experts_per_tok"]
    )
    found = problems(lambda: from_config({**moe, "first_k_dense_replace": [3]}, "x"))
    assert "expected a whole number" in found["config.first_k_dense_replace"]


def moe(**keys):
    return {
        **NEW,
        "hidden_act": "silu",
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 512,
        **keys,
    }


@pytest.mark.parametrize(("keys", "dense"), [
    ({}, 0), ({"first_k_dense_replace": 3}, 3), ({"moe_layer_freq": 2}, 6), ({"moe_layer_freq": [0] * 2 + [1] * 10}, 2),
    ({"decoder_sparse_step": 3}, 8), ({"decoder_sparse_step": 2, "mlp_only_layers": [1, 3, 4]}, 8), ({"moe_layers": [1, 5, 9]}, 9),
    ({"moe_layers_enum": "4,5, 6"}, 9), ({"mlp_layer_types": ["dense"] + ["sparse"] * 11}, 1),
    ({"moe_layer_start_index": 2, "moe_layer_end_index": 9, "moe_layer_interval": 2}, 8), ({"moe_layer_start_index": 2, "moe_layer_end_index": -1}, 2),
])  # fmt: skip
def test_the_layers_with_experts_are_counted_in_every_way_of_saying_so(keys, dense):
    # among 12 layers, (i + 1) % 3 == 0 holds for 2, 5, 8, 11; (i + 1) % 2 == 0 for 6 odd ones, less 1 and 3; 3, 5, 7, 9 between 2 and 9
    assert parsed(moe(**keys)).dense_layers == dense


@pytest.mark.parametrize(("keys", "windows", "linear"), [
    ({}, 12, 0), ({"sliding_window": None}, 0, 0), ({"use_sliding_window": False}, 0, 0), ({"use_sliding_window": True, "max_window_layers": 8}, 4, 0),
    ({"sliding_window_pattern": 4}, 9, 0), ({"_sliding_window_pattern": 6}, 10, 0), ({"sliding_window_pattern": "LLLG"}, 9, 0),
    ({"layer_types": ["full_attention"] * 12}, 0, 0), ({"layer_types": ["sliding_attention"] * 5 + ["full_attention"] * 7}, 5, 0),
    ({"layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 3}, 0, 9), ({"hybrid_layer_pattern": [0, 1, 1, 1] * 3}, 9, 0),
    ({"attn_type_list": [0, 0, 0, 1] * 3, "sliding_window": None}, 0, 9), ({"no_rope_layers": [1, 1, 1, 0] * 3}, 9, 0),
    ({"linear_attn_config": {"full_attn_layers": [4, 8, 12]}}, 0, 9), ({"full_attention_interval": 4}, 0, 9),
    ({"attention_layers": ["global", "local"] * 6}, 6, 0), ({"model_type": "gpt_oss"}, 6, 0), ({"model_type": "llama4_text"}, 9, 0),
])  # fmt: skip
def test_windows_and_linear_layers_are_counted_in_every_way_of_saying_so(keys, windows, linear):
    shape = parsed({**NEW, "hidden_act": "silu", "sliding_window": 512, **keys})
    assert (shape.window_layers, shape.linear_layers) == (windows, linear)
    assert shape.window_tokens == (512 if windows else 0)


def test_a_window_saves_cache_as_in_our_record():
    shape = parsed(CONFIGS["Gemma-3-27b-it"])
    # 10 full layers of 32768 tokens and 52 of 1024, keys and values of 16 heads of 128, two bytes each
    assert kv_bytes(shape, 32768, 2) == (10 * 32768 + 52 * 1024) * 2 * 16 * 128 * 2


def test_shared_experts_may_be_given_by_their_width():
    assert parsed(moe(shared_expert_intermediate_size=2048)).shared_experts == 4
    assert (
        "multiple of the expert width 512"
        in problems(lambda: from_config(moe(shared_expert_intermediate_size=600), "x"))[
            "config.shared_expert_intermediate_size"
        ]
    )


@pytest.mark.parametrize(("keys", "kv_heads"), [
    ({"multi_query": True}, 1), ({"multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 8}, 8),
    ({"n_head_kv": 4}, 4), ({"multi_query_group_num": 2}, 2), ({}, 16),
])  # fmt: skip
def test_key_value_heads_by_every_name(keys, kv_heads):
    assert parsed({**NEW, "hidden_act": "silu", **keys}).kv_heads == kv_heads


# -- as a file and as a part of a spec ------------------------------------------------------------------------------------


def test_a_file_is_an_architecture_of_its_name(tmp_path):
    (tmp_path / "my-model.config.json").write_text(json.dumps(CONFIGS["Llama-3.1-8B"]))
    record = Catalog.load([tmp_path]).get("architectures", "my-model")
    assert record.value("layers") == 32 and record.words("attention") == "gqa"
    assert (
        record.figure("layers").source == ("overlay:my-model.config.json",)
        and record.figure("layers").kind == "override"
    )


def test_a_file_that_is_wrong_is_named_with_its_keys(tmp_path):
    (tmp_path / "a.config.json").write_text('{"model_type": "llama", "hidden_size": "x"}')
    (tmp_path / "b.config.json").write_text("[]")
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "c.json").write_text("[" * 100_000)
    found = problems(lambda: Catalog.load([tmp_path]))
    assert found[f"{tmp_path}/a.config.json: hidden_size"].startswith("expected a whole number")
    assert f"{tmp_path}/a.config.json: vocab_size" in found
    assert "as an object, got list" in found[f"{tmp_path}/b.config.json"]
    assert 'rename it to "<name>.config.json"' in found[f"{tmp_path}/config.json"]
    assert "cannot be read as JSON" in found[f"{tmp_path}/c.json"]


def test_a_spec_names_no_files(tmp_path):
    (tmp_path / "secret.json").write_text(json.dumps(CONFIGS["Llama-3.1-8B"]))
    found = problems(lambda: catalog_with("mine", str(tmp_path / "secret.json")))
    assert "expected the content of a config.json as an object, got str" in found["catalog.architectures[0].config"]
    assert (
        "only architectures"
        in problems(lambda: Catalog.load(blocks=[{"chips": [{"name": "x", "config": {}}]}]))["catalog.chips[0].config"]
    )


def test_what_is_stated_beside_the_config_holds():
    entry = {
        "figures": {"vocab": {"value": 50000, "note": "padded"}},
        "text": {"tied": "true", "gated": "false"},
        "aliases": ["the other"],
    }
    catalog = catalog_with("mine", CONFIGS["Llama-3.1-8B"], **entry)
    shape = shape_of(catalog.get("architectures", "the other"), Ledger(catalog))
    assert (shape.vocab, shape.tied, shape.gated, shape.layers) == (50000, True, False, 32)
    assert catalog.get("architectures", "mine").figure("vocab").note == "padded"
    assert "note" in next(
        iter(problems(lambda: catalog_with("mine", CONFIGS["Llama-3.1-8B"], figures={"vocab": {"value": 5}})))
    )


def test_a_config_under_a_name_of_ours_keeps_nothing_of_the_record():
    record = catalog_with("gpt-oss-20b", CONFIGS["Llama-3.1-8B"]).get("architectures", "gpt-oss-20b")
    assert record.get("experts") is None and record.get("total_parameters") is None and record.value("layers") == 32


def test_the_digest_knows_the_config():
    assert catalog_with("mine", CONFIGS["Llama-3.1-8B"]).digest != catalog_with("mine", CONFIGS["Llama-3.2-1B"]).digest


KEY = st.sampled_from(sorted({key for keys in KEYS.values() for key in keys} | set(UNSUPPORTED) | {
    "layer_types", "moe_layer_freq", "moe_layers", "mlp_only_layers", "sliding_window_pattern", "use_sliding_window", "text_config", "model_type",
    "tie_word_embeddings", "hidden_act", "no_rope_layers", "linear_attn_config", "architectures", "moe_layers_enum", "max_window_layers"}))  # fmt: skip
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 50) | st.sampled_from([10**30, 1e300, -1e-300]) | st.floats() | st.text(max_size=5)
    | st.sampled_from(["gpt_oss", "llama4", "full_attention", "sliding_attention", "silu", "LLG"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEY, inner, max_size=3), max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(KEY, VALUE, max_size=6), st.sampled_from(sorted(CONFIGS)))
@settings(max_examples=few_of(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_config_is_read_or_refused_with_a_place(changes, name):
    try:
        shape = parsed({**CONFIGS[name], **changes})
    except CatalogError as error:
        assert all(path.startswith("catalog.architectures[0]") and words for path, words in error.problems)
    else:
        assert parameter_counts(shape).total > 0


def test_sizes_cover_what_the_issue_of_shapes_asks():
    kinds = {
        (shape.mla, bool(shape.experts), bool(shape.window_layers), shape.tied, shape.gated)
        for shape in map(parsed, CONFIGS.values())
    }
    assert len(SIZES) >= 8 and len(kinds) >= 8 and max(SIZES.values()) > 600 * BILLION


# -- kinds of layers, with the published count of each network (figures of the published config.json) ----------------------

KINDS = {
    "gemma-4-31b": (30.7e9, {
        "model_type": "gemma4_text", "attention_k_eq_v": True, "global_head_dim": 512, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 5376, "intermediate_size": 21504, "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
        "num_attention_heads": 32, "num_global_key_value_heads": 4, "num_hidden_layers": 60, "num_key_value_heads": 16,
        "sliding_window": 1024, "tie_word_embeddings": True, "vocab_size": 262144,
    }),
    "Qwen3.5-27B": (27e9, {
        "model_type": "qwen3_5_text", "attn_output_gate": True, "head_dim": 256, "hidden_act": "silu", "hidden_size": 5120,
        "intermediate_size": 17408, "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_value_head_dim": 128, "num_attention_heads": 24,
        "num_hidden_layers": 64, "num_key_value_heads": 4, "tie_word_embeddings": False, "vocab_size": 248320,
    }),
    "Nemotron-3-Nano": (31.6e9, {
        "model_type": "nemotron_h", "hidden_size": 2688, "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        "intermediate_size": 1856, "mamba_head_dim": 64, "mamba_num_heads": 64, "mlp_hidden_act": "relu2", "moe_intermediate_size": 1856,
        "moe_shared_expert_intermediate_size": 3712, "n_groups": 8, "n_routed_experts": 128, "n_shared_experts": 1, "num_attention_heads": 32,
        "head_dim": 128, "num_experts_per_tok": 6, "num_hidden_layers": 52, "num_key_value_heads": 2, "ssm_state_size": 128, "conv_kernel": 4,
        "tie_word_embeddings": False, "vocab_size": 131072,
    }),
    "MiniMax-M1": (456e9, {
        "model_type": "minimax", "attn_type_list": ([0] * 7 + [1]) * 10, "head_dim": 128, "hidden_act": "silu", "hidden_size": 6144,
        "intermediate_size": 9216, "num_attention_heads": 64, "num_experts_per_tok": 2, "num_hidden_layers": 80, "num_key_value_heads": 8,
        "num_local_experts": 32, "tie_word_embeddings": False, "vocab_size": 200064,
    }),
    "DeepSeek-V4-Flash": (284e9, {
        "model_type": "deepseek_v4", "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0], "head_dim": 512, "hidden_act": "silu", "hidden_size": 4096,
        "index_head_dim": 128, "index_n_heads": 64, "index_topk": 512, "moe_intermediate_size": 2048, "n_routed_experts": 256,
        "n_shared_experts": 1, "num_attention_heads": 64, "num_experts_per_tok": 6, "num_hidden_layers": 43, "num_key_value_heads": 1,
        "o_groups": 8, "o_lora_rank": 1024, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "sliding_window": 128,
        "tie_word_embeddings": False, "vocab_size": 129280,
    }),
    "Kimi-Linear-48B-A3B": (48e9, {
        "model_type": "kimi_linear", "first_k_dense_replace": 1, "head_dim": 72, "hidden_act": "silu", "hidden_size": 2304, "intermediate_size": 9216,
        "kv_lora_rank": 512, "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "num_heads": 32,
                                                    "short_conv_kernel_size": 4},
        "moe_intermediate_size": 1024, "num_attention_heads": 32, "num_experts": 256, "num_experts_per_token": 8, "num_hidden_layers": 27,
        "num_key_value_heads": 32, "num_shared_experts": 1, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "tie_word_embeddings": False, "vocab_size": 163840,
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_networks_of_other_kinds_of_layers_have_their_published_size(name):
    published, config = KINDS[name]
    assert parameter_counts(parsed(config)).total == pytest.approx(published, rel=0.03)


def test_keys_that_change_a_shape_and_are_not_known_refuse_the_config():
    found = problems(lambda: from_config({**CONFIGS["Llama-3.1-8B"], "local_head_dim": 64}, "x"))
    assert "changes the shape" in found["config.local_head_dim"]
