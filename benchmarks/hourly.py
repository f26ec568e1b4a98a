"""Measure what moving work in time and between places saves on real hourly prices and carbon, against a flat schedule.

    python benchmarks/hourly.py --hourly DIR [--write]

DIR holds hourly CSV files as described in planner/spec/series.py; the files are read in place. All year a fleet that could do `headroom`
units of work per hour does one. Temporal: requests that may wait 6 or 24 hours, and one training run a month that may stop at any
hour. Spatial: requests that any of four places may answer, each with its own headroom. Least cost and least carbon are two programs.
"Whole site" counts the idle power of the whole fleet, which grows with the headroom and cannot be moved.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from catalog.lookup import shipped_catalog
from planner.problem.calendar import HOURS_PER_YEAR, Clock
from planner.spec.series import at_instants, carbon_column, price_column, read_series
from planner.tables import as_markdown
from solvers.interface import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.data import Limit, Objective, PlanData
from solvers.search.joint import solve

PLACES = ("us-va-pjm-dom", "us-tx-ercot", "us-ca-caiso-np15", "us-ny-nyiso-capitl", "de-lu", "gb", "au-nsw", "jp-tokyo")
TOGETHER = ("us-va-pjm-dom", "us-tx-ercot", "us-ca-caiso-np15", "us-ny-nyiso-capitl")
HEADROOM = (1.25, 1.5, 2.0, 4.0)
FRONTIERS = ("us-va-pjm-dom", "us-ca-caiso-np15", "de-lu", "gb")
CLAIMED = 0.47
CURRENCY = "USD"


def read(folder: Path, place: str) -> tuple[np.ndarray, np.ndarray]:
    """Read (price, direct carbon) of each hour of the year, with blank hours filled."""
    series = read_series(next(folder.glob(f"{place}_2024.csv")).read_bytes())
    instants = Clock(date(2027, 1, 1), True).instants()
    take = lambda name: at_instants(series["start"], series["columns"][name], instants, True)
    return take(price_column(series["columns"])[0]), take(carbon_column(series["columns"], False)[0])


def requests(
    tables: list[tuple[np.ndarray, np.ndarray]],
    headroom: float,
    wait: int,
    functional: str,
    most_carbon: float = np.inf,
) -> tuple[float, float]:
    """Compute (cost, carbon) of a unit of requests per place and hour, waiting up to `wait` hours, answered at any place."""
    sites, T = len(tables), HOURS_PER_YEAR
    index, zero = np.arange(sites), np.zeros((sites, T))
    order = Chronology(next=np.roll(np.arange(T), -1), step_s=np.ones(T))
    costs = {"cost": np.array([price for price, _ in tables]), "carbon_kg": np.array([carbon for _, carbon in tables])}
    data = PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=np.ones(T), site_power_limit_w=np.full(sites, np.inf), option_site=index, option_group=index, option_fabric=np.full(sites, -1),
        holding_option=index, holding_window=np.full(sites, -1), holding_upper=np.ones(sites), holding_cost={"cost": np.zeros(sites)}, holding_power_w=np.zeros(sites),
        point_pool=index, point_job=np.full(sites, -1), point_uses=np.column_stack([index, index]), point_uses_systems=np.full(sites, 1 / headroom),
        point_capacity=np.ones(sites), point_power_w=np.zeros(sites), point_cost=costs, arc_workload=0 * index, arc_origin=0 * index, arc_site=index, arc_pool=index,
        arc_cost={"cost": zero}, demand=np.full((1, 1, T), float(sites)), objective=Objective(functional),
        limits=(Limit("carbon", "carbon_kg", most_carbon),), **({"order": order, "wait_slots": np.array([wait])} if wait else {}),
    )  # fmt: skip
    return _solved(data)


def training(table: tuple[np.ndarray, np.ndarray], headroom: float, functional: str) -> tuple[float, float]:
    """Compute (cost, carbon) of a run for each month that may pause; its deadline is the end of the month."""
    T, clock = HOURS_PER_YEAR, Clock(date(2027, 1, 1), True)
    month = np.array([moment.month - 1 for moment in clock.instants()])
    jobs = np.arange(12)
    data = PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=np.ones(T), site_power_limit_w=np.array([np.inf]), option_site=np.zeros(1, dtype=int), option_group=np.zeros(1, dtype=int),
        option_fabric=np.array([-1]), holding_option=np.zeros(1, dtype=int), holding_window=np.array([-1]), holding_upper=np.ones(1), holding_cost={"cost": np.zeros(1)}, holding_power_w=np.zeros(1),
        point_pool=np.full(12, -1), point_job=jobs, point_uses=np.column_stack([jobs, 0 * jobs]), point_uses_systems=np.ones(12), point_capacity=np.full(12, headroom), point_power_w=np.zeros(12),
        point_cost={"cost": np.tile(table[0], (12, 1)) * headroom, "carbon_kg": np.tile(table[1], (12, 1)) * headroom},
        demand=np.zeros((0, 0, T)), job_work=np.bincount(month).astype(float), job_window_mask=month == jobs[:, None], objective=Objective(functional),
    )  # fmt: skip
    return _solved(data)


def frontier(
    table: tuple[np.ndarray, np.ndarray], headroom: float, wait: int, steps: int = 5
) -> list[tuple[float, float]]:
    """Trace (saving of cost, saving of carbon) from least cost to least carbon, each point the cheapest at its carbon."""
    flat = [part.sum() for part in table]
    cheap, clean = requests([table], headroom, wait, "cost"), requests([table], headroom, wait, "carbon_kg")
    middle = [requests([table], headroom, wait, "cost", most) for most in np.linspace(cheap[1], clean[1], steps)[1:-1]]
    return [(1 - cost / flat[0], 1 - carbon / flat[1]) for cost, carbon in (cheap, *middle, clean)]


def _solved(data: PlanData) -> tuple[float, float]:
    solution = solve(data, Options(gap=1e-6, time_limit_s=300.0))
    if solution.status != "optimal":
        raise SystemExit(f"ended as {solution.status}")
    return float(solution.functionals["cost"]), float(solution.functionals["carbon_kg"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hourly", type=Path, required=True, metavar="DIR")
    parser.add_argument("--write", action="store_true", help="write the tables beside this file")
    arguments = parser.parse_args()
    begin, idle = time.perf_counter(), shipped_catalog().get("defaults", "idle_power_fraction").figure("value").value
    tables = {place: read(arguments.hourly, place) for place in PLACES}
    rows = []

    def add(work: str, where: str, mine: list[tuple[np.ndarray, np.ndarray]], headroom: float, found) -> None:
        flat = [sum(table[k].sum() for table in mine) for k in (0, 1)]
        (cheap, _), (dear, clean) = found("cost"), found("carbon_kg")
        whole = lambda moved, k: 1 - (idle * headroom * flat[k] + (1 - idle) * moved) / flat[k]
        rows.append({
            "work": work, "where": where, "headroom": f"{headroom:g}", "cost": 1 - cheap / flat[0], "carbon": 1 - clean / flat[1],
            "cost at least carbon": 1 - dear / flat[0], "carbon, whole site": whole(clean, 1), "cost, whole site": whole(cheap, 0),
        })  # fmt: skip

    for place, table in tables.items():
        for headroom in HEADROOM:
            for wait in (6, 24):
                add(
                    f"requests wait {wait} h",
                    place,
                    [table],
                    headroom,
                    lambda f, t=table, h=headroom, w=wait: requests([t], h, w, f),
                )
            add("training, monthly", place, [table], headroom, lambda f, t=table, h=headroom: training(t, h, f))
    four = [tables[place] for place in TOGETHER]
    for headroom in HEADROOM:
        add(
            "requests move between places",
            "four US grids",
            four,
            headroom,
            lambda f, h=headroom: requests(four, h, 0, f),
        )
    add("move and wait 24 h", "four US grids", four, 2.0, lambda f: requests(four, 2.0, 24, f))

    edges = []
    for place in FRONTIERS:
        for cost, carbon in frontier(tables[place], 2.0, 24):
            edges.append({"where": place, "saving of cost": cost, "saving of carbon": carbon})

    reached = [row for row in rows if row["carbon"] >= CLAIMED]
    whole = [row for row in rows if row["carbon, whole site"] >= CLAIMED]
    percent = lambda row: {key: f"{value:.1%}" if isinstance(value, float) else value for key, value in row.items()}
    words = [
        f"Carbon of the moved energy falls by {CLAIMED:.0%} or more for: " + ("; ".join(f"{r['work']}, {r['where']}, headroom {r['headroom']} ({r['carbon']:.0%})" for r in reached) or "none of these") + ".",
        f"Counting idle power ({idle:.0%} of a system's power at all times): " + ("; ".join(f"{r['work']}, {r['where']}, headroom {r['headroom']} ({r['carbon, whole site']:.0%})" for r in whole) or "none of these") + ".",
        "A cost saving above 100 % is earned at prices below 0. Idle power of the larger fleet comes on top in the last two columns, so that headroom without work is a loss.",
    ]  # fmt: skip
    text = as_markdown([percent(row) for row in rows]) + "\n" + "\n\n".join(words) + "\n"
    text += (
        "\n## Between least cost and least carbon\n\nRequests that wait 24 hours, headroom 2: the cheapest schedule at each carbon.\n\n"
        + as_markdown([percent(row) for row in edges])
    )
    print(text)
    print(f"{len(rows)} rows in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    if arguments.write:
        head = "# Moving work in time and between places\n\n`benchmarks/hourly.py --hourly DIR --write` on series of 2024 (prices of the operators; direct carbon), read in place. Savings against a flat schedule.\n\n"
        (HERE / "hourly.md").write_text(head + text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
