"""An architecture from a Hugging Face config.json, as an entry of an overlay. It reads the keys by all their names; what the
config leaves open is either derived by a rule that a note states, or asked for. What a shape costs is in models.transformer.architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.errors import CatalogError, Wrong
from catalog.huggingface_keys import (
    ACTIVATIONS,
    ELSEWHERE,
    FAMILIES,
    KEYS,
    MOST_LAYERS,
    OUTPUT_GATES,
    PLAIN,
    READ,
    SHAPING,
    TEXT_PARTS,
    TIED,
    UNSUPPORTED,
    WIDE,
    Family,
)
from catalog.huggingface_layers import expert_layers, layer_kinds
from catalog.huggingface_mixers import compressed, single_blocks, sparse, states, windows_of_their_own
from catalog.huggingface_reader import ConfigReader, part_of
from catalog.huggingface_stacks import idle_experts, shortcut_blocks
from catalog.quantisation import read_weights

UNKNOWN_CODE = "its code is not known here: each key is taken in its usual meaning"
"""Part of the note of a record from a config whose model_type is none of FAMILIES."""


def from_config(config: object, name: str, stated: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Turn a Hugging Face config.json into an entry of an overlay: figures with the key each comes from.

    `stated` is an entry of the same form whose figures and texts hold before the config's and fill what it leaves open.
    Raises CatalogError with every key that is missing, malformed or of a kind without a closed form.
    """
    if not isinstance(config, Mapping):
        code = "catalog.config_as_object_or_file" if isinstance(config, str) else "catalog.config_as_object"
        raise CatalogError([("config", Wrong(code, given=type(config).__name__))])
    part = next((p for p in TEXT_PARTS if isinstance(config.get(p), Mapping)), None)
    stated = stated or {}
    reader = (
        ConfigReader({**config, **config[part]}, f"config.{part}", stated, config[part])
        if part
        else ConfigReader(config, "config", stated, config)
    )
    if part:
        reader.notes.append(f"only its {part} is read: other parts, such as one for images, are left out")
    _read(reader)
    if reader.problems:
        raise CatalogError(reader.problems)
    return {
        **{key: value for key, value in stated.items() if key != "config"},
        "name": name,
        "text": {**reader.texts, "note": "; ".join(reader.notes), **part_of(stated, "text")},
        "figures": {**reader.figures, **part_of(stated, "figures")},
    }


def _read(reader: ConfigReader) -> None:
    model_type = str(reader.config.get("model_type") or "")
    family = FAMILIES.get(model_type)
    reader.notes.insert(0, f"from a Hugging Face config.json, model_type {model_type or 'not stated'}")
    if family is None:
        reader.notes.append(UNKNOWN_CODE)
    if _refuse(reader):
        return  # no further key would make it one that can be read
    blocks = single_blocks(reader) or shortcut_blocks(reader)
    layers = reader.value("layers", MOST_LAYERS) if blocks and reader.value("layers") else None
    if not blocks:
        layers = reader.needed("layers", MOST_LAYERS)
    hidden, heads, _ = reader.needed("hidden"), reader.needed("heads"), reader.needed("vocab")
    _tied(reader, family)
    _attention(reader, hidden, heads)
    if blocks:
        if reader.value("experts"):
            _experts(reader, 0, family)
        _dense_ffn(reader, hidden, family)
    elif layers:
        if _experts(reader, layers, family) or _dense_beside(reader):
            _dense_ffn(reader, hidden, family)
        if not compressed(reader, layers):
            layer_kinds(reader, layers, family)
            linear = int(reader.figures.get("linear_layers", {}).get("value", 0))
            states(reader, linear, hidden, model_type)
            windows_of_their_own(reader)
    elif not reader.value("experts"):
        _dense_ffn(reader, hidden, family)
    _gated(reader, family)
    reader.optional("max_context")
    if not reader.config.get("compress_ratios"):
        sparse(reader)
    _output_gate(reader, family)
    if reader.number(0, "num_nextn_predict_layers"):
        reader.notes.append("its layers for predicting further tokens are left out")
    reader.texts |= {"family": model_type} if model_type else {}
    if layers and (quantised := part_of(reader.config, "quantization_config")):
        read_weights(reader, quantised, layers)


