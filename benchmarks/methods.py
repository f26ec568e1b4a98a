"""Compare the methods of solving on random small specs: value, bound and time of `auto` against the best of the others.

A spec is drawn from its seed: 1 to 4 sites, 1 to 3 workloads and 0 to 2 training jobs, offers of several kinds, fixed costs, limits, phases and
any objective. Each program is built once and solved by every method, one after the other on one thread.
Run: python benchmarks/methods.py [--specs 60] [--seed 0] [--limit 20] [--methods auto direct ...]    One JSON object per spec, then a summary.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.formulate.formulation import formulate
from planner.formulate.limits import Unbounded
from planner.resolve.resolver import resolve_document
from solvers.interface import Options
from solvers.search.joint import solve

METHODS = ("auto", "direct", "branch", "decomposed")
REGIONS = ("us-virginia", "us-texas", "us-oregon", "us-california")
SYSTEMS = ("DGX H100", "DGX A100", "DGX B200")
ARCHITECTURES = ("Llama-3.2-1B", "Llama-3.2-3B", "Llama-3.1-8B", "Llama-3.1-70B")
WORSE, SLOWER, LEAST_S = 0.01, 2.0, 1.0


def random_spec(seed: int) -> dict[str, Any]:
    """Draw a small spec; the same for the same seed."""
    draw = random.Random(seed)
    regions = draw.sample(REGIONS, draw.randint(1, len(REGIONS)))
    systems = draw.sample(SYSTEMS, draw.randint(1, len(SYSTEMS)))
    spec: dict[str, Any] = {
        "name": f"random {seed}",
        "horizon": {"years": draw.choice((1, 1, 2, 3))},
        "workloads": [_serving(draw, k, regions) for k in range(draw.randint(1, 3))],
        "sites": [_site(draw, region, systems) for region in regions],
        "offers": [offer for system in systems for offer in _offers(draw, system)],
        "objective": draw.choice([{"minimise": "cost"}] * 4 + [{"minimise": "carbon"}, {"maximise": "throughput"}]),
        "limits": {},
    }
    spec["workloads"] += [_training(draw, k) for k in range(draw.choice((0, 0, 0, 1, 2)))]
    if draw.random() < 0.3:
        spec["phases"] = [{"name": "first", "start": "0 d"}, {"name": "second", "start": "180 d"}]
    if "maximise" in spec["objective"] or draw.random() < 0.2:
        spec["limits"]["budget"] = draw.choice(("2M USD", "20M USD", "200M USD"))
    if draw.random() < 0.15:
        spec["limits"]["carbon"] = draw.choice(("2 kt", "20 kt"))
    return spec


def _serving(draw: random.Random, k: int, regions: list[str]) -> dict[str, Any]:
    origins = draw.sample(regions, min(len(regions), draw.randint(1, 2)))
    found: dict[str, Any] = {
        "name": f"chat {k}",
        "kind": "serving",
        "architecture": draw.choice(ARCHITECTURES),
        "demand": {"requests_per_s": draw.choice((2, 20, 200, 2000))},
        "lengths": {"input": draw.choice((300, 1000, 4000)), "output": draw.choice((100, 300, 800))},
        "origins": [{"region": region, "share": 1 / len(origins)} for region in origins],
        "slo": draw.choice(({"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, {"e2e": {"p95": "60 s"}})),
        "disaggregation": draw.choice(("never", "never", "allowed")),
    }
    if draw.random() < 0.5:
        found["demand"]["profile"] = [round(draw.uniform(0.3, 1.0), 2) for _ in range(24)]
    if draw.random() < 0.2:
        found["demand"]["deferral"] = "6 h"
    return found


def _training(draw: random.Random, k: int) -> dict[str, Any]:
    return {
        "name": f"tune {k}",
        "kind": "training",
        "architecture": draw.choice(ARCHITECTURES[:3]),
        "tokens": draw.choice(("5B", "50B", "200B")),
        "deadline": draw.choice(("60 d", "150 d", "300 d")),
    }


def _site(draw: random.Random, region: str, systems: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"region": region, "systems": systems, "power": draw.choice(("200 kW", "2 MW", "20 MW"))}
    if draw.random() < 0.5:
        found["fixed_cost"] = draw.choice(("10k USD/year", "300k USD/year", "2M USD/year"))
    if draw.random() < 0.2:
        found["electricity"] = {"connection": "2 MW", "demand_charge": "15 USD/kW-month"}
    return found


def _offers(draw: random.Random, system: str) -> list[dict[str, Any]]:
    ways = draw.sample(("buy", "on_demand", "reserved"), draw.randint(1, 2))
    offers: list[dict[str, Any]] = []
    for how in ways:
        price = {"buy": f"{draw.randint(150, 400)}000 USD", "on_demand": f"{draw.randint(20, 60)} USD/h"}
        offer: dict[str, Any] = {"system": system, "how": how, "price": price.get(how, f"{draw.randint(12, 30)} USD/h")}
        if draw.random() < 0.3:
            offer["supply"] = draw.choice((4, 20, 100))
        offers.append(offer)
    return offers


def compared(seed: int, methods: tuple[str, ...], limit_s: float, gap: float) -> dict[str, Any]:
    """Solve the program of a seed by each method: {method: [status, value, bound, seconds]}."""
    try:
        problem = resolve_document(random_spec(seed))
        form = formulate(problem, find_candidates(problem))
    except (SpecError, Unbounded) as error:
        return {"seed": seed, "skipped": str(error)[:200] or type(error).__name__}
    row: dict[str, Any] = {
        "seed": seed,
        "sense": "max" if form.data.objective.maximises else "min",
        "slots": form.data.slots,
    }
    for method in methods:
        began = time.perf_counter()
        found = solve(form.data, Options(gap=gap, time_limit_s=limit_s, method=method))
        row |= {"columns": found.columns, "integers": found.integers}
        row[method] = [found.status, found.value, found.bound, round(time.perf_counter() - began, 2)]
    return row


def verdict(row: dict[str, Any], method: str = "auto") -> list[str]:
    """Say by how much a method is worse than the best other one, beyond `WORSE`, or slower than the fastest as good, beyond `SLOWER`."""
    found = {name: row[name] for name in METHODS if name in row}
    sign = -1.0 if row["sense"] == "max" else 1.0
    values = {name: sign * value for name, (_, value, _, _) in found.items() if value is not None}
    if not values:
        return []
    if method not in values:
        return ["no plan"]
    best, said = min(values.values()), []
    if (worse := (values[method] - best) / max(abs(best), 1e-9)) > WORSE:
        said.append(f"{worse:.1%} worse")
    fastest = min(found[name][3] for name, value in values.items() if value <= best + WORSE * abs(best))
    if found[method][3] > max(SLOWER * fastest, LEAST_S):
        said.append(f"{found[method][3]:.1f} s where {fastest:.1f} s suffice")
    return said


def main() -> None:
    """Print one line per spec, and how often `auto` is worse or slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--specs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--limit", type=float, default=20.0, help="of each solve [s]")
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    solved, bad = 0, []
    for seed in range(arguments.seed, arguments.seed + arguments.specs):
        row = compared(seed, tuple(arguments.methods), arguments.limit, arguments.gap)
        solved += "skipped" not in row
        if "skipped" not in row and "auto" in row and (said := verdict(row)):
            row["verdict"] = said
            bad.append(seed)
        print(json.dumps(row), flush=True)
    print(json.dumps({"solved": solved, "auto_worse_or_slower": bad}))


if __name__ == "__main__":
    main()
