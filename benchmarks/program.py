"""Time the joint program on a random instance of the size of the main example. Prints one JSON line.

    python benchmarks/program.py [--objective cost|carbon_kg|throughput] [--seed N] [--gap G] [--threads N] [--solver S]

The figures are drawn at random around plausible ones; nothing here is a fact about hardware.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solvers.interface import Options
from solvers.model.data import Limit, Objective, PlanData
from solvers.search.joint import solve

SITES, SYSTEMS, WORKLOADS, ORIGINS, JOBS, WINDOWS, SLOTS = 4, 4, 3, 6, 2, 2, 48
POINTS_PER_SYSTEM, HOUR_S, YEARS_S = 5, 3600.0, 3 * 365 * 86400.0
BUY, RESERVE, ON_DEMAND = range(3)


def instance(seed: int, objective: str = "cost") -> PlanData:
    rng = np.random.default_rng(seed)
    window = np.repeat(np.arange(WINDOWS), SLOTS // WINDOWS)
    seconds = np.full(SLOTS, YEARS_S / SLOTS)
    hour = np.arange(SLOTS) % 24

    # systems: price, power, speed; each site offers bought ones on one of two fabrics, reserved and on-demand ones
    price = np.array([210e3, 320e3, 450e3, 120e3]) * rng.uniform(0.9, 1.1, SYSTEMS)
    power_w = np.array([8e3, 11e3, 15e3, 9e3])
    speed = np.array([1.0, 1.7, 2.9, 0.5]) * rng.uniform(0.9, 1.1, SYSTEMS)
    site_price_j = (
        rng.uniform(0.05, 0.12, SITES)[:, None]
        / 3.6e6
        * (1 + 0.3 * np.sin((hour + 6 * np.arange(SITES)[:, None]) * np.pi / 12))
    )
    site_carbon_j = rng.uniform(0.05, 0.6, SITES)[:, None] / 3.6e6 * np.ones(SLOTS)

    fleet_options, option_of = [], {}
    for site in range(SITES):
        for system in range(SYSTEMS):
            for way, fabric in ((BUY, 0), (BUY, 1), (RESERVE, -1), (ON_DEMAND, -1)):
                if rng.random() < 0.8:
                    option_of[site, system, way, fabric] = len(fleet_options)
                    fleet_options.append((site, system, way, fabric))
    holdings = [
        (k, w) for k, (_, _, way, _) in enumerate(fleet_options) for w in (range(WINDOWS) if way == ON_DEMAND else [-1])
    ]
    cost, embodied, idle_w, upper = [], [], [], []
    for k, _ in holdings:
        site, system, way, fabric = fleet_options[k]
        energy_j = 0.4 * power_w[system] * seconds
        base = price[system] * rng.uniform(0.98, 1.02)
        cost.append(
            {
                BUY: base * (1.0 if fabric == 0 else 1.12) + energy_j @ site_price_j[site],
                RESERVE: base * 1.9,
                ON_DEMAND: base * 1.5,
            }[way]
        )
        embodied.append((3000.0 if way == BUY else 0.0) + energy_j @ site_carbon_j[site])
        idle_w.append(0.4 * power_w[system] if way == BUY else 0.0)
        upper.append({BUY: 900.0, RESERVE: 200.0, ON_DEMAND: 120.0}[way])
    supply_member = [
        (system, u)
        for u, (k, _) in enumerate(holdings)
        for system in [fleet_options[k][1]]
        if fleet_options[k][2] == BUY
    ]

    # arcs and pools: two latency classes, from the distance between origin and site
    origin_at, site_at = rng.random(ORIGINS), rng.random(SITES)
    arcs, pools = [], {}
    for w in range(WORKLOADS):
        for o in range(ORIGINS):
            for r in np.argsort(np.abs(origin_at[o] - site_at))[: SITES - w % 2 - 1]:
                kind = int(abs(origin_at[o] - site_at[r]) > 0.35)
                arcs.append((w, o, int(r), pools.setdefault((w, int(r), kind), len(pools))))

    uses, systems, pool_of, job_of, rate, extra_w, usd, kg = [], [], [], [], [], [], [], []

    def add_point(option: int, pool: int, job: int, width: float, capacity: float, busy: float) -> None:
        site, system, way, _ = fleet_options[option]
        uses.append((len(pool_of), option))
        systems.append(width)
        pool_of.append(pool)
        job_of.append(job)
        rate.append(capacity)
        watts = busy * 0.6 * power_w[system] * width
        extra_w.append(watts if way == BUY else 0.0)
        usd.append(watts * seconds * site_price_j[site] if way == BUY else np.zeros(SLOTS))
        kg.append(watts * seconds * site_carbon_j[site])

    for (w, r, kind), pool in pools.items():
        for (site, system, way, fabric), option in option_of.items():
            if site == r and fabric < 1 and (way == BUY or rng.random() < 0.6):
                for _ in range(POINTS_PER_SYSTEM if way == BUY else 1):
                    width = rng.choice([1.0, 2.0, 4.0])
                    busy = rng.uniform(0.4, 1.0)
                    per_system = (
                        speed[system] * (5.0, 2.0, 0.7)[w] * (1 - 0.2 * (kind == 1)) * busy**0.8 * rng.uniform(0.8, 1.0)
                    )
                    add_point(option, pool, -1, width, width * per_system, busy)
    work = np.array([3e9, 8e8]) * rng.uniform(0.8, 1.2, JOBS)
    for j in range(JOBS):
        for (_, system, way, fabric), option in option_of.items():
            if system in (0, 1, 2) and way in (BUY, ON_DEMAND) and rng.random() < 0.8:
                width = float(rng.choice([16, 32, 64, 96]))
                add_point(
                    option,
                    -1,
                    j,
                    width,
                    width * speed[system] * (1.0 if fabric != 1 else 1.1) * rng.uniform(0.8, 1.0),
                    0.9,
                )

    demand = np.zeros((WORKLOADS, ORIGINS, SLOTS))
    for w in range(WORKLOADS):
        for o in range(ORIGINS):
            peak = (400.0, 150.0, 40.0)[w] * rng.uniform(0.3, 1.5)
            demand[w, o] = peak * (0.6 + 0.4 * np.sin((hour + 4 * o) * np.pi / 12)) * np.where(window == 0, 1.0, 1.3)
    arc = np.array(arcs)
    table = lambda values: np.array(values, dtype=float)
    mask = np.ones((JOBS, SLOTS), dtype=bool)
    mask[0] = window == 0
    edges = [(w, r) for w in range(WORKLOADS) for r in range(SITES)]
    return PlanData(
        slot_window=window,
        slot_hours_s=seconds,
        site_power_limit_w=np.array([6e6, 4e6, np.inf, 8e6]),
        site_fixed={"cost": table([4e6, 3e6, 0.0, 5e6])},
        option_site=np.array([option[0] for option in fleet_options]),
        option_group=np.array([option[0] * SYSTEMS + option[1] for option in fleet_options]),
        option_fabric=np.array([option[3] for option in fleet_options]),
        holding_option=np.array([h[0] for h in holdings]),
        holding_window=np.array([h[1] for h in holdings]),
        holding_upper=table(upper),
        holding_cost={"cost": table(cost), "carbon_kg": table(embodied)},
        holding_power_w=table(idle_w),
        supply_limit=table([400, 150, 60, 800]),
        supply_member=np.array(supply_member),
        point_pool=np.array(pool_of),
        point_job=np.array(job_of),
        point_uses=np.array(uses),
        point_uses_systems=table(systems),
        point_capacity=table(rate),
        point_power_w=table(extra_w),
        point_cost={"cost": np.array(usd), "carbon_kg": np.array(kg)},
        arc_workload=arc[:, 0],
        arc_origin=arc[:, 1],
        arc_site=arc[:, 2],
        arc_pool=arc[:, 3],
        arc_cost={"cost": np.abs(origin_at[arc[:, 1]] - site_at[arc[:, 2]])[:, None] * 2e-6 * seconds},
        demand=demand,
        host_cost={"cost": np.full((WORKLOADS, SITES), 2e3)},
        edge_workload=np.array([w for w, _ in edges]),
        edge_cost={"cost": rng.uniform(1e3, 5e3, len(edges))},
        tree_path=np.array([(w, r, w * SITES + r) for w, r in edges]),
        job_work=work,
        job_window_mask=mask,
        limits=(Limit("limits.budget", "cost", 4e8),) if objective == "throughput" else (),
        objective=Objective(objective),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objective", default="cost")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=Options().threads)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--solver", default="highs")
    asked = parser.parse_args()
    data = instance(asked.seed, asked.objective)
    answer = solve(data, Options(asked.solver, asked.gap, asked.time_limit, threads=asked.threads))
    print(
        json.dumps(
            {
                "objective": asked.objective,
                "seed": asked.seed,
                "status": answer.status,
                "value": answer.value,
                "bound": answer.bound,
                "gap": answer.gap,
                "seconds": round(answer.seconds, 2),
                "rows": answer.rows,
                "columns": answer.columns,
                "integers": answer.integers,
                "fleet_options": len(data.option_site),
                "holdings": len(data.holding_option),
                "points": len(data.point_pool),
                "arcs": len(data.arc_site),
                "slots": data.slots,
                "polished": answer.polished,
            }
        )
    )


if __name__ == "__main__":
    main()
