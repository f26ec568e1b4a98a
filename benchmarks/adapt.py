"""Back-test of planning again: a year of weekly demand and a true performance that no plan knows, `replan` every quarter.

    python benchmarks/adapt.py --worlds 50 --seed 62

Policies meet the same worlds: one plan as predicted, one plan with `robust` at 80 %, a plan that `replan` renews every quarter with the
demand and the throughput observed by then, a plan with `adapt` at 80 % that is renewed in the same way, and a planner who knows the world and
hires by the week. Systems are reserved until the end of the year or rented on demand: by the quarter as the plan says, or each week as many as
the demand of the week before lacked, which plans with `adapt` leave to whoever runs the systems. A week is kept where all of its demand is
served.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import planner
from models.arrays import Floats
from planner.plan import Plan
from planner.problem.intervals import LABELS
from planner.problem.scenarios import error_at
from planner.solving.variants import resolved
from planner.studies.replan.answer import KEEP, OBTAIN, actions, replan

START, WEEKS, QUARTER = date(2027, 1, 1), 52, 13
HOURS = 7 * 24.0
RESERVED, ON_DEMAND = 20.0, 45.0  # USD of a system, an hour; made up
RATE = 9000.0  # requests/s at the start
GROWTH, SPREAD, DRIFT, NOISE = (
    0.3,
    0.3,
    0.03,
    0.05,
)  # of a year: mean and spread of the growth; of a week: drift of the level and noise around it
SPEC: dict[str, Any] = {
    "name": "back-test",
    "horizon": {"start": START.isoformat(), "years": 1},
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.2-1B", "demand": {"requests_per_s": RATE, "growth_per_year": GROWTH},
            "lengths": {"input": 500, "output": 200}, "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["bf16"], "disaggregation": "never",
        }
    ],
    "sites": [{"region": "us-virginia", "systems": ["DGX H100"]}],
    "offers": [
        {"system": "DGX H100", "how": "reserved", "price": f"{RESERVED} USD/h", "term": "1 year", "exit_fee": 1.0},
        {"system": "DGX H100", "how": "on_demand", "price": f"{ON_DEMAND} USD/h"},
    ],
    "simplicity": {"within": 0},
    "solver": {"gap": 0.01, "time_limit": "60 s"},
}  # fmt: skip

ADAPT = {
    "promise": 0.8,
    "demand": 0.3,
    "dates": [{"at": f"{QUARTER * quarter} weeks"} for quarter in range(1, WEEKS // QUARTER)],
}
"""The block of the plans to adapt; demand differs by up to what a year's growth, one standard deviation off, changes."""


@dataclass(frozen=True)
class World:
    """Demand by week [request/s], and true over predicted throughput."""

    demand: Floats
    speed: float


@dataclass(frozen=True)
class Outcome:
    """Rent of the year [USD], share of weeks in which everything is served, and share of the demand that is."""

    cost: float
    kept: float
    served: float


def worlds(count: int, seed: int) -> Iterator[World]:
    """Draw worlds: a growth, a level that drifts, weekly noise, and an error as on held-out measurements of the chip."""
    known = resolved(SPEC).constants.measured_serving
    for i in range(count):
        random = np.random.default_rng([seed, i])
        growth = math.log1p(GROWTH) + SPREAD * random.standard_normal()
        level = np.cumsum(DRIFT * random.standard_normal(WEEKS)) + growth * (np.arange(WEEKS) + 0.5) / WEEKS
        speed = float(error_at(known, "H100", LABELS["serving"][-1], random.random()))
        yield World(RATE * np.exp(level + NOISE * random.standard_normal(WEEKS)), speed)


def counts(plan: Plan) -> tuple[int, int]:
    """Count the systems that a plan has reserved, and the most that it rents on demand at once."""
    reserved = sum(row["count"] for row in plan.fleet if row["how"] == "reserved")
    demand = [row["count"] for row in plan.fleet if row["how"] == "on_demand"]
    return reserved, max(demand, default=0)


def valued(world: World, capacity: float, reserved: Floats, hired: Floats) -> Outcome:
    """Value systems by week at the true performance; `capacity` of a system as predicted [request/s]."""
    able = (reserved + hired) * capacity * world.speed
    served = np.minimum(able, world.demand)
    cost = HOURS * (RESERVED * reserved.sum() + ON_DEMAND * hired.sum())
    return Outcome(float(cost), float((able >= world.demand).mean()), float(served.sum() / world.demand.sum()))


def clairvoyant(world: World, capacity: float) -> Outcome:
    """Reserve at the start as many systems as make the year cheapest, and hire the rest week by week."""
    need = np.ceil(world.demand / (capacity * world.speed))
    found = [valued(world, capacity, np.full(WEEKS, r), np.maximum(need - r, 0.0)) for r in range(int(need.max()) + 1)]
    return min(found, key=lambda each: each.cost)