def _refuse(reader: ConfigReader) -> bool:
    """Name what has no closed form here; True where the network is of a kind that has none."""
    for key, code in UNSUPPORTED.items():
        if reader.config.get(key) not in (None, False, [], "", 0):
            reader.problem(key, Wrong(code))
    names = reader.config.get("architectures")
    if isinstance(names, list) and any("MaskedLM" in str(name) for name in names):
        reader.problem("architectures", Wrong("catalog.config_encoder"))
    if reader.problems:
        return True
    known = {key for keys in KEYS.values() for key in keys} | READ
    for key, value in reader.own.items():
        other = (
            key in known or key.startswith(ELSEWHERE) or isinstance(value, Mapping) or value in (None, False, 0, [], "")
        )
        if key.endswith(SHAPING) and not other:
            reader.problem(key, Wrong("catalog.config_shaping"))
    return False


def _output_gate(reader: ConfigReader, family: Family | None) -> None:
    """Record a gate as wide as the output of full attention; a gate of one number per head is below 0.1 % and left out."""
    key = next((key for key in OUTPUT_GATES if isinstance(reader.config.get(key), bool)), None)
    if key and reader.config[key] and reader.config.get("gating_type", "elementwise") == "elementwise":
        reader.put("output_gate", 1, f"{key} of the config")
    elif key is None and family is not None and family.output_gate:
        reader.put("output_gate", 1, f"assumed: no {OUTPUT_GATES[0]}: as its code does")


def _tied(reader: ConfigReader, family: Family | None) -> None:
    stated = next((reader.config[key] for key in TIED if reader.config.get(key) is not None), None)
    tied = part_of(reader.stated, "text").get("tied", stated)
    if tied is None:
        tied = family.tied if family else not reader.nested
        reason = "as its code does" if family else "as the library does where the key is left out"
        words = "shares the embedding with the head" if tied else "has an output head of its own"
        reader.remark("vocab", f"tie_word_embeddings is absent: {words}, {reason}")
    reader.texts["tied"] = str(tied).lower()


def _gated(reader: ConfigReader, family: Family | None) -> None:
    given = part_of(reader.stated, "text").get("gated")
    act = next((reader.config[key] for key in ACTIVATIONS if isinstance(reader.config.get(key), str)), None)
    if given is not None:
        gated = str(given).lower() == "true"
    elif family is not None:
        gated = family.gated
    elif act is None:
        reader.problem("hidden_act", Wrong("catalog.config_gated"))
        return
    else:  # code that is not known here never loses a matrix: nearly all networks of today gate
        gated = not act.lower().startswith(PLAIN)
        words = f"{'three' if gated else 'two'} matrices in a feed-forward block, from the activation {act}"
        reader.remark("ffn" if "ffn" in reader.figures else "expert_ffn", words)
    reader.texts["gated"] = str(gated).lower()


