"""Compare the planner's mix of chips at one site with a plain integer program in PuLP; both costs must be equal.

    python benchmarks/gpu_mix.py

The plain program is that of Mélange (Griggs et al., 2024): integer numbers of each kind of server, and for each class of requests a
share on each kind, which serves so many requests per second within the latency limits. Specs are drawn from seeds: classes that
differ in lengths and limits, flat demand, kinds rented or bought at drawn prices, all but the weakest scarce. Both programs take the
operating points from `planner.candidates.search`; costs, rows and columns of the plain one are written only here. Mélange cuts a
class into slices; the last column says what slices cost beyond shares. Prints one JSON line last, and fails where costs differ.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from pathlib import Path
from sys import path
from typing import Any

import pulp

path[:0] = [str(Path(__file__).resolve().parents[1])]

from planner.candidates.search import find_candidates
from planner.pipeline import solve_document
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import terms_of
from planner.resolve.resolver import resolve_document

AGREES = 1e-6
SLICES = 8  # slices of a class
SEEDS = (1, 2, 3)
REGION = "us-virginia"
RENTED = {
    "DGX A100 80GB": 4.2,
    "MI300X 8x OAM node": 21.0,
    "DGX H200": 22.0,
    "DGX B200": 46.0,
}  # about USD/h; made up to be near each other
BOUGHT = {"DGX H100": 560_000.0}  # about USD; likewise
CLASSES = {
    "chat": (500, 250, "1 s", 60),
    "summary": (6000, 200, "5 s", 90),
    "writing": (800, 1500, "1 s", 40),
}  # tokens in, out, TTFT, TPOT [ms]


@dataclass(frozen=True, slots=True)
class Kind:
    """Servers of one kind: cost of holding one over the horizon, and how many are available."""

    cost: float
    supply: float


@dataclass(frozen=True, slots=True)
class Load:
    """A whole class on one kind: servers that it needs, and cost of the energy of its work over the horizon."""

    servers: float
    cost: float


def question(seed: int) -> dict[str, Any]:
    """Draw a spec from the seed: three kinds to rent and one to buy; three classes."""
    draw = random.Random(seed)
    offers = [
        {"system": name, "how": "reserved", "price": f"{RENTED[name] * draw.uniform(0.8, 1.2):.2f} USD/h"}
        for name in sorted(draw.sample(sorted(RENTED), 3), key=RENTED.get)
    ]
    offers += [
        {"system": name, "how": "buy", "price": f"{price * draw.uniform(0.8, 1.2):.0f} USD"}
        for name, price in BOUGHT.items()
    ]
    for offer in offers[1:]:
        offer["supply"] = draw.randint(1, 4)
    workloads = []
    for name, (tokens_in, tokens_out, ttft, tpot) in CLASSES.items():
        workloads.append({
            "name": name, "kind": "serving", "architecture": "Qwen3-32B", "precision": ["fp8", "bf16"], "disaggregation": "never",
            "demand": {"requests_per_s": round(draw.uniform(20, 60) * 1000 / (0.1 * tokens_in + tokens_out), 2)},
            "lengths": {"input": tokens_in, "output": tokens_out}, "origins": [{"region": REGION, "share": 1}],
            "slo": {"ttft": {"p95": ttft}, "tpot": {"p95": f"{tpot + draw.randint(-5, 5)} ms"}},
        })  # fmt: skip
    return {
        "schema_version": 1, "name": f"Mix of chips {seed}", "horizon": {"years": 3}, "workloads": workloads, "offers": offers,
        "sites": [{"region": REGION, "topologies": ["scale-up"], "electricity_price": f"{draw.uniform(0.05, 0.2):.3f} USD/kWh"}],
        "solver": {"gap": AGREES, "time_limit": "60 s", "points_per_system": 1},
    }  # fmt: skip


def numbers(problem: ResolvedSpec) -> tuple[dict[str, Kind], dict[tuple[str, str], Load]]:
    """Collect the input of the plain program from fleet options and points: kinds by system, and the (class, system) within the limits."""
    site, calendar, found = problem.sites[0], problem.calendar, find_candidates(problem)
    if float(site.price_per_j.std()) > 1e-15 or len({option.system.name for option in found.fleet_options}) < len(
        found.fleet_options
    ):
        raise SystemExit("expected one price of electricity and one fleet option of each system")
    paid_s = sum(
        float(s * d) for s, d in zip(calendar.seconds, calendar.discount, strict=True)
    )  # seconds at their present worth
    per_w = {
        True: float(site.price_per_j[0]) * paid_s,
        False: 0.0,
    }  # energy of what is rented is in the rent
    kinds, serving = {}, {}
    for option in found.fleet_options:
        charged = terms_of(problem, option.site, option.offer)[0].charges
        owned = option.capital * charged.of_system + option.fabric_capital * charged.share
        owned += option.facility_capital * charged.facility
        owned += (option.staff_per_year + option.software_per_year) * charged.per_year
        kinds[option.system.name] = Kind(
            owned + option.rent_per_s * paid_s + option.idle_at_meter_w * per_w[option.owned], option.offer.supply
        )
    for pool in found.pools:
        demand = float(pool.workload.requests_per_s.sum(axis=0).max())
        for point in pool.points:
            (use,) = point.uses
            key = pool.workload.name, use.option.system.name
            if key in serving:
                raise SystemExit(f"two points of {key}")
            replicas = demand / point.capacity
            serving[key] = Load(
                replicas * use.systems, replicas * use.extra_it_w * use.option.pue * per_w[use.option.owned]
            )
    return kinds, serving


def plain(
    kinds: dict[str, Kind], serving: dict[tuple[str, str], Load], slices: int | None = None
) -> tuple[float, dict[str, int]]:
    """Solve for least cost and servers of each kind; each class in shares, or in so many equal slices, each entirely on one kind."""
    program = pulp.LpProblem("mix", pulp.LpMinimize)
    label = {name: str(i) for i, name in enumerate(sorted({*kinds, *(c for c, _ in serving)}))}
    held = {
        k: pulp.LpVariable(f"held_{label[k]}", 0, kind.supply if math.isfinite(kind.supply) else None, "Integer")
        for k, kind in kinds.items()
    }
    cut, category = (slices, "Integer") if slices else (1, "Continuous")
    part = {(c, k): pulp.LpVariable(f"part_{label[c]}_{label[k]}", 0, cut, category) for c, k in serving}
    unit = max(kind.cost for kind in kinds.values())  # keeps the solver's numbers near one
    program += pulp.lpSum(kind.cost / unit * held[k] for k, kind in kinds.items()) + pulp.lpSum(
        s.cost / unit / cut * part[key] for key, s in serving.items()
    )
    for c in {c for c, _ in serving}:
        program += pulp.lpSum(part[key] for key in serving if key[0] == c) == cut
    for k in kinds:
        program += pulp.lpSum(s.servers / cut * part[key] for key, s in serving.items() if key[1] == k) <= held[k]
    program.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0.0, gapAbs=0.0, timeLimit=60, threads=1))
    if program.sol_status != pulp.LpSolutionOptimal:
        raise SystemExit(f"CBC ended as {pulp.LpSolution[program.sol_status]}")
    return float(pulp.value(program.objective)) * unit, {
        k: round(column.value()) for k, column in held.items() if column.value() > 0.5
    }


def compare(seed: int) -> dict[str, Any]:
    document = question(seed)
    kinds, serving = numbers(resolve_document(document))
    cost, mix = plain(kinds, serving)
    plan = solve_document(document, threads=1)
    if plan.status != "optimal":
        raise SystemExit(f"the planner ended as {plan.status}")
    ours, fleet = float(plan.objective["value"]), {row["system"]: round(row["count"]) for row in plan["fleet"]}
    return {
        "seed": seed, "classes": len(document["workloads"]), "kinds": len(kinds), "pairs": len(serving), "flopwatt": ours, "plain": cost,
        "difference": abs(ours - cost) / cost, "gap": plan.gap, "mix": fleet, "mix_plain": mix,
        "slices_over_shares": plain(kinds, serving, SLICES)[0] / cost - 1,
    }  # fmt: skip


def main() -> int:
    rows = [compare(seed) for seed in SEEDS]
    words = lambda mix: ", ".join(f"{count} {name}" for name, count in sorted(mix.items()))
    print(
        f"| seed | classes | kinds | servers, flopwatt | servers, plain | USD, flopwatt | USD, plain | relative difference | in {SLICES} slices |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        head, mixes = f"{r['seed']} | {r['classes']} | {r['kinds']}", f"{words(r['mix'])} | {words(r['mix_plain'])}"
        print(
            f"| {head} | {mixes} | {r['flopwatt']:,.2f} | {r['plain']:,.2f} | {r['difference']:.1e} | {r['slices_over_shares']:+.1%} |"
        )
    agree = all(row["difference"] <= AGREES for row in rows)
    print(json.dumps({"agree": agree, "tolerance": AGREES, "questions": rows}))
    return 0 if agree else 1


if __name__ == "__main__":
    raise SystemExit(main())
