"""Simulate what measuring is worth: take sampled scenarios as the truth, measure in them, and decide again.

    python benchmarks/measure.py PLAN.json [--scenarios 240] [--write]

Each scenario is the truth once. In it the cases of the best set (filled up to five by rank), five random cases, every case, or nothing is measured. A result
is the true error of its chip with the usual spread among runs of one source. Decisions follow from the results by regression on the four fifths of the scenarios that are not judged
(`planner.studies.measure.decide`), as nobody knows the truth: the fleet of least expected cost, and the cheapest fleet expected to do all of the work
without further systems in 80 % of the scenarios that look alike. Regret is the cost of the first in the truth over that of the best candidate there.
The price of the promise is the cost of the second over that of the cheapest fleet which does as predicted; "kept": in which share of all truths it does all of the work;
"given": in which share of them any fleet was expected to, without which the surest one is taken and no promise given.
Fleets are those of `flopwatt measure` in its continuous model, not plans solved anew, and results are not passed through `flopwatt calibrate`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

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
PROMISE = 0.8
FIVE = 5
DRAWS = 20  # random sets of five cases


def features(sampled: study.Sampled, cases: Sequence[Case], seed: int) -> np.ndarray:
    """Return what the results of some cases say in each scenario."""
    count = sampled.scenarios.count
    if not cases:
        return np.ones((count, 1))
    return study._features(np.hstack([study.results(sampled.scenarios, case, seed) for case in cases]))


def after(
    sampled: study.Sampled, cases: Sequence[Case], seed: int, nominal: float
) -> tuple[float, np.ndarray, float, float]:
    """Return (mean regret, price of the promise by scenario, shares of the truths in which it is kept and in which it is given)."""
    scenarios = np.arange(sampled.scenarios.count)
    folds, x = scenarios % study.FOLDS, features(sampled, cases, seed)
    fleet = study.decide(sampled.cost, x, folds)
    regret = float((sampled.cost[fleet, scenarios] / sampled.cost.min(axis=0) - 1.0).mean())
    fixed = sampled.fleets @ sampled.model.data.option_cost
    order = np.argsort(fixed, kind="stable")
    promised, given = np.full(len(scenarios), -1), np.zeros(len(scenarios), bool)
    for fold in np.unique(folds):
        learn, judge = folds != fold, folds == fold
        weights = np.linalg.solve(
            x[learn].T @ x[learn] + study.RIDGE * np.eye(x.shape[1]), x[learn].T @ sampled.kept[:, learn].T
        )
        chance = x[judge] @ weights
        for s, row in zip(np.flatnonzero(judge), chance, strict=True):
            able = [k for k in order if row[k] >= PROMISE]
            given[s] = bool(able)
            promised[s] = able[0] if able else int(np.argmax(row))
    kept = float(sampled.kept[promised, scenarios].mean())
    return regret, fixed[promised] / nominal - 1.0, kept, float(given.mean())


def run(path: Path, scenarios: int, seed: int) -> tuple[list[dict[str, str]], str]:
    """Return a row for each way to measure, and what was measured."""
    plan = load_plan(path)
    problem = with_robust(as_chosen(resolve(parse_spec(plan["spec"]), ()), plan.document))
    sampled = study.sample(fleet_model(problem, plan.document), draw(problem, scenarios, seed))
    model = sampled.model
    cases = cases_of(model, plan)
    chosen, _ = study.best_set(sampled, cases, None, seed)
    ranked = sorted(cases, key=lambda case: -study.worth_of(sampled, [case], seed))
    best = chosen + [case for case in ranked if case not in chosen][: FIVE - len(chosen)]
    one = np.ones(1)
    chips = {option.system.chip for option in model.options}
    flat = Scenarios(
        demand={w.name: one for w in problem.serving}, serving={chip: dict.fromkeys(SERVING, one) for chip in chips}, training={}, prices={}, count=1
    )  # fmt: skip
    none = np.zeros((1, len(model.options)))
    nominal = next(iter(outcomes(model.data, *model.efficiencies(flat), none, 1.0)))[0].cost
    rng = np.random.default_rng(seed)
    sets = [list(rng.choice(np.array(cases, dtype=object), min(FIVE, len(cases)), replace=False)) for _ in range(DRAWS)]
    rows, regrets = [], {}
    for name, measured in (
        ("nothing", [[]]),
        (f"five random cases (mean of {DRAWS} sets)", sets),
        ("the best five cases", [best]),
        ("all cases", [cases]),
    ):
        found = [after(sampled, each, seed, nominal) for each in measured]
        regrets[name] = np.mean([f[0] for f in found])
        rows.append({
            "measured": name, "mean regret": f"{regrets[name]:.1%}", "price of an 80 % promise: median": f"{np.median([f[1] for f in found]):+.0%}",
            "mean": f"{np.mean([f[1] for f in found]):+.0%}", "kept": f"{np.mean([f[2] for f in found]):.0%}", "given": f"{np.mean([f[3] for f in found]):.0%}",
        })  # fmt: skip
    values = list(regrets.values())
    return rows, (
        f"{len(cases)} cases, {len(sampled.fleets)} fleets, {scenarios} scenarios; the best five: {', '.join(case.name for case in best)}. "
        f"Regret of five random cases over that of the best five: {values[1] / max(values[2], 1e-9):.2f}. "
        f"The surest fleet does all of the work in {sampled.kept.mean(axis=1).max():.0%} of the truths. The best fleet of each scenario costs {sampled.least.mean() / sampled.cost.min(axis=0).mean() - 1.0:+.1%} of the best candidate there."
    )


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--scenarios", type=int, default=240)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write measure.md beside this file")
    asked = parser.parse_args()
    began = time.perf_counter()
    rows, words = run(asked.plan, asked.scenarios, asked.seed)
    text = f"{as_markdown(rows)}\n{words} {time.perf_counter() - began:.0f} s.\n"
    if asked.write:
        told = (__doc__ or "").split("\n\n", 2)[2]
        head = f"# What measuring is worth\n\nWritten by `python benchmarks/measure.py {asked.plan.name} --scenarios {asked.scenarios} --write`.\n\n{told}\n"
        (HOME / "measure.md").write_text(f"{head}{text}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
