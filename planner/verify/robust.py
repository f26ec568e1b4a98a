"""The re-check of a robust plan's promise: the worlds drawn anew, the plan read from its document and dispatched again in each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.problem.facts import Problem
from planner.problem.scenarios import Scenarios, draw, uncertain
from planner.resolve.price_steps import Raised, raised
from planner.scenarios.redispatch import ScenarioOutcome, left_out
from planner.verify.amounts import Amounts
from planner.verify.recompute import systems_of
from planner.verify.robust_outcome import outcome_of, price_amounts

PRICED = 1e-4  # of a plan's cost: amounts are differences of large sums
Reader = Callable[
    [Problem, Mapping[str, Any]], Amounts
]  # `planner.verify.check.read_through`, handed in by whoever checks

SHARE = 2e-3  # of the worlds that a solver on another machine may judge otherwise


def priced(problem: Problem, document: Mapping[str, Any], steps: Raised, read_through: Reader) -> dict[str, float]:
    """By uncertain price: the part of the plan's cost that goes with it."""
    return price_amounts(problem, lambda at_prices: sum(read_through(at_prices, document).sums.lines.values()), steps)


def fared_again(
    problem: Problem, document: Mapping[str, Any], worlds: Scenarios, amounts: Mapping[str, float], read_through: Reader
) -> ScenarioOutcome:
    """How the plan of a document fares in worlds."""
    return outcome_of(read_through(problem, document), worlds, amounts)


class RobustCheck:
    """The section `robustness` of a plan whose spec asks for it."""

    def __init__(self, check: Amounts, overlays: Sequence[Path], read_through: Reader):
        self.check, self.overlays, self.read_through = check, overlays, read_through

    def run(self) -> None:
        check, found = self.check, self.check.document["robustness"]
        problem, asked = check.problem, check.problem.spec.robust
        check.equal("robustness.confidence", found["confidence"], asked.confidence)
        check.equal("robustness.measure", found["measure"], asked.measure)
        check.equal("robustness.left_out", found["left_out"], left_out(problem))
        check.equal(
            "robustness.price", found["price"], check.document["objective"]["value"] - found["nominal"]["value"], 1e-9
        )
        for i, row in enumerate(found["standing_by"]):
            self._standing_by(f"robustness.standing_by[{i}]", row)
        if not check.same_figures:
            return  # today's catalog may hold other errors and other prices
        check.equal("robustness.uncertain", found["uncertain"], uncertain(problem), 1e-9)
        amounts = priced(problem, check.document, raised(problem, self.overlays), self.read_through)
        stated = {row["path"]: row["amount"] for row in found["prices"]}
        cost = check.document["totals"]["cost"]
        if stated.keys() != amounts.keys() or any(
            abs(stated[path] - amounts[path]) > PRICED * abs(cost) for path in amounts
        ):
            check.say("robustness.prices", f"says {stated!r}, computed {amounts!r}")
        fresh = found["fresh"]
        again = outcome_of(check, draw(problem, fresh["worlds"], fresh["seed"]), amounts).as_json()
        if fresh["seed"] == found["sampled"]["seed"]:
            check.say("robustness.fresh.seed", "must not be that of the worlds that the fleet was chosen for")
        for name, share in {"kept": again["kept"], "budget": again["budget"], **again["workloads"]}.items():
            told = fresh["workloads"][name] if name in again["workloads"] else fresh[name]
            if abs(told - share) > SHARE:
                check.say(
                    f"robustness.fresh {name}",
                    f"says {told:.4f}, {share:.4f} when the worlds are drawn and dispatched again",
                )
        if again["kept"] < asked.confidence - SHARE:
            check.say(
                "robustness", f"promises {asked.confidence:.1%}, keeps {again['kept']:.1%} of {fresh['worlds']} worlds"
            )

    def _standing_by(self, path: str, row: Mapping[str, Any]) -> None:
        check = self.check
        workload = check.serving[row["workload"]]
        for pool in row["pools"]:
            option = check.fleet_options[
                row["site"], pool["system"], pool["how"], pool["fabric"], pool["fabric_size"], pool["offer"]
            ]
            check.equal(f"{path} systems per replica", pool["systems_per_replica"], systems_of(option, pool))
            if pool["precision"] not in workload.spec.precision:
                check.say(path, f"precision {pool['precision']} was not asked for")
