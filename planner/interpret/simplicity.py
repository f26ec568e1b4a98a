"""Plan rows of the parts of a plan: how many it has beside the best plan found, and the limits on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from models.arrays import Bools, sum_of
from planner.problem.limit_labels import MOST_KINDS, MOST_SITES, LimitLabel
from planner.problem.phases import API

if TYPE_CHECKING:
    from planner.interpret.decisions import Decisions

from typing import Any

from planner.candidates.points import deployment_of
from planner.interpret.decisions import Decisions
from solvers.mip import relative_gap
from solvers.search.parts import Rung
from solvers.search.simplest import Band
from solvers.solution import Solution


def simplicity_row(decided: Decisions, solution: Solution, objective: dict[str, Any]) -> dict[str, Any]:
    """State the parts of the plan beside the parts of the best plan found; nothing where no simpler plan was looked for.

    `objective`: sense, value and unit of the plan; the best plan is worth no less, though a search may count what nobody uses.
    """
    if solution.before is None:
        return {}
    (before, parts), asked = solution.before, decided.problem.spec.simplicity
    best = (max if objective["sense"] == "max" else min)(before, objective["value"])
    sign = -1.0 if objective["sense"] == "max" else 1.0
    options = [option for _, _, option, _ in decided.held()]
    deployments = len({deployment_of(decided.form.points[p]) for p in decided.used})
    mine = Rung(deployments, objective["value"])
    ladder = _as_counted(solution.ladder, solution.chosen, mine, Band(best, sign, asked.within, asked.rate))
    return {
        "simplicity": {
            "within": asked.within,
            "deployments": deployments,
            "kinds": len({(option.site.region, option.system.name) for option in options}),
            "sites": len({option.site.region for option in options}),
            "fewest": solution.fewest,
            "ladder": [
                {
                    "deployments": rung.deployments,
                    "value": rung.value,
                    "above": max(sign * (rung.value - best) / abs(best), 0.0) if best else 0.0,
                    "estimated": rung.estimated,
                }
                for rung in ladder
            ],
            "best": {
                "value": best,
                "unit": objective["unit"],
                "gap": None if solution.bound is None else relative_gap(best, solution.bound),
                "deployments": ladder[0].deployments if ladder else parts.deployments,
                "kinds": parts.kinds,
                "sites": parts.sites,
            },
        }
    }


def _as_counted(ladder: tuple[Rung, ...], chosen: Rung | None, mine: Rung, band: Band) -> tuple[Rung, ...]:
    """Return the ladder with count and value of the plan itself at the step that the search chose.

    A search within its tolerances may count otherwise. Left out are steps that the plan's own count puts out of order, and plans in the band that
    rank before the plan at its own value.
    """
    if not ladder:
        return ()
    least = band.rank(mine.deployments, mine.value)
    others = [
        rung
        for rung in ladder
        if rung != chosen
        and (rung.estimated or not band.allows(rung.value) or band.rank(rung.deployments, rung.value) >= least)
    ]
    more = (rung for rung in others if rung.deployments > mine.deployments)
    return (*more, mine, *(rung for rung in others if rung.deployments < mine.deployments))


def part_limits(decided: Decisions) -> Iterator[tuple[LimitLabel, float, float, str]]:
    """Yield (key, value, limit, unit): sites with systems, and the most kinds of systems at one site at a time."""
    asked, slots = decided.problem.spec.simplicity, decided.problem.calendar.slots
    held: dict[tuple[str, str], Bools] = defaultdict(lambda: np.zeros(slots, dtype=bool))
    for _, _, option, mask in decided.held():
        if option.offer.how != API:
            held[option.site.region, option.system.name] |= mask
    if asked.most_sites is not None:
        yield MOST_SITES, float(len({site for site, _ in held})), float(asked.most_sites), "site"
    if asked.most_kinds is not None:
        kinds = [sum_of(mask.astype(int) for (at, _), mask in held.items() if at == site) for site, _ in held]
        most = max((int(np.max(counts)) for counts in kinds), default=0)
        yield MOST_KINDS, float(most), float(asked.most_kinds), "kind"
