"""Solve the joint program with whole replicas: relax them to divisible ones, make the answer whole, and search where that is not enough.

divisible     the relaxation, by whatever method suits its size; its bound holds for whole replicas
consolidated  the relaxation over fewer deployments (`solvers.search.consolidation`)
bounded       the bound raised by whole replicas in the slot that decides (`solvers.bound.whole_replicas`)
rounded       whole replicas over the points of the consolidated solution and of this slot, slot by slot (`solvers.search.slot_rounding`);
              over smaller replicas of each pool, then over all points of the same workloads and sites, where that finds little
day parts     whole replicas that stay through each of two parts of the day, where loads have a price and the gap of a day is wide (`solvers.search.day_parts`)
free loads    whole replicas decided as if loads were free, where the gap is very wide (`solvers.search.free_loads`)
every slot    the bound raised further by whole systems and replicas in every slot of a small program, and a plan over the points that work there
full          the program with whole replicas over all points, from the rounded solution on, where the gap is still too wide
simpler       a plan of fewer parts that is nearly as good, where that is asked for (`solvers.search.simplest`)
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.bound.whole_replicas import Slot, bound_of_slot, decisive_slot
from solvers.decomposition.coverage import supports
from solvers.interface import Options
from solvers.mip import relative_gap, solve_with_fixed_integers
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.model.least_fleet import with_least_fleet
from solvers.model.residency import is_whole
from solvers.program import Program
from solvers.search.consolidation import consolidate, restricted
from solvers.search.day_parts import with_day_parts
from solvers.search.direct import MOST_COLUMNS_IN_ONE_PIECE, solve_direct
from solvers.search.dropping import Trial, by_dropping
from solvers.search.free_loads import with_free_loads
from solvers.search.hourly import divided, on_whole_hours, solve_divisible, with_starts, without_starts
from solvers.search.known_points import over_known
from solvers.search.parts import Rung, parts_of
from solvers.search.proven import BOUNDING, is_wide, raised, rated, unknown, with_every_slot, with_whole_hours
from solvers.search.relaying import tidied
from solvers.search.replica_points import are_alike, attempts, kept_points
from solvers.search.simplest import MOST_EXACT, Band, Found, exact
from solvers.search.slot_rounding import begin_rounding, round_replicas
from solvers.solution import Solution, better_of


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeReplicaSettings:
    """Sizes and shares of time of the steps to whole replicas."""

    small: int = 2_000
    """Activities of serving points in slots up to which the full program is searched at length."""
    most_in_every_slot: int = 4_000
    """Activities up to which whole systems and replicas in every slot bound a program whose gap is still wide: two servers at one site, of 2,064, take 3 s."""
    most_full: int = 12_000
    """Activities up to which the full program is searched after rounding."""
    nodes: int = 300
    """Most nodes of the searches after rounding, so that they end where they ended before."""
    nodes_of_small: int = 3_000
    """The same, of small programs."""
    poor: float = 0.03
    """Gap above which another attempt at rounding follows."""
    very_poor: float = 0.1
    """Gap above which plans are sought as if loads were free: three phases of one service end at 25 % in place of 55 %."""
    most_priced: int = 60_000
    """Activities up to which the rows are priced with the fleet held, and whole hourly systems bound what a program costs."""
    most_slots_apart: int = 200
    """Slots up to which each has residents of its own; with more, slots of one hour of the day and window share them."""
    hours_per_day: int = 24
    """Slots of a day, for that."""
    divisible_share: float = 0.4
    """Of the time limit, for the relaxation."""
    first_plan_share: float = 0.8
    """Of the time limit, for the first plan of a relaxation that has none in its share."""
    rounding_share: float = 0.5
    """Of the time left then, for each attempt to round replicas slot by slot."""
    parts_of_day_share: float = 0.4
    """Of the time left then, for plans of few layouts a day."""
    bound_share: float = 0.5
    """Of the time left then, for the bound of whole replicas."""
    further_bound: int = 3
    """Times the usual number of linear programs of the bound, where the plan is not within the gap asked: twice as many raise that of the main example by 0.12 %, four times as
    many by 0.12 % too."""
    full_share: float = 0.4
    """Of the time left then, for the search over all points."""
    simpler_share: float = 0.4
    """Of the time limit, kept for a plan of fewer parts where replicas are divisible."""
    consolidated: float = 0.002
    """Relative loss up to which the relaxation is solved over fewer deployments before its replicas are made whole."""
    consolidation_share: float = 0.2
    """Of the time left then, for that."""
    least_time_s: float = 1.0
    """Least time of a step when the time is nearly up [s]."""
    first_s: float = 120.0
    """Least time of the relaxation, and of each attempt at whole replicas until one is not poor [s]: they end whatever the clock says."""
    most_first: int = 40_000
    """Activities up to which that is so; the main example has 32,544 and takes 4 to 10 s of computing for them."""
    work: float = 250_000.0
    """Most work of one mixed-integer search (`Options.work_limit`), 4 to 12 s of computing: clocks differ from run to run, work does not."""


SETTINGS = WholeReplicaSettings()
BROKEN = 1e-6  # violation of a row from which on values are no plan
MOST_OTHERS = 2  # other plans that are kept beside that of fewest parts


def solve(
    data: PlanData, options: Options = Options(), *, otherwise_divisible: bool = False, within: float = 0.0, rate: float = math.inf,
    known: Bools | None = None,
) -> Solution:  # fmt: skip
    """Solve the joint program; value and plan have whole replicas, and the bound holds for them.

    `otherwise_divisible`: return the solution of the relaxation where none with whole replicas is found in time. `within`: share of its value
    that the best plan found may lose to one with fewer parts (`solvers.search.simplest`); `rate`: the same for each deployment saved.
    `known`: points that plans of similar programs use, from which the search starts (`solvers.search.known_points`).
    """
    begin = time.perf_counter()
    whole = bool(is_whole(data).any())
    share = SETTINGS.divisible_share if whole else 1.0 - SETTINGS.simpler_share if within else 1.0
    first_s = _first_s(data) if whole else 0.0
    longest = max(max(share, SETTINGS.first_plan_share) * options.time_limit_s, first_s)
    if options.work_limit is None:
        options = replace(options, work_limit=SETTINGS.work)
    limits = replace(options, time_limit_s=max(share * options.time_limit_s, first_s), longest_s=longest)
    if whole:
        data = with_least_fleet(data)
    asked = replace(options, enough_gap=None) if is_small(data) else options
    near = over_known(data, known, asked, begin) if whole and known is not None else None
    if near is not None:
        divisible, found = near[1], _with_duals(data, *near, options)
    else:
        found = solve_direct(data.relaxation(), limits) if whole else solve_divisible(data, limits)
    if whole and found.status == "infeasible" and data.least_fleet is not None:
        left = max(options.left_s(begin), SETTINGS.least_time_s)
        first = replace(options, time_limit_s=left, gap=1.0)  # any plan tells that it is for the whole replicas alone
        apart = solve_divisible(divided(data), first)
        return found if apart.status != "infeasible" else replace(apart, relaxed=True)
    if whole and near is None:
        divisible, found = found, with_whole_replicas(data, found, options, begin)
        if otherwise_divisible and not found.values and found.status == "limit":
            found, data = _divided(divided(data), divisible, options, begin)
    found = _without_needless(data, found, options)
    if found.values and found.status == "limit":
        found = rated(found, options)
    left = max(options.left_s(begin), 0.0)
    if within and found.values and left > 0:
        simple = with_fewer_parts(data, found, within, replace(options, time_limit_s=left), rate)
        found = replace(simple, seconds=time.perf_counter() - begin)
    if whole and found.values and not found.relaxed and is_wide(found, options):
        found = _bounded_further(data, divisible, found, replace(options, time_limit_s=max(options.left_s(begin), 0.0)))
        found = replace(found, seconds=time.perf_counter() - begin)
    return found


def _divided(data: PlanData, divisible: Solution, options: Options, begin: float) -> tuple[Solution, PlanData]:
    """Return (the solution of the relaxation as a plan of divisible replicas, its input): hourly systems, fractions in the relaxation, are whole in a plan."""
    found = divisible
    if data.hourly is not None and divisible.values:
        left = replace(options, time_limit_s=max(options.left_s(begin), SETTINGS.least_time_s))
        counted = on_whole_hours(data, divisible, left)
        found = solve_direct(data, left) if counted is None else rated(counted, options)
    return replace(found, relaxed=True), data


def with_fewer_parts(
    data: PlanData, best: Solution, within: float, options: Options, rate: float = math.inf
) -> Solution:
    """Take a plan of fewer parts that loses at most a share of the best plan's value, if there is one; the best plan otherwise.

    `rate`: share of the value that each deployment saved may cost. None is looked for where the program is too large for one piece and not
    decomposed: what to drop is found in one piece.
    """
    if best.value is None or (best.columns > MOST_COLUMNS_IN_ONE_PIECE and not supports(data)):
        return best
    _say(options, "fewer deployments")
    program, first = best.program_of(data) or build(data), Found(best.value, dict(best.values))
    band = Band(best.value, -1.0 if data.objective.maximises else 1.0, within, rate)
    found = exact(data, first, band, options) if program.column_count <= MOST_EXACT else None
    if found is None:
        found = by_dropping(data, first, band, options, partial(_trial, data, options))
    found = found.mapped(lambda plan: _found(_with_used(program, data, plan.values), data, plan.values, options))
    parts = parts_of(data, best.values)
    others = tuple(plan.values for plan in found.others[:MOST_OTHERS])
    sign = -1.0 if data.objective.maximises else 1.0
    if found.parts >= parts and sign * found.plan.value >= sign * best.value:
        kept = Rung(parts.deployments, best.value)
        return replace(
            best, before=(best.value, parts), fewest=found.fewest, others=others, ladder=found.ladder, chosen=kept
        )
    simple = replace(
        best,
        value=found.plan.value,
        values=found.plan.values,
        functionals=_functionals(_with_used(program, data, found.plan.values), found.plan.values),
        gap=None if best.bound is None else relative_gap(found.plan.value, best.bound),
        before=(best.value, parts),
        earlier=replace(best, built=None),
        fewest=found.fewest,
        others=others,
        ladder=found.ladder,
        chosen=Rung(found.parts.deployments, found.plan.value),
        row_duals={},
        built=None,
    )
    if sign * found.plan.value < sign * best.value:  # found among as few deployments, or fewer
        simple = replace(rated(simple, options), before=(found.plan.value, parts))
    return _with_duals(data, simple, best, options)


def _trial(data: PlanData, options: Options, points: Bools, limit_s: float) -> Trial | None:
    """Try the plan over some points: whole in the fullest slot, or the plan itself where replicas are divisible."""
    part, limits = restricted(data, points), replace(options, time_limit_s=limit_s, progress=None)
    found = solve_direct(part.divisible(), limits)
    if found.value is None:
        return None
    plan = Found(found.value, dict(found.values))
    if not is_whole(data).any():
        return Trial(plan.value, lambda: plan)
    part = replace(part, resident_group=_groups(data))
    begun = begin_rounding(without_starts(part), plan.values, replace(limits, node_limit=SETTINGS.nodes))

    def finished() -> Found | None:
        rounded = with_starts(part, None if begun is None else begun.finished(), limits)
        return None if rounded is None else _found(rounded[0], part, rounded[1], limits)

    return None if begun is None else Trial(begun.value, finished, begun.points())


def _found(program: Program, data: PlanData, values: Mapping[str, Floats], options: Options) -> Found:
    """Return a plan without what it does not need."""
    values = tidied(program, data, values, options)
    return Found(float(objective_vector(program, data) @ program.vector(values)), dict(values))


def _with_used(program: Program, data: PlanData, values: Mapping[str, Floats]) -> Program:
    """Return the program in which a plan has all its points: with dominated ones where the plan uses some, as those over a part of the points may."""
    lost = (values["x"] > 0) & (program.columns["x"] < 0)
    return build(replace(data, keep_dominated=True)) if lost.any() else program


def _with_presence(program: Program, values: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """Return the values in which a job is present where it runs: a program over a part of the points asks it only beside that part's replicas."""
    if "present" not in program.columns or "present" not in values:
        return values
    missing = (program.columns["present"] >= 0) & (values["v"] > 0) & (values["present"] < 0.5)
    return {**values, "present": np.where(missing, 1.0, values["present"])} if missing.any() else values


