"""Compare the electricity block with PyPSA: write the same three problems in both, solve them, and compare the objectives.

    python -m venv VENV && VENV/bin/pip install pypsa highspy pydantic numpy-financial threadpoolctl
    VENV/bin/python benchmarks/against_pypsa.py [--write]

Run it with an interpreter that has PyPSA. Each problem has storage and requests that may wait; the series are drawn from a seed. It
also compares our capital recovery with numpy-financial.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from models.economics import annuity, capital_recovery_factor
from solvers.interface import Options
from solvers.model.block_data.electricity import Chronology, MeterData
from solvers.model.data import PlanData
from solvers.search.joint import solve

AGREES = 1e-6
WITHOUT_LIMIT = 1e4


def series(hours: int, sites: int, seed: int) -> dict[str, np.ndarray]:
    """Draw load, prices and plant output by site from a seed, with days and noise."""
    rng, t = np.random.default_rng(seed), np.arange(hours)
    day = np.sin(2 * np.pi * (t - 8) / 24)
    price = np.array([40 + 15 * np.roll(day, 5 * r) + 12 * rng.standard_normal(hours) for r in range(sites)])
    return {
        "load": np.maximum(6 + 2 * day + rng.standard_normal(hours) * 0.5, 1.0),
        "price": np.maximum(price, 1.0),
        "sun": np.array(
            [np.clip(np.sin(2 * np.pi * (t - 6 - r) / 24), 0, 1) * rng.uniform(0.4, 1.0, hours) for r in range(sites)]
        ),
    }


# (hours, sites, wait, battery: price per MWh of size or 0 when 20 MWh are given, price of the plant per MW, price of the peak per MW)
PROBLEMS = {
    "a week, a given battery, a plant, waits 3 h": (168, 1, 3, 0.0, 900.0, 0.0),
    "two weeks, a battery to size, a peak charge, waits 6 h": (336, 1, 6, 400.0, 1500.0, 900.0),
    "a month, two sites, batteries to size, waits 12 h": (744, 2, 12, 900.0, 3500.0, 1200.0),
}
EFFICIENCY = 0.93


def ours(
    hours: int, sites: int, wait: int, storage: float, plant: float, peak: float, data: dict[str, np.ndarray]
) -> tuple[float, float]:
    begin = time.perf_counter()
    index, every = np.arange(sites), np.ones((sites, hours))
    given = storage == 0.0
    order = Chronology(next=np.roll(np.arange(hours), -1), step_s=np.ones(hours))  # an hour is the unit of time
    meters = MeterData(
        meter_site=index, grid_upper_w=np.full(sites, np.inf), grid_cost={"cost": data["price"]},
        peak_meter=index if peak else np.zeros(0, dtype=int), peak_slot=every[: sites if peak else 0] > 0, peak_cost={"cost": np.full(sites if peak else 0, peak)},
        contract_meter=index, contract_least_w=np.zeros(sites), contract_upper_w=np.full(sites, 30.0), contract_share=data["sun"], contract_cost={"cost": np.full(sites, plant)},
        battery_meter=index, battery_least_j=np.full(sites, 20.0 if given else 0.0), battery_upper_j=np.full(sites, 20.0 if given else WITHOUT_LIMIT),
        battery_least_w=np.full(sites, 5.0 if given else 0.0), battery_upper_w=np.full(sites, 5.0 if given else WITHOUT_LIMIT), battery_efficiency=np.full(sites, EFFICIENCY),
        battery_energy_cost={"cost": np.full(sites, storage)}, battery_power_cost={"cost": np.zeros(sites)},
    )  # fmt: skip
    program = PlanData(
        slot_window=np.zeros(hours, dtype=int), slot_hours_s=np.ones(hours), site_power_limit_w=np.full(sites, np.inf), option_site=index, option_group=index, option_fabric=np.full(sites, -1),
        holding_option=index, holding_window=np.full(sites, -1), holding_upper=np.ones(sites), holding_cost={"cost": np.zeros(sites)}, holding_power_w=np.zeros(sites),
        point_pool=index, point_job=np.full(sites, -1), point_uses=np.column_stack([index, index]), point_uses_systems=np.full(sites, 1 / WITHOUT_LIMIT),
        point_capacity=np.ones(sites), point_power_w=np.ones(sites), point_cost={"cost": 0.0 * every},
        arc_workload=0 * index, arc_origin=0 * index, arc_site=index, arc_pool=index, arc_cost={"cost": 0.0 * every},
        demand=data["load"].reshape(1, 1, -1), meters=meters, order=order, wait_slots=np.array([wait]),
    )  # fmt: skip
    solution = solve(program, Options(gap=1e-9, time_limit_s=600.0))
    if solution.status != "optimal":
        raise SystemExit(f"ours ended as {solution.status}")
    return float(solution.value), time.perf_counter() - begin


def theirs(
    hours: int, sites: int, wait: int, storage: float, plant: float, peak: float, data: dict[str, np.ndarray]
) -> tuple[float, float]:
    import pypsa

    begin = time.perf_counter()
    n = pypsa.Network(snapshots=range(hours))
    n.add("Bus", "work")
    n.add("Load", "requests", bus="work", p_set=data["load"])
    patience = sum(np.roll(data["load"], lag) for lag in range(wait))
    # what waits is a store below its zero
    n.add("Store", "waiting", bus="work", e_nom=1.0, e_min_pu=-patience, e_max_pu=0.0, e_cyclic=True)
    for r in range(sites):
        n.add("Bus", f"site {r}")
        n.add("Link", f"serve {r}", bus0=f"site {r}", bus1="work", p_nom=WITHOUT_LIMIT)
        n.add(
            "Generator",
            f"grid {r}",
            bus=f"site {r}",
            marginal_cost=data["price"][r],
            **({"p_nom_extendable": True, "capital_cost": peak} if peak else {"p_nom": WITHOUT_LIMIT}),
        )
        n.add(
            "Generator",
            f"sun {r}",
            bus=f"site {r}",
            p_nom_extendable=True,
            p_nom_max=30.0,
            capital_cost=plant,
            p_max_pu=data["sun"][r],
        )
        if storage == 0.0:
            n.add(
                "StorageUnit",
                f"battery {r}",
                bus=f"site {r}",
                p_nom=5.0,
                max_hours=4.0,
                efficiency_store=EFFICIENCY,
                efficiency_dispatch=EFFICIENCY,
                cyclic_state_of_charge=True,
            )
        else:
            n.add("Bus", f"cells {r}")
            n.add("Store", f"cells {r}", bus=f"cells {r}", e_nom_extendable=True, capital_cost=storage, e_cyclic=True)
            n.add(
                "Link", f"charge {r}", bus0=f"site {r}", bus1=f"cells {r}", p_nom=WITHOUT_LIMIT, efficiency=EFFICIENCY
            )
            n.add(
                "Link",
                f"discharge {r}",
                bus0=f"cells {r}",
                bus1=f"site {r}",
                p_nom=WITHOUT_LIMIT,
                efficiency=EFFICIENCY,
            )
    status, condition = n.optimize(
        solver_name="highs", solver_options={"output_flag": False}, include_objective_constant=False
    )
    if condition != "optimal":
        raise SystemExit(f"PyPSA ended as {status}, {condition}")
    return float(n.objective), time.perf_counter() - begin


def recovery() -> float:
    """Compute the largest relative difference of our capital recovery and annuity with residual from numpy-financial's payments."""
    import numpy_financial as npf

    worst = 0.0
    for rate in (0.0, 0.01, 0.08, 0.15):
        for years in (1, 3, 5, 20):
            for rest in (0.0, 0.1, 0.4):
                paid, expected = float(annuity(1.0, rate, years, rest)), -float(npf.pmt(rate, years, 1.0, -rest))
                worst = max(worst, abs(paid - expected) / abs(expected))
            worst = max(
                worst,
                abs(float(capital_recovery_factor(rate, years)) + float(npf.pmt(rate, years, 1.0)))
                / float(capital_recovery_factor(rate, years)),
            )
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table beside this file")
    arguments = parser.parse_args()
    import pypsa

    lines, agree = (
        [
            f"| problem | flopwatt | PyPSA {pypsa.__version__} | relative difference | s | s, PyPSA |",
            "|---|---|---|---|---|---|",
        ],
        True,
    )
    for seed, (name, shape) in enumerate(PROBLEMS.items()):
        data = series(shape[0], shape[1], seed)
        (mine, my_s), (other, other_s) = ours(*shape, data), theirs(*shape, data)
        difference = abs(mine - other) / abs(other)
        agree &= difference <= AGREES
        lines.append(f"| {name} | {mine:,.4f} | {other:,.4f} | {difference:.1e} | {my_s:.1f} | {other_s:.1f} |")
    worst = recovery()
    agree &= worst <= 1e-12
    text = (
        "\n".join(
            [
                *lines,
                "",
                f"Capital recovery and annuity with residual value against numpy-financial: largest relative difference {worst:.1e}.",
            ]
        )
        + "\n"
    )
    print(text)
    if arguments.write:
        (HERE / "against_pypsa.md").write_text(
            "# The electricity block against PyPSA\n\n`benchmarks/against_pypsa.py`; times on two cores.\n\n" + text,
            encoding="utf-8",
        )
    return 0 if agree else 1


if __name__ == "__main__":
    raise SystemExit(main())
