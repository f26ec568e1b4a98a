"""Formats of weights and KV caches by the names that measurements, launch commands and models have for them."""

from __future__ import annotations

import re

WEIGHT_FORMATS = {
    "fp32": "bf16", "bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "mxfp8": "mxfp8", "int8": "int8", "w8a8-int8": "int8",
    "nvfp4": "nvfp4", "fp4": "fp4", "mxfp4": "mxfp4", "fp4-to-fp8": "fp4", "int4": "int4", "int4_wo": "int4", "uint4": "int4", "gptq-int4": "int4",
    "awq": "int4", "w4a16-int4 (experts)": "int4", "w4a16": "int4", "q4_k_m": "int4", "w4a8": "int4",
}  # fmt: skip
"""Name of a weight format in measurements -> that of models.formats."""
KV_FORMATS = {"fp8": "fp8", "int8": "int8", "fp16": "bf16", "bf16": "bf16"}
UNSTATED_FORMATS = ("", "unset", "n/a", "auto")

_IN_NAMES = (
    (r"nvfp4|fp4", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"fp8", "fp8"),
    (r"w8a8|int8", "int8"),
    (r"awq|gptq|int4|w4a16", "int4"),
    (r"bf16", "bf16"),
)


def format_in_name(model: str) -> str:
    """Return the weight format that a word of a model's name means; empty without such a word.

    >>> [format_in_name(name) for name in ("Qwen/Qwen3-32B-FP8", "a/b-AWQ", "c/Llama-3.1-8B-quantized.w4a16", "Qwen/Qwen3-32B")]
    ['fp8', 'int4', 'int4', '']
    """
    words = re.split(r"[^a-z0-9]+", model.rpartition("/")[2].lower())
    return next((name for pattern, name in _IN_NAMES if any(re.fullmatch(pattern, word) for word in words)), "")
