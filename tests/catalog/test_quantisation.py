"""Weights read from the quantization_config of a checkpoint: its format, what stays in 16 bit, the scales, the cache.

The configs are typed as their publishers print them, cut to the keys that matter.
"""

from __future__ import annotations

import pytest

from catalog import Catalog
from catalog.huggingface import from_config
from models.formats import Checkpoint
from models.transformer.checkpoint import checkpoint_bytes
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger

DENSE = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu", "tie_word_embeddings": False,
}  # fmt: skip
EXPERTS = {
    "model_type": "deepseek_v3", "hidden_size": 1024, "intermediate_size": 4096, "moe_intermediate_size": 512, "num_attention_heads": 16,
    "num_hidden_layers": 8, "num_key_value_heads": 16, "n_routed_experts": 16, "num_experts_per_tok": 4, "n_shared_experts": 1,
    "first_k_dense_replace": 2, "kv_lora_rank": 256, "q_lora_rank": 512, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64,
    "vocab_size": 32000, "hidden_act": "silu", "tie_word_embeddings": False,
}  # fmt: skip


def packed(bits=4, kind="int", group=32, **rest):
    weights = {"num_bits": bits, "type": kind, "group_size": group, "strategy": "group"}
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}},
        **rest,
    }


def entry(quantised, config=DENSE):
    return from_config({**config, "quantization_config": quantised}, "mine")


def shape(quantised, config=DENSE):
    catalog = Catalog.load(
        blocks=[{"architectures": [{"name": "mine", "config": {**config, "quantization_config": quantised}}]}]
    )
    return shape_of(catalog.get("architectures", "mine"), Ledger(catalog))


@pytest.mark.parametrize(
    ("quantised", "weights", "wide", "cache"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", "router, head", None),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", "router, head", None),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8", "router, head", None),
        (
            {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]},
            "mxfp4", "attention, router, head", None,
        ),
        (
            packed(ignore=["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"]),
            "int4", "attention, dense, shared, router, head", None,
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.0*"]},
            "nvfp4", "attention 1/32, dense 1/32, shared 1/32, experts 1/32, router, head", "fp8",
        ),
        (packed(8, "float", None, ignore=["lm_head"], kv_cache_scheme={"num_bits": 8, "type": "float"}), "fp8", "router, head", "fp8"),
        (packed(4, "float", 16, kv_cache_scheme=None), "nvfp4", "router, head", "bf16"),
    ],
)  # fmt: skip
def test_published_kinds_are_read(quantised, weights, wide, cache):
    texts = entry(quantised)["text"]
    assert (texts["weights"], texts[f"{weights}_wide"], texts.get(f"{weights}_cache")) == (weights, wide, cache)


def test_modules_named_layer_by_layer_give_a_share():
    # as Meta's checkpoint in FP8: all attention, and the feed-forward blocks of the first and the last layer
    names = [f"model.layers.{i}.self_attn.{each}_proj" for i in range(32) for each in "qkvo"]
    names += [f"model.layers.{i}.mlp.{each}_proj" for i in (0, 31) for each in ("gate", "up", "down")]
    found = shape({"quant_method": "fbgemm_fp8", "modules_to_not_convert": names})
    assert dict(found.checkpoints)["fp8"] == Checkpoint("fp8", attention=1.0, ffn=2 / 32, router=1.0, tables=1.0)


def test_only_routed_experts_are_narrow_where_all_else_is_ignored():
    ignore = ["re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|down)_proj.*", "lm_head"]
    found = shape(packed(ignore=ignore), EXPERTS)
    assert dict(found.checkpoints)["int4"] == Checkpoint(
        "int4", attention=1.0, ffn=1.0, router=1.0, tables=1.0, group=32
    )
    assert checkpoint_bytes(found, "int4") > 0.25 * checkpoint_bytes(found, "bf16")


def test_four_bits_of_a_checkpoint_are_its_own_kind():
    found = dict(shape({"quant_method": "mxfp4", "modules_to_not_convert": []}).checkpoints)
    assert found["fp4"] == found["mxfp4"] and found["fp4"].kind == "mxfp4"


def test_a_kind_that_is_not_known_is_named():
    found = entry({"quant_method": "vptq", "modules_to_not_convert": None})
    assert "weights" not in found["text"] and "quantization_config (vptq) is not read" in found["text"]["note"]


@pytest.mark.parametrize("name", ["re:(.*", "re:[", "re:" + "(a|b)" * 40, "re:(.*)*(.*)*(.*)*x", "*" * 200, ""])
def test_odd_patterns_end_quickly_and_match_nothing_wrong(name):
    assert entry(packed(ignore=[name] * 300))["text"]["int4_wide"].endswith("router, head")


def test_a_part_that_is_none_is_refused_with_the_parts_that_are():
    record = {"name": "mine", "config": DENSE, "text": {"fp8_wide": "atention"}}
    catalog = Catalog.load(blocks=[{"architectures": [record]}])
    with pytest.raises(
        ValueError, match=r"fp8_wide: atention is no part .* attention, dense, shared, experts, router, head"
    ):
        shape_of(catalog.get("architectures", "mine"), Ledger(catalog))