def _without_needless(data: PlanData, solution: Solution, options: Options) -> Solution:
    """Clear what a solution does not need; of none whose program is too large for one piece and not decomposed."""
    if solution.value is None or (solution.columns > MOST_COLUMNS_IN_ONE_PIECE and not supports(data)):
        return solution
    program = _with_used(solution.program_of(data) or build(data), data, solution.values)
    values = tidied(program, data, _with_presence(program, solution.values), options)
    if values is solution.values:
        return solution
    cleared = with_values(data, replace(solution, built=(data, program)), values)
    return solution if cleared is None else rated(replace(cleared, built=solution.built), options)


def with_values(data: PlanData, solution: Solution, values: Mapping[str, Floats]) -> Solution | None:
    """Return the solution with other values, which another search found; None where they break a row. Its duals stay, until `priced_anew`."""
    program = _with_used(solution.program_of(data) or build(data), data, values)
    x = program.vector(values)
    if program.arrays().violation(x) > BROKEN:
        return None
    value = float(objective_vector(program, data) @ x)
    functionals = {name: float(program.functional(name) @ x) for name in program.functionals}
    gap = None if solution.bound is None else relative_gap(value, solution.bound)
    return replace(solution, value=value, values=dict(values), functionals=functionals, gap=gap)


def priced_anew(data: PlanData, solution: Solution, options: Options) -> Solution:
    """Price the rows of a solution whose values were replaced (`with_values`)."""
    return _with_duals(data, replace(solution, row_duals={}, built=None), solution, options)


