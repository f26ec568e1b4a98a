"""Search of the decomposition, step by step: root LP relaxation, first-stage binaries, Benders loop, integer counts, recovery of a plan.

Very large programs (`root.large`) do without the Benders loop; dual ascent raises their bound instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.benders_loop import BendersLoop
from solvers.decomposition.benders_master import BendersMaster, Neighbourhood
from solvers.decomposition.cheap_hosting import OmittedCost
from solvers.decomposition.dive_and_branch import SETTINGS as DIVE_SETTINGS
from solvers.decomposition.dive_and_branch import DiveAndBranch, find_binaries
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.integer_recovery import Incumbent, IntegerRecovery
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.linking import FirstStagePoint
from solvers.decomposition.node_relaxation import ITERATION_LIMIT, LEAST_IMPROVEMENT, Node, count_columns_of
from solvers.decomposition.reformulation import INTEGRALITY_TOL, Reformulation
from solvers.decomposition.root_relaxation import (
    ROOT_SETTINGS,
    RootRelaxation,
    active_options,
    solve_root,
    systems_held,
)
from solvers.decomposition.slots import VALUE_TOL
from solvers.decomposition.sub_mips import solve_counts
from solvers.interface import Options

ValueToBound = Callable[[float], float]  # from the objective of a plan to the lower bound that is enough for it


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Tuning constants of the search; shares of time refer to the time left when the step begins."""

    root_gap_share: float = 0.1  # gap of the root LP relaxation, as a share of the asked gap
    least_root_gap: float = 1e-5  # gap of the root, relative to its objective, that is always enough
    binaries_time_share: float = 0.8  # time for first-stage binaries
    binaries_time_share_large: float = 0.55  # the same in very large programs
    benders_time_share: float = 0.7  # time for the Benders loop before the first integer counts
    counts_time_share: float = 0.8  # time for integer counts
    dive_time_share: float = 0.6  # part of that for diving, before the remaining counts are rounded together
    # gaps of the Benders loop, as shares of the asked gap:
    binaries_gap_share: float = 0.9  # over binaries, before the first integer counts
    counts_only_gap_share: float = 0.4  # over binaries, below which what is left of the gap lies in the counts
    counts_gap_share: float = 0.97  # over counts, where the whole gap gave no plan
    held_systems: float = 0.02  # systems from which on a fleet option counts as held
    recovery_options: int = 20  # fleet options offered to recovery beside those held, at least
    few_systems: tuple[float, ...] = (2.0, 8.0)  # systems below which a fleet option is dropped before counts, in turn
    few_systems_large: tuple[float, ...] = (0.5, 1.0, 2.0)
    dropping_cost: float = 5e-4  # rise of the objective, relative, that each of these may cause
    counts_tolerance: float = 1e-3  # gap of nodes with integer counts, relative to the objective
    counts_tolerance_large: float = 3e-4  # finer, since the counts are read off the last digits
    rounding_cost: float = 0.05  # rise of the objective, relative, at which counts rounded together are cut off
    reserve_options: int = 2  # fleet options per site added to those held on merged slots, in very large programs
    exhausted_share: float = 0.8  # share of a supply from which on it counts as exhausted by the merged solution
    full_mip_time_s: float = 5.0  # time limit [s] for integer counts by the whole program
    adding_rounds: int = 20  # rounds of recovery that add missing systems directly


SETTINGS = SearchSettings()


@dataclass(slots=True)
class SearchResult:
    """Plan and bounds of the full problem: `lower_bound`, and `relaxation_bound`, which the `duals` of the LP relaxation prove alone."""

    lower_bound: float = -np.inf
    plan: Incumbent | None = None
    duals: Duals | None = None
    relaxation_bound: float = -np.inf


