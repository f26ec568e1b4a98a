"""The robust plan of a question: the fleet that `planner.robust.search` found, run as predicted, and what its promise is worth.

The section `robustness` of a plan document is written here and checked again by `planner.verify.robust`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.candidates.points import Candidates, use_row
from planner.candidates.search import find_candidates
from planner.errors import Problem as SpecProblem
from planner.errors import SpecError
from planner.formulate.formulation import Formulation
from planner.formulate.limits import Unbounded
from planner.interpret.framing import without_answer
from planner.plan import Plan
from planner.problem.facts import FLEET, Problem
from planner.problem.scenarios import LEVELS_SHOWN, draw, price_ranges, uncertain
from planner.resolve.price_steps import raised
from planner.robust.search import Search, needed
from planner.scenarios.redispatch import Deployment, left_out
from planner.solving.answer import answer, options_of
from planner.solving.variants import answered
from planner.verify.check import read_through
from planner.verify.robust import fared_again, priced

FRESH = 1000  # worlds of another seed on which the promise is checked
TRIES = 3  # times that more worlds are kept because too few of the fresh ones were


def robust_plan(
    problem: Problem,
    document: dict[str, Any],
    *,
    overlays: Sequence[Path],
    progress: Callable[[str], None] | None,
    threads: int,
) -> Plan:
    """The plan of a question with a `robust` block; without an answer where no fleet was found that keeps the asked share."""
    if any(site.api is not None for site in problem.sites):
        raise SpecError(
            [SpecProblem("robust", "how sure the tokens of an API are is not known; remove the block or the API")]
        )
    if problem.spec.robust.measure == "cvar" and problem.spec.objective.minimise != "cost":
        raise SpecError(
            [SpecProblem("robust.measure", '"cvar" weighs costs; write "chance", or {"minimise": "cost"} as objective')]
        )
    say, grids = progress or (lambda line: None), {}
    candidates = find_candidates(problem, grids)
    options = options_of(problem.spec, threads)
    try:
        nominal = answered(problem, candidates, options)
    except Unbounded:
        return without_answer(problem, candidates, "unbounded", None, document)
    if not nominal.solution.values:
        return answer(
            problem,
            candidates,
            document,
            overlays=overlays,
            progress=progress,
            threads=threads,
            solve_program=lambda data, options: nominal.solution,
        )
    say(
        f"as predicted: cost {nominal.solution.functionals['cost']:,.0f}  {nominal.solution.status} in {nominal.solution.seconds:.1f} s"
    )
    steps = raised(problem, overlays)
    search = Search(problem, candidates, nominal, options, steps, grids, say)
    asked, wanted = problem.spec.robust, needed(problem)
    fresh = draw(problem, FRESH, asked.seed + 1)
    for _ in range(TRIES):
        if not search.run(wanted):
            break
        plan = _with_fleet(search, candidates, document, overlays, progress, threads)
        if not plan.has_answer:  # limits that hold over the hours that count need not hold over all
            break
        standing = [_row(d) for d in search.found.further]
        said = {**plan.document, "bound_of": FLEET, "robustness": {"standing_by": standing}}
        amounts = priced(problem, said, steps, read_through)
        outcome = fared_again(problem, said, fresh, amounts, read_through)
        say(f"{outcome.share:.1%} of {FRESH} fresh worlds kept")
        if outcome.share >= asked.confidence:
            before = nominal.plan(document).document
            said["robustness"] = {
                "confidence": asked.confidence, "measure": asked.measure, "sampled": search.found.outcome.as_json() | {"seed": asked.seed},
                "fresh": outcome.as_json() | {"seed": asked.seed + 1},
                "nominal": {"value": before["objective"]["value"]} | fared_again(problem, before, fresh, priced(problem, before, steps, read_through), read_through).as_json(),
                "price": plan["objective"]["value"] - before["objective"]["value"], "worlds_in_program": len(search.active),
                "prices": [{**row, "amount": amounts[row["path"]]} for row in price_ranges(problem)], "uncertain": uncertain(problem), "levels": list(LEVELS_SHOWN), "standing_by": standing, "left_out": left_out(problem),
            }  # fmt: skip
            return Plan(said)
        wanted = min(
            wanted + int(np.ceil((asked.confidence - outcome.share + 0.5 / FRESH) * asked.worlds)), asked.worlds
        )
    return Plan(
        {**without_answer(problem, candidates, "limit", None, document).document, "robustness": _not_found(search)}
    )


def _with_fleet(
    search: Search, candidates: Candidates, document: dict[str, Any], overlays: Sequence[Path], progress, threads: int
) -> Plan:
    """The plan of the question with at least the fleet that was found, and its jobs where they were put.

    Where throughput is asked for, the worlds bound it in this program, too.
    """
    found, maximises = search.found.answer, search.problem.spec.objective.maximise
    values, data, points = found.solution.values, found.form.data, found.form.points
    least = np.rint(values["n"])
    worlds = search.on_all_hours() if maximises and search.active else None
    chosen = {
        points[p].workload.name: (points[p],) for p in np.flatnonzero((data.point_job >= 0) & (values["y"] > 0.5))
    }

    def with_fleet(form: Formulation) -> Formulation:
        return replace(
            form,
            data=replace(
                form.data,
                holding_lower=least,
                holding_upper=np.maximum(form.data.holding_upper, least),
                scenarios=worlds,
            ),
        )

    held = candidates if maximises else replace(candidates, training={job: chosen[job] for job in candidates.training})
    return answer(
        search.problem,
        held,
        document,
        overlays=overlays,
        progress=progress,
        threads=threads,
        diagnosing=False,
        prepare=with_fleet,
    )


def _row(deployment: Deployment) -> dict[str, Any]:
    """A layout that stands by, in the words of a plan's points."""
    point = deployment.point
    return {
        "workload": point.workload.name,
        "site": point.site,
        **({} if point.power_cap is None else {"power_cap": point.power_cap, "capacity": point.capacity}),
        "pools": [use_row(use) for use in point.uses],
    }


def _not_found(search: Search) -> dict[str, Any]:
    """The section of a document where the promise was too high; that there is no such fleet is not proven."""
    asked, reached = search.problem.spec.robust, search.best / search.problem.spec.robust.worlds
    words = (
        f"no fleet within the limits was found that keeps {asked.confidence:.0%} of worlds; {reached:.1%} of the sampled ones is the most that was reached: "
        "ask for less confidence, or loosen the limits"
    )
    return {"confidence": asked.confidence, "reached": reached, "words": words}
