"""Which layers of a Hugging Face config.json have experts, sliding-window attention or linear attention, by each way of stating it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catalog.errors import Wrong
from catalog.huggingface_keys import KEYS, LAYER_KINDS, Family
from catalog.huggingface_reader import ConfigReader, whole

FIRST_DENSE = (
    "first_k_dense_replace",
    "moe_layer_start_index",
    "moe_layer_num_skipped",
    "num_dense_layers",
    "n_dense_first_layers",
    "dense_mlp_idx",
)  # layers without experts before the others


def expert_layers(reader: ConfigReader, layers: int) -> list[bool]:
    """Tell which layers have experts, by each of the keys with which configs state it."""
    config = reader.config
    listed = config.get("moe_layers", config.get("moe_layers_enum"))
    if isinstance(listed, (list, str)):
        return _members([whole(item) for item in (listed.split(",") if isinstance(listed, str) else listed)], layers)
    for key, word in (("mlp_layer_types", "sparse"), ("moe_layer_freq", 1)):
        if isinstance(config.get(key), list):
            return [item == word for item in reader.per_layer(key, layers)]
    first = reader.number(0, *FIRST_DENSE)
    last = reader.number(-1, "moe_layer_end_index")
    after = (
        reader.number(1, "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", "moe_every_n_layer")
        or 1
    )
    at = reader.number(1, "moe_layer_freq") or 1
    without = config.get("mlp_only_layers") or []
    if not isinstance(without, list):
        reader.problem("mlp_only_layers", Wrong("catalog.config_layer_list", given=repr(str(without)[:60])))
        return [True] * layers
    last = layers - 1 if last == -1 else last
    return [first <= i <= last and i not in without and (i + 1) % after == 0 and i % at == 0 for i in range(layers)]


def _members(indices: Sequence[object], layers: int) -> list[bool]:
    members = set(map(str, indices))
    return [str(i) in members for i in range(layers)]


def layer_kinds(reader: ConfigReader, layers: int, family: Family | None) -> None:
    """Record how many layers have full, sliding-window and linear attention."""
    kinds, how = _kinds_by_key(reader, layers)
    if kinds is None:
        kinds, how = _kinds_by_rule(reader, layers, family)
    unknown = sorted({str(kind) for kind in kinds if kind not in ("full", "window", "linear", "sparse", None)})
    if unknown:
        reader.problem(how, Wrong("catalog.config_layer_kinds", kinds=", ".join(unknown)[:80]))
    windows, linear = kinds.count("window"), kinds.count("linear")
    _sparse_layers(reader, kinds, how)
    _heads_by_kind(reader, kinds, layers)
    if linear:
        reader.put("linear_layers", linear, f"counted from {how} of the config")
        reader.texts["type"] = "hybrid"
    if windows:
        tokens = reader.needed("window_tokens")
        if how.startswith("assumed"):
            reader.assume("window_layers", windows, how.removeprefix("assumed: "))
        else:
            reader.put("window_layers", windows, f"counted from {how} of the config")
        reader.texts["attention_pattern"] = (
            f"{windows} layers with window {tokens}, {layers - windows - linear} full"
            + (f", {linear} linear" if linear else "")
        )
    elif not unknown:
        reader.texts["attention_pattern"] = f"{linear} linear, {layers - linear} full" if linear else "full"


def _sparse_layers(reader: ConfigReader, kinds: Sequence[object], how: str) -> None:
    """Record how many layers keep what an indexer chooses, where others attend to all."""
    listed = reader.config.get("sparse_attention_config")
    frequency = listed.get("sparse_attention_freq") if isinstance(listed, Mapping) else None
    if isinstance(frequency, list):
        chosen, how = sum(1 for item in frequency if item), "sparse_attention_config"
    else:
        chosen = kinds.count("sparse")
    if chosen and chosen < kinds.count("full") + kinds.count("sparse"):
        reader.put("sparse_layers", chosen, f"counted from {how} of the config")


def _heads_by_kind(reader: ConfigReader, kinds: Sequence[object], layers: int) -> None:
    """Record the query heads of full layers and of those with a window, where the config lists them by layer."""
    key = "num_attention_heads_per_layer"
    if not isinstance(reader.config.get(key), list):
        return
    heads = reader.per_layer(key, layers)
    for figure, kind in (("heads", "full"), ("window_heads", "window")):
        found = {whole(number) for number, other in zip(heads, kinds, strict=True) if other == kind}
        number = found.pop() if len(found) == 1 else None
        if number:
            reader.put(figure, number, f"{key} of the config")
        elif found:
            reader.problem(key, Wrong("catalog.config_differs_in_kind"))


def _kinds_by_key(reader: ConfigReader, layers: int) -> tuple[list[Any] | None, str]:
    """Read the kind of attention of each layer where a key lists them."""
    config = reader.config
    for key in ("layer_types", "attention_layers"):
        if isinstance(config.get(key), list):
            stated = any(name in config for name in ("mamba_num_heads", "mamba_n_heads"))  # else "mamba" has no widths
            known = LAYER_KINDS | ({"mamba": "linear", "mamba2": "linear"} if stated else {})
            known |= {"conv": "linear"} if "conv_L_cache" in config else {}
            return [known.get(str(kind), kind) for kind in reader.per_layer(key, layers)], key
    for key, (listed, others) in {"local_layer_ids": ("window", "full"), "gqa_layers": ("full", "linear")}.items():
        if isinstance(config.get(key), list) and config[key]:
            return [listed if member else others for member in _members([whole(i) for i in config[key]], layers)], key
    for key, kinds in (
        ("attn_type_list", ("linear", "full")),
        ("hybrid_layer_pattern", ("full", "window")),
        ("no_rope_layers", ("full", "window")),
    ):
        if isinstance(config.get(key), list) and config[key]:
            return [kinds[int(item)] if item in (0, 1) else item for item in reader.per_layer(key, layers)], key
    mixed = config.get("linear_attn_config")
    if isinstance(mixed, Mapping) and isinstance(mixed.get("full_attn_layers"), list):
        full = sum(_members([(whole(i) or 0) - 1 for i in mixed["full_attn_layers"]], layers))
        return ["full"] * full + ["linear"] * (layers - full), "linear_attn_config"
    for key in ("full_attention_interval", "layer_group_size"):
        every = reader.number(0, key)
        if every > 0:
            return ["full"] * (layers // every) + ["linear"] * (layers - layers // every), key
    return None, ""


def _kinds_by_rule(reader: ConfigReader, layers: int, family: Family | None) -> tuple[list[Any], str]:
    """Derive the kind of attention of each layer where no key lists them: a pattern, a window on all, or full."""
    config = reader.config
    pattern = config.get("sliding_window_pattern")
    off = any(key in config and config[key] in (None, False, 0, -1) for key in KEYS["window_tokens"])
    windowed = reader.value("window_tokens") is not None or (family is not None and family.every > 0 and not off)
    if config.get("use_sliding_window") is False or not windowed:
        return ["full"] * layers, ""
    if isinstance(pattern, str) and pattern and set(pattern) <= {"L", "G"}:
        return [
            {"L": "window", "G": "full"}[pattern[i % len(pattern)]] for i in range(layers)
        ], "sliding_window_pattern"
    every, how = reader.number(0, "sliding_window_pattern", "_sliding_window_pattern"), "sliding_window_pattern"
    if every < 1 and family:
        every, how = (
            family.every,
            f"assumed: no key lists the layers: one in {family.every} attends to all, as its code does",
        )
    if every > 0:
        return [("full" if (i + 1) % every == 0 else "window") for i in range(layers)], how
    if config.get("use_sliding_window") is True and config.get("max_window_layers") is not None:
        first = reader.number(0, "max_window_layers")
        return ["full" if i < first else "window" for i in range(layers)], "max_window_layers"
    return ["window"] * layers, "assumed: no key lists the layers: the window holds in all of them"
