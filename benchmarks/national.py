"""Solve plans of national size and plans of many networks: computing time, gap, size of the fleet, cost of a million tokens.

    python -m benchmarks.national [--only NAME] [--time-limit SECONDS]

The questions: 140T tokens a day (a quarter of them answers) of one network over seven Chinese regions, on one kind of system; 10T tokens a day
in three grades with selling prices, on five kinds of systems over as many regions; 36 and 200 networks of little demand each, on one kind to
buy and one to rent by the hour. The published rates of the system of the first question (1,943 tokens/s of answers and 6,688 of prompts a
chip, as the catalog has it) give the chips that it takes at least, in closed form.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Any

import planner
from catalog.units import DAY_S, show

T = 1e12
HOURS = (0.45, 0.35, 0.3, 0.28, 0.3, 0.4, 0.6, 0.85, 1.1, 1.3, 1.4, 1.4, 1.35, 1.35, 1.4, 1.4, 1.35, 1.3, 1.35, 1.45, 1.5, 1.4, 1.0, 0.7)  # fmt: skip
REGIONS = ("cn-ulanqab", "cn-qingyang", "cn-guizhou", "cn-zhongwei", "cn-shaoguan", "cn-shanghai", "cn-zhangjiakou")
USERS = {"cn-beijing": 0.25, "cn-shanghai": 0.25, "cn-shaoguan": 0.25, "cn-chengdu": 0.15, "cn-nanjing": 0.1}
SUPERPOD = "CloudMatrix 384 / Atlas 900 A3 SuperPoD"
DECODE, PREFILL = 1_943.0, 6_688.0  # published tokens/s of one of its chips
GRADES = (
    ("consumer", "Qwen3-30B-A3B", 1.5, (1500, 500), ("3 s", "60 ms"), ("0.5", "2")),
    ("professional", "DeepSeek-V3", 0.75, (3000, 1000), ("4 s", "80 ms"), ("2", "8")),
    ("frontier", "DeepSeek-R1", 0.25, (3000, 3000), ("6 s", "80 ms"), ("4", "16")),
)
"""Grade, network, answers [T tokens/day], lengths, p95 of both latencies, prices [CNY per million tokens in and out]."""
NETWORKS = (
    "Qwen3-8B", "Qwen3-14B", "Qwen3-32B", "Llama-3.1-8B", "Llama-3.3-70B-Instruct", "Qwen2.5-72B", "Mistral-7B-v0.3", "Gemma-3-12b-it",
    "Gemma-3-27b-it", "phi-4", "gpt-oss-20b", "gpt-oss-120b",
)  # fmt: skip
FURTHER = (
    "Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-4B", "Qwen3-30B-A3B", "Qwen3-235B-A22B", "Llama-3.2-1B", "Llama-3.2-3B", "Qwen2.5-7B", "Qwen2.5-14B",
    "Qwen2.5-32B", "Gemma-3-4b-it", "Mistral Small 3 24B", "GLM-4.5-Air",
)  # fmt: skip
LENGTHS = ((1000, 300), (3000, 500), (500, 150), (2000, 1000))


def _workload(
    name: str, network: str, demand: dict[str, Any], lengths: tuple[int, int], slo: tuple[str, str], users: dict[str, float]
) -> dict[str, Any]:  # fmt: skip
    return {
        "name": name, "kind": "serving", "architecture": network, "demand": {**demand, "profile": list(HOURS)},
        "lengths": {"input": lengths[0], "output": lengths[1]}, "origins": [{"region": r, "share": s} for r, s in users.items()],
        "slo": {"ttft": {"p95": slo[0]}, "tpot": {"p95": slo[1]}}, "precision": ["fp8", "bf16", "int8"],
    }  # fmt: skip


def _spec(name: str, workloads: list[dict[str, Any]], regions: Iterable[str], offers: list[dict[str, Any]], **further: Any) -> dict[str, Any]:  # fmt: skip
    sites = [{"region": region} for region in regions]
    return {"name": name, "workloads": workloads, "sites": sites, "offers": offers, **further}


def national(answers: float = 35.0, regions: Iterable[str] = REGIONS) -> dict[str, Any]:
    """Ask for DeepSeek-V3 over some regions; `answers`: T tokens a day, beside three times as many of prompts."""
    work = _workload("all", "DeepSeek-V3", {"output_tokens": f"{answers}T tokens/day"}, (3000, 1000), ("4 s", "80 ms"), USERS)  # fmt: skip
    return _spec(f"{4 * answers:g}T tokens a day", [work], regions, [{"system": SUPERPOD, "how": "buy"}], **_chinese())


def graded() -> dict[str, Any]:
    """Ask for three grades of tokens on what may be bought in China."""
    works = [
        {
            **_workload(grade, network, {"output_tokens": f"{answers}T tokens/day"}, lengths, slo, USERS),
            "grade": grade, "residency": ["cn"],
            "selling_price": {"input": f"{into} CNY/1M tokens", "output": f"{out} CNY/1M tokens"},
        }
        for grade, network, answers, lengths, slo, (into, out) in GRADES
    ]  # fmt: skip
    systems = ("Atlas 800T A2", SUPERPOD, "HGX H20 8-GPU server", "DGX H100", "GB200 NVL72")
    return _spec("10T tokens a day", works, REGIONS, [{"system": system, "how": "buy"} for system in systems], **_chinese())  # fmt: skip


def _chinese() -> dict[str, Any]:
    return {
        "currency": "CNY", "exchange": {"CNY": {"per_usd": 7.1}}, "horizon": {"start": "2027-01-01", "years": 3},
        "limits": {"export_control": True},
    }  # fmt: skip


def networks(count: int) -> dict[str, Any]:
    """Ask for 36 networks: twelve at three rates; or for any other number, whose rates fall with their rank."""
    few = count == 36
    names = NETWORKS if few else NETWORKS + FURTHER
    works = [
        _workload(
            f"m{i}", names[i % len(names)], {"requests_per_s": (0.05, 0.5, 3.0)[i // 12] if few else round(30 / (1 + i) ** 0.9, 3)},
            LENGTHS[0 if few else i // len(names) % len(LENGTHS)], ("3 s", "60 ms"), {"us-virginia": 1.0},
        )
        for i in range(count)
    ]  # fmt: skip
    offers = [{"system": "DGX H100", "how": "buy"}, {"system": "AWS g6e.48xlarge", "how": "on_demand"}]
    return _spec(f"{count} networks", works, ["us-virginia"], offers, horizon={"start": "2027-01-01", "years": 1})


def least_chips(answers: float) -> float:
    """Divide the tokens of the busiest hour by the published rates; `answers`: T tokens a day.

    >>> round(least_chips(35.0))
    578548
    """
    busiest = max(HOURS) / (sum(HOURS) / len(HOURS))
    return answers * T / DAY_S * busiest * (1 / DECODE + 3 / PREFILL)


QUESTIONS = {"140T": national, "10T": graded, "36": lambda: networks(36), "200": lambda: networks(200)}


def main() -> None:
    """Solve the questions and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=QUESTIONS)
    parser.add_argument("--time-limit", type=float, default=600.0)
    asked = parser.parse_args()
    print(f"140T take at least {least_chips(35.0):,.0f} chips by the published rates")
    for name, question in QUESTIONS.items():
        if asked.only in (None, name):
            begin = time.process_time()
            plan = planner.solve({**question(), "solver": {"time_limit": f"{asked.time_limit} s"}})
            spent, totals = time.process_time() - begin, plan.totals
            fleet = f"{totals['chips']:,} chips, {show(totals['peak_power_w'], 'W')}"
            millions = totals["tokens"] / 1e6
            gap = "no bound" if plan.document["gap"] is None else f"gap {plan.document['gap']:.2%}"
            print(
                f"{name}: {spent:.0f} CPU s, {gap}, {fleet}, {totals['cost'] / millions:.2f} per million tokens of all"
            )


if __name__ == "__main__":
    main()