def _functionals(program: Program, values: Mapping[str, Floats]) -> dict[str, float]:
    """Compute the functionals of a plan."""
    x = program.vector(values)
    return {name: float(program.functional(name) @ x) for name in program.functionals}


def with_whole_replicas(data: PlanData, divisible: Solution, options: Options, begin: float) -> Solution:
    """Make the solution of the relaxation whole; `begin`: when solving started, on the performance counter.

    Returns the relaxation's own status where it is infeasible or has no solution.
    """
    small = is_small(data)

    def limits(share: float, least_s: float = SETTINGS.least_time_s) -> Options:
        left = max(options.left_s(begin), 0.0)
        most = SETTINGS.nodes_of_small if small else SETTINGS.nodes
        nodes = most if options.node_limit is None else min(options.node_limit, most)
        return replace(options, time_limit_s=max(share * left, least_s), node_limit=nodes, method=_method(options))

    if not divisible.values:
        return replace(divisible, relaxed=True)
    _say(options, "whole replicas over the operating points in use")
    first_s = _first_s(data)
    few = _consolidated(data.divisible(), divisible, limits(SETTINGS.consolidation_share, first_s))
    slot = _slot(data, divisible, limits(SETTINGS.bound_share, first_s))
    nodes = replace(limits(SETTINGS.bound_share, first_s), node_limit=options.node_limit)
    best, taken = _bounded(data, unknown(divisible), slot, nodes)
    grouped = replace(data, resident_group=_groups(data))
    found, tried = list[float](), list[tuple[Solution, Bools]]()
    ways = attempts(data, few, divisible, taken, limits(SETTINGS.consolidation_share, first_s))
    for relaxed, kept in ways:
        tried.append((relaxed, kept))
        if not _is_poor(best, options) or are_alike(found[-2:]):
            break
        part = replace(restricted(data, kept), resident_group=_groups(data))
        rounded = round_replicas(without_starts(part), relaxed.values, limits(SETTINGS.rounding_share, first_s))
        rounded = with_starts(part, rounded, limits(SETTINGS.rounding_share, first_s))
        if rounded is not None:
            made = rated(_valued(data, *rounded, best), options)
            best, found = better_of(best, made), [*found, made.value or 0.0]
    if data.relays is not None and (not best.values or (best.gap or 0.0) > SETTINGS.very_poor):
        for relaxed, kept in itertools.chain(tried, ways):
            if best.values and (best.gap or 0.0) <= SETTINGS.very_poor:
                break
            loaded = with_free_loads(grouped, relaxed.values, kept, limits(SETTINGS.rounding_share, first_s))
            best = best if loaded is None else better_of(best, rated(_valued(data, *loaded, best), options))
    one_day = data.slots <= SETTINGS.hours_per_day  # two layouts for each of several windows cost more than many loads
    if data.relays is not None and _is_poor(best, options) and (one_day or not best.values):
        _say(options, "whole replicas with few layouts a day")
        kept, nodes = kept_points(data, few), limits(SETTINGS.parts_of_day_share, first_s)
        kept_all_day = with_day_parts(grouped, few.values, kept, nodes)
        if kept_all_day is not None:
            best = better_of(best, rated(_valued(data, *kept_all_day, best), options))
    # a small program is searched as closely as its relaxation
    asked = replace(options, enough_gap=None) if small else options
    if is_wide(best, asked) and _activities(data) <= SETTINGS.most_priced:
        best = with_whole_hours(data, best, limits(SETTINGS.consolidation_share))
    if is_wide(best, asked) and _activities(data) <= SETTINGS.most_in_every_slot:
        best, plan = with_every_slot(data, best, divisible, limits(SETTINGS.consolidation_share))
        best = best if plan is None else _better(data, best, plan, divisible, options)
    if is_wide(best, asked) and _activities(data) <= SETTINGS.most_full:
        _say(options, "whole replicas over all operating points")
        enough = replace(limits(SETTINGS.full_share), target=_good_enough(best, asked), method="direct")
        full = solve_direct(data, enough, start=best.values or None)
        best = _better(data, best, full, divisible, options)
    return replace(_with_duals(data, best, divisible, options), seconds=time.perf_counter() - begin)


