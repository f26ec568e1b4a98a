"""An architecture from a Hugging Face config.json, as an entry of an overlay. It reads the keys by all their names; what the
config leaves open is either derived by a rule that a note states, or asked for. What a shape costs is in models.transformer.architecture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import CatalogError
from catalog.huggingface_keys import (
    ACTIVATIONS,
    FAMILIES,
    GATING,
    KEYS,
    LAYER_KINDS,
    MOST_LAYERS,
    TEXT_PARTS,
    UNSUPPORTED,
    Family,
)


def from_config(config: object, name: str, stated: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Entry of an overlay for the architecture that a config.json describes: figures with the key each comes from.

    `stated` is an entry of the same form whose figures and texts hold before the config's and fill what it leaves open.
    Raises CatalogError with every key that is missing, malformed or of a kind without a closed form.
    """
    if not isinstance(config, Mapping):
        how = 'or put the file as "<name>.config.json" into a folder of overlays' if isinstance(config, str) else ""
        raise CatalogError(
            [
                (
                    "config",
                    f"expected the content of a config.json as an object, got {type(config).__name__}; {how}".rstrip(
                        "; "
                    ),
                )
            ]
        )
    part = next((p for p in TEXT_PARTS if isinstance(config.get(p), Mapping)), None)
    stated = stated or {}
    reader = (
        _Reader({**config, **config[part]}, f"config.{part}", stated) if part else _Reader(config, "config", stated)
    )
    if part:
        reader.notes.append(f"only its {part} is read: other parts, such as one for images, are left out")
    reader.read()
    if reader.problems:
        raise CatalogError(reader.problems)
    return {
        **{key: value for key, value in stated.items() if key != "config"},
        "name": name,
        "text": {**reader.texts, "note": "; ".join(reader.notes), **_part(stated, "text")},
        "figures": {**reader.figures, **_part(stated, "figures")},
    }


