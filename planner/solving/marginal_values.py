"""What the limits of a plan are worth, and which system comes next at each site: read from linear programs around the plan.

Not here: how far each limit is used (`planner.interpret.accounts`), and why there is no plan (`planner.solving.infeasibility`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from catalog.units import show
from models.arrays import Floats, Ints
from planner.formulate.formulation import Formulation
from planner.formulate.functionals import CARBON, COST
from planner.interpret.marginal_values import MarginalValues
from planner.plan import BY_THE_BOUND
from planner.problem.facts import Problem
from planner.problem.limit_labels import connection, fabric_size, storage_bandwidth
from planner.problem.phases import BY_WINDOW, power_limits, supplies
from planner.solving.line_values import line_values
from solvers.analysis.marginal_values import marginal_values, zero_below_rounding
from solvers.analysis.relief import LimitKey
from solvers.decomposition.solve import pays
from solvers.mip import Options
from solvers.solution import Solution

LEAST_TIME = 0.25  # of the solver's time limit, that the linear programs around a plan may take in any case; else what the solver left of it
AS_GOOD = 1e-5  # margins below this share of a system's own cost are the tolerance of the linear programs
TIME_NOTE = "not priced: the linear programs around the plan did not end in the time that the solver left; give it more time, or solve with another value to see"
SIZE_NOTE = "not priced: the linear program around a plan of this size takes longer than the plan; solve with another value to see"
HOURS_NOTE = "fleet held: not priced, because jobs may run at other hours then"
NONE_FITS = "no other system could be brought in under the limits"


def compute_marginal_values(
    problem: Problem, form: Formulation, solution: Solution, unit: str, options: Options
) -> MarginalValues:
    """Marginal values of the limits and the runner-up of each site.

    `fixed` holds the plan's every integer, so the fleet stays as it is: the duals of the linear program that is left.
    `divisible` holds its yes-or-no choices (sites, networks, points of jobs) and takes system counts as divisible, so the
    fleet may grow where a limit gives way. Both are changes of the objective (`unit`) per unit of the limit.
    The margin of a runner-up comes from solving the second program again with one system of it forced in.
    Around a plan too large for the second program, found slot by slot, or where its time is up, `divisible` is what the linear part of that
    search says.
    """
    ways = _ways(form, solution)
    sizes = np.array([form.fleet_options[k].largest for k, _ in form.holdings])
    paths, unpriced = rows_by_path(problem, form), pays(form.data)
    sites, members = [site for (site, _, _), _ in ways], [members for _, members in ways]
    seconds = max(options.time_limit_s - solution.seconds, LEAST_TIME * options.time_limit_s)
    found = (
        None
        if unpriced
        else marginal_values(
            form.data,
            solution.values,
            sizes,
            members,
            options,
            solution.bases,
            sites,
            solution.program_of(form.data),
            seconds,
        )
    )
    fixed = {
        (path, None): _summed(solution.row_duals, row) for path, row in paths.items() if row[0] in solution.row_duals
    }
    fixed |= line_values(problem, form, solution) if solution.row_duals else {}
    divisible: dict[tuple[str, str | None], float] = {}
    if found is None and solution.relaxed_duals:
        worth = zero_below_rounding(
            form.data, {row: _summed(solution.relaxed_duals, row) for row in paths.values()}, solution.value
        )
        divisible = {(path, None): worth[row] for path, row in paths.items()}
    if found is not None:
        divisible = {(path, None): found.rows[row] for path, row in paths.items()}
    for u, (k, _) in enumerate(form.holdings):
        option = form.fleet_options[k]
        if math.isfinite(option.largest) and solution.values["n"][u] > 0.5:
            key = fabric_size(option.site, option.fabric, option.system.name)
            fixed[key] = 0.0  # a larger network changes nothing while the counts stay
            if found is not None:
                divisible[key] = float(found.sizes[u])
    entries = found.entries if found is not None else (None,) * len(ways)
    untold = SIZE_NOTE if unpriced else TIME_NOTE
    runner_up = _runner_up(
        problem,
        form,
        solution,
        ways,
        entries,
        unit,
        NONE_FITS if found is not None and found.entries_in_time else untold,
    )
    return MarginalValues(
        unit, fixed, divisible, runner_up, _notes(problem, solution, paths, untold if found is None else "")
    )


def _notes(problem: Problem, solution: Solution, paths: Mapping[str, LimitKey], untold: str) -> dict[str, str]:
    notes = {f"{site.path}.fabrics": untold for site in problem.sites if untold}
    for path, (block, _) in paths.items():
        held = HOURS_NOTE if solution.relaxed_duals and block not in solution.row_duals else ""
        free = BY_THE_BOUND if untold and solution.relaxed_duals else untold
        notes[path] = "; ".join(filter(None, (held, free)))
    return notes


def rows_by_path(problem: Problem, form: Formulation) -> dict[str, LimitKey]:
    """Map the place of each limit in the spec to its row of the program: (block, position)."""
    power = power_limits(problem)
    staged = [limit for limit in power if limit.windows is not None]
    paths: dict[str, LimitKey] = {limit.path: ("power", limit.site) for limit in power if limit.windows is None}
    paths |= {limit.path: ("power", len(problem.sites) + s) for s, limit in enumerate(staged)}
    for r, site in enumerate(problem.sites):
        if site.electricity is not None and math.isfinite(site.electricity.connection_w):
            paths[connection(site).path] = ("connection", r)
    for r, site in enumerate(problem.sites):
        if math.isfinite(site.storage_bytes_per_s):
            paths[storage_bandwidth(site).path] = ("storage", r)
    paths |= {supply.path: ("supply", s) for s, supply in enumerate(supplies(problem))}
    return paths | {limit.path: ("limit", i) for i, limit in enumerate(form.data.limits)}


def _summed(row_duals: Mapping[str, tuple[Ints, Floats]], row: LimitKey) -> float:
    """Duals of all rows (slots, windows, and failures of a zone) of a limit together."""
    block, position = row
    none = np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    (index, duals), (failing, more) = (row_duals.get(name, none) for name in (block, f"survived {block}"))
    first, then = (-1, -1) if block == "power" else (0, 1)  # where an index tells the limit
    return float(duals[index[:, first] == position].sum() + more[failing[:, then] == position].sum())


# -- runner-up ---------------------------------------------------------------------------------------------------------

Way = tuple[str, str, str]  # site, system, how


def _ways(form: Formulation, solution: Solution) -> list[tuple[Way, list[int]]]:
    """At each site with a fleet, the ways to obtain systems of which it has none, with their holdings."""
    have: dict[str, set[str]] = defaultdict(set)
    members: dict[Way, list[int]] = defaultdict(list)
    for u, (k, _) in enumerate(form.holdings):
        option = form.fleet_options[k]
        members[option.site.region, option.system.name, option.offer.how].append(u)
        if solution.values["n"][u] > 0.5:
            have[option.site.region].add(option.system.name)
    return [(way, us) for way, us in members.items() if have[way[0]] and way[1] not in have[way[0]]]


def _runner_up(
    problem: Problem, form: Formulation, solution: Solution, ways, entries, unit: str, untold: str
) -> list[dict[str, Any]]:
    best: dict[str, tuple[float, Way, list[int]]] = {}
    for (way, members), margin in zip(ways, entries, strict=True):
        if margin is not None and (way[0] not in best or margin < best[way[0]][0]):
            best[way[0]] = margin, way, members
    held = {
        form.fleet_options[k].site.region for u, (k, _) in enumerate(form.holdings) if solution.values["n"][u] > 0.5
    }
    rows = []
    for site in (site.region for site in problem.sites if site.region in held and site.api is None):
        if site not in best:
            tried = any(way[0] == site for way, _ in ways)
            words = untold if tried else "all systems that are offered there are in use"
            rows.append(
                {
                    "site": site,
                    "system": None,
                    "how": None,
                    "margin": None,
                    "margin_unit": f"{unit}/system",
                    "words": words,
                }
            )
            continue
        margin, (_, system, how), members = best[site]
        words = _words(problem, form, system, how, margin, members, unit)
        rows.append(
            {
                "site": site,
                "system": system,
                "how": how,
                "margin": margin,
                "margin_unit": f"{unit}/system",
                "words": words,
            }
        )
    return rows


def _words(
    problem: Problem, form: Formulation, system: str, how: str, margin: float, members: list[int], unit: str
) -> str:
    functional = form.data.objective.functional
    if functional not in (COST, CARBON):
        return f"one of it, brought in, would lower the factor on demand by {margin:.3g}"
    own = _own(form, members, functional)
    if margin <= AS_GOOD * own:
        return "would do as well"
    share = f" ({margin / own:.1%} of what one comes to)" if own else ""
    if functional == CARBON:
        return f"would have to cause {show(margin, 'kg')} less carbon per system over the horizon{share}"
    words = f"would have to cost {show(margin, unit)} less per system over the horizon{share}"
    if how == "buy":
        words += f": {show(margin / max(form.holdings[u][1].share for u in members), unit)} off its price"
    return words


def _own(form: Formulation, members: list[int], functional: str) -> float:
    """What one system obtained this way comes to in itself, as long as it can be there, on the network that comes to least."""
    values, fleet_options = form.data.holding_cost[functional], {form.holdings[u][0] for u in members}
    total = sum if form.fleet_options[min(fleet_options)].offer.how in BY_WINDOW else max
    return min(total(float(values[u]) for u in members if form.holdings[u][0] == k) for k in fleet_options)