def once(world: World, capacity: float, plan: Plan) -> Outcome:
    """Keep the fleet of one plan for the whole year."""
    reserved, hired = counts(plan)
    return valued(world, capacity, np.full(WEEKS, float(reserved)), np.full(WEEKS, float(hired)))


def signed(plan: Plan) -> tuple[int, int]:
    """Count the systems that a plan with `adapt` holds once it has signed, and none on demand."""
    rows = [row for row in actions(plan) if row["do"] in (KEEP, OBTAIN) and row["how"] == "reserved"]
    return sum(row["count"] for row in rows), 0


def by_last_week(world: World, capacity: float, reserved: Floats) -> Outcome:
    """Hire on demand each week what the systems reserved lacked for the demand of the week before, at their true throughput."""
    need = np.ceil(world.demand / (capacity * world.speed))
    before = np.concatenate([[0.0], need[:-1]])
    return valued(world, capacity, reserved, np.maximum(before - reserved, 0.0))


def renewed(
    world: World, capacity: float, tokens: float, plan: Plan, folder: Path, counted: Callable[[Plan], tuple[int, int]]
) -> tuple[Floats, Floats]:
    """Renew the plan every quarter with the demand of the last four weeks and the throughput of the first measurement on.

    Returns the systems reserved and rented on demand in each week, as `counted` in each plan.
    """
    reserved, hired = np.zeros(WEEKS), np.zeros(WEEKS)
    for quarter in range(WEEKS // QUARTER):
        week = quarter * QUARTER
        if quarter:
            day = START + timedelta(weeks=week)
            rate = world.demand[week - 4 : week].mean()
            rows = ["date,workload,system,requests_per_s,throughput,systems", f"{day},chat,,{rate:.6g},,", f"{day},chat,DGX H100,,{tokens * world.speed:.6g},1"]  # fmt: skip
            file = folder / f"{quarter}.csv"
            file.write_text("\n".join(rows) + "\n", encoding="utf-8")
            plan = replan(plan, [file], folder / f"own{quarter}", day=day).after
            if not plan.has_answer:
                raise RuntimeError(plan.status)
        reserved[week:], hired[week:] = counted(plan)
    return reserved, hired


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=62)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no further world after so many seconds")
    asked = parser.parse_args()
    began = time.perf_counter()
    plain = planner.solve(copy.deepcopy(SPEC), threads=1)
    robust = planner.solve({**copy.deepcopy(SPEC), "robust": {"confidence": 0.8, "prices": False}}, threads=1)
    adaptive = planner.solve({**copy.deepcopy(SPEC), "adapt": ADAPT}, threads=1)
    (workload,) = plain.document["workloads"]
    able = [(p["capacity"], sum(pool["systems_per_replica"] for pool in p["pools"])) for p in workload["points"]]
    capacity = max(rate / systems for rate, systems in able)
    print("plan once", counts(plain), "robust", counts(robust), "adapt", signed(adaptive), flush=True)
    found: dict[str, list[Outcome]] = {}
    for i, world in enumerate(worlds(asked.worlds, asked.seed)):
        if time.perf_counter() - began > asked.seconds:
            break
        best = clairvoyant(world, capacity)
        with tempfile.TemporaryDirectory() as folder:
            again = renewed(world, capacity, capacity * 200.0, plain, Path(folder), counts)
        with tempfile.TemporaryDirectory() as folder:
            staged, _ = renewed(world, capacity, capacity * 200.0, adaptive, Path(folder), signed)
        every = {
            "clairvoyant": best, "plan once": once(world, capacity, plain), "plan once, robust": once(world, capacity, robust),
            "replan every quarter": valued(world, capacity, *again), "replan every quarter, on demand by the week": by_last_week(world, capacity, again[0]),
            "adapt, replan every quarter, on demand by the week": by_last_week(world, capacity, staged),
        }  # fmt: skip
        for name, outcome in every.items():
            found.setdefault(name, []).append(outcome)
        print(
            i,
            f"{world.speed:.2f}",
            {n: (round(o.cost / best.cost, 2), round(o.kept, 2)) for n, o in every.items()},
            flush=True,
        )
    cheapest = np.array([each.cost for each in found["clairvoyant"]])
    print("| policy | cost over clairvoyant, mean | 10 to 90 % | weeks kept | demand served |\n|---|---|---|---|---|")
    for name, outcomes in found.items():
        ratio = np.array([each.cost for each in outcomes]) / cheapest
        low, high = np.quantile(ratio, [0.1, 0.9])
        kept, served = np.mean([each.kept for each in outcomes]), np.mean([each.served for each in outcomes])
        print(f"| {name} | {ratio.mean():.2f} | {low:.2f} to {high:.2f} | {kept:.0%} | {served:.1%} |")
    print(f"{len(cheapest)} worlds, {time.process_time():.0f} CPU seconds")


if __name__ == "__main__":
    main()
