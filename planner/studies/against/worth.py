"""Price the errors of a plan's assumptions: from the plan's own books where the cost moves in proportion, else by a new plan with this figure alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.economics import capital_recovery_factor
from planner.errors import SpecError
from planner.formulate.limits import Unbounded
from planner.messages import Message
from planner.plan import Plan
from planner.solving.deadline import THREADS
from planner.solving.standing import Progress
from planner.solving.variants import Answer
from planner.spec.document import edited
from planner.studies.against.assumption import Assumption
from planner.studies.base.planned import Base, Planned, planned, solved, study_options
from planner.studies.comparison_tables import years_of
from planner.studies.roi import MONTHS, discount_rate

AS_PLANNED, BOOKS, SOLVED, UNUSED, NO_PLAN, NOT_TRIED, REFUSED = (
    "as_planned", "books", "solved", "unused", "no_plan", "not_tried", "refused",
)  # fmt: skip
"""Ways in which an error was priced, or why it was not."""


@dataclass(frozen=True, slots=True)
class Stake:
    """An assumption, the change of the objective where it alone takes its actual figure, the same a month, and how both were found.

    `doubt`: sum of the gaps of both plans, in the unit of the objective: smaller differences may come from the search.
    """

    assumption: Assumption
    how: str
    difference: float | None
    a_month: float | None
    doubt: float = 0.0

    @property
    def order(self) -> tuple[float, float]:
        """Sort the largest stake first: an error without a plan before all others, then by money, then by error."""
        unknown = float("inf") if self.how == NO_PLAN else -1.0
        return -(unknown if self.a_month is None else abs(self.a_month)), -self.assumption.error

    def row(self) -> dict[str, Any]:
        """Write it as JSON."""
        figure = self.assumption
        return {
            "kind": figure.kind, "of": figure.of, "name": figure.name, "unit": figure.unit, "planned": figure.planned, "actual": figure.actual,
            "factor": figure.factor, "error": figure.error, "low": figure.low, "high": figure.high, "outside": figure.is_outside,
            "error_after": figure.error_after, "used": figure.used, "difference": self.difference, "a_month": self.a_month, "doubt": self.doubt, "how": self.how,
        }  # fmt: skip


def monthly_share(plan: Plan) -> float:
    """Return the level monthly payment of one unit of the objective: of a present value with interest, of any other amount without."""
    years = years_of(plan)
    if plan.objective["unit"] != str(plan.document["spec"].get("currency", "USD")):
        return 1.0 / (years * MONTHS)
    return float(capital_recovery_factor(discount_rate(plan), years)) / MONTHS


def stakes(
    plan: Plan, asked: Mapping[str, Any], assumptions: Sequence[Assumption], overlays: Sequence[Path], *, total_s: float,
    progress: Progress | None = None,
) -> tuple[list[Stake], Base | None]:  # fmt: skip
    """Price every assumption of a plan of the spec that is `asked`, the most at stake first; with the plan that new ones were compared with, None where none had to be solved.

    A plan whose objective is not its cost has no books of it: every error is priced by a new plan.
    """
    monthly, say, began = monthly_share(plan), progress or (lambda line: None), time.perf_counter()
    in_money = plan.objective["unit"] == str(plan.document["spec"].get("currency", "USD"))
    found: list[Stake] = []
    open_: list[Assumption] = []
    for each in assumptions:
        if each.is_same:
            found.append(Stake(each, AS_PLANNED, 0.0, 0.0))
        elif not each.used:
            found.append(Stake(each, UNUSED, 0.0, 0.0))
        elif each.moved is not None and in_money:
            difference = each.moved * (each.factor - 1.0)
            found.append(Stake(each, BOOKS, difference, difference * monthly))
        else:
            open_.append(each)
    base = None
    if open_:
        start = planned(dict(asked), overlays, progress=progress, plan=plan)
        answer = solved(start.variants, (), study_options(start.problem))
        base = start.base(None if answer is None else answer.value)
        for each in open_:
            found.append(_stake(start, answer, each, monthly, began + total_s))
            say(Message.of("actual.tried", name=each.name, how=Message.of(f"actual.how_{found[-1].how}").text()).text())
    return sorted(found, key=lambda stake: stake.order), base


def _stake(start: Planned, base: Answer | None, each: Assumption, monthly: float, ends: float) -> Stake:
    """Solve the spec with one actual figure, beside the plan without it."""
    value = None if base is None else base.value
    if base is None or value is None or time.perf_counter() > ends:
        return Stake(each, NOT_TRIED, None, None)
    try:
        answer = solved(start.variants, each.restated(start.document), study_options(start.problem, THREADS))
    except (SpecError, Unbounded):
        return Stake(each, REFUSED, None, None)
    if answer is None or answer.value is None:
        infeasible = answer is not None and answer.solution.status == "infeasible"
        return Stake(each, NO_PLAN if infeasible else NOT_TRIED, None, None)
    doubt = sum(gap * abs(value) for gap in (base.solution.gap, answer.solution.gap) if gap is not None)
    return Stake(each, SOLVED, answer.value - value, (answer.value - value) * monthly, doubt)


def with_actual(document: Mapping[str, Any], assumptions: Sequence[Assumption]) -> dict[str, Any]:
    """Put every actual figure into a spec, one after the other."""
    result = dict(document)
    for each in assumptions:
        if each.used and not each.is_same:
            result = edited(result, each.restated(result))
    return result