def run_search(
    dec: Reformulation, options: Options, seconds_left: Callable[[], float], omitted: OmittedCost
) -> SearchResult:
    """Search for a plan and a bound, in the scaled units of the decomposition.

    `omitted`: bounds on costs that the program leaves out and the plan will have to pay."""
    tolerance = max(SETTINGS.root_gap_share * options.gap, SETTINGS.least_root_gap)
    root = solve_root(dec, tolerance)
    if root is None:
        return SearchResult(dec.trivial_bound())
    dec.progress.report(bound=root.bound.value)
    master = None if root.large else BendersMaster(dec, dec.first_stage.integer & ~count_columns_of(dec), root.bound)
    merged = (
        dec.data.windows > 1 or root.work >= ROOT_SETTINGS.merged_binaries_work
    )  # binaries are found on merged slots first
    share = SETTINGS.binaries_time_share_large if root.large else SETTINGS.binaries_time_share
    chosen = find_binaries(dec, root, _time_share(seconds_left, share, options), None if merged else master)
    refined = None
    if chosen is not None:
        node_tolerance = max(tolerance, DIVE_SETTINGS.relative_tolerance)
        time_left = _time_share(seconds_left, SETTINGS.counts_time_share, options)
        refined = _refine_to_all_slots(dec, chosen[0], chosen[1], node_tolerance, root.large, time_left)
    if master is not None and chosen is not None and refined is not None:
        found = _run_benders(dec, options, omitted, root, master, *refined, chosen[2], merged, seconds_left)
    elif (ascent := root.ascent) is not None:
        plan, enough = None, -np.inf
        if refined is not None:
            plan = _recover_plan(dec, _integer_counts(*refined, True, options), options, seconds_left)
        if plan is not None and refined is not None:
            remaining = _remaining_gap(dec, options, omitted, refined[1]) * abs(plan.value)
            enough = plan.value - max(remaining, dec.absolute_gap)
        ascent.run(lambda: seconds_left() <= 0 or ascent.bound.value >= enough > -np.inf)
        found = SearchResult(ascent.bound.value, plan, ascent.duals, ascent.bound.value)
    else:
        found = SearchResult(root.bound.value, None, root.duals, root.bound.value)
    dec.progress.report(np.inf if found.plan is None else found.plan.value, found.lower_bound)
    return found


def _remaining_gap(dec: Reformulation, options: Options, omitted: OmittedCost, chosen: Node) -> float:
    """Return the asked gap less the share of the objective that costs left out may add at the sites that are open."""
    opened = np.append(chosen.upper, 1.0)[dec.first_stage.columns["open"]] > 0
    return options.gap - min(float(omitted.by_site[opened].sum()), omitted.total) / max(
        abs(chosen.found.value), VALUE_TOL
    )


def _run_benders(
    dec: Reformulation, options: Options, omitted: OmittedCost, root: RootRelaxation, master: BendersMaster, dive: DiveAndBranch, found: Node, fleet_options: Ints, merged: bool, seconds_left: Callable[[], float]
) -> SearchResult:  # fmt: skip
    """Improve binaries by the Benders loop, find integer counts and a plan for them, and repeat until the gap is closed or time ends.

    Binaries found on `merged` slots are improved in their neighbourhood first."""
    loop = BendersLoop(
        dec,
        dec.view,
        np.union1d(dive.fleet_options, fleet_options),
        dive.integer_columns,
        dive.tolerance,
        _time_share(seconds_left, SETTINGS.benders_time_share, options),
    )

    def within_gap(share: float) -> ValueToBound:
        """Return the map from an objective to the bound that closes this share of the gap, at the sites open in `found`."""
        return lambda value: (
            value - max(share * _remaining_gap(dec, options, omitted, found) * abs(value), dec.absolute_gap)
        )

    known = loop.fleet_options
    found = loop.improve(master, found, within_gap(SETTINGS.binaries_gap_share), near=merged)
    counts, plan = _counts(dive, found, known, options, seconds_left)
    loop.seconds_left = seconds_left
    while plan is not None and seconds_left() > 0 and master.lower_bound < within_gap(1.0)(plan.value):
        plan_value = plan.value

        def enough(value: float, plan_value: float = plan_value) -> float:
            return min(within_gap(SETTINGS.counts_only_gap_share)(value), within_gap(1.0)(plan_value))

        target = found.found.value - LEAST_IMPROVEMENT * abs(found.found.value)
        better = loop.improve(master, found, enough, near=merged, target=target)
        if better.found.value > target:  # no better binaries, or the gap that is left lies in the counts
            plan = _run_benders_over_counts(dec, options, loop, master, counts, plan, within_gap, seconds_left)
            break
        found, loop.fleet_options = better, np.union1d(loop.fleet_options, known)
        counts, other = _counts(dive, found, loop.fleet_options, options, seconds_left)
        plan = plan if other is None or other.value >= plan.value else other
    return SearchResult(max(root.bound.value, master.lower_bound), plan, root.duals, root.bound.value)