@dataclass(slots=True)
class _Reader:
    """Reads one config, or the part of it at `place`; all problems are collected. A part leaves out what is as its class has
    it, so that less can be derived there."""

    config: Mapping[str, Any]
    place: str
    stated: Mapping[str, Any]
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def nested(self) -> bool:
        return self.place != "config"

    def read(self) -> None:
        model_type = str(self.config.get("model_type") or "")
        family = FAMILIES.get(model_type)
        self.notes.insert(0, f"from a Hugging Face config.json, model_type {model_type or 'not stated'}")
        if family is None:
            self.notes.append("its code is not known here: each key is taken in its usual meaning")
        self._refuse()
        layers = self.needed("layers", MOST_LAYERS)
        hidden, heads, _ = self.needed("hidden"), self.needed("heads"), self.needed("vocab")
        self._tied(family)
        self._attention(hidden, heads)
        if layers:
            if self._experts(layers, family):
                self._dense_ffn(hidden, family)
            self._layer_kinds(layers, family)
        elif not self.value("experts"):
            self._dense_ffn(hidden, family)
        self._gated(family)
        self.optional("max_context")
        if self.optional("sparse_topk"):
            self.notes.append("its sparse indexer is left out: attention is counted over the whole context")
        if self.number(0, "num_nextn_predict_layers"):
            self.notes.append("its layers for predicting further tokens are left out")
        if any(key.startswith("swa_") for key in self.config):
            self.notes.append("layers with a window are counted in the shape of the others: its swa_ keys are left out")
        self.texts |= {"family": model_type} if model_type else {}

    # -- single keys -------------------------------------------------------------------------------

    def key_of(self, figure: str) -> str | None:
        """The name by which the config states the figure."""
        return next((key for key in KEYS[figure] if self.config.get(key) not in (None, False, [], 0)), None)

    def value(self, figure: str, most: int = 10**9) -> int | None:
        """The figure as stated beside the config, else as in it; None where neither has it or it is malformed."""
        entry = _part(self.stated, "figures").get(figure)
        given = _whole(entry.get("value") if isinstance(entry, Mapping) else entry)
        if given is not None:
            return given
        key = self.key_of(figure)
        if key is None:
            return None
        raw = self.config[key]
        if isinstance(raw, list) and any(item != raw[0] for item in raw):
            self.problem(
                key,
                f"differs between the layers or parts of the network: {str(raw)[:60]}; there is no closed form for that",
            )
            return None
        number = _whole(raw[0] if isinstance(raw, list) else raw)
        if number is None or not 1 <= number <= most:
            self.problem(key, f"expected a whole number from 1 to {most}, got {str(raw)[:60]!r}")
            return None
        return number

    def number(self, default: int, *keys: str) -> int:
        """The whole number of the first of the keys that is there."""
        key = next((key for key in keys if self.config.get(key) is not None), None)
        if key is None:
            return default
        number = _whole(self.config[key])
        if number is None or number < -1:
            self.problem(key, f"expected a whole number, got {str(self.config[key])[:60]!r}")
            return default
        return number

    def optional(self, figure: str) -> int | None:
        """The value, put down with the key that it comes from."""
        number = self.value(figure)
        if number is not None:
            self.put(figure, number, f"{self.key_of(figure)} of the config")
        return number

    def needed(self, figure: str, most: int = 10**9) -> int | None:
        """As optional; a figure that is not there is a problem."""
        number = self.value(figure, most)
        if number is None:
            self.missing(figure)
        else:
            self.put(figure, number, f"{self.key_of(figure)} of the config")
        return number

    def put(self, figure: str, value: int, note: str) -> None:
        unit = "tokens" if figure in ("window_tokens", "max_context") else "1"
        self.figures[figure] = {"value": value, "unit": unit, "note": note}

    def assume(self, figure: str, value: int, note: str) -> None:
        """A value that no key states, with the rule it follows from."""
        self.put(figure, value, f"assumed: {note}")
        self.notes.append(f"{figure} = {value} assumed: {note}")

    def missing(self, figure: str, why: str = "") -> None:
        keys = KEYS[figure]
        if any(f"{self.place}.{key}" == at for key in keys for at, _ in self.problems):
            return  # it is there, but malformed
        other = f" (or {', '.join(keys[1:])})" if keys[1:] else ""
        remedy = f'add it{other}, or state it beside the config: "figures": {{"{figure}": {{"value": …, "note": "…"}}}}'
        self.problem(keys[0], f"is missing or 0{why}; {remedy}")

    def problem(self, key: str, message: str) -> None:
        self.problems.append((f"{self.place}.{key}", message))

    # -- what the keys mean together ---------------------------------------------------------------

    def _refuse(self) -> None:
        for key, reason in UNSUPPORTED.items():
            if self.config.get(key) not in (None, False, [], "", 0):
                self.problem(key, f"the architecture {reason}")
        names = self.config.get("architectures")
        if isinstance(names, list) and any("MaskedLM" in str(name) for name in names):
            self.problem("architectures", "is an encoder; only decoders are planned for")

    def _tied(self, family: Family | None) -> None:
        tied = _part(self.stated, "text").get("tied", self.config.get("tie_word_embeddings"))
        if tied is None:
            tied = family.tied if family else not self.nested
            reason = "as its code does" if family else "as the library does where the key is left out"
            words = "shares the embedding with the head" if tied else "has an output head of its own"
            self._remark("vocab", f"tie_word_embeddings is absent: {words}, {reason}")
        self.texts["tied"] = str(tied).lower()

    def _gated(self, family: Family | None) -> None:
        given = _part(self.stated, "text").get("gated")
        act = next((self.config[key] for key in ACTIVATIONS if isinstance(self.config.get(key), str)), None)
        if given is not None:
            gated = str(given).lower() == "true"
        elif family is not None:
            gated = family.gated
        elif act is None:
            how = 'state beside the config whether the feed-forward block has three matrices: "text": {"gated": "true"}'
            self.problem("hidden_act", f"is missing; add it, or {how}")
            return
        else:
            gated = act.lower().startswith(GATING)
            words = f"{'three' if gated else 'two'} matrices in a feed-forward block, from the activation {act}"
            self._remark("ffn" if "ffn" in self.figures else "expert_ffn", words)
        self.texts["gated"] = str(gated).lower()

    def _remark(self, figure: str, words: str) -> None:
        """A note on the whole that the plan shall also list, with a figure that it belongs to."""
        self.notes.append(f"assumed: {words}")
        if figure in self.figures:
            self.figures[figure]["note"] += f"; assumed: {words}"

    def _attention(self, hidden: int | None, heads: int | None) -> None:
        if self.value("kv_lora_rank"):
            self.texts["attention"] = "mla"
            for figure in ("kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim"):
                self.needed(figure)
            if not self.optional("q_lora_rank"):
                self.notes.append("no q_lora_rank: queries without a latent")
            self.optional("kv_heads")
            return
        kv_heads = self._kv_heads(heads)
        if self.value("head_dim"):
            self.optional("head_dim")
        elif self.nested:
            self.missing("head_dim")
        elif hidden and heads and hidden % heads == 0:
            self.assume("head_dim", hidden // heads, "head_dim is absent: hidden size / attention heads")
        elif hidden and heads:
            self.missing("head_dim", f" and does not follow from hidden size {hidden} and {heads} heads")
        if kv_heads and heads:
            self.texts["attention"] = "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"
            if heads % kv_heads:
                self.problem(
                    self.key_of("kv_heads") or KEYS["kv_heads"][0],
                    f"expected a divisor of the {heads} attention heads, got {kv_heads}",
                )

    def _kv_heads(self, heads: int | None) -> int | None:
        one_for_all = self.config.get("multi_query") is True and not self.config.get("new_decoder_architecture")
        if one_for_all:
            self.put("kv_heads", 1, "multi_query of the config")
            return 1
        if self.value("kv_heads"):
            return self.optional("kv_heads")
        if heads and not self.nested:
            self.assume("kv_heads", heads, "no key states key/value heads: one for each attention head")
            return heads
        if self.nested:
            self.missing("kv_heads")
        return None

    def _dense_ffn(self, hidden: int | None, family: Family | None) -> None:
        wide = self.number(0, "intermediate_size_mlp") if family and family.shared else 0
        if wide:
            self.put("ffn", wide, "intermediate_size_mlp of the config")
        elif not self.optional("ffn"):
            if hidden and family and family.ffn_per_hidden:
                times = family.ffn_per_hidden
                self.assume("ffn", times * hidden, f"no key states it: {times} x hidden size, as its code does")
            else:
                self.missing("ffn")

    def _experts(self, layers: int, family: Family | None) -> int:
        """Reads the experts and returns how many layers have a dense block instead."""
        if not self.value("experts"):
            self.texts["type"] = "dense"
            return layers
        self.texts["type"] = "moe"
        experts, topk = self.needed("experts"), self.needed("topk")
        if experts and topk and topk > experts:
            self.problem(self.key_of("topk") or "topk", f"expected at most the {experts} experts, got {topk}")
        width = self.optional("expert_ffn")
        if not width and (family is None or family.expert_is_ffn):
            width = self.value("ffn")
            words = f"{self.key_of('ffn')} of the config is the width of an expert"
            if width:
                self.put("expert_ffn", width, words) if family else self.assume("expert_ffn", width, words)
        if not width:
            self.missing("expert_ffn")
        self._shared_experts(width, family)
        dense = layers - sum(self._expert_layers(layers))
        if dense:
            self.put("dense_layers", dense, "layers without experts, counted from the config")
        return dense

    def _shared_experts(self, width: int | None, family: Family | None) -> None:
        if self.optional("shared_experts"):
            return
        shared = self.value("shared_ffn")
        if shared and width:
            key = self.key_of("shared_ffn") or ""
            if shared % width:
                self.problem(key, f"expected a multiple of the expert width {width}, got {shared}")
            self.put("shared_experts", shared // width, f"{key} of the config / expert width")
        elif family and family.shared:
            self.assume("shared_experts", family.shared, "no key states it: as its code does")
        else:
            self.notes.append("no shared experts: no key states any")

    def _expert_layers(self, layers: int) -> list[bool]:
        """Which layers have experts, by the several ways in which configs say so."""
        config = self.config
        listed = config.get("moe_layers", config.get("moe_layers_enum"))
        if isinstance(listed, (list, str)):
            return self._members(
                [_whole(item) for item in (listed.split(",") if isinstance(listed, str) else listed)], layers
            )
        for key, word in (("mlp_layer_types", "sparse"), ("moe_layer_freq", 1)):
            if isinstance(config.get(key), list):
                return [item == word for item in self._per_layer(key, layers)]
        first = self.number(0, "first_k_dense_replace", "moe_layer_start_index", "moe_layer_num_skipped")
        last = self.number(-1, "moe_layer_end_index")
        after = self.number(1, "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval") or 1
        at = self.number(1, "moe_layer_freq") or 1
        without = config.get("mlp_only_layers") or []
        if not isinstance(without, list):
            self.problem("mlp_only_layers", f"expected a list of layers, got {str(without)[:60]!r}")
            return [True] * layers
        last = layers - 1 if last == -1 else last
        return [first <= i <= last and i not in without and (i + 1) % after == 0 and i % at == 0 for i in range(layers)]

    def _members(self, indices: Sequence[object], layers: int) -> list[bool]:
        members = set(map(str, indices))
        return [str(i) in members for i in range(layers)]

    def _per_layer(self, key: str, layers: int) -> list[object]:
        """A list of the config with one item for each layer."""
        items = self.config[key]
        if len(items) != layers:
            self.problem(key, f"expected one item for each of the {layers} layers, got {len(items)}")
            return [None] * layers
        return items

    # -- windows and linear attention --------------------------------------------------------------

    def _layer_kinds(self, layers: int, family: Family | None) -> None:
        kinds, how = self._kinds_by_key(layers)
        if kinds is None:
            kinds, how = self._kinds_by_rule(layers, family)
        unknown = sorted({str(kind) for kind in kinds if kind not in ("full", "window", "linear", None)})
        if unknown:
            self.problem(how, f"has layers of a kind without a closed form: {', '.join(unknown)[:80]}")
        windows, linear = kinds.count("window"), kinds.count("linear")
        if linear:
            self.put("linear_layers", linear, f"counted from {how} of the config")
            self.texts["type"] = "hybrid"
            self.notes.append(
                "layers with linear attention are counted with the weights of full ones and without a KV cache"
            )
        if windows:
            tokens = self.needed("window_tokens")
            if how.startswith("assumed"):
                self.assume("window_layers", windows, how.removeprefix("assumed: "))
            else:
                self.put("window_layers", windows, f"counted from {how} of the config")
            self.texts["attention_pattern"] = (
                f"{windows} layers with window {tokens}, {layers - windows - linear} full"
                + (f", {linear} linear" if linear else "")
            )
        elif not unknown:
            self.texts["attention_pattern"] = f"{linear} linear, {layers - linear} full" if linear else "full"

    def _kinds_by_key(self, layers: int) -> tuple[list[Any] | None, str]:
        """Kind of attention of each layer where a key lists them."""
        config = self.config
        for key in ("layer_types", "attention_layers"):
            if isinstance(config.get(key), list):
                return [LAYER_KINDS.get(str(kind), kind) for kind in self._per_layer(key, layers)], key
        for key, kinds in (
            ("attn_type_list", ("linear", "full")),
            ("hybrid_layer_pattern", ("full", "window")),
            ("no_rope_layers", ("full", "window")),
        ):
            if isinstance(config.get(key), list) and config[key]:
                return [kinds[int(item)] if item in (0, 1) else item for item in self._per_layer(key, layers)], key
        mixed = config.get("linear_attn_config")
        if isinstance(mixed, Mapping) and isinstance(mixed.get("full_attn_layers"), list):
            full = sum(self._members([(_whole(i) or 0) - 1 for i in mixed["full_attn_layers"]], layers))
            return ["full"] * full + ["linear"] * (layers - full), "linear_attn_config"
        every = self.number(0, "full_attention_interval")
        if every > 0:
            return ["full"] * (layers // every) + ["linear"] * (layers - layers // every), "full_attention_interval"
        return None, ""

    def _kinds_by_rule(self, layers: int, family: Family | None) -> tuple[list[Any], str]:
        """Kind of attention of each layer where no key lists them: a pattern, a window on all, or full."""
        config = self.config
        pattern = config.get("sliding_window_pattern")
        off = any(key in config and not config[key] for key in KEYS["window_tokens"])
        windowed = self.value("window_tokens") is not None or (family is not None and family.every > 0 and not off)
        if config.get("use_sliding_window") is False or not windowed:
            return ["full"] * layers, ""
        if isinstance(pattern, str) and pattern and set(pattern) <= {"L", "G"}:
            return [
                {"L": "window", "G": "full"}[pattern[i % len(pattern)]] for i in range(layers)
            ], "sliding_window_pattern"
        every, how = self.number(0, "sliding_window_pattern", "_sliding_window_pattern"), "sliding_window_pattern"
        if every < 1 and family:
            every, how = (
                family.every,
                f"assumed: no key lists the layers: one in {family.every} attends to all, as its code does",
            )
        if every > 0:
            return [("full" if (i + 1) % every == 0 else "window") for i in range(layers)], how
        if config.get("use_sliding_window") is True and config.get("max_window_layers") is not None:
            first = self.number(0, "max_window_layers")
            return ["full" if i < first else "window" for i in range(layers)], "max_window_layers"
        return ["window"] * layers, "assumed: no key lists the layers: the window holds in all of them"


def _part(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object inside an entry; empty where it is none, which reading the entry reports."""
    part = entry.get(key)
    return part if isinstance(part, Mapping) else {}


def _whole(value: object) -> int | None:
    """A whole number written as a number or as its digits; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) else None
