"""The linear part over all slots: on merged slots first, which say which fleet options and places of jobs to look at and where to start, then on
all of them. Its prices give a bound on the full problem over all of its columns (certificate.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.dual_ascent import DualAscent
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.interior_point.blocks import BlockProgram
from solvers.decomposition.interior_point.method import InteriorSolution, solve_interior_point
from solvers.decomposition.interior_point.starting_points import warm_start_from
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.linking import Linking
from solvers.decomposition.slot_clustering import APART_LARGE, cheapest_placements, cluster_count, cluster_slots
from solvers.decomposition.slots import NOTHING, SlotView

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation

LEAST_SLOTS = 20  # merged slots
FEW_LARGE, SLOTS_LARGE = (
    12,
    84,
)  # merged slots where questions are large, for all fleet options and for those that matter
ROUGH = 1e-3  # of the value, how far from proven the answer on merged slots may be
NEARLY = 1e-3  # of the value, that a job may cost more at a place that is looked at than at its best one
RUNS = 0.01  # share of a job from which on a place is looked at in any case
LEAST, LEAST_SHARE = 1.0, 1e-3  # systems of a kind from which on it matters, or share of all where that is less
LEAST_FIRST = 0.3  # such systems where questions are large: left out are those whose price costs the bound little
PLACES, PLACES_LARGE = 500, 300  # such places of all jobs, about; where questions are large
LARGE, MANY, LITTLE = (
    2e11,
    1.7e10,
    1e8,
)  # multiplications of an iteration, from which on not all fleet options are looked at, or choices made on merged slots first, and up to which digits cost nothing
SIDE_BY_SIDE = 2e9  # multiplications of an iteration, from which on parts of the slots are looked at side by side
FINE = 1e-7  # of the value, how far from proven the answer is then
ROUGH_FIRST, ROUGH_LARGE = 1e-2, 4e-3  # of the value, how far from proven the answers may be then
PROVEN, ENOUGH = (
    3.0,
    1.0,
)  # times the tolerance: where more is proven than that choices need no more places, and the bound neither
EACH_SITE, EACH_JOB = 3, 24  # places of a job that had none, at a site and in all
TIMES, NEW = 3, 8  # that places are added, at most, and how many of each job


@dataclass(frozen=True, slots=True)
class RootRelaxation:
    """The linear part over all slots, and over the merged ones: `group` [T]; where questions are large over merged ones and the fleet options that matter
    only, with prices of all slots on their way up."""

    found: InteriorSolution
    at: LagrangianBound  # of the slots that were solved
    duals: Duals
    bound: LagrangianBound
    merged: InteriorSolution
    group: Ints
    work: float  # multiplications of an iteration over all slots, about
    ascent: DualAscent | None = None

    @property
    def large(self) -> bool:
        return self.ascent is not None


def build_block_program(
    dec: Reformulation,
    view: SlotView,
    fleet_options: Ints,
    placements: Ints,
    lower: Floats | None = None,
    upper: Floats | None = None,
    unmet: Floats | None = None,
) -> BlockProgram:
    """The program over these fleet options and places and this view's slots; bounds are over the whole structure's columns; `unmet`: as of the blocks."""
    inside_options = dec.usable_points(fleet_options)
    view = replace(view, training=placements[inside_options[placements]])
    part = dec.first_stage.part(dec.data, fleet_options, view.training)
    linking = Linking(view, part, fleet_options, dec.power_limit)
    of_part = lambda values: None if values is None else map_columns(dec.first_stage, part, values)
    parallel_map = dec.parallel_map if _iteration_work(dec, view.slots, part.size) > SIDE_BY_SIDE else map
    return BlockProgram(
        linking,
        view.serving[inside_options[view.serving]],
        of_part(lower),
        of_part(upper),
        parallel_map,
        dec.threads,
        unmet,
    )


def solve_root(dec: Reformulation, tolerance: float) -> RootRelaxation | None:
    """None where it has no answer, or not in time. Where all slots at once are many, the fleet options that matter on few merged ones are looked at on more."""
    fleet_options, placements = (
        np.arange(len(dec.data.option_site)),
        cheapest_placements(dec.view, dec.standalone_job_cost),
    )
    work = _iteration_work(dec, dec.view.slots, len(fleet_options) + 2 * len(placements))
    large, tolerance = work > LARGE, min(tolerance, FINE) if work < LITTLE else tolerance
    group = (
        cluster_slots(dec.view, FEW_LARGE, APART_LARGE)
        if large
        else cluster_slots(dec.view, cluster_count(dec.view, LEAST_SLOTS))
    )
    view = dec.view.merged(group)
    merged = solve_interior_point(
        build_block_program(dec, view, fleet_options, placements), ROUGH_FIRST if large else ROUGH, dec.seconds_left
    )
    if merged is None:
        dec.log(f"{view.slots} merged slots: no answer, or not in time: the bound is that of systems busy throughout")
        return None
    dec.log(f"{view.slots} merged slots: linear {dec.format_value(merged.value)}")
    certificate = dec.lagrangian_bound(dec.extend_duals(merged), view)
    placements, here, onto = (
        priced_placements(dec, merged, certificate, PLACES_LARGE if large else PLACES),
        dec.view,
        group,
    )
    if large:
        of_all, fleet_options, tolerance = (
            cluster_slots(dec.view, SLOTS_LARGE, APART_LARGE),
            active_options(dec, merged, placements, LEAST_FIRST),
            ROUGH_LARGE,
        )
        here, onto = dec.view.merged(of_all), group[np.unique(of_all, return_index=True)[1]]
        dec.log(f"{len(fleet_options)} fleet options matter, {len(placements)} places")
    start, found, first = merged, None, None
    for number in range(TIMES):
        program = build_block_program(dec, here, fleet_options, placements)
        again = solve_interior_point(
            program, tolerance, dec.seconds_left, warm_start_from(start.blocks, start.warm, program, onto)
        )
        if again is None:
            break
        found, certificate = again, dec.lagrangian_bound(dec.extend_duals(again), here)
        dec.log(
            f"{here.slots} slots: linear {dec.format_value(found.value)}, proven {dec.format_value(certificate.value)}, {len(placements)} places"
        )
        more = _improving_placements(dec, certificate, found)
        apart = (found.value - certificate.value) / (tolerance * max(abs(found.value), NOTHING))
        first = first or ((found, certificate) if apart <= PROVEN else None)
        if not len(more) or large or number == TIMES - 1 or apart <= ENOUGH:
            break
        placements, start, onto = np.union1d(placements, more), found, np.arange(here.slots)
    if large:
        if found is None:
            dec.log(
                f"{here.slots} slots: no answer for these fleet options, or not in time: prices are those of {view.slots} merged slots"
            )
        known, group = (merged, group) if found is None else (found, of_all)  # what was left out may have been needed
        ascent = DualAscent(dec, _disaggregated_duals(dec, known, group))
        dec.log(f"over all {dec.view.slots} slots: proven {dec.format_value(ascent.bound.value)} so far")
        return RootRelaxation(known, certificate, ascent.duals, ascent.bound, known, group, work, ascent)
    return (
        None
        if found is None
        else RootRelaxation(*(first or (found, certificate)), dec.extend_duals(found), certificate, merged, group, work)
    )


def _disaggregated_duals(dec: Reformulation, found: InteriorSolution, group: Ints) -> Duals:
    """Prices of all slots from those of an answer's merged ones, systems and watts over the slots of a group in proportion to their length. FleetOptions
    that it left out are as dear as their holdings cost: where replicas would pay, the rest in all slots alike."""
    duals, seconds, data = dec.extend_duals(found), dec.view.seconds, dec.data
    duals = duals.disaggregated(group, seconds, duals.rows)
    omitted = ~np.isin(np.arange(len(data.option_site)), found.blocks.linking.fleet_options)
    bare = replace(duals, alpha=np.where(omitted[:, None], 0.0, duals.alpha))
    needed = np.where(omitted[:, None], dec.lagrangian_bound(bare).cut.alpha, 0.0)
    room = np.append(dec.lagrangian_bound(replace(bare, beta=np.zeros_like(duals.beta))).reduced_cost, np.inf)[
        dec.first_stage.columns["n"]
    ]
    option, covers = data.holding_option, data.covers()
    earned_needed, longest = (
        np.zeros((len(omitted), data.windows)),
        np.bincount(dec.view.window, weights=seconds, minlength=data.windows),
    )
    np.add.at(earned_needed.T, dec.view.window, needed.T)
    earned_needed, longest = (covers * earned_needed[option]).sum(axis=1), covers @ longest
    share, rest, some = np.ones(len(omitted)), np.full(len(omitted), np.inf), earned_needed > 0
    np.minimum.at(share, option[some], np.maximum(room[some], 0.0) / earned_needed[some])
    some = longest > 0
    np.minimum.at(rest, option[some], np.maximum(room - earned_needed, 0.0)[some] / longest[some])
    rest = np.where(np.isfinite(rest), rest, 0.0)
    return replace(
        duals, alpha=np.where(omitted[:, None], share[:, None] * needed + rest[:, None] * seconds, duals.alpha)
    )


def _iteration_work(dec: Reformulation, slots: int, links: int) -> float:
    """Multiplications of one iteration, about."""
    return slots * len(dec.view.demand) * float(links) ** 2


def priced_placements(
    dec: Reformulation, found: InteriorSolution, certificate: LagrangianBound, limit: int = PLACES
) -> Ints:
    """The places where jobs run, and so many of those that would cost little more at these prices."""
    points, job = dec.view.training, dec.data.point_job[dec.view.training]
    pricing_reduced_cost = certificate.pricing_reduced_cost[dec.first_stage.columns["y"][points]]
    known, first_stage = found.blocks, found.point().first_stage
    result = [known.placements[first_stage[known.first_stage.columns["y"][known.placements]] > RUNS]]
    for j in np.unique(job):
        mine = np.flatnonzero(job == j)
        mine = mine[np.argsort(pricing_reduced_cost[mine], kind="stable")][: max(limit // len(dec.data.job_work), 1)]
        result.append(
            points[mine[pricing_reduced_cost[mine] <= pricing_reduced_cost[mine[0]] + NEARLY * abs(found.value)]]
        )
    return np.unique(np.concatenate(result))


def cheapest_open_placements(dec: Reformulation, pricing_reduced_cost: Floats, jobs: Ints, opened: np.ndarray) -> Ints:
    """Of each of these jobs the places at open sites at which it would cost least at these prices: EACH_SITE of a site, EACH_JOB in all."""
    points, y = dec.view.training, dec.first_stage.columns["y"]
    points = points[
        opened[dec.view.site[points]]
        & np.isin(dec.data.point_job[points], jobs)
        & np.isfinite(pricing_reduced_cost[y[points]])
    ]
    order = np.argsort(pricing_reduced_cost[y[points]], kind="stable")
    points = points[order][
        _rank_in_group((dec.data.point_job[points] * dec.data.sites + dec.view.site[points])[order]) < EACH_SITE
    ]
    return np.sort(points[_rank_in_group(dec.data.point_job[points]) < EACH_JOB])


def _rank_in_group(key: Ints) -> Ints:
    """Of each entry how many of the same key come before it."""
    order = np.argsort(key, kind="stable")
    rank = np.empty(len(key), dtype=np.int64)
    rank[order] = np.arange(len(key)) - np.searchsorted(key[order], key[order])
    return rank


def systems_held(dec: Reformulation, found: InteriorSolution) -> Floats:
    """[fleet options]: systems, the most of all windows."""
    result, values = (
        np.zeros(len(dec.data.option_site)),
        map_columns(found.blocks.first_stage, dec.first_stage, found.point().first_stage),
    )
    np.maximum.at(result, dec.data.holding_option, np.append(values, 0.0)[dec.first_stage.columns["n"]])
    return result


def active_options(dec: Reformulation, found: InteriorSolution, placements: Ints, threshold: float = LEAST) -> Ints:
    """The fleet options of which more is held than next to nothing, and those of the places: there are far more that are as good than are used."""
    much = systems_held(dec, found)
    return np.union1d(
        np.flatnonzero(much >= min(threshold, LEAST_SHARE * much.sum())),
        dec.view.use_option[np.isin(dec.view.use_point, placements)],
    )


def _improving_placements(dec: Reformulation, certificate: LagrangianBound, found: InteriorSolution) -> Ints:
    """Places left out at which their jobs would cost less than anywhere known."""
    points, job = dec.view.training, dec.data.point_job[dec.view.training]
    pricing_reduced_cost = np.where(
        np.isin(points, found.blocks.placements),
        0.0,
        certificate.pricing_reduced_cost[dec.first_stage.columns["y"][points]],
    )
    result = [np.zeros(0, dtype=np.int64)]
    for j in np.unique(job):
        mine = np.flatnonzero((job == j) & (pricing_reduced_cost < -1e-5 * abs(found.value)))
        result.append(points[mine[np.argsort(pricing_reduced_cost[mine], kind="stable")][:NEW]])
    return np.concatenate(result)


def within(dec: Reformulation, point: int, share: Floats, upper: Floats | None = None) -> Floats | None:
    """The share of each slot in which a job runs, just where it may (at most `upper`) and just until it is done; None where it cannot be."""
    view, job = dec.view, dec.data.point_job[point]
    upper = view.reachable[job] if upper is None else upper
    share, wanted = np.clip(share, 0.0, upper), dec.data.job_work[job] / dec.data.point_capacity[point]
    done, free = float(share @ view.seconds), float((upper - share) @ view.seconds)
    if done >= wanted:
        return share * (wanted / done)
    return (
        None
        if done + free < wanted * (1 - 1e-9)
        else share + (upper - share) * min((wanted - done) / max(free, 1e-300), 1.0)
    )