def _consolidated(data: PlanData, divisible: Solution, options: Options) -> Solution:
    """Solve the relaxation over fewer deployments, as each whole replica of one more may cost; the relaxation itself where that fails, or is too large."""
    if divisible.value is None or divisible.columns > MOST_COLUMNS_IN_ONE_PIECE:
        return divisible
    sign = -1.0 if data.objective.maximises else 1.0
    worst = divisible.value + sign * SETTINGS.consolidated * abs(divisible.value)
    ladder = consolidate(data, divisible.values, worst, options)
    if not ladder:
        return divisible
    found = solve_direct(restricted(data, ladder[-1]), replace(options, progress=None))
    return replace(found, bound=divisible.bound) if found.values else divisible


def _slot(data: PlanData, divisible: Solution, options: Options) -> Slot | None:
    """Return the slot that decides the fleet, hourly systems in fractions; None in a program whose rows are too many to be priced."""
    return decisive_slot(data.by_use(), divisible, options) if _activities(data) <= SETTINGS.most_priced else None


def _bounded(data: PlanData, best: Solution, slot: Slot | None, options: Options) -> tuple[Solution, dict[str, Floats]]:
    """Raise the bound by whole replicas in the slot that decides (`solvers.bound`); return what that slot takes where its search ends, too."""
    if slot is None:
        return best, {}
    _say(options, BOUNDING)
    sign = -1.0 if data.objective.maximises else 1.0
    bound, taken = bound_of_slot(data.by_use(), slot, sign * math.inf, options)
    return raised(best, bound, options), taken