def _counts(
    dive: DiveAndBranch, found: Node, fleet_options: Ints, options: Options, seconds_left: Callable[[], float]
) -> tuple[Node, Incumbent | None]:
    """Find integer counts for the binaries of a node among these fleet options, and a plan with them."""
    dive.fleet_options, dive.seconds_left = (
        fleet_options,
        _time_share(seconds_left, SETTINGS.counts_time_share, options),
    )
    counts = _counts_by_full_mip(dive, found, options) or _integer_counts(dive, found, False, options)
    return counts, _recover_plan(dive.dec, counts, options, seconds_left)


def _counts_by_full_mip(dive: DiveAndBranch, found: Node, options: Options) -> Node | None:
    """Find integer counts by the whole program where it is small; None where that finds none in time."""
    first_stage, seconds = dive.dec.first_stage, min(dive.seconds_left(), SETTINGS.full_mip_time_s)
    if seconds <= 0:
        return None
    values = solve_counts(dive.dec, found.lower, found.upper, options.gap, seconds)
    if values is None:
        return None
    held = np.append(values, 0.0)[first_stage.columns["n"]] > SETTINGS.held_systems
    dive.fleet_options = np.union1d(dive.fleet_options, dive.dec.data.holding_option[held])
    dive.integer_columns, dive.tolerance = first_stage.integer, min(dive.tolerance, SETTINGS.counts_tolerance)
    again = dive.solve(
        np.where(first_stage.integer, values, found.lower),
        np.where(first_stage.integer, values, found.upper),
        found.found,
    )
    if again is not None:
        dive.dec.log(f"in one piece: {dive.dec.format_value(again.found.value)}")
    return again


def _run_benders_over_counts(
    dec: Reformulation,
    options: Options,
    loop: BendersLoop,
    master: BendersMaster,
    counts: Node,
    plan: Incumbent,
    within_gap: Callable[[float], ValueToBound],
    seconds_left: Callable[[], float],
) -> Incumbent:
    """Run the Benders loop over integer counts, first for the binaries of a node; return the best plan."""
    master.set_integer_columns(dec.first_stage.integer)
    free = count_columns_of(dec)
    these = Neighbourhood(np.where(free, 0.0, counts.lower), np.where(free, dec.first_stage.upper, counts.upper))
    shares = 1.0, SETTINGS.counts_gap_share  # a plan may be a little dearer than the node that it was recovered from
    for within, share in itertools.product((these, None), shares):
        while master.lower_bound < within_gap(1.0)(plan.value) and seconds_left() > 0:
            better = loop.improve(master, counts, within_gap(share), within)
            if better is counts:
                break
            counts, other = better, _recover_plan(dec, better, options, seconds_left)
            if other is None or other.value >= plan.value:  # the node allowed what no plan can do
                break
            plan = other
    return plan


def _time_share(seconds_left: Callable[[], float], share: float, options: Options) -> Callable[[], float]:
    """Return a clock of this share of the time left now."""
    until = seconds_left() * (1 - share)
    return lambda: options.noted(seconds_left() - until)


