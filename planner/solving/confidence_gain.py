"""Choose the plan of highest confidence within the band of `simplicity`: plans of about as few parts, and further systems of the kinds held.

Confidence is measured as in the section `confidence`. A plan takes another's place only where it keeps more of the same
scenarios than chance explains (`is_surer`). Not here: plans that are asked to be sure (`planner.robust`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from models.arrays import Floats
from planner.candidates.points import Candidates
from planner.formulate.formulation import Formulation
from planner.money.terms import COST
from planner.plan import Plan
from planner.plan.rows.robust import ConfidenceGain, FurtherSystem
from planner.problem.facts import ResolvedSpec
from planner.problem.quality import is_open
from planner.solving.confidence import InScenarios, measured, supplied
from planner.solving.variants import Answer
from solvers.fixed_fleet.redispatch import Extension
from solvers.interface import Options
from solvers.model.fabric import designs_of, joined_of
from solvers.search.joint import priced_anew, with_values
from solvers.search.parts import parts_of
from solvers.solution import Solution

CHANCE = 0.05  # chance of a gain as large between two plans that are equally sure


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plan chosen, its program, and the row that says so; None where it is the plan that was found first.

    `measured`: the plan in the scenarios, where it was measured.
    """

    form: Formulation
    solution: Solution
    row: ConfidenceGain | None = None
    measured: InScenarios | None = None


def stated(row: ConfidenceGain | None, plan: Plan) -> Plan:
    """Return the plan with the section `confidence_gain`, where another plan was chosen and the section `confidence` is there."""
    if row is None or not plan.document.get("confidence"):
        return plan
    return Plan({**plan.document, "confidence_gain": {**row, "kept": plan.document["confidence"]["kept"]}})


def most_confident(
    problem: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution, options: Options
) -> Chosen:
    """Choose the plan that keeps all promises in most scenarios among those within the band, if it is surer than the first found.

    The band is `simplicity.within` of the best plan's value. Plans are compared that have about as few parts as the one found, and the one of
    highest confidence gets further systems of the kinds that it holds as far as the band allows. A robust plan, or a choice among
    architectures, or a band of zero, leaves the plan as it is.
    """
    asked = problem.spec
    if asked.robust is not None or asked.simplicity.within <= 0.0 or is_open(problem) or solution.value is None:
        return Chosen(form, solution)
    best, parts = solution.before or (solution.value, parts_of(form.data, solution.values))
    sign = -1.0 if form.data.objective.maximises else 1.0
    worst = best + sign * asked.simplicity.within * abs(best)
    first = measured(Answer(problem, candidates, form, solution))
    if first.found.kept.all() or first.found.open.any():
        return Chosen(form, solution, measured=first)
    plans = [first]
    for values in solution.others:
        other = with_values(form.data, solution, values)
        fewer = parts_of(form.data, values).deployments <= parts.deployments
        if other is not None and other.value is not None and fewer and sign * other.value <= sign * worst:
            plans.append(measured(Answer(problem, candidates, form, other)))
    surer = [plan for plan in plans if is_surer(*gained_and_lost(first, plan))]
    chosen = max(surer, key=lambda plan: plan.kept, default=first)
    further: list[FurtherSystem] = []
    found = _with_further(chosen, worst)
    if found is not None:
        chosen, further = found
    if chosen is first or chosen.answer.value is None:
        return Chosen(form, solution, measured=first)
    row: ConfidenceGain = {
        "within": asked.simplicity.within, "plans": len(plans), "kept": chosen.kept, "kept_before": first.kept,
        "value_before": solution.value, "further": further,
    }  # fmt: skip
    before = (sign * min(sign * best, sign * chosen.answer.value), parts)
    same_parts = parts_of(form.data, chosen.answer.solution.values) == parts_of(form.data, solution.values)
    fewest = solution.fewest and same_parts
    form = chosen.answer.form
    return Chosen(
        form,
        priced_anew(form.data, replace(chosen.answer.solution, before=before, fewest=fewest), options),
        row,
        chosen,
    )