def _bounded_further(data: PlanData, divisible: Solution, best: Solution, options: Options) -> Solution:
    """Raise the bound with several times the linear programs, up to the gap asked, where the plan is not proven to be within it."""
    slot = _slot(data, divisible, options) if options.time_limit_s > 0 else None
    if slot is None or best.value is None:
        return best
    _say(options, BOUNDING)
    sign = -1.0 if data.objective.maximises else 1.0
    target = best.value - sign * options.enough * abs(best.value)
    bound, _ = bound_of_slot(data.by_use(), slot, target, options, SETTINGS.further_bound)
    return raised(best, bound, options)


def _good_enough(best: Solution, options: Options) -> float | None:
    """Compute the value within the asked gap of the bound."""
    if best.bound is None:
        return None
    sign = -1.0 if best.objective.maximises else 1.0
    return best.bound + sign * options.enough * abs(best.bound)


def _is_poor(best: Solution, options: Options) -> bool:
    """Tell whether another way to whole replicas should follow."""
    return not best.values or (is_wide(best, options) and (best.gap or 0.0) > SETTINGS.poor)


def _valued(data: PlanData, program: Program, values: dict[str, Floats], divisible: Solution) -> Solution:
    """Shape a rounded plan of some program as a solution with the bound of the relaxation."""
    x = program.vector(values)
    return replace(
        divisible,
        value=float(objective_vector(program, data) @ x),
        values=values,
        functionals={name: float(program.functional(name) @ x) for name in program.functionals},
        rows=program.row_count,
        columns=program.column_count,
        integers=int(program.arrays().integer.sum()),
        polished=True,
        built=None,
    )


