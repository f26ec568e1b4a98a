"""Weights of a checkpoint from the `quantization_config` of its config.json: format, what stays in 16 bit, elements that share a scale.

The texts and figures have the names of an architecture's record: `weights`, `{format}_wide`, `{format}_cache`, `{format}_group`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from catalog.huggingface_reader import ConfigReader, part_of, whole

BY_METHOD = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "mxfp4": "mxfp4",
    "mxfp8": "mxfp8",
    "awq": "int4",
    "gptq": "int4",
    "nvfp4": "nvfp4",
}
BY_ALGORITHM = {
    "FP8": "fp8",
    "NVFP4": "nvfp4",
    "MXFP4": "mxfp4",
    "MXFP8": "mxfp8",
    "W4A16_AWQ": "int4",
    "W4A8_AWQ": "int4",
    "INT8_SQ": "int8",
}
BY_TYPE = {(8, "float"): "fp8", (8, "int"): "int8", (4, "int"): "int4", (4, "float"): "nvfp4"}
EXCLUDED = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude")
USUAL_GROUP = {"int4": 128, "nvfp4": 16, "mxfp4": 32, "mxfp8": 32}
# Names of a layer's modules by part, as the library and its forks call them.
MODULES = {
    "attention": ("self_attn", "self_attn.q_proj", "self_attn.o_proj", "attention", "attn"),
    "dense": ("mlp", "mlp.gate_proj", "mlp.up_proj", "feed_forward.gate_proj"),
    "shared": ("mlp.shared_experts", "mlp.shared_experts.gate_proj", "mlp.shared_expert", "mlp.shared_expert.gate_proj"),
    "experts": ("mlp.experts", "mlp.experts.0", "mlp.experts.0.gate_proj", "block_sparse_moe.experts.0.w1"),
}  # fmt: skip
MOST_PATTERNS = 64
PREFIXES = ("model.layers", "language_model.model.layers", "model.language_model.layers")


def read_weights(reader: ConfigReader, quantised: Mapping[str, Any], layers: int) -> None:
    """Record how the weights are stored, where the config states it; a kind that is not known is named in a note."""
    name = _format(quantised)
    if name is None:
        kind = quantised.get("quant_method") or quantised.get("quant_algo") or "no quant_method"
        reader.notes.append(
            f"its quantization_config ({str(kind)[:40]}) is not read: weights count as the precision asked for has them"
        )
        return
    reader.texts["weights"] = name
    reader.texts[f"{name}_wide"] = ", ".join(_wide(_excluded(quantised), layers))
    group = _group(quantised)
    if group and group != USUAL_GROUP.get(name) and name in USUAL_GROUP:
        reader.put(f"{name}_group", group, "group_size of its quantization_config")
    if cache := _cache(quantised):
        reader.texts[f"{name}_cache"] = cache


def _format(quantised: Mapping[str, Any]) -> str | None:
    """Name the format of the weights; None where the method is not known."""
    method = str(quantised.get("quant_method") or "").lower()
    if algorithm := quantised.get("quant_algo"):
        return BY_ALGORITHM.get(str(algorithm).upper())
    weights = _weights(quantised)
    if weights:
        kind = str(weights.get("type") or weights.get("dtype") or "").lower()
        bits = whole(weights.get("num_bits"))
        if "mxfp4" in str(quantised.get("format") or "") or (kind == "fp4" and whole(weights.get("group_size")) == 32):
            return "mxfp4"
        return BY_TYPE.get((bits or 0, kind))
    if method in ("awq", "gptq") and whole(quantised.get("bits")) == 8:
        return "int8"
    return BY_METHOD.get(method)


def _weights(quantised: Mapping[str, Any]) -> Mapping[str, Any]:
    """Get the description of the weights of a config that groups modules; empty where it has none."""
    groups = part_of(quantised, "config_groups")
    first = next((group for group in groups.values() if isinstance(group, Mapping)), {})
    return part_of(first, "weights") or part_of(part_of(quantised, "global_quant_config"), "weight")


def _group(quantised: Mapping[str, Any]) -> int | None:
    weights = _weights(quantised)
    return whole(weights.get("group_size") if weights else quantised.get("group_size"))


def _cache(quantised: Mapping[str, Any]) -> str:
    """Name the format of the KV cache that the checkpoint asks for; empty where it leaves it to the engine."""
    scheme = quantised.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and whole(scheme.get("num_bits")) == 8:
        return "fp8"
    algorithm = quantised.get("kv_cache_quant_algo")
    if algorithm is not None:
        return "fp8" if str(algorithm).upper() == "FP8" else "bf16"
    return "bf16" if quantised.get("quant_method") == "compressed-tensors" and "kv_cache_scheme" in quantised else ""


def _excluded(quantised: Mapping[str, Any]) -> Iterator[str]:
    """List the modules that are not narrowed, as names, patterns, or regular expressions after "re:"."""
    for key in EXCLUDED:
        names = quantised.get(key)
        yield from (str(name) for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def _wide(excluded: Iterable[str], layers: int) -> Iterator[str]:
    """List the parts that stay in 16 bit, with the share of the layers where it is not all. Router, embedding and head always do."""
    globs = [glob for name in excluded for glob in (_globs(name[3:]) if name.startswith("re:") else [name])]
    names = frozenset(glob for glob in globs if "*" not in glob)
    patterns = sorted({glob for glob in globs if "*" in glob})[:MOST_PATTERNS]
    for part, modules in MODULES.items():
        wide = sum(any(_named(names, patterns, i, module) for module in modules) for i in range(layers))
        if wide:
            yield part if wide == layers else f"{part} {wide}/{layers}"
    yield from ("router", "head")


def _named(names: Collection[str], patterns: Iterable[str], layer: int, module: str) -> bool:
    """Tell whether a module of a layer is named, itself or by something that it lies in, with its path or alone."""
    steps = module.split(".")
    paths = [f"{prefix}.{layer}.{'.'.join(steps[:n])}" for prefix in PREFIXES for n in range(1, len(steps) + 1)]
    if any(path in names for path in paths) or any(step in names for step in steps):
        return True
    return any(fnmatchcase(path, pattern) for pattern in patterns for path in paths)


def _globs(expression: str) -> list[str]:
    """Write a regular expression of module names as patterns with "*"; none for one that says more than that."""
    whole_name = expression.endswith("$")
    text = expression.strip("^$").replace("\\.", ".").replace(".*", "*").replace("\\d+", "*").replace("[0-9]+", "*")
    found = [text]
    while (group := re.search(r"\(([^()]*)\)", found[0])) and len(found) < MOST_PATTERNS:
        found = [each.replace(group[0], choice) for each in found for choice in group[1].split("|")]
    plain = [each for each in found if re.fullmatch(r"[\w.*-]+", each)]
    return plain if whole_name else [f"{each}*" for each in plain]
