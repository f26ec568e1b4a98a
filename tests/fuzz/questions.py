"""Small questions that are solved in a fraction of a second, drawn at random, and the same question written or asked in another way."""

from __future__ import annotations

import copy
import random
from typing import Any

from tests.plans.test_plan_properties import BOUGHT, GAP, REGIONS, RENTED, RESERVED

Spec = dict[str, Any]
MOST_PER_S = {  # architecture -> requests/s
    "Llama-3.2-1B": 20_000,
    "Meta-Llama-3.1-8B": 3_000,
    "Qwen3-30B-A3B": 3_000,
}
DAY_AND_NIGHT = [0.5] * 12 + [1.5] * 12
AT_NIGHT = DAY_AND_NIGHT[::-1]
PARTS = (" one", " two")  # ends of the names of halves


def question(rng: random.Random) -> Spec:
    """Draw one or two serving workloads and perhaps a training job, on one or two sites, with some of three offers."""
    workloads = [_serving(rng, name) for name in ("chat", "code")[: rng.choice((1, 1, 1, 2))]]
    if rng.random() < 0.25:
        tokens, days = rng.randint(1, 600), rng.randint(3, 60)
        workloads.append({
            "name": "tune", "kind": "training", "architecture": "Llama-3.2-1B", "tokens": f"{tokens}B", "deadline": f"{days} d",
            "preemption": rng.choice((None, {})),  # where it is left out, some paths count pauses and others do not
        })  # fmt: skip
    return {
        "name": "drawn",
        "objective": {"minimise": rng.choice(("cost", "cost", "cost", "carbon"))},
        "workloads": workloads,
        "sites": [{"region": region} for region in rng.sample(REGIONS, rng.choice((1, 2)))],
        "offers": copy.deepcopy(rng.sample((BOUGHT, RENTED, RESERVED), rng.randint(1, 3))),
        "simplicity": {"within": 0},
        "solver": {"gap": GAP, "replicas": "divisible", "time_limit": "10 s"},
    }


def _serving(rng: random.Random, name: str) -> Spec:
    architecture = rng.choices(list(MOST_PER_S), (6, 3, 1))[0]
    demand: Spec = {"requests_per_s": round(MOST_PER_S[architecture] ** rng.uniform(0, 1), 3)}  # as often few as many
    if rng.random() < 0.4:
        demand["profile"] = rng.choice((DAY_AND_NIGHT, AT_NIGHT))
    return {
        "name": name, "kind": "serving", "architecture": architecture, "demand": demand,
        "lengths": {"input": rng.randint(100, 3000), "output": rng.randint(50, 600)},
        "origins": [{"region": "us-california", "share": 0.25}, {"region": "us-virginia", "share": 0.75}],
        "weights_from": "us-texas",  # the first origin where it is left out
        "slo": {"ttft": {"p95": f"{rng.randint(300, 3000)} ms"}, "tpot": {"p95": f"{rng.randint(10, 80)} ms"}},
        "precision": ["bf16"], "disaggregation": rng.choice(("never", "never", "never", "allowed")),
    }  # fmt: skip


def serving(spec: Spec) -> list[Spec]:
    """List the serving workloads of a question."""
    return [workload for workload in spec["workloads"] if workload["kind"] == "serving"]


# -- the same question -------------------------------------------------------------------------------------------------


def renamed(spec: Spec) -> Spec:
    """Name the workloads otherwise, in another order of the alphabet."""
    result = copy.deepcopy(spec)
    for i, workload in enumerate(result["workloads"]):
        workload["name"] = f"{'zyx'[i]} of {workload['name']}"
    return result


def reordered(spec: Spec) -> Spec:
    """Turn every list of records round."""
    result = copy.deepcopy(spec)
    for key in ("workloads", "sites", "offers"):
        result[key].reverse()
    for workload in serving(result):
        workload["origins"].reverse()
    return result


def in_other_units(spec: Spec) -> Spec:
    """Write the same figures in other units: seconds, hours, trillions of tokens, a price by the day, demand in tokens."""
    result = copy.deepcopy(spec)
    for workload in result["workloads"]:
        if workload["kind"] == "training":
            workload["tokens"] = f"{float(workload['tokens'].removesuffix('B')) / 1000}T"
            workload["deadline"] = f"{24 * int(workload['deadline'].removesuffix(' d'))} h"
            continue
        for metric in workload["slo"].values():
            metric["p95"] = f"{float(metric['p95'].removesuffix(' ms')) / 1000} s"
        demand = workload["demand"]
        tokens = demand.pop("requests_per_s") * workload["lengths"]["output"] * 86_400
        demand["output_tokens"] = f"{tokens / 1e9!r} B tokens/day"
        if "profile" in demand:
            demand["profile"] = [100 * weight for weight in demand["profile"]]
    for offer in result["offers"]:
        amount, unit = offer["price"].split(" ")
        offer["price"] = f"{float(amount) * 24!r} USD/day" if unit == "USD/h" else f"{float(amount) / 1e6!r}M USD"
    return result


# -- other questions ---------------------------------------------------------------------------------------------------


def in_halves(spec: Spec) -> Spec:
    """Split the first workload into two, each of half the demand."""
    result = times(spec, 1.0)
    first = result["workloads"][0]
    first["demand"]["requests_per_s"] /= 2
    result["workloads"][:1] = [{**copy.deepcopy(first), "name": first["name"] + part} for part in PARTS]
    return result


def times(spec: Spec, factor: float) -> Spec:
    """Ask for so many times the requests of all serving workloads."""
    result = copy.deepcopy(spec)
    for workload in serving(result):
        workload["demand"]["requests_per_s"] *= factor
    return result


def looser(spec: Spec, factor: float) -> Spec:
    """Stretch all limits on latency."""
    result = copy.deepcopy(spec)
    for workload in serving(result):
        for metric in workload["slo"].values():
            metric["p95"] = f"{float(metric['p95'].removesuffix(' ms')) * factor:.6f} ms"
    return result