def _say(options: Options, line: str) -> None:
    if options.progress is not None:
        options.progress(line)


def _method(options: Options) -> str:
    """Return the method for programs with whole replicas, which the decomposition does not cover."""
    return "auto" if options.method == "decomposed" else options.method


def _first_s(data: PlanData) -> float:
    """Return the least time of the first attempt [s]."""
    return SETTINGS.first_s if _activities(data) <= SETTINGS.most_first else SETTINGS.least_time_s


def is_small(data: PlanData) -> bool:
    """Tell whether the full program with whole replicas is searched at length."""
    return _activities(data) <= SETTINGS.small


def _activities(data: PlanData) -> int:
    """Count the activities of serving points in slots."""
    return int(((data.point_pool >= 0) & (data.point_capacity > 0)).sum()) * data.slots


def _groups(data: PlanData) -> Ints | None:
    """[T]: groups of slots that share their residents, the groups of the input if it has any; None where each slot has its own."""
    if data.resident_group is not None:
        return data.resident_group
    if data.slots <= SETTINGS.most_slots_apart:
        return None
    hour = np.arange(data.slots) % SETTINGS.hours_per_day
    return data.slot_window * SETTINGS.hours_per_day + hour


def _with_relaxation(solution: Solution, divisible: Solution) -> Solution:
    """Add what the relaxation proved."""
    return replace(
        solution,
        relaxed_duals=divisible.relaxed_duals,
        relaxed_bound=divisible.relaxed_bound,
        structural=(),
        built=None,
    )


def _better(data: PlanData, best: Solution, full: Solution, divisible: Solution, options: Options) -> Solution:
    """Combine the better value and the better bound of the restricted and the full program."""
    if full.status in ("infeasible", "unbounded"):
        return full
    sign = -1.0 if data.objective.maximises else 1.0
    bounds = [bound for bound in (best.bound, full.bound) if bound is not None]
    bound = max(bounds, key=lambda value: sign * value, default=None)
    plans = [plan for plan in (full, best) if plan.value is not None]
    plan = min(plans, key=lambda plan: sign * (plan.value or 0.0), default=full)
    counted = replace(plan, bound=bound, rows=full.rows, columns=full.columns, integers=full.integers)
    return rated(_with_relaxation(counted, divisible), options)


def _with_duals(data: PlanData, solution: Solution, divisible: Solution, options: Options) -> Solution:
    """Price the rows with the fleet held and replicas divisible, since a whole replica too many makes every small change free.

    `divisible`: the relaxation, whose own prices stand in for the prices of a program that is too large.
    """
    if not solution.values:
        return replace(solution, row_duals={})
    if _activities(data) > SETTINGS.most_priced:
        return replace(solution, row_duals=divisible.row_duals)
    relaxed = data.divisible()
    program = divisible.program_of(relaxed) or build(relaxed)
    sense = "max" if data.objective.maximises else "min"
    x: Floats = program.vector(solution.values)
    _, duals = solve_with_fixed_integers(program, objective_vector(program, relaxed), sense, x, options)
    return replace(solution, row_duals={} if duals is None else program.by_block(duals), built=(relaxed, program))
