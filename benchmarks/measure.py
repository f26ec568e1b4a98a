"""Simulate what measuring is worth: take sampled worlds as the truth, measure in them, calibrate, and decide again.

    python benchmarks/measure.py PLAN.json [--truths 200] [--write]

In each world that is taken as the truth, the cases of the best set (`flopwatt measure`), five random cases, or nothing is measured. A result
is the true error of its chip with the spread among runs of one source. What is then known of that chip is the result, with the spread that
calibration leaves; other chips keep their errors. Fleets are decided again among the same candidates in scenarios drawn from what is known:
the fleet of least expected cost, whose cost in the truth over the least of all fleets is the regret; and the cheapest fleet that keeps 80 % of
those scenarios without further systems, whose cost over that of the cheapest fleet which does as predicted is the price of the promise.
Fleets are those of `planner.studies.measure`, in the continuous model of `solvers.fixed_fleet.recourse`, not plans solved anew.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from planner.calibration.own_spread import USUAL_SPREAD
from planner.plan import load_plan
from planner.problem.scenarios import SERVING, Scenarios, draw, with_robust
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.studies import measure as study
from planner.studies.measure_cases import Case, cases_of
from planner.studies.measure_fleets import fleet_model
from planner.tables import as_markdown
from planner.verify.quality import as_chosen
from solvers.fixed_fleet.recourse import outcomes

HOME = Path(__file__).resolve().parent
POSTERIOR = 24  # scenarios drawn from what is known after measuring
PROMISE = 0.8
RANDOM_CASES = 5


def posterior(
    sampled: study.Sampled, prior: Scenarios, cases: list[Case], truth: int, rng: np.random.Generator
) -> Scenarios:
    """Draw scenarios of what is known once the cases were measured in one of the sampled worlds."""
    pick = rng.integers(0, prior.count, POSTERIOR)
    serving = {chip: {label: e[pick] for label, e in errors.items()} for chip, errors in prior.serving.items()}
    training = {key: e[pick] for key, e in prior.training.items()}

    def shown(error: float, label: str) -> np.ndarray:
        spread = USUAL_SPREAD[label]
        result = np.log(error) + rng.standard_normal() * spread
        return np.exp(result + rng.standard_normal(POSTERIOR) * spread)

    for case in cases:
        if case.kind == "serving":
            there = sampled.scenarios.serving[case.chip]
            serving[case.chip] = {label: shown(float(there[label][truth]), label) for label in SERVING}
        else:
            key = case.chip, case.label
            training[key] = shown(float(sampled.scenarios.training[key][truth]), "step_time")
    demand = {name: factor[pick] for name, factor in prior.demand.items()}
    return replace(prior, serving=serving, training=training, demand=demand, count=POSTERIOR)


def decided(sampled: study.Sampled, known: Scenarios) -> tuple[int, float]:
    """Return (the fleet of least expected cost, the cost of the cheapest one that keeps the promise; inf where none does)."""
    model = sampled.model
    efficiency, rate = model.efficiencies(known)
    rows = list(outcomes(model.data, efficiency, rate, sampled.fleets, study.LATE))
    cost = np.array([[found.cost for found in row] for row in rows]).T
    fixed = sampled.fleets @ model.data.option_cost
    kept = (cost <= fixed[:, None] * (1 + 1e-9)).mean(axis=1)
    able = fixed[kept >= PROMISE]
    return int(np.argmin(cost.mean(axis=1))), float(able.min()) if len(able) else np.inf


def run(plan_path: Path, truths: int, seed: int) -> tuple[list[dict[str, str]], str]:
    """Return a row for each way to measure, and what was measured."""
    plan = load_plan(plan_path)
    problem = with_robust(as_chosen(resolve(parse_spec(plan["spec"]), ()), plan.document))
    sampled = study.sample(fleet_model(problem, plan.document), draw(problem, truths, seed))
    prior = draw(problem, max(truths, 400), seed + 1)
    cases = cases_of(sampled.model, plan)
    best, worth = study.best_set(sampled, cases, None, seed)
    ranked = sorted(cases, key=lambda case: -study.worth_of(sampled, [case], seed))
    best += [case for case in ranked if case not in best][: study.MOST_CASES - len(best)]
    predicted = np.ones(1)
    flat = Scenarios(
        demand=dict.fromkeys(prior.demand, predicted), serving={chip: dict.fromkeys(SERVING, predicted) for chip in prior.serving}, training={}, prices={}, count=1,
    )  # fmt: skip
    model = sampled.model
    none = np.zeros((1, len(model.options)))
    nominal = next(iter(outcomes(model.data, *model.efficiencies(flat), none, 1.0)))[0].cost
    rows, spent = [], {}
    for name in ("nothing", "five random cases", "the best five cases", "everything"):
        rng = np.random.default_rng([seed, 7])
        regret, price = [], []
        for s in range(truths):
            if name == "everything":
                fleet, promise = int(np.argmin(sampled.cost[:, s])), np.nan
            else:
                chosen = (
                    []
                    if name == "nothing"
                    else best
                    if name.startswith("the best")
                    else list(rng.choice(np.array(cases, dtype=object), RANDOM_CASES, replace=False))
                )
                fleet, promise = decided(sampled, posterior(sampled, prior, chosen, s, rng))
            regret.append(sampled.cost[fleet, s] / sampled.cost[:, s].min() - 1.0)
            price.append(promise / nominal - 1.0)
        found = np.array(price)[np.isfinite(price)]
        spent[name] = float(np.mean(regret))
        rows.append({
            "measured": name, "mean regret": f"{np.mean(regret):.1%}", "90 % of worlds": f"{np.quantile(regret, 0.9):.1%}",
            "price of an 80 % promise, median": f"{np.median(found):+.0%}" if len(found) else "", "no fleet keeps it": f"{np.mean(np.isinf(price)):.0%}",
        })  # fmt: skip
    words = (
        f"{len(cases)} cases, {len(sampled.fleets)} fleets, {truths} worlds; measured: {', '.join(case.name for case in best)} (worth {worth:,.0f} as estimated). "
        f"Regret of five random cases over that of the best five: {spent['five random cases'] / max(spent['the best five cases'], 1e-9):.2f}."
    )
    return rows, words


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--truths", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write measure.md beside this file")
    asked = parser.parse_args()
    began = time.perf_counter()
    rows, words = run(asked.plan, asked.truths, asked.seed)
    text = f"{as_markdown(rows)}\n{words} {time.perf_counter() - began:.0f} s.\n"
    if asked.write:
        doc = (__doc__ or "").split("\n\n", 2)[2]
        head = f"# What measuring is worth\n\nWritten by `python benchmarks/measure.py {asked.plan.name} --truths {asked.truths} --write`.\n\n{doc}\n"
        (HOME / "measure.md").write_text(f"{head}{text}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
