"""Compare six published deployments with the layout that the planner chooses on the same chips at the same limits.

    python -m benchmarks.deployments

Each case is answered twice by `estimate`: with the pools as published, and with nothing stated of them. Rates are output tokens per second
and chip of all chips in use, idle ones of the stated number too. Differences to the published figures are those of the predictions
(`flopwatt validate`); the two answers share them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from planner.estimate.answer import estimate


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment as published: its case without layouts, the layouts, and output tokens/s of all chips."""

    name: str
    system: str
    chips: int
    architecture: str
    precision: str
    lengths: tuple[int, int]
    published: float  # output tokens/s
    source: str
    pools: dict[str, Any] | None = None
    layout: dict[str, int] | None = None
    slo: dict[str, Any] = field(default_factory=dict)
    further: dict[str, Any] = field(default_factory=dict)

    def case(self, stated: bool) -> dict[str, Any]:
        """Write the case of `estimate`, with the published layouts or without."""
        workload = {
            "kind": "serving", "architecture": self.architecture, "precision": [self.precision],
            "lengths": {"input": self.lengths[0], "output": self.lengths[1]},
            "disaggregation": "allowed" if self.pools is None else "always", "slo": self.slo, **self.further,
        }  # fmt: skip
        case: dict[str, Any] = {"workload": workload, "system": self.system, "chips": self.chips, "load": "max"}
        if stated:
            case |= {"pools": self.pools} if self.pools is not None else {"layout": self.layout}
            if self.pools is None:
                workload["disaggregation"] = "never"
        return copy.deepcopy(case)


def _pools(prefill: int, number: int, decode: int) -> dict[str, Any]:
    """State prefill workers of so many ranks, and one decode worker."""
    sides = (("prefill", prefill, number), ("decode", decode, 1))
    return {name: {"layout": {"dp": ranks, "ep": ranks}, "workers": workers} for name, ranks, workers in sides}


DEPLOYMENTS = (
    Deployment(
        "DeepSeek-V3, 96 H100", "DGX H100", 96, "DeepSeek-V3", "fp8", (2000, 2000), 9 * 22_300.0,
        "LMSYS, May 2025: 3 nodes prefill, 9 decode with 22,300 tokens/s each", _pools(24, 1, 72), slo={"tpot": {"mean": "100 ms"}},
    ),
    Deployment(
        "DeepSeek-R1, GB200 NVL72", "GB200 NVL72", 72, "DeepSeek-R1", "fp8", (8192, 1024), 59_500.0,
        "InferenceX in aiconfigurator, row cfg533: 2,048 clients, TTFT 14.3 s, TPOT 20.5 ms, by Little's law",
        _pools(8, 5, 32), slo={"tpot": {"mean": "20.5 ms"}},
    ),
    Deployment(
        "DeepSeek-R1, CloudMatrix 384", "CloudMatrix 384 / Atlas 900 A3 SuperPoD", 256, "DeepSeek-R1", "int8", (4096, 2000), 160 * 1_943.0,
        "CloudMatrix384 paper, 2025: 6 prefill instances of 16 NPUs, 160 NPUs decode with 1,943 tokens/s each below 50 ms",
        _pools(16, 6, 160), slo={"tpot": {"mean": "50 ms"}}, further={"speculation": {"draft_tokens": 1, "acceptance": 0.7}},
    ),
    Deployment(
        "Kimi-K2, 128 H200", "DGX H200", 128, "Kimi-K2", "fp8", (2000, 2000), 288_000.0,
        "LMSYS, July 2025: 4 nodes prefill, 12 nodes decode with 288,000 tokens/s together", _pools(32, 1, 96), slo={"tpot": {"mean": "100 ms"}},
    ),
    Deployment(
        "Qwen3-235B-A22B, 8 H100", "DGX H100", 8, "Qwen3-235B-A22B", "fp8", (1000, 1000), 14_898.0,
        "TensorRT-LLM 1.0, performance overview: attention on data-parallel ranks, no limit", layout={"dp": 8, "ep": 8},
    ),
    Deployment(
        "gpt-oss-120b, one H100", "DGX H100", 1, "gpt-oss-120b", "fp4", (215, 188), 2_943.0,
        "GPUStack performance lab: requests all at once, TPOT 52.7 ms", layout={"tp": 1}, slo={"tpot": {"mean": "52.7 ms"}},
    ),
)  # fmt: skip


def compared(deployment: Deployment) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answer a deployment with its layouts as published and with those chosen. Raises ValueError where the published ones do not fit."""
    found = [estimate(deployment.case(stated)) for stated in (True, False)]
    if found[0].answer is None or found[1].answer is None:
        raise ValueError(f"{deployment.name}: {found[0].reason or found[1].reason}")
    return found[0].answer, found[1].answer


def output_tokens_per_s(deployment: Deployment, answer: dict[str, Any]) -> float:
    """Return the output tokens/s of an answer."""
    return float(answer["requests_per_s"]) * deployment.lengths[1]


def layout_words(answer: dict[str, Any]) -> str:
    """Write the pools of an answer in short."""
    words = []
    for pool in answer["pools"]:
        sizes = " ".join(f"{name}{n}" for name, n in pool["layout"].items() if n > 1) or "tp1"
        words.append(f"{pool['workers']} x {sizes}")
    return " + ".join(words)


def rows() -> list[str]:
    """Write the table."""
    lines = [
        "| deployment | as published | tokens/s/chip | chosen | tokens/s/chip | chosen / stated | published | predicted / published |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for deployment in DEPLOYMENTS:
        stated, chosen = compared(deployment)
        rates = [output_tokens_per_s(deployment, answer) / deployment.chips for answer in (stated, chosen)]
        published = deployment.published / deployment.chips
        lines.append(
            f"| {deployment.name} | {layout_words(stated)} | {rates[0]:,.0f} | {layout_words(chosen)} | {rates[1]:,.0f} | {rates[1] / rates[0]:.2f} "
            f"| {published:,.0f} | {rates[0] / published:.2f} |"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(rows()))
