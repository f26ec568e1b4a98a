"""Find the load at which a shared fleet is half as busy again as separate fleets, and the size from which training is twice as efficient.

    python benchmarks/sharing.py [--swings 0.25 0.5 1 1.5 2] [--jobs 0 0.5 1 1.5 2] [--tenants 1 3]

A constructed question (one chip, one site, one small architecture): `tenants` services, each with 1 + `swing` times its mean for
eight hours of the day and the rest evenly in the others, their peaks evenly apart; and a training job over the year with `job` times
the chip-hours of all services together. Each is solved with one fleet for all and with separate fleets. The gain is that of
utilisation (chips at work over chips held); beside it stands the closed form for work that can be divided at will (`ideal_gain`). The
second table is the closed form of goodput: with every capability that keeps a long run going, and without each. The last line is one
JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np

from models.training.reliability import best_goodput, checkpoint_write_s
from planner.pipeline import solve
from planner.resolve.resolver import resolve_document
from planner.studies.sharing import use_of
from planner.studies.sharing_capabilities import BY_HAND_S, SLOWER_STORAGE
from planner.tables import as_text

HOURS = 24
PEAK_HOURS = 8
MEAN_RPS = 5_000.0  # all services together
BATCH_TOKENS = "5898240"  # 1,440 sequences, which can be divided in many ways
YEAR_S = 365 * 86400.0
CLAIM = 0.5
PROBE_TOKENS = 1e12
PARAMETERS = 405e9
CHIPS = (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)


def profile(swing: float, shift: int) -> list[float]:
    """Build the weights of a day with mean 1; with a swing of 2 everything falls into the peak."""
    peak = 1.0 + swing
    low = (HOURS - PEAK_HOURS * peak) / (HOURS - PEAK_HOURS)
    return [float(w) for w in np.roll([peak] * PEAK_HOURS + [low] * (HOURS - PEAK_HOURS), shift)]


def ideal_gain(swing: float, job: float, tenants: int) -> float:
    """Compute the gain of one fleet, sized for the joint peak or the mean of all work if that is larger, over fleets sized for their own peaks."""
    days = np.array([profile(swing, t * HOURS // tenants) for t in range(tenants)]) / tenants
    return float((days.max(axis=1).sum() + job) / max(days.sum(axis=0).max(), 1.0 + job)) - 1.0


def question(swing: float, tokens: float, tenants: int) -> dict[str, Any]:
    chat = {
        "kind": "serving", "architecture": "Meta-Llama-3.1-8B", "lengths": {"input": 1000, "output": 250}, "origins": [{"region": "us-texas", "share": 1}],
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "disaggregation": "never",
    }  # fmt: skip
    workloads = [
        chat
        | {
            "name": f"chat {t + 1}",
            "demand": {"requests_per_s": MEAN_RPS / tenants, "profile": profile(swing, t * HOURS // tenants)},
        }
        for t in range(tenants)
    ]
    if tokens:
        workloads.append(
            {
                "name": "tune",
                "kind": "training",
                "architecture": "Meta-Llama-3.1-8B",
                "tokens": f"{tokens:.6g}",
                "deadline": "365 d",
                "batch_tokens": BATCH_TOKENS,
            }
        )
    return {
        "name": f"swing {swing:g}, {tenants} tenants", "horizon": {"start": "2027-01-01", "years": 1, "discount_rate": 0}, "workloads": workloads,
        "sites": [{"region": "us-virginia", "fabric": "InfiniBand NDR"}], "offers": [{"system": "DGX H100", "how": "buy"}],
        "solver": {"gap": 0.001, "time_limit": "5 min", "replicas": "divisible"}, "simplicity": {"within": 0},
    }  # fmt: skip


def utilisation(plan: Any) -> float:
    """Compute chips at work over chips held; there is one kind of system."""
    return use_of(plan, {"DGX H100": 1.0}, sum(row["count"] for row in plan["fleet"]) * YEAR_S).utilisation or 0.0


def tokens_of_equal_work() -> float:
    """Compute the tokens of a job that takes as many chip-hours as all services."""
    plan = solve(question(0.0, PROBE_TOKENS, 1))
    busy = {w["name"]: 0.0 for w in plan["workloads"]}
    systems = {
        point["id"]: (w["name"], sum(pool["systems_per_replica"] for pool in point["pools"]))
        for w in plan["workloads"]
        for point in w["points"]
    }
    for row in plan["schedule"]:
        for point, replicas in row["active"].items():
            name, each = systems[point]
            busy[name] += replicas * each * row["seconds"]
    return PROBE_TOKENS * busy["chat 1"] / busy["tune"]


def measured(swing: float, job: float, tenants: int, equal: float) -> dict[str, Any]:
    document = question(swing, job * equal, tenants)
    shared, siloed = (solve(document | {"sharing": how}) for how in ("all", "none"))
    for plan in (shared, siloed):
        if not plan.has_answer:
            raise SystemExit(f"{document['name']}: {plan.status}")
    one, own = utilisation(shared), utilisation(siloed)
    return {
        "tenants": tenants, "swing": swing, "job": job, "siloed": own, "shared": one, "gain": one / own - 1.0, "ideal_gain": ideal_gain(swing, job, tenants),
        "cost": siloed.objective["value"] / shared.objective["value"] - 1.0, "gap": max(shared.gap, siloed.gap),
    }  # fmt: skip


def goodputs() -> list[dict[str, Any]]:
    """Compute the goodput of a run on so many chips: with every capability that keeps it going, without each, and without all."""
    facts = resolve_document(question(0.0, 0.0, 1)).constants.reliability
    by_hand = BY_HAND_S - facts.recovery_s
    broken = facts.chip_interruption_s / facts.chip_failure_s * facts.repair_s

    def share(chips: int, slower: float = 1.0, longer_s: float = 0.0) -> float:
        write_s = checkpoint_write_s(
            PARAMETERS, facts.checkpoint_bytes_per_parameter, chips * facts.chip_checkpoint_bytes_per_s / slower
        )
        return float(best_goodput(chips, facts.chip_interruption_s, write_s, facts.recovery_s + write_s + longer_s))

    without = {
        "by hand": (1.0, by_hand),
        "no spares": (1.0, broken),
        "slow storage": (SLOWER_STORAGE, 0.0),
        "all off": (SLOWER_STORAGE, by_hand + broken),
    }
    rows = []
    for chips in CHIPS:
        best = share(chips)
        lasting = {name: share(chips, *off) for name, off in without.items()}
        rows.append(
            {
                "chips": chips,
                "all on": best,
                **lasting,
                **{f"gain, {name}": best / each - 1.0 for name, each in lasting.items()},
            }
        )
    return rows


def _percent(row: dict[str, Any], *plain: str) -> dict[str, Any]:
    return {key: value if key in plain else f"{value:,.1%}" for key, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swings", type=float, nargs="+", default=[0.25, 0.5, 1.0, 1.5, 2.0])
    parser.add_argument("--jobs", type=float, nargs="+", default=[0.0, 0.5, 1.0, 1.5, 2.0])
    parser.add_argument("--tenants", type=int, nargs="+", default=[1, 3])
    asked = parser.parse_args()
    equal = tokens_of_equal_work()
    found = [
        measured(swing, job, tenants, equal)
        for tenants in asked.tenants
        for swing in asked.swings
        for job in asked.jobs
    ]
    print(
        as_text(
            [
                _percent(row, "tenants", "swing", "job") | {"claim": "holds" if row["gain"] >= CLAIM else ""}
                for row in found
            ]
        )
    )
    runs = goodputs()
    print(as_text([_percent(row, "chips") for row in runs]))
    print(json.dumps({"utilisation": found, "goodput": runs}))


if __name__ == "__main__":
    main()
