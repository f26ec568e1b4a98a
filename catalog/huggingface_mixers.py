"""Shapes of the blocks of a Hugging Face config.json that mix tokens other than by plain attention: states, windows with heads of their
own, sparse and compressed attention, and networks whose layers are one block each. What they cost is in models.transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.errors import Wrong
from catalog.huggingface_reader import ConfigReader, whole

STATE_KERNEL = 4  # steps of the convolution before a state, where no key states them
GATED_DELTA = {
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}  # defaults of a qwen3_next or qwen3_5 config that leaves them out, as its class does
PATTERNS = ("hybrid_override_pattern", "layers_block_type")
BLOCKS = {"M": "state", "*": "attention", "-": "dense", "E": "experts", "mamba": "state", "attention": "attention", "mlp": "dense",
          "moe": "experts"}  # fmt: skip


def states(reader: ConfigReader, linear: int, hidden: int | None, family: str) -> None:
    """Record the state of layers with linear attention or a state space: inner width, further inputs, state and convolution."""
    config = reader.config
    if not linear:
        return
    mixed = config.get("linear_attn_config")
    heads, width = reader.value("heads"), reader.value("head_dim")
    if any(key in config for key in GATED_DELTA) or family.startswith(("qwen3_next", "qwen3_5")):
        _gated_delta(reader)
    elif isinstance(mixed, Mapping) and mixed.get("num_heads"):
        _channel_gates(reader, mixed, hidden)
    elif config.get("layer_group_size") and config.get("short_conv_kernel_size"):  # heads as those of its attention
        _channel_gates(reader, {"num_heads": heads, "head_dim": width, **config}, hidden)
    elif isinstance(config.get("attn_type_list"), list) or config.get("layer_group_size"):
        key = "attn_type_list" if config.get("attn_type_list") else "layer_group_size"
        if heads and width:
            inner = heads * width
            words = f"{key} of the config: lightning attention, {heads} heads of {width}, with an output gate"
            _put(reader, words, state_width=inner, state_inputs=2 * inner, state_dim=width)
    elif config.get("conv_L_cache") and hidden:
        words = "conv_L_cache of the config: a gated short convolution of the hidden width"
        kept = hidden * reader.number(0, "conv_L_cache")
        _put(reader, words, state_width=hidden, state_inputs=hidden, state_conv=kept)
    elif any(key in config for key in ("mamba_num_heads", "mamba_n_heads")):
        state_space(reader)
    else:
        words = "no key states the widths of layers with linear attention: counted with the weights of full ones and without a state"
        reader.notes.append(words)


def state_space(reader: ConfigReader) -> None:
    """Record a state-space block (Mamba-2): inner width heads x head width, inputs 2 groups x state + heads."""
    heads = reader.number(0, "mamba_num_heads", "mamba_n_heads")
    width = reader.number(0, "mamba_head_dim", "mamba_d_head")
    size = reader.number(0, "ssm_state_size", "mamba_d_state")
    groups = reader.number(1, "n_groups", "mamba_n_groups")
    kernel = reader.number(STATE_KERNEL, "conv_kernel", "mamba_d_conv")
    if not heads or not width or not size:
        reader.problem(
            "mamba_num_heads",
            Wrong("catalog.config_state_space"),
        )
        return
    inner, shared = heads * width, 2 * groups * size
    words = f"mamba_num_heads and others of the config: {heads} heads of {width}, state {size}, {groups} groups"
    conv = (kernel - 1) * (inner + shared)
    _put(reader, words, state_width=inner, state_inputs=shared + heads, state_dim=size, state_conv=conv)


def _gated_delta(reader: ConfigReader) -> None:
    keys, values, key_dim, value_dim = (reader.number(usual, key) for key, usual in GATED_DELTA.items())
    kernel = reader.number(STATE_KERNEL, "linear_conv_kernel_dim")
    inner, shared = values * value_dim, 2 * keys * key_dim
    stated = "linear_num_value_heads" in reader.config
    how = (
        "linear_num_value_heads and others of the config"
        if stated
        else "assumed: no linear_num_value_heads: as its code does"
    )
    words = f"{how}: gated delta net, {keys} key heads of {key_dim}, {values} value heads of {value_dim}, convolution of {kernel}"
    conv = (kernel - 1) * (inner + shared)
    _put(reader, words, state_width=inner, state_inputs=shared + 2 * values, state_dim=key_dim, state_conv=conv)


def _channel_gates(reader: ConfigReader, mixed: Mapping[str, Any], hidden: int | None) -> None:
    heads, width = whole(mixed.get("num_heads")), whole(mixed.get("head_dim"))
    kernel = whole(mixed.get("short_conv_kernel_size")) or STATE_KERNEL
    if not heads or not width or not hidden:
        reader.problem("linear_attn_config", Wrong("catalog.config_needs_whole", keys="num_heads, head_dim"))
        return
    inner = heads * width
    low_rank = width + round(width * inner / hidden)
    output = inner if mixed.get("use_full_rank_gate") or mixed.get("no_kda_lora") else low_rank
    decay = inner if mixed.get("no_kda_lora") else low_rank
    place = "linear_attn_config" if reader.config.get("linear_attn_config") else "layer_group_size"
    words = f"{place} of the config: delta attention with a gate per channel: {heads} heads of {width}; a low-rank gate counts as inputs of the same size"
    _put(reader, words, state_width=inner, state_inputs=inner + heads + output + decay, state_dim=width,
         state_conv=3 * (kernel - 1) * inner)  # fmt: skip


def windows_of_their_own(reader: ConfigReader) -> None:
    """Record the heads of layers with a window, where the config states them apart from the heads of full layers."""
    config = reader.config
    if config.get("global_head_dim"):  # the plain keys are those of the windows, the global ones those of full layers
        head_dim, kv_heads = reader.value("head_dim"), reader.value("kv_heads")
        full_kv = reader.number(kv_heads or 0, "num_global_key_value_heads")
        if head_dim and kv_heads and full_kv:
            _put(
                reader,
                "head_dim and num_key_value_heads of the config: of layers with a window",
                window_head_dim=head_dim,
                window_kv_heads=kv_heads,
            )
            _put(
                reader,
                "global_head_dim and num_global_key_value_heads of the config: of full layers",
                head_dim=reader.number(0, "global_head_dim"),
                kv_heads=full_kv,
            )
    other = config.get("attention_other_setting")
    apart = (
        {**config, **{f"swa_{key}": value for key, value in other.items()}} if isinstance(other, Mapping) else config
    )
    for figure, keys in (
        ("window_heads", ("swa_num_attention_heads",)),
        ("window_kv_heads", ("swa_num_key_value_heads", "swa_num_attention_groups")),
        ("window_head_dim", ("swa_head_dim",)),
    ):
        key = next((key for key in keys if whole(apart.get(key))), None)
        plain = reader.value(figure.removeprefix("window_"))
        if key is not None and (number := whole(apart[key])) != plain and number:
            reader.put(figure, number, f"{key} of the config")
    if config.get("attention_k_eq_v") is True:
        reader.put("shared_kv", 1, "attention_k_eq_v of the config")
    value = reader.number(0, "v_head_dim")
    if value and value != reader.value("head_dim"):
        reader.put("v_head_dim", value, "v_head_dim of the config")


def sparse(reader: ConfigReader) -> None:
    """Record the indexer of sparse attention: entries kept, heads and width of its keys, and the layers that have one of their own."""
    listed = reader.config.get("sparse_attention_config")
    block = listed if isinstance(listed, Mapping) and listed.get("use_sparse_attention") else None
    if block is not None or reader.config.get("index_topk_blocks"):
        names = ("sparse_topk_blocks", "sparse_block_size", "sparse_num_index_heads", "sparse_index_dim")
        flat = ("index_topk_blocks", "index_block_size", "index_n_heads", "index_head_dim")
        of, keys = (block, names) if block is not None else (reader.config, flat)
        blocks, size, heads, width = (whole(of.get(key)) for key in keys)
        if blocks and size and heads and width:
            words = f"{keys[0]} and others of the config: {blocks} blocks of {size} tokens"
            _put(reader, words, sparse_topk=blocks * size, index_heads=heads, index_dim=width)
        else:
            reader.problem("sparse_attention_config", Wrong("catalog.config_needs_whole", keys=", ".join(names)))
        if "sparse_layers" in reader.figures:
            reader.put("index_layers", reader.figures["sparse_layers"]["value"], "as many as its sparse layers")
        return
    if reader.optional("sparse_topk"):
        for figure in ("index_heads", "index_dim"):
            reader.needed(figure)
    kinds = reader.config.get("indexer_types")
    if isinstance(kinds, list) and "shared" in kinds:
        layers = int(reader.figures.get("layers", {}).get("value", len(kinds)))
        reader.put("index_layers", kinds[:layers].count("full"), "counted from indexer_types of the config")


def compressed(reader: ConfigReader, layers: int) -> bool:
    """Record layers that cache one entry for several tokens, from the list of ratios; False where there is none."""
    ratios = reader.config.get("compress_ratios")
    if not isinstance(ratios, list):
        return False
    found = [
        whole(ratio) for ratio in ratios[:layers]
    ]  # ratios beyond the layers are those of layers that predict further tokens
    kinds = sorted({ratio for ratio in found if ratio and ratio > 1})
    if len(found) < layers or None in found or len(kinds) > 2:
        reader.problem("compress_ratios", Wrong("catalog.config_compress_ratios", layers=str(layers)))
        return True
    for name, ratio in zip(("csa", "hca"), kinds, strict=False):
        reader.put(f"{name}_layers", found.count(ratio), "counted from compress_ratios of the config")
        reader.put(f"{name}_ratio", ratio, "compress_ratios of the config")
    plain = sum(1 for ratio in found if not ratio or ratio <= 1)
    if plain:
        reader.put("window_layers", plain, "counted from compress_ratios of the config")
    reader.needed("window_tokens")
    for figure in ("o_lora_rank", "o_groups", "q_lora_rank"):
        reader.optional(figure)
    sparse(reader)
    reader.texts["attention_pattern"] = f"compressed entries: {found.count(kinds[0]) if kinds else 0} and more layers"
    return True


def single_blocks(reader: ConfigReader) -> bool:
    """Record a network whose layers are one block each: how many of attention, state, experts and dense; False for any other."""
    key = next((key for key in PATTERNS if reader.config.get(key)), None)
    if key is None:
        return False
    kinds = [BLOCKS.get(str(item)) for item in reader.config[key]]
    unknown = sorted({str(item) for item, kind in zip(reader.config[key], kinds, strict=True) if kind is None})
    if unknown:
        reader.problem(key, Wrong("catalog.config_layer_kinds", kinds=", ".join(unknown)[:80]))
        return True
    counts = {kind: kinds.count(kind) for kind in ("attention", "state", "experts", "dense")}
    how = f"counted from {key} of the config"
    reader.put("layers", len(kinds), how)
    reader.put("attention_layers", counts["attention"], how)
    reader.put("linear_layers", counts["state"], how)
    if counts["experts"]:
        reader.put("dense_layers", counts["dense"], how) if counts["dense"] else None
    reader.texts["type"] = "hybrid"
    reader.texts["attention_pattern"] = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    state_space(reader)
    return True


def _put(reader: ConfigReader, words: str, **figures: int) -> None:
    for figure, value in figures.items():
        reader.put(figure, value, words)
