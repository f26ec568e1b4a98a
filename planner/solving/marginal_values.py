"""Marginal values of a plan's limits, and the runner-up of each site, from linear programs around the plan.

Not here: how far each limit is used (`planner.interpret.limit_rows`), and why there is no plan (`planner.solving.infeasibility`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from models.arrays import Floats, Ints
from planner.formulate.formulation import Formulation
from planner.interpret.marginal_values import MarginalValues
from planner.messages import Message, listed
from planner.plan import BY_THE_BOUND
from planner.problem.facts import ResolvedSpec
from planner.problem.limit_labels import connection, fabric_size, rack_positions, storage_bandwidth
from planner.problem.phases import power_limits, supplies
from planner.solving.line_values import line_values
from planner.solving.runner_up import runner_up_rows, ways_not_in_use
from solvers.analysis.marginal_values import marginal_values, zero_below_rounding
from solvers.analysis.relief import LimitKey
from solvers.decomposition.coverage import pays_off
from solvers.interface import Options
from solvers.solution import Solution

TIME_NOTE = Message.of("limit.not_priced_time").text()
SIZE_NOTE = Message.of("limit.not_priced_size").text()
HOURS_NOTE = Message.of("limit.not_priced_moving_jobs").text()
NONE_FITS = Message.of("limit.no_system_to_add").text()

ByLimit = dict[tuple[str, str | None], float]  # by path and name, as in `planner.interpret.marginal_values`


def compute_marginal_values(
    problem: ResolvedSpec, form: Formulation, solution: Solution, unit: str, options: Options
) -> MarginalValues:
    """Compute the marginal values of the limits and the runner-up of each site.

    `fixed`: every integer of the plan is fixed, so the fleet stays; the values are duals of the linear program that is left.
    Replicas are divisible in both. `divisible`: only binaries (sites, networks, points of jobs) are fixed and counts are continuous, so the fleet may grow
    where a limit gives way. Both are changes of the objective (`unit`) per unit of the limit.
    The second program is solved again with one more system forced in, for the margin of each runner-up.
    Where the plan is too large for it, found slot by slot, or where its time is up, `divisible` comes from the LP
    relaxation of the search instead.
    """
    ways = ways_not_in_use(form, solution)
    sizes = np.array([form.fleet_options[k].largest for k, _ in form.holdings])
    data = form.data.divisible()  # a whole replica too many makes every small change free
    paths, too_large = rows_by_path(problem, form), pays_off(data)
    found = None
    if not too_large:
        found = marginal_values(
            data,
            solution.values,
            sizes,
            [members for _, members in ways],
            options,
            solution.bases,
            [site for (site, _, _), _ in ways],
            solution.program_of(data),
            options.time_limit_s,
        )
    fixed: ByLimit = {
        (path, None): _summed(solution.row_duals, row) for path, row in paths.items() if row[0] in solution.row_duals
    }
    fixed |= line_values(problem, form, solution) if solution.row_duals else {}
    divisible: ByLimit = {}
    if found is not None:
        divisible = {(path, None): found.rows[row] for path, row in paths.items()}
    elif solution.relaxed_duals and solution.value is not None:
        duals = {row: _summed(solution.relaxed_duals, row) for row in paths.values()}
        worth = zero_below_rounding(data, duals, solution.value)
        divisible = {(path, None): worth[row] for path, row in paths.items()}
    for u, (k, _) in enumerate(form.holdings):
        option = form.fleet_options[k]
        if math.isfinite(option.largest) and solution.values["n"][u] > 0.5:
            path, name = fabric_size(option.site, option.fabric, option.system.name)
            fixed[path, name] = 0.0  # a larger network changes nothing while the counts stay
            if found is not None:
                divisible[path, name] = float(found.sizes[u])
    not_priced = SIZE_NOTE if too_large else TIME_NOTE
    margins: Sequence[float | None] = found.entries if found is not None else (None,) * len(ways)
    without_margin = NONE_FITS if found is not None and found.entries_in_time else not_priced
    runner_up = runner_up_rows(problem, form, solution, ways, margins, unit, without_margin)
    notes = _notes(problem, solution, paths, not_priced if found is None else "")
    return MarginalValues(unit, fixed, divisible, runner_up, notes)


def _notes(problem: ResolvedSpec, solution: Solution, paths: Mapping[str, LimitKey], not_priced: str) -> dict[str, str]:
    """Explain, by path of a limit, why a value is missing or how it was computed."""
    notes = {f"{site.path}.topologies": not_priced for site in problem.sites if not_priced}
    for path, (block, _) in paths.items():
        held = HOURS_NOTE if solution.relaxed_duals and block not in solution.row_duals else ""
        free = BY_THE_BOUND if not_priced and solution.relaxed_duals else not_priced
        notes[path] = listed((held, free))
    return notes


def rows_by_path(problem: ResolvedSpec, form: Formulation) -> dict[str, LimitKey]:
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
        if math.isfinite(site.hall.positions):
            paths[rack_positions(site).path] = ("racks", r)
    paths |= {supply.path: ("supply", s) for s, supply in enumerate(supplies(problem)) if supply.is_stated}
    return paths | {limit.path: ("limit", i) for i, limit in enumerate(form.data.limits)}


def _summed(row_duals: Mapping[str, tuple[Ints, Floats]], row: LimitKey) -> float:
    """Add up the duals of all rows of a limit: its slots, its windows, and those when a zone fails."""
    block, position = row
    none = np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    (index, duals), (failing, more) = (row_duals.get(name, none) for name in (block, f"survived {block}"))
    column, failing_column = (-1, -1) if block == "power" else (0, 1)  # where an index holds the limit's position
    at_limit, at_failing = index[:, column] == position, failing[:, failing_column] == position
    return float(duals[at_limit].sum() + more[at_failing].sum())
