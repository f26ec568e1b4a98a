"""Find the runner-up of each site: the unused system nearest to being chosen, and its margin in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from catalog.units import show
from planner.formulate.formulation import Formulation
from planner.messages import Message, with_codes
from planner.money.terms import CARBON, COST
from planner.plan.rows.quality import RunnerUp
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import BY_WINDOW
from planner.report.words import share_words
from solvers.arrays import Floats
from solvers.solution import Solution

MARGIN_TOL = 1e-5  # margins below this share of a system's own cost are the tolerance of the linear programs
ALL_IN_USE = Message.of("runner_up.all_in_use").text()

Way = tuple[str, str, str]  # site, system, how


def ways_not_in_use(form: Formulation, solution: Solution) -> list[tuple[Way, list[int]]]:
    """List, for each site with a fleet, the ways to obtain systems of which it has none, with their holdings.

    Without those that are paid for by the hour: what such a system costs depends on the hours in which it would run.
    """
    have: dict[str, set[str]] = defaultdict(set)
    members: dict[Way, list[int]] = defaultdict(list)
    most = _most_held(form, solution)
    hourly = form.data.hourly.holding if form.data.hourly is not None else np.zeros(len(form.holdings), dtype=bool)
    for u, (k, _) in enumerate(form.holdings):
        option = form.fleet_options[k]
        if not hourly[u]:
            members[option.site.region, option.system.name, option.offer.how].append(u)
        if most[u] > 0.5:
            have[option.site.region].add(option.system.name)
    return [(way, us) for way, us in members.items() if have[way[0]] and way[1] not in have[way[0]]]


def _most_held(form: Formulation, solution: Solution) -> Floats:
    """[U]: systems of each holding; of a holding that is paid for by the hour, the most that run at once, for its count may exceed them at no cost."""
    held: Floats = solution.values["n"]
    if form.data.hourly is None or "on" not in solution.values:
        return held
    return np.where(form.data.hourly.holding, solution.values["on"].max(axis=1, initial=0.0), held)


def runner_up_rows(
    problem: ResolvedSpec,
    form: Formulation,
    solution: Solution,
    ways: Sequence[tuple[Way, list[int]]],
    margins: Sequence[float | None],
    unit: str,
    without_margin: str,
) -> list[RunnerUp]:
    """Build one row for each site with a fleet of its own; `without_margin`: words where no way has a margin."""
    best: dict[str, tuple[float, Way, list[int]]] = {}
    for (way, members), margin in zip(ways, margins, strict=True):
        if margin is not None and (way[0] not in best or margin < best[way[0]][0]):
            best[way[0]] = margin, way, members
    most = _most_held(form, solution)
    held = {form.fleet_options[k].site.region for u, (k, _) in enumerate(form.holdings) if most[u] > 0.5}
    rows: list[RunnerUp] = []
    for site in (site.region for site in problem.sites if site.region in held and site.api is None):
        row: RunnerUp = {
            "site": site, "system": None, "how": None, "margin": None, "margin_unit": f"{unit}/system",
            "words": without_margin if any(way[0] == site for way, _ in ways) else ALL_IN_USE,
        }  # fmt: skip
        if site in best:
            margin, (_, row["system"], how), members = best[site]
            row["how"], row["margin"] = how, 0.0 if _does_as_well(form, margin, members) else margin
            row["words"] = _margin_words(form, how, margin, members, unit)
        rows.append(row)
    return [with_codes(row, "words") for row in rows]


def _does_as_well(form: Formulation, margin: float, members: Sequence[int]) -> bool:
    """Whether a margin is rounding beside what a system of the way costs or emits."""
    functional = form.data.objective.functional
    return functional in (COST, CARBON) and margin <= MARGIN_TOL * _own_amount(form, members, functional)


def _margin_words(form: Formulation, how: str, margin: float, members: Sequence[int], unit: str) -> str:
    """State by how much the cost or carbon of a system would have to fall for it to be chosen."""
    functional = form.data.objective.functional
    if functional not in (COST, CARBON):
        return Message.of("runner_up.throughput", margin=f"{margin:.3g}").text()
    if _does_as_well(form, margin, members):
        return Message.of("runner_up.as_well").text()
    own = _own_amount(form, members, functional)
    code, less = (
        ("runner_up.carbon", show(margin, "kg")) if functional == CARBON else ("runner_up.cost", show(margin, unit))
    )
    if not own:
        words = Message.of(code, margin=less).text()
    else:
        words = Message.of(f"{code}_of", margin=less, share=share_words(margin / own)).text()
    if functional == COST and how == "buy":
        charged = max(form.holdings[u][1].charges.of_system for u in members)
        if charged > 0:
            return Message.of("runner_up.off", words=words, off=show(margin / charged, unit)).text()
    return words


def _own_amount(form: Formulation, members: Sequence[int], functional: str) -> float:
    """Compute the cost or carbon of one system by itself, held as long as it can be, on the cheapest network."""
    values, options = form.data.holding_cost[functional], {form.holdings[u][0] for u in members}
    total = sum if form.fleet_options[min(options)].offer.how in BY_WINDOW else max
    return float(min(total([float(values[u]) for u in members if form.holdings[u][0] == k]) for k in options))