def _refine_to_all_slots(
    dec: Reformulation, chosen: Node, group: Ints, tolerance: float, large: bool, seconds_left: Callable[[], float]
) -> tuple[DiveAndBranch, Node] | None:
    """Solve a node of merged slots over all slots, counts continuous; return (the search there, node), or None where infeasible."""
    opened = np.append(chosen.upper, 1.0)[dec.first_stage.columns["open"]] > 0
    fleet_options, placements = (
        np.flatnonzero(opened[dec.data.option_site]),
        dec.view.training[np.append(chosen.lower, 0.0)[dec.first_stage.columns["y"][dec.view.training]] > 0],
    )
    known = np.union1d(
        active_options(dec, chosen.found, placements),
        _reserve_options(dec, chosen, group, fleet_options) if large else [],
    )
    dive = DiveAndBranch(
        dec,
        dec.view,
        known.astype(np.int64),
        dec.first_stage.integer & ~count_columns_of(dec),
        ROOT_SETTINGS.large_gap if large else tolerance,
        DIVE_SETTINGS.joint_cost_large if large else DIVE_SETTINGS.joint_cost,
        1,
        seconds_left,
    )
    dive.keep_job_pace = large
    cutoff = chosen.found.value + DIVE_SETTINGS.cutoff_slack * max(abs(chosen.found.value), 1.0)
    found = dive.solve(chosen.lower, chosen.upper, chosen.found, cutoff, group)
    if found is None:  # infeasible with the fleet options that merged slots hold
        dive.fleet_options = fleet_options
        found = dive.solve(chosen.lower, chosen.upper, chosen.found, cutoff, group)
    if found is None:
        dec.log("over all slots: no room for the choices")
        return None
    dec.log(f"over all slots: {dec.format_value(found.found.value)} with linear counts")
    if dive.open_columns(found):
        found = dive.run(found) or found
    return dive, found


def _reserve_options(dec: Reformulation, chosen: Node, group: Ints, fleet_options: Ints) -> Ints:
    """Choose fleet options of each site, of least reduced cost relative to cost, whose supply is not exhausted.

    Merged slots have lower peaks than single ones, and the supply of the options held there may not suffice for these."""
    data, much = dec.data, systems_held(dec, chosen.found)
    supply, option = data.supply_member[:, 0], data.holding_option[data.supply_member[:, 1]]
    taken = np.bincount(supply, weights=much[option], minlength=len(data.supply_limit))
    room = np.ones(len(much), dtype=bool)
    room[option[taken[supply] > SETTINGS.exhausted_share * data.supply_limit[supply]]] = False
    reduced_cost, of_option = (
        np.append(dec.lagrangian_bound(dec.extend_duals(chosen.found), dec.view.merged(group)).reduced_cost, np.inf)[
            dec.first_stage.columns["n"]
        ],
        np.full(len(much), np.inf),
    )
    np.minimum.at(of_option, data.holding_option, reduced_cost)
    among = fleet_options[room[fleet_options] & np.isfinite(of_option[fleet_options])]
    among = among[
        np.lexsort((of_option[among] / np.maximum(dec.option_cost[among], VALUE_TOL), data.option_site[among]))
    ]
    rank = np.arange(len(among)) - np.searchsorted(data.option_site[among], data.option_site[among])
    return np.asarray(among[rank < SETTINGS.reserve_options])


def _integer_counts(dive: DiveAndBranch, found: Node, large: bool, options: Options) -> Node:
    """Find integer counts of few fleet options beside the options of jobs: by diving, or in very large programs by rounding them together."""
    dec, training = dive.dec, dive.view.training
    used = dec.view.use_option[
        np.isin(dec.view.use_point, training[np.append(found.lower, 0.0)[dec.first_stage.columns["y"][training]] > 0])
    ]
    dive.integer_columns, dive.iterations = dive.dec.first_stage.integer, ITERATION_LIMIT
    dive.tolerance = min(dive.tolerance, SETTINGS.counts_tolerance_large if large else SETTINGS.counts_tolerance)
    # equally good fleet options share the systems between them, and each would have to be rounded
    for few in SETTINGS.few_systems_large if large else SETTINGS.few_systems:
        kept, dive.fleet_options = (
            dive.fleet_options,
            np.union1d(np.flatnonzero(systems_held(dive.dec, found.found) >= few), used),
        )
        cutoff = found.found.value * (1 + SETTINGS.dropping_cost)
        again = dive.solve(found.lower, found.upper, found.found, cutoff)
        if again is None or again.found.value > cutoff:
            dive.fleet_options = kept
            break
        found = again
        dive.dec.log(
            f"over {dive.view.slots} slots: {dive.dec.format_value(found.found.value)} with {len(dive.fleet_options)} fleet options"
        )
    if not large:
        seconds_left = dive.seconds_left
        dive.seconds_left = _time_share(seconds_left, SETTINGS.dive_time_share, options)
        integer_node = dive.run(found) or found
        dive.seconds_left = seconds_left
        counts = dive.values(integer_node)[count_columns_of(dec)]
        if (np.abs(counts - np.round(counts)) <= INTEGRALITY_TOL).all():
            return integer_node
        # time ended before the last counts were integer
        hours = None if integer_node is found else _reschedule_jobs(dive, integer_node, found)
        if hours is not None:
            return hours
    return _reschedule_jobs(dive, found, found) or dive.round_remaining(found)