def _attention(reader: ConfigReader, hidden: int | None, heads: int | None) -> None:
    if reader.value("kv_lora_rank"):
        reader.texts["attention"] = "mla"
        for figure in ("kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim"):
            reader.needed(figure)
        query = reader.number(0, "qk_head_dim", "q_head_dim")
        parts = (reader.value("qk_nope_dim") or 0) + (reader.value("qk_rope_dim") or 0)
        if query and parts and query != parts:
            key = "qk_head_dim" if reader.config.get("qk_head_dim") else "q_head_dim"
            reader.problem(key, Wrong("catalog.config_query_heads", expected=str(parts), given=str(query)))
        if not reader.optional("q_lora_rank"):
            reader.notes.append("no q_lora_rank: queries without a latent")
        reader.optional("kv_heads")
        return
    kv_heads = _kv_heads(reader, heads)
    if reader.value("head_dim"):
        reader.optional("head_dim")
    elif reader.nested:
        reader.missing("head_dim")
    elif hidden and heads and hidden % heads == 0:
        reader.assume("head_dim", hidden // heads, "head_dim is absent: hidden size / attention heads")
    elif hidden and heads:
        reader.missing("head_dim", Wrong("catalog.config_head_dim", hidden=str(hidden), heads=str(heads)))
    if kv_heads and heads:
        reader.texts["attention"] = "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"
        if heads % kv_heads:
            reader.problem(
                reader.key_of("kv_heads") or KEYS["kv_heads"][0],
                Wrong("catalog.config_kv_heads", heads=str(heads), given=str(kv_heads)),
            )


def _kv_heads(reader: ConfigReader, heads: int | None) -> int | None:
    one_for_all = reader.config.get("multi_query") is True and not reader.config.get("new_decoder_architecture")
    if one_for_all:
        reader.put("kv_heads", 1, "multi_query of the config")
        return 1
    if reader.value("kv_heads"):
        return reader.optional("kv_heads")
    if heads and not reader.nested:
        reader.assume("kv_heads", heads, "no key states key/value heads: one for each attention head")
        return heads
    if reader.nested:
        reader.missing("kv_heads")
    return None


def _dense_ffn(reader: ConfigReader, hidden: int | None, family: Family | None) -> None:
    wide = reader.number(0, *WIDE)
    if wide and reader.value("experts"):
        key = next(key for key in WIDE if reader.config.get(key) is not None)
        reader.put("ffn", wide, f"{key} of the config")
    elif reader.config.get("block_auto_adjust_ff_dim") and (given := reader.value("ffn")):
        step = reader.number(1, "block_multiple_of") or 1
        times = reader.config.get("block_ffn_dim_multiplier")
        width = step * -(-int((times if isinstance(times, float) else 1.0) * int(2 * given / 3)) // step)
        reader.put("ffn", width, f"{reader.key_of('ffn')} of the config: two thirds, in steps of {step}")
    elif not reader.optional("ffn"):
        if hidden and family and family.ffn_per_hidden:
            times = family.ffn_per_hidden
            reader.assume("ffn", times * hidden, f"no key states it: {times} x hidden size, as its code does")
        else:
            reader.missing("ffn")


def _dense_beside(reader: ConfigReader) -> bool:
    """Tell whether each layer has a dense block beside its experts."""
    return bool(reader.config.get("enable_moe_block") or reader.config.get("residual_moe"))


def _experts(reader: ConfigReader, layers: int, family: Family | None) -> int:
    """Read the experts and count the layers that have a dense block instead; 0 layers where that is known already."""
    if not reader.value("experts"):
        reader.texts["type"] = "dense"
        return layers
    reader.texts["type"] = "moe"
    experts, topk = reader.needed("experts"), reader.needed("topk")
    if experts and topk and topk > experts:
        reader.problem(
            reader.key_of("topk") or "topk", Wrong("catalog.config_topk", experts=str(experts), given=str(topk))
        )
    elif experts and topk:
        idle_experts(reader, experts, topk)
    width = reader.optional("expert_ffn")
    if _dense_beside(reader) and (dense := reader.value("ffn")):
        reader.put("shared_ffn", dense, "intermediate_size of the config: a dense block beside the experts")
        reader.put("shared_experts", 1, "stands for the dense block beside the experts")
    if not width and (family is None or family.expert_is_ffn):
        width = reader.value("ffn")
        words = f"{reader.key_of('ffn')} of the config is the width of an expert"
        if width:
            reader.put("expert_ffn", width, words) if family else reader.assume("expert_ffn", width, words)
    if not width:
        reader.missing("expert_ffn")
    _shared_experts(reader, width, family)
    groups, used = reader.number(0, "n_group"), reader.number(0, "topk_group")
    if groups and used and used < groups:
        reader.put("routed_groups", used, f"topk_group of the config, of {groups} groups")
    routed = expert_layers(reader, layers) if layers else []
    dense = len(routed) - sum(routed)
    if dense:
        reader.put("dense_layers", dense, "layers without experts, counted from the config")
    if any(routed[:dense]):
        reader.put("spread_dense", 1, "layers without experts lie among those with experts in the config")
    return dense


def _shared_experts(reader: ConfigReader, width: int | None, family: Family | None) -> None:
    reader.optional("expert_hidden")
    shared = reader.value("shared_ffn")
    if "shared_experts" in reader.figures:
        return
    if reader.optional("shared_experts"):
        if shared and width and shared != width:
            reader.put(
                "shared_ffn",
                shared * int(reader.figures["shared_experts"]["value"]),
                f"{reader.key_of('shared_ffn')} of the config",
            )
        return
    if shared and width:
        key = reader.key_of("shared_ffn") or ""
        if shared % width:
            reader.problem(key, Wrong("catalog.config_shared_width", width=str(width), given=str(shared)))
        reader.put("shared_experts", shared // width, f"{key} of the config / expert width")
    elif family and family.shared:
        reader.assume("shared_experts", family.shared, "no key states it: as its code does")
    else:
        reader.notes.append("no shared experts: no key states any")
