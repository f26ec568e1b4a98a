"""Count in how many sampled scenarios a plan, made to be robust or not, keeps its promises: `flopwatt robust`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.estimate.limits import SearchLimits
from planner.messages import Message, say
from planner.plan import Plan
from planner.problem.facts import ResolvedSpec
from planner.problem.scenarios import draw, price_ranges
from planner.report.heads import headed
from planner.report.robust import outcome_row, price_row
from planner.resolve.price_steps import raised
from planner.solving.variants import resolved_anew
from planner.spec.model import parse_spec
from planner.spec.robust import Robust
from planner.verify.check import read_through
from planner.verify.checked_plan import CheckedPlan
from planner.verify.quality import as_chosen
from planner.verify.robust.check import cost_by_price, outcome_in

SCENARIOS, SEED = 1000, 1
MAX_SCENARIOS = 100_000


@dataclass(frozen=True, slots=True)
class Promises:
    """How a plan fares: `document` (shares of scenarios in which promises are kept, amounts by price, what was left out) and tables."""

    document: dict[str, Any]
    left_out: dict[str, Any]
    rows: list[dict[str, Any]]
    prices: list[dict[str, Any]]


def robust(
    plan: Plan, *, overlays: Sequence[Path] = (), scenarios: int = SCENARIOS, seed: int = SEED, limits: SearchLimits | None = None, place: str = "plan",
) -> Promises:  # fmt: skip
    """Sample scenarios, and count those in which the plan keeps its promises, as far as the limits let it.

    `place` names the plan in errors. Raises SpecError for a plan without an answer or a number of scenarios out of range, and
    LimitReached where the limits end it before the first scenario.
    """
    limits = limits or SearchLimits()
    if not plan.has_answer:
        raise SpecError([Issue(place, Message.of("option.no_plan_to_test").text())])
    if not 1 <= scenarios <= MAX_SCENARIOS:
        words = Message.of("cli.number_out_of_range", least=1, most=MAX_SCENARIOS, given=scenarios).text()
        raise SpecError([Issue("--scenarios", words)])
    spec = parse_spec(plan.document["spec"])
    if spec.robust is None:  # prices that were chosen by their level stay there
        spec = spec.model_copy(update={"robust": Robust(prices=spec.prices is None or not spec.prices.moved)})
    problem = as_chosen(resolved_anew(spec, overlays), plan.document)

    def read_in_time(at_prices: ResolvedSpec, document: Mapping[str, Any]) -> CheckedPlan:
        limits.check()
        return read_through(at_prices, document)

    amounts = cost_by_price(problem, plan.document, raised(problem, overlays), read_in_time)
    tried = outcome_in(problem, plan.document, draw(problem, scenarios, seed), amounts, read_in_time, limits.within)
    if not len(tried.cost):
        limits.check()
    outcome = tried.as_json()
    left_out = limits.left_out("scenarios", scenarios - outcome["scenarios"], scenarios)
    prices = [price_row({**row, "amount": amounts[row["path"]]}) for row in price_ranges(problem)] if amounts else []
    document = {**outcome, "seed": seed, "prices": amounts, **left_out}
    return Promises(document, left_out, headed([outcome_row(say("confidence.as_sampled"), outcome)]), headed(prices))
