"""Check the promise of a robust plan: draw the scenarios again and redispatch the plan, read from its document, in each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.problem.facts import ResolvedSpec
from planner.problem.scenarios import Scenarios, draw, uncertain
from planner.resolve.price_steps import Raised, raised
from planner.scenarios.redispatch import ScenarioOutcome, left_out
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.options import key_at
from planner.verify.points.serving import held_per_used, layout_on, systems_of
from planner.verify.quality import as_chosen
from planner.verify.robust.outcome import Within, outcome_of, price_amounts

AMOUNT_TOL = 1e-4  # share of a plan's cost: amounts are differences of large sums
WHOLE_TOL = 1e-6  # part of a number of scenarios
SHARE_TOL = 2e-3  # share of the scenarios: a solver on another machine may judge so many otherwise

TELLING = ("role", "workers", "precision", "kv_precision", "waiting", "encoding", "tenant")  # keys of a pool

Reader = Callable[[ResolvedSpec, Mapping[str, Any]], CheckedPlan]
"""`planner.verify.check.read_through`, handed in so that the two modules import one way."""


def cost_by_price(
    problem: ResolvedSpec, document: Mapping[str, Any], steps: Raised, read_through: Reader
) -> dict[str, float]:
    """Compute by uncertain price the part of the plan's cost that scales with it."""

    def cost_of(at_prices: ResolvedSpec) -> float:
        return sum(read_through(as_chosen(at_prices, document), document).sums.lines.values())

    return price_amounts(problem, cost_of, steps)


def outcome_in(
    problem: ResolvedSpec,
    document: Mapping[str, Any],
    scenarios: Scenarios,
    amounts: Mapping[str, float],
    read_through: Reader,
    within: Within = iter,
) -> ScenarioOutcome:
    """Redispatch the plan of a document in the scenarios that `within` yields."""
    return outcome_of(read_through(problem, document), scenarios, amounts, within)


def layout_of(workload: str, point: Row) -> str:
    """Return what tells the layouts of a plan apart, whatever their batch: where and how each pool runs."""
    pools = [
        (key_at(point["site"], pool), sorted(pool["layout"].items()), [pool.get(name) for name in TELLING])
        for pool in point["pools"]
    ]
    return repr((workload, point.get("power_cap"), pools))


class RobustCheck:
    """Check the section `robustness`."""

    def __init__(self, plan: CheckedPlan, overlays: Sequence[Path], read_through: Reader):
        self.plan, self.overlays, self.read_through = plan, overlays, read_through

    def run(self) -> None:
        """Compare what the section states with the spec, the plan and a redispatch."""
        plan, found = self.plan, self.plan.document["robustness"]
        asked = plan.problem.robust
        plan.equal("robustness.confidence", found["confidence"], asked.confidence)
        plan.equal("robustness.measure", found["measure"], asked.measure)
        plan.equal("robustness.left_out", found["left_out"], left_out(plan.problem))
        price = plan.document["objective"]["value"] - found["nominal"]["value"]
        plan.equal("robustness.price", found["price"], price, 1e-9)
        known = {layout_of(row["name"], point) for row in plan.document["workloads"] for point in row["points"]}
        for i, row in enumerate(found["standing_by"]):
            self._check_standing_by(f"robustness.standing_by[{i}]", row)
            if (layout := layout_of(row["workload"], row)) in known:
                plan.say(f"robustness.standing_by[{i}]", "verify.row_twice")
            known.add(layout)
        if plan.same_figures:  # another catalog may hold other errors and other prices
            plan.equal("robustness.uncertain", found["uncertain"], uncertain(plan.problem), 1e-9)
            self._check_outcome(found, self._check_prices(found))

    def _check_prices(self, found: Mapping[str, Any]) -> dict[str, float]:
        """Compare, and return, the part of the cost that scales with each uncertain price."""
        plan = self.plan
        steps = raised(plan.problem, self.overlays)
        amounts = cost_by_price(plan.problem, plan.document, steps, self.read_through)
        stated = {row["path"]: row["amount"] for row in found["prices"]}
        if len(stated) < len(found["prices"]):
            plan.say("robustness.prices", "verify.price_twice")
        allowed = AMOUNT_TOL * abs(plan.document["totals"]["cost"])
        if stated.keys() != amounts.keys() or any(abs(stated[path] - amounts[path]) > allowed for path in amounts):
            plan.say("robustness.prices", "verify.says", given=repr(stated), found=repr(amounts))
        return amounts

    def _check_outcome(self, found: Mapping[str, Any], amounts: Mapping[str, float]) -> None:
        """Compare the shares of the fresh scenarios that the plan keeps, and test the promise."""
        plan, fresh, asked = self.plan, found["fresh"], self.plan.problem.robust
        again = outcome_of(plan, draw(plan.problem, fresh["scenarios"], fresh["seed"]), amounts).as_json()
        if fresh["seed"] == found["sampled"]["seed"]:
            plan.say("robustness.fresh.seed", "verify.same_seed")
        for name in ("cost", "mean_undone"):
            plan.equal(f"robustness.fresh.{name}", fresh[name], again[name], SHARE_TOL)
        for name, share in {"kept": fresh["kept"], "budget": fresh["budget"], **fresh["workloads"]}.items():
            if abs(share * fresh["scenarios"] - round(share * fresh["scenarios"])) > WHOLE_TOL:
                plan.say(
                    f"robustness.fresh {name}",
                    "verify.no_share_of_scenarios",
                    given=repr(share),
                    count=str(fresh["scenarios"]),
                )
        for name, share in {"kept": again["kept"], "budget": again["budget"], **again["workloads"]}.items():
            stated = fresh["workloads"][name] if name in again["workloads"] else fresh[name]
            if abs(stated - share) > SHARE_TOL:
                plan.say(f"robustness.fresh {name}", "verify.redispatch", given=f"{stated:.4f}", found=f"{share:.4f}")
        if again["kept"] < asked.confidence - SHARE_TOL:
            plan.say(
                "robustness",
                "verify.promises_more",
                promised=f"{asked.confidence:.1%}",
                kept=f"{again['kept']:.1%}",
                count=str(fresh["scenarios"]),
            )

    def _check_standing_by(self, path: str, row: Row) -> None:
        """Check the size and precision of a standby layout."""
        workload = self.plan.serving[row["workload"]]
        if [pool["role"] for pool in row["pools"]] not in (["serve"], ["serve", "encode"], ["prefill", "decode"]):
            self.plan.say(f"{path}.pools", "verify.robust_pools")
        for pool in row["pools"]:
            option = self.plan.fleet_options[key_at(row["site"], pool)]
            layout_on(option, pool, workload)
            systems = systems_of(option, pool) * held_per_used(self.plan.problem, option, workload)
            self.plan.equal(f"{path} systems per replica", pool["systems_per_replica"], systems)
            if pool["precision"] not in workload.spec.precision:
                self.plan.say(path, "verify.precision_not_asked", precision=pool["precision"])