def gained_and_lost(before: InScenarios, after: InScenarios) -> tuple[int, int]:
    """Count the scenarios that only the second of two plans keeps, and those that only the first keeps."""
    old, new = before.found.kept, after.found.kept
    return int((new & ~old).sum()), int((old & ~new).sum())


def is_surer(gained: int, lost: int) -> bool:
    """Tell whether a plan that keeps `gained` further scenarios and loses `lost` is surer than chance explains.

    Both plans meet the same scenarios, so that those which both keep, or neither, tell nothing: of two equally sure plans each keeps any
    other scenario with chance 1/2. The test is one-sided and exact: sum_{i >= gained} C(n, i) / 2^n <= 5 %, n = gained + lost.

    Reference: McNemar, Note on the sampling error of the difference between correlated proportions, Psychometrika 12 (1947).

    >>> is_surer(1, 0), is_surer(4, 0), is_surer(5, 0), is_surer(8, 2), is_surer(9, 2)
    (False, False, True, False, True)
    """
    count = gained + lost
    return gained > lost and sum(comb(count, i) for i in range(gained, count + 1)) <= CHANCE * 2**count


def _with_further(sure: InScenarios, worst: float) -> tuple[InScenarios, list[FurtherSystem]] | None:
    """Add the further systems that keep most scenarios for what the band leaves; None where none make the plan surer."""
    answer = sure.answer
    data, solution = answer.form.data, answer.solution
    if data.windows > 1 or data.objective.maximises or data.objective.functional != COST or solution.value is None:
        return None
    extension, holdings = sure.further
    for systems in reversed(worthwhile(bundles(sure.needs, extension, worst - solution.value), sure.needs)):
        held = solution.values["n"].copy()
        if not supplied(answer.form, held, holdings, systems):
            continue
        held[holdings] += systems
        # The program counts no more systems than the demand as predicted can use.
        wide = replace(data, holding_upper=np.maximum(data.holding_upper, held))
        more = with_values(
            wide,
            solution,
            {**solution.values, "n": held, "z": designs_of(wide, held), **joined_of(wide, held, solution.values)},
        )
        if more is None or more.value is None or more.value > worst:
            continue
        found = measured(replace(answer, form=replace(answer.form, data=wide), solution=more))
        if not is_surer(*gained_and_lost(sure, found)):
            return None
        options = [answer.form.fleet_options[data.holding_option[u]] for u in holdings]
        rows: list[FurtherSystem] = [
            {"site": option.site.region, "system": option.system.name, "how": option.offer.how, "count": int(count)}
            for option, count in zip(options, systems, strict=True)
            if count > 0
        ]
        return found, rows
    return None


def worthwhile(grown: list[Floats], needs: list[Floats]) -> list[Floats]:
    """List the ever larger bundles that keep more scenarios than the one before in this list than chance explains.

    >>> one = np.ones(1)
    >>> worthwhile([one, 2 * one, 3 * one], [one] * 6 + [2 * one] + [3 * one] * 4)
    [array([1.]), array([3.])]
    """
    before, found = 0, list[Floats]()
    for systems in grown:
        kept = sum(bool((need <= systems).all()) for need in needs)
        if is_surer(kept - before, 0):
            before = kept
            found.append(systems)
    return found


def bundles(needs: list[Floats], extension: Extension, room: float) -> list[Floats]:
    """List ever larger numbers of further systems [E] that cost no more than `room`: each keeps the scenario that is cheapest to add.

    >>> one = np.ones(1)
    >>> bundles([3.0 * one, 1.0 * one, 9.0 * one], Extension(one.astype(int), 2.0 * one, 9.0 * one, one, one.astype(int)), 7.0)
    [array([1.]), array([3.])]
    """
    held, left, found = np.zeros(len(extension.cost)), list(needs), list[Floats]()
    while left:
        larger = [np.maximum(held, need) for need in left]
        cheapest = min(larger, key=lambda systems: float(extension.cost @ systems))
        if float(extension.cost @ cheapest) > room:
            break
        held = cheapest
        left = [need for need in left if (need > held).any()]
        if not found or (held != found[-1]).any():
            found.append(held)
    return found
