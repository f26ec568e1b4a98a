"""A plan and a bound for a program too large to be searched: the linear part over all slots, choices made
on few or on all of them, better ones proposed, counts over all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.benders_loop import BendersLoop
from solvers.decomposition.benders_master import BendersMaster, Neighbourhood
from solvers.decomposition.cheap_hosting import OmittedCost
from solvers.decomposition.dive_and_branch import COSTS, COSTS_LARGE, HOPELESS, TOLERANCE, DiveAndBranch, find_binaries
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.integer_recovery import Incumbent, IntegerRecovery
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.linking import FirstStagePoint
from solvers.decomposition.node_relaxation import PATIENCE, WORTH, Node, count_columns_of
from solvers.decomposition.reformulation import WHOLE, Reformulation
from solvers.decomposition.root_relaxation import (
    MANY,
    ROUGH_LARGE,
    RootRelaxation,
    active_options,
    solve_root,
    systems_held,
)
from solvers.decomposition.slots import NOTHING
from solvers.decomposition.sub_mips import solve_counts
from solvers.interface import Options

PROPOSING, CHOICES, CERTAIN, NEARLY = (
    0.7,
    0.9,
    0.4,
    0.97,
)  # of the time left for choices that are proposed, and of the asked gap how near they are to be
# before counts, from where on only counts can bring more, and how near counts are to be
SHARE = 0.1  # of the asked gap, that the linear part may leave
LEAST_SHARE = 1e-5  # of the value, that it need not be nearer
HELD, MORE = 0.02, 20  # systems from which on a kind is held, and kinds that are counted beside those held, at least
FEW, FEW_HELD_LARGE, WORSE = (
    (2.0, 8.0),
    (0.5, 1.0, 2.0),
    5e-4,
)  # systems below which a kind is left out, in turn, also where questions are large, and what each time may cost, of the value
FINER, FINER_LARGE = (
    1e-3,
    3e-4,
)  # of the value, how far from proven looks for whole counts may be, also where questions are large: what is held of a kind is told by the last digits
ROUNDING = 0.05  # of the value, that whole counts may cost, where they are rounded together
SPARE, TAKEN = (
    2,
    0.8,
)  # kinds of each site that are looked at over all slots beside those held, and share of what there is from which on a kind is all taken
ASKED = 5.0  # seconds that counts of small programs may take
ADDING = 20  # times that missing systems are added to counts
CHOOSING, CHOOSING_LARGE, COUNTING, DIVING = (
    0.8,
    0.55,
    0.8,
    0.6,
)  # of the time left, for choices, also where questions are large, for whole counts, and of that for those that are decided one after the other


@dataclass(slots=True)
class SearchResult:
    """`lower_bound` holds for the full problem; `relaxation_bound` of it by these prices alone, with nothing whole."""

    lower_bound: float = -np.inf
    plan: Incumbent | None = None
    duals: Duals | None = None
    relaxation_bound: float = -np.inf


def run_search(
    dec: Reformulation, options: Options, seconds_left: Callable[[], float], omitted: OmittedCost
) -> SearchResult:
    """In the numbers of the decomposition, whose slots and structure are used; `omitted`: what a plan may cost more than it says."""
    tolerance = max(SHARE * options.gap, LEAST_SHARE)
    root = solve_root(dec, tolerance)
    if root is None:
        return SearchResult(dec.trivial_bound())
    dec.progress.report(bound=root.bound.value)
    master = None if root.large else BendersMaster(dec, dec.first_stage.integer & ~count_columns_of(dec), root.bound)
    merged = dec.data.windows > 1 or root.work >= MANY  # choices are made on merged slots first
    chosen = find_binaries(
        dec, root, _time_share(seconds_left, CHOOSING_LARGE if root.large else CHOOSING), None if merged else master
    )
    far = (
        None
        if chosen is None
        else _refine_to_all_slots(
            dec, chosen[0], chosen[1], max(tolerance, TOLERANCE), root.large, _time_share(seconds_left, COUNTING)
        )
    )
    if root.ascent is None:
        found = (
            SearchResult(root.bound.value, None, root.duals, root.bound.value)
            if far is None
            else _run_benders(dec, options, omitted, root, master, *far, chosen[2], merged, seconds_left)
        )
    else:
        plan = None if far is None else _recover_plan(dec, _integer_counts(*far, True), options, seconds_left)
        enough = (
            -np.inf if plan is None else plan.value - _remaining_gap(dec, options, omitted, far[1]) * abs(plan.value)
        )
        root.ascent.run(lambda: seconds_left() <= 0 or root.ascent.bound.value >= enough > -np.inf)
        found = SearchResult(root.ascent.bound.value, plan, root.ascent.duals, root.ascent.bound.value)
    dec.progress.report(np.inf if found.plan is None else found.plan.value, found.lower_bound)
    return found


def _remaining_gap(dec: Reformulation, options: Options, omitted: OmittedCost, chosen: Node) -> float:
    """What is asked less what may be left out at the sites that these choices open."""
    opened = np.append(chosen.upper, 1.0)[dec.first_stage.columns["open"]] > 0
    return options.gap - min(float(omitted.by_site[opened].sum()), omitted.total) / max(
        abs(chosen.found.value), NOTHING
    )


def _run_benders(
    dec: Reformulation, options: Options, omitted: OmittedCost, root: RootRelaxation, master: BendersMaster, dive: DiveAndBranch, found: Node, fleet_options: Ints, merged: bool, seconds_left: Callable[[], float]
) -> SearchResult:  # fmt: skip
    """Choices that are as good as is asked, or as time allows, and counts for them; then whatever is proposed that is better, or proves more.
    Those made on `merged` slots are made better near by first."""
    proposing = BendersLoop(
        dec,
        dec.view,
        np.union1d(dive.fleet_options, fleet_options),
        dive.integer_columns,
        dive.tolerance,
        _time_share(seconds_left, PROPOSING),
    )
    near = lambda share: lambda value: value - share * _remaining_gap(dec, options, omitted, found) * abs(value)
    known, found = proposing.fleet_options, proposing.improve(master, found, near(CHOICES), near=merged)
    counts, plan = _counts(dive, found, known, options, seconds_left)
    proposing.seconds_left = seconds_left
    while plan is not None and seconds_left() > 0 and master.lower_bound < near(1.0)(plan.value):
        worth = found.found.value - WORTH * abs(found.found.value)
        better = proposing.improve(
            master,
            found,
            lambda value, plan=plan: min(near(CERTAIN)(value), near(1.0)(plan.value)),
            near=merged,
            worth=worth,
        )
        if better.found.value > worth:  # what is left is in the counts, or nothing better is known
            plan = _run_benders_over_counts(dec, options, proposing, master, counts, plan, near, seconds_left)
            break
        found, proposing.fleet_options = better, np.union1d(proposing.fleet_options, known)
        counts, other = _counts(dive, found, proposing.fleet_options, options, seconds_left)
        plan = plan if other is None or other.value >= plan.value else other
    return SearchResult(max(root.bound.value, master.lower_bound), plan, root.duals, root.bound.value)


def _counts(
    dive: DiveAndBranch, found: Node, fleet_options: Ints, options: Options, seconds_left: Callable[[], float]
) -> tuple[Node, Incumbent | None]:
    """Whole counts for these choices among the fleet options, and a plan with them."""
    dive.fleet_options, dive.seconds_left = fleet_options, _time_share(seconds_left, COUNTING)
    counts = _counts_by_full_mip(dive, found, options) or _integer_counts(dive, found, False)
    return counts, _recover_plan(dive.dec, counts, options, seconds_left)


def _counts_by_full_mip(dive: DiveAndBranch, found: Node, options: Options) -> Node | None:
    """With the counts that cost least, where the whole program is small; None where they are not found so."""
    first_stage, seconds = dive.dec.first_stage, min(dive.seconds_left(), ASKED)
    if seconds <= 0:
        return None
    values = solve_counts(dive.dec, found.lower, found.upper, options.gap, seconds)
    if values is None:
        return None
    dive.fleet_options = np.union1d(
        dive.fleet_options, dive.dec.data.holding_option[np.append(values, 0.0)[first_stage.columns["n"]] > HELD]
    )
    dive.integer_columns, dive.tolerance = first_stage.integer, min(dive.tolerance, FINER)
    again = dive.solve(
        np.where(first_stage.integer, values, found.lower),
        np.where(first_stage.integer, values, found.upper),
        found.found,
    )
    if again is not None:
        dive.dec.log(f"in one piece: {dive.dec.format_value(again.found.value)}")
    return again


def _run_benders_over_counts(
    dec: Reformulation, options: Options, proposing: BendersLoop, master: BendersMaster, counts: Node, plan: Incumbent, near: Callable, seconds_left: Callable[[], float]
) -> Incumbent:  # fmt: skip
    """The best plan of those that are proposed with whole counts, first with these choices."""
    master.set_integer_columns(dec.first_stage.integer)
    free = count_columns_of(dec)
    these = Neighbourhood(np.where(free, 0.0, counts.lower), np.where(free, dec.first_stage.upper, counts.upper))
    for within, share in (
        (these, 1.0),
        (these, NEARLY),
        (None, 1.0),
        (None, NEARLY),
    ):  # a plan may be a little dearer than the counts it was made of
        while master.lower_bound < near(1.0)(plan.value) and seconds_left() > 0:
            better = proposing.improve(master, counts, near(share), within)
            if better is counts:
                break
            counts, other = better, _recover_plan(dec, better, options, seconds_left)
            if other is None or other.value >= plan.value:  # what a look forgave was missing
                break
            plan = other
    return plan


def _time_share(seconds_left: Callable[[], float], share: float) -> Callable[[], float]:
    """What is left of a share of the time left now."""
    until = seconds_left() * (1 - share)
    return lambda: seconds_left() - until


def _refine_to_all_slots(
    dec: Reformulation, chosen: Node, group: Ints, tolerance: float, large: bool, seconds_left: Callable[[], float]
) -> tuple[DiveAndBranch, Node] | None:
    """(a search over all slots, the choices there), counts as linear as they are."""
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
        ROUGH_LARGE if large else tolerance,
        COSTS_LARGE if large else COSTS,
        1,
        seconds_left,
    )
    dive.keep_job_pace = large
    cutoff = chosen.found.value + HOPELESS[0] * max(abs(chosen.found.value), 1.0)
    found = dive.solve(chosen.lower, chosen.upper, chosen.found, cutoff, group)
    if found is None:  # not with the fleet options that matter on merged slots
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
    """Of these fleet options the SPARE of each site that are nearest to paying, of kinds of which there are more to be had: merged slots have lower peaks, and the
    kinds that they hold may be all taken."""
    data, much = dec.data, systems_held(dec, chosen.found)
    supply, option = data.supply_member[:, 0], data.holding_option[data.supply_member[:, 1]]
    taken = np.bincount(supply, weights=much[option], minlength=len(data.supply_limit))
    room = np.ones(len(much), dtype=bool)
    room[option[taken[supply] > TAKEN * data.supply_limit[supply]]] = False
    reduced_cost, of_option = (
        np.append(dec.lagrangian_bound(dec.extend_duals(chosen.found), dec.view.merged(group)).reduced_cost, np.inf)[
            dec.first_stage.columns["n"]
        ],
        np.full(len(much), np.inf),
    )
    np.minimum.at(of_option, data.holding_option, reduced_cost)
    among = fleet_options[room[fleet_options] & np.isfinite(of_option[fleet_options])]
    among = among[np.lexsort((of_option[among] / np.maximum(dec.option_cost[among], NOTHING), data.option_site[among]))]
    rank = np.arange(len(among)) - np.searchsorted(data.option_site[among], data.option_site[among])
    return among[rank < SPARE]


def _integer_counts(dive: DiveAndBranch, found: Node, large: bool) -> Node:
    """With whole counts, of few kinds but those of jobs; where questions are large rounded together."""
    dec, training = dive.dec, dive.view.training
    used = dec.view.use_option[
        np.isin(dec.view.use_point, training[np.append(found.lower, 0.0)[dec.first_stage.columns["y"][training]] > 0])
    ]
    dive.integer_columns, dive.iterations = dive.dec.first_stage.integer, PATIENCE
    dive.tolerance = min(dive.tolerance, FINER_LARGE if large else FINER)
    for few in (
        FEW_HELD_LARGE if large else FEW
    ):  # what is as good is spread over many kinds, of which each is made whole
        kept, dive.fleet_options = (
            dive.fleet_options,
            np.union1d(np.flatnonzero(systems_held(dive.dec, found.found) >= few), used),
        )
        cutoff = found.found.value * (1 + WORSE)
        again = dive.solve(found.lower, found.upper, found.found, cutoff)
        if again is None or again.found.value > cutoff:
            dive.fleet_options = kept
            break
        found = again
        dive.dec.log(
            f"over {dive.view.slots} slots: {dive.dec.format_value(found.found.value)} with {len(dive.fleet_options)} fleet options"
        )
    if not large:
        seconds_left, dive.seconds_left = dive.seconds_left, _time_share(dive.seconds_left, DIVING)
        integer_node = dive.run(found) or found
        dive.seconds_left = seconds_left
        counts = dive.values(integer_node)[count_columns_of(dec)]
        if (np.abs(counts - np.round(counts)) <= WHOLE).all():
            return integer_node
        hours = (
            None if integer_node is found else _reschedule_jobs(dive, integer_node, found)
        )  # few were not decided in time
        if hours is not None:
            return hours
    return _reschedule_jobs(dive, found, found) or dive.round_remaining(found)


def _reschedule_jobs(dive: DiveAndBranch, state: Node, free: Node) -> Node | None:
    """With counts that are rounded together, and hours of jobs that go with them: no fewer systems, and more where these are not enough, as far as they
    are `free`. None where there are none, or not in time."""
    rounded, dive.tolerance = dive.round_remaining(state), max(dive.tolerance, FINER)
    upper = np.where(count_columns_of(dive.dec), free.upper, rounded.upper)
    again = dive.solve(rounded.lower, upper, state.found, state.found.value * (1 + ROUNDING))
    dive.dec.log(
        "hours for whole counts: none, or not in time"
        if again is None
        else f"hours for whole counts: {dive.dec.format_value(again.found.value)}"
    )
    return None if again is None else Node(rounded.lower, rounded.upper, again.found)


def _recover_plan(
    dec: Reformulation, chosen: Node, options: Options, seconds_left: Callable[[], float]
) -> Incumbent | None:
    """A plan with these choices and counts or little more, with which every slot has an answer."""
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
    plan = IntegerRecovery(dec, model, *bounds, options.gap, options.seed, seconds_left, ADDING).run(
        point, duals, certificate
    )
    if plan is not None:
        dec.progress.report(plan.value)
    return plan


def _recovery_options(
    dec: Reformulation, values: Floats, certificate: LagrangianBound, fleet_options: Ints, placements: Ints
) -> Ints:
    """The fleet options that are held, those that jobs use, and of the others as many again, which lack least to be worth it."""
    n, option = dec.first_stage.columns["n"], dec.data.holding_option
    kept = np.zeros(len(dec.data.option_site), dtype=bool)
    kept[option[np.append(values, 0.0)[n] > HELD]] = True
    kept[dec.view.use_option[np.isin(dec.view.use_point, placements)]] = True
    lacks = np.full(len(kept), np.inf)
    np.minimum.at(
        lacks,
        option,
        np.append(certificate.pricing_reduced_cost, np.inf)[n] / np.maximum(dec.option_cost[option], WHOLE),
    )
    others = fleet_options[~kept[fleet_options]]
    more = others[np.argsort(lacks[others], kind="stable")][: max(int(kept.sum()), MORE)]
    return np.union1d(np.flatnonzero(kept), more)
