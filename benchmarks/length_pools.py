"""Measure what pools by prompt length save on three shapes of requests and on the main example.

    python benchmarks/length_pools.py [chat|code|agent|main …] [--time-limit SECONDS]

The shapes are made up to be like chats, code completion with a long tail, and agents; one site, three kinds of bought servers, Llama 3.3
70B, three years. Each is solved with `"pools": "by length"`, so that boundaries, the plan with one pool and both gaps stand in one plan.
Prints a row of a table for each.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from sys import path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
path[:0] = [str(ROOT)]

from planner.pipeline import solve_document
from planner.report.load.length_pools import sentences

HOURS = [0.45, 0.35, 0.3, 0.28, 0.3, 0.4, 0.6, 0.85, 1.1, 1.3, 1.4, 1.4, 1.35, 1.35, 1.4, 1.4, 1.35, 1.3, 1.35, 1.45, 1.5, 1.4, 1.0, 0.7]  # fmt: skip
KINDS = ("DGX H100", "DGX H200", "DGX B200")


def _quantiles(*pairs: tuple[float, int]) -> list[dict[str, float]]:
    return [{"share": share, "tokens": tokens} for share, tokens in pairs]


def _band(up_to: int, share: float, prompt: float, cv: float, answer: float) -> dict[str, float]:
    return {"up_to": up_to, "share": share, "input": prompt, "input_cv": cv, "output": answer, "output_cv": 1.0}


SHAPES: dict[str, tuple[float, dict[str, Any], tuple[str, str]]] = {
    "chat": (600.0, {"input": 1000, "output": 250, "input_cv": 1.0, "output_cv": 1.0}, ("2 s", "50 ms")),
    "code": (
        200.0,
        {
            "input_quantiles": _quantiles((0.0, 50), (0.5, 1500), (0.9, 6000), (0.99, 30_000), (1.0, 100_000)),
            "output": 60,
            "output_cv": 1.0,
        },
        ("5 s", "50 ms"),
    ),
    "agent": (
        60.0,
        {
            "histogram": [
                _band(2000, 0.4, 900, 0.5, 120),
                _band(8000, 0.3, 4500, 0.4, 250),
                _band(24_000, 0.2, 14_000, 0.3, 500),
                _band(64_000, 0.1, 40_000, 0.3, 900),
            ]
        },
        ("10 s", "60 ms"),
    ),
}  # requests/s, lengths, limits on the 95th percentile of TTFT and TPOT
MAIN = "main"


def shape(name: str, time_limit_s: float) -> dict[str, Any]:
    """Write the spec of a shape."""
    rate, lengths, (ttft, tpot) = SHAPES[name]
    return {
        "name": f"{name}-like requests in pools by prompt length",
        "horizon": {"start": "2027-01-01", "years": 3, "calendar": "representative-day"},
        "workloads": [
            {
                "name": name, "kind": "serving", "architecture": "Llama-3.3-70B-Instruct", "precision": ["fp8"], "kv_precision": ["fp8"],
                "demand": {"requests_per_s": rate, "profile": HOURS}, "lengths": lengths, "origins": [{"region": "us-texas", "share": 1}],
                "slo": {"ttft": {"p95": ttft}, "tpot": {"p95": tpot}}, "disaggregation": "never", "pools": "by length",
            }
        ],
        "sites": [{"region": "us-texas", "power": "5 MW"}],
        "offers": [{"system": system, "how": "buy"} for system in KINDS],
        "solver": {"gap": 0.005, "time_limit": f"{time_limit_s:g} s"},
    }  # fmt: skip


def main_example(time_limit_s: float) -> dict[str, Any]:
    """Read the main example, both of whose services may be divided."""
    document: dict[str, Any] = json.loads((ROOT / "examples" / "mixed_fleet.json").read_text(encoding="utf-8"))
    for workload in document["workloads"]:
        if workload["kind"] == "serving":
            workload["pools"] = "by length"
    return {**document, "solver": {"time_limit": f"{time_limit_s:g} s"}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*SHAPES, MAIN], choices=[*SHAPES, MAIN])
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each")
    arguments = parser.parse_args()
    print(
        "| shape | boundaries | cost | one pool | saving | gaps | proven | tried, left out |\n|---|---|---|---|---|---|---|---|"
    )
    for name in arguments.names:
        limit = arguments.time_limit
        plan = solve_document(main_example(limit) if name == MAIN else shape(name, limit))
        found, before = plan.document["length_pools"], plan.document["length_pools"]["undivided"]
        edges = "; ".join(f"{each['workload']} {each['boundaries'] or '-'}" for each in found["workloads"])
        costs = f"{plan.value / 1e6:.3f}M | {(before['value'] or 0) / 1e6:.3f}M | {found['saving'] or 0:.2%}"
        gaps = f"{plan.gap or 0:.2%}, {before['gap'] or 0:.2%}"
        print(
            f"| {name} | {edges} | {costs} | {gaps} | {found['proven']} | {len(found['tried'])}, {found['untried']} |"
        )
        print(*(f"  {sentence}" for sentence in sentences(plan)), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
