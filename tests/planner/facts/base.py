"""A small plausible spec, and what is noted of it after changes."""

from __future__ import annotations

import copy
from typing import Any

from planner.errors import Issue, SpecError
from planner.facts import Fact
from planner.resolve.resolver import resolve_document

CHAT: dict[str, Any] = {
    "name": "chat", "kind": "serving", "architecture": "Qwen3-32B", "demand": {"requests_per_s": 20},
    "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-virginia", "share": 1}],
    "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "50 ms"}},
}  # fmt: skip
RUN: dict[str, Any] = {
    "name": "run", "kind": "training", "architecture": "Llama-3.1-8B", "tokens": "1T", "deadline": "200 d",
}  # fmt: skip
LEARNER: dict[str, Any] = {
    "name": "grpo", "kind": "reinforcement", "architecture": "Qwen3-8B", "iterations": 100, "prompts": 64, "samples": 8,
    "lengths": {"prompt": 500, "response": 2000, "limit": 8000},
}  # fmt: skip
CHIP: dict[str, Any] = {
    "name": "own chip", "text": {"vendor": "own", "family": "hopper"},
    "figures": {
        "bf16_flop_per_s": {"value": "500 TFLOP/s", "note": "n"}, "fp8_flop_per_s": {"value": "1000 TFLOP/s", "note": "n"},
        "hbm_bytes": {"value": "96 GB", "note": "n"}, "hbm_bytes_per_s": {"value": "3 TB/s", "note": "n"},
        "scaleup_bytes_per_s": {"value": "300 GB/s", "note": "n"}, "scaleup_chips": {"value": 8, "unit": "chips", "note": "n"},
        "tdp_w": {"value": "600 W", "note": "n"},
    },
}  # fmt: skip
SYSTEM: dict[str, Any] = {
    "name": "own system", "text": {"chip": "own chip"},
    "figures": {
        "chips": {"value": 8, "unit": "chips", "note": "n"}, "power_w": {"value": "8 kW", "note": "n"},
        "nic_bytes_per_s": {"value": "50 GB/s", "note": "n"}, "nic_ports": {"value": 8, "unit": "1", "note": "n"},
        "scaleup_bytes_per_s": {"value": "300 GB/s", "note": "n"}, "scaleup_chips": {"value": 8, "unit": "chips", "note": "n"},
    },
}  # fmt: skip
NETWORK: dict[str, Any] = {
    "name": "own network", "text": {"type": "dense"},
    "figures": {
        name: {"value": value, "unit": "1", "note": "n"}
        for name, value in {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 14336, "vocab": 128256}.items()
    },
}  # fmt: skip


def spec(*workloads: dict[str, Any], **blocks: Any) -> dict[str, Any]:
    """A spec of these workloads (chat without any) at one site, with blocks on top."""
    return copy.deepcopy(
        {
            "name": "plausible",
            "workloads": list(workloads) or [CHAT],
            "sites": [{"region": "us-virginia"}],
            "offers": [{"system": "DGX H100", "how": "on_demand", "price": "24 USD/h"}],
            **blocks,
        }
    )


def own(**changes: dict[str, Any]) -> dict[str, Any]:
    """The block `catalog` with a chip, a system and a network of one's own; `changes`: figures of the chip, system and network."""

    def changed(record: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
        stated = {
            name: {"value": value, "note": "n"} | ({} if isinstance(value, str) else {"unit": "1"})
            for name, value in figures.items()
        }
        return copy.deepcopy(record) | {"figures": record["figures"] | stated}

    kinds = {"chips": ("chip", CHIP), "systems": ("system", SYSTEM), "architectures": ("network", NETWORK)}
    return {kind: [changed(record, changes.get(name, {}))] for kind, (name, record) in kinds.items()}


def noted(document: dict[str, Any]) -> tuple[list[Fact], list[Issue]]:
    """(notes, problems) of a spec: what is at odds with what is known, without echoes, and why it is refused."""
    try:
        return [fact for fact in resolve_document(document).notes if not fact.is_echo], []
    except SpecError as error:
        return [], error.problems