def _reschedule_jobs(dive: DiveAndBranch, state: Node, free: Node) -> Node | None:
    """Round the remaining counts together and reschedule the jobs for them; None where that is infeasible or out of time.

    Counts may rise above the rounded ones up to the bounds of `free`, where these do not suffice."""
    rounded, dive.tolerance = dive.round_remaining(state), max(dive.tolerance, SETTINGS.counts_tolerance)
    upper = np.where(count_columns_of(dive.dec), free.upper, rounded.upper)
    again = dive.solve(rounded.lower, upper, state.found, state.found.value * (1 + SETTINGS.rounding_cost))
    dive.dec.log(
        "hours for whole counts: none, or not in time"
        if again is None
        else f"hours for whole counts: {dive.dec.format_value(again.found.value)}"
    )
    return None if again is None else Node(rounded.lower, rounded.upper, again.found)


def _recover_plan(
    dec: Reformulation, chosen: Node, options: Options, seconds_left: Callable[[], float]
) -> Incumbent | None:
    """Recover a plan near a node, by adding systems or moving jobs until every slot is feasible; None where none is found."""
    first_stage, found = dec.first_stage, chosen.found
    duals = dec.extend_duals(found)
    certificate = dec.lagrangian_bound(duals)
    values = np.clip(
        map_columns(found.blocks.first_stage, first_stage, found.point().first_stage), chosen.lower, chosen.upper
    )
    fleet_options, placements = found.blocks.linking.fleet_options, found.blocks.placements
    kept = _recovery_options(
        dec,
        values,
        certificate,
        np.flatnonzero(np.append(chosen.upper, 1.0)[first_stage.columns["open"]][dec.data.option_site] > 0),
        placements,
    )
    model = dec.recovery_model(np.union1d(kept, fleet_options), placements)
    part = model.master.first_stage
    point = FirstStagePoint(map_columns(first_stage, part, values), found.point().running)
    bounds = (
        np.maximum(map_columns(first_stage, part, chosen.lower), 0.0),
        np.minimum(map_columns(first_stage, part, chosen.upper), part.upper),
    )
    plan = IntegerRecovery(dec, model, *bounds, options.gap, options.seed, seconds_left, SETTINGS.adding_rounds).run(
        point, duals, certificate
    )
    if plan is not None:
        dec.progress.report(plan.value)
    return plan


def _recovery_options(
    dec: Reformulation, values: Floats, certificate: LagrangianBound, fleet_options: Ints, placements: Ints
) -> Ints:
    """Choose the fleet options held, those that jobs use, and as many others of least reduced cost relative to cost."""
    n, option = dec.first_stage.columns["n"], dec.data.holding_option
    kept = np.zeros(len(dec.data.option_site), dtype=bool)
    kept[option[np.append(values, 0.0)[n] > SETTINGS.held_systems]] = True
    kept[dec.view.use_option[np.isin(dec.view.use_point, placements)]] = True
    lacks = np.full(len(kept), np.inf)
    np.minimum.at(
        lacks,
        option,
        np.append(certificate.pricing_reduced_cost, np.inf)[n] / np.maximum(dec.option_cost[option], INTEGRALITY_TOL),
    )
    others = fleet_options[~kept[fleet_options]]
    more = others[np.argsort(lacks[others], kind="stable")][: max(int(kept.sum()), SETTINGS.recovery_options)]
    return np.union1d(np.flatnonzero(kept), more)
