"""Solve the LP relaxation at the root, by column generation over placements of jobs.

It is solved on merged slots first, which show the relevant fleet options and placements and give a starting point, then on all slots. Its
prices give a Lagrangian bound over all columns of the full problem; those with negative reduced cost are added and it is solved again.
In large programs only few fleet options and merged slots are solved, and dual ascent extends the prices to all slots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.decomposition.dual_ascent import DualAscent
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.interior_point.blocks import BlockProgram
from solvers.decomposition.interior_point.method import InteriorSolution, solve_interior_point
from solvers.decomposition.interior_point.starting_points import warm_start_from
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.linking import Linking
from solvers.decomposition.slot_clustering import JOB_WEIGHT_LARGE, cheapest_placements, cluster_count, cluster_slots
from solvers.decomposition.slots import JOB_DONE_TOL, SlotView

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSettings:
    """Sizes and tolerances of the root relaxation.

    "Work" is the number of multiplications of an interior-point iteration. A gap is relative to the value.
    """

    merged_slots: int = 20
    """Least number of merged slots."""
    merged_gap: float = 1e-3
    """Gap of the LP on merged slots."""
    small_work: float = 1e8
    """Work up to which the LP is solved to `small_gap`, which takes little time."""
    small_gap: float = 1e-7
    """Gap of small LPs."""
    parallel_work: float = 2e9
    """Work from which on blocks of slots are eliminated in parallel."""
    merged_binaries_work: float = 1.7e10
    """Work from which on binaries are chosen on merged slots first."""
    large_work: float = 2e11
    """Work from which on a program is large: the LP is never solved over all fleet options and all slots at once."""
    large_merged_slots: int = 12
    """Merged slots for all fleet options of a large program."""
    large_slots: int = 84
    """Merged slots for the relevant fleet options of a large program."""
    large_merged_gap: float = 1e-2
    """Gap of the LP of a large program on the former."""
    large_gap: float = 4e-3
    """Gap of the LP of a large program on the latter."""
    relevant_systems: float = 1.0
    """Systems held from which on a fleet option is relevant."""
    relevant_share: float = 1e-3
    """Share of all systems held from which on it is, if that is less."""
    large_relevant_systems: float = 0.3
    """`relevant_systems` of large programs; the prices of the fleet options left out weaken the bound little."""
    placements: int = 500
    """Placements of all jobs, about, that are kept for their low cost."""
    large_placements: int = 300
    """The same for large programs."""
    placement_cost_slack: float = 1e-3
    """Cost of a kept placement above that of the job's best one, relative to the value."""
    used_job_share: float = 0.01
    """Share of a job from which on the placement where it runs is kept in any case."""
    pricing_rounds: int = 3
    """Solutions of the LP, with placements added in between."""
    priced_placements: int = 8
    """Placements of each job that one round adds."""
    pricing_tol: float = 1e-5
    """Least improvement for which a placement is added, relative to the value."""
    binaries_gap_factor: float = 3.0
    """Bound this close to the LP's value, in multiples of the tolerance: the placements suffice to choose binaries."""
    final_gap_factor: float = 1.0
    """Bound this close: the placements suffice for the bound as well."""
    site_placements: int = 3
    """Placements of a job at each open site, where all that it had were closed."""
    job_placements: int = 24
    """Placements of such a job in all."""


ROOT_SETTINGS = RootSettings()


@dataclass(frozen=True, slots=True)
class RootRelaxation:
    """The LP relaxation with its prices and Lagrangian bound.

    `found`: the solution over all slots; of a large program over merged slots and relevant fleet options, with prices of all slots from
    dual ascent.
    """

    found: InteriorSolution
    at: LagrangianBound  # on the slots of `found`
    duals: Duals  # duals of all slots
    bound: LagrangianBound  # at these prices
    merged: InteriorSolution
    group: Ints  # [T] merged slot of each slot
    work: float  # multiplications of an iteration over all slots, about
    ascent: DualAscent | None = None  # large programs only

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
    """Build the LP over these fleet options and placements and this view's slots.

    `lower`, `upper`: bounds of all first-stage columns; `unmet` [D, T]: price of demand left unmet, absent where all must be met.
    """
    inside_options = dec.usable_points(fleet_options)
    view = replace(view, training=placements[inside_options[placements]])
    part = dec.first_stage.part(dec.data, fleet_options, view.training)
    linking = Linking(view, part, fleet_options, dec.power_limit)

    def of_part(values: Floats | None) -> Floats | None:
        return None if values is None else map_columns(dec.first_stage, part, values)

    parallel_map = (
        dec.parallel_map if _iteration_work(dec, view.slots, part.size) > ROOT_SETTINGS.parallel_work else map
    )
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
    """Solve the LP relaxation to a relative gap of `tolerance`; None if it is infeasible or out of time."""
    fleet_options = np.arange(len(dec.data.option_site))
    placements = cheapest_placements(dec.view, dec.standalone_job_cost)
    work = _iteration_work(dec, dec.view.slots, len(fleet_options) + 2 * len(placements))
    large, tolerance = (
        work > ROOT_SETTINGS.large_work,
        min(tolerance, ROOT_SETTINGS.small_gap) if work < ROOT_SETTINGS.small_work else tolerance,
    )
    group = (
        cluster_slots(dec.view, ROOT_SETTINGS.large_merged_slots, JOB_WEIGHT_LARGE)
        if large
        else cluster_slots(dec.view, cluster_count(dec.view, ROOT_SETTINGS.merged_slots))
    )
    view = dec.view.merged(group)
    merged = solve_interior_point(
        build_block_program(dec, view, fleet_options, placements),
        ROOT_SETTINGS.large_merged_gap if large else ROOT_SETTINGS.merged_gap,
        dec.seconds_left,
    )
    if merged is None:
        dec.log(f"{view.slots} merged slots: no answer, or not in time: the bound is that of systems busy throughout")
        return None
    dec.log(f"{view.slots} merged slots: linear {dec.format_value(merged.value)}")
    certificate = dec.lagrangian_bound(dec.extend_duals(merged), view)
    placements = priced_placements(
        dec, merged, certificate, ROOT_SETTINGS.large_placements if large else ROOT_SETTINGS.placements
    )
    here, onto = dec.view, group
    if large:
        of_all = cluster_slots(dec.view, ROOT_SETTINGS.large_slots, JOB_WEIGHT_LARGE)
        fleet_options = active_options(dec, merged, placements, ROOT_SETTINGS.large_relevant_systems)
        tolerance = ROOT_SETTINGS.large_gap
        here, onto = dec.view.merged(of_all), group[np.unique(of_all, return_index=True)[1]]
        dec.log(f"{len(fleet_options)} fleet options matter, {len(placements)} places")
    start, found, first = merged, None, None
    for number in range(ROOT_SETTINGS.pricing_rounds):
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
        apart = (found.value - certificate.value) / max(tolerance * abs(found.value), dec.absolute_gap)
        first = first or ((found, certificate) if apart <= ROOT_SETTINGS.binaries_gap_factor else None)
        if (
            not len(more)
            or large
            or number == ROOT_SETTINGS.pricing_rounds - 1
            or apart <= ROOT_SETTINGS.final_gap_factor
        ):
            break
        placements, start, onto = np.union1d(placements, more), found, np.arange(here.slots)
    if large:
        if found is None:
            dec.log(
                f"{here.slots} slots: no answer for these fleet options, or not in time: prices are those of {view.slots} merged slots"
            )
        # the LP may be infeasible over the relevant fleet options alone
        known, group = (merged, group) if found is None else (found, of_all)
        ascent = DualAscent(dec, _disaggregated_duals(dec, known, group))
        dec.log(f"over all {dec.view.slots} slots: proven {dec.format_value(ascent.bound.value)} so far")
        return RootRelaxation(known, certificate, ascent.duals, ascent.bound, known, group, work, ascent)
    return (
        None
        if found is None
        else RootRelaxation(*(first or (found, certificate)), dec.extend_duals(found), certificate, merged, group, work)
    )


def _disaggregated_duals(dec: Reformulation, found: InteriorSolution, group: Ints) -> Duals:
    """Return prices of all slots and fleet options from the prices of merged slots and some fleet options.

    The price of a merged slot is divided in proportion to the length of its slots. Fleet options left out are priced up to what their
    holdings cost: first where replicas would pay, the rest evenly over all slots.
    """
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
    """Estimate the multiplications of one interior-point iteration."""
    return slots * len(dec.view.demand) * float(links) ** 2


def priced_placements(
    dec: Reformulation, found: InteriorSolution, certificate: LagrangianBound, limit: int = ROOT_SETTINGS.placements
) -> Ints:
    """Return the placements where jobs run and those that would cost little more at these prices, about `limit` in all."""
    points, job = dec.view.training, dec.data.point_job[dec.view.training]
    pricing_reduced_cost = certificate.pricing_reduced_cost[dec.first_stage.columns["y"][points]]
    known, first_stage = found.blocks, found.point().first_stage
    result = [
        known.placements[first_stage[known.first_stage.columns["y"][known.placements]] > ROOT_SETTINGS.used_job_share]
    ]
    for j in np.unique(job):
        mine = np.flatnonzero(job == j)
        mine = mine[np.argsort(pricing_reduced_cost[mine], kind="stable")][: max(limit // len(dec.data.job_work), 1)]
        result.append(
            points[
                mine[
                    pricing_reduced_cost[mine]
                    <= pricing_reduced_cost[mine[0]] + ROOT_SETTINGS.placement_cost_slack * abs(found.value)
                ]
            ]
        )
    return np.unique(np.concatenate(result))


def cheapest_open_placements(dec: Reformulation, pricing_reduced_cost: Floats, jobs: Ints, opened: Bools) -> Ints:
    """Return the cheapest placements of each of these jobs at open sites, limited by site and in all (`RootSettings`)."""
    points, y = dec.view.training, dec.first_stage.columns["y"]
    points = points[
        opened[dec.view.site[points]]
        & np.isin(dec.data.point_job[points], jobs)
        & np.isfinite(pricing_reduced_cost[y[points]])
    ]
    order = np.argsort(pricing_reduced_cost[y[points]], kind="stable")
    points = points[order][
        _rank_in_group((dec.data.point_job[points] * dec.data.sites + dec.view.site[points])[order])
        < ROOT_SETTINGS.site_placements
    ]
    return np.sort(points[_rank_in_group(dec.data.point_job[points]) < ROOT_SETTINGS.job_placements])


def _rank_in_group(key: Ints) -> Ints:
    """Return how many entries of the same key come before each entry."""
    order = np.argsort(key, kind="stable")
    rank = np.empty(len(key), dtype=np.int64)
    rank[order] = np.arange(len(key)) - np.searchsorted(key[order], key[order])
    return rank


def systems_held(dec: Reformulation, found: InteriorSolution) -> Floats:
    """Return the systems of each fleet option, the most of all windows [fleet options]."""
    result, values = (
        np.zeros(len(dec.data.option_site)),
        map_columns(found.blocks.first_stage, dec.first_stage, found.point().first_stage),
    )
    np.maximum.at(result, dec.data.holding_option, np.append(values, 0.0)[dec.first_stage.columns["n"]])
    return result


def active_options(
    dec: Reformulation, found: InteriorSolution, placements: Ints, threshold: float = ROOT_SETTINGS.relevant_systems
) -> Ints:
    """Return the fleet options of which at least `threshold` systems are held, and those that the placements use."""
    much = systems_held(dec, found)
    return np.union1d(
        np.flatnonzero(much >= min(threshold, ROOT_SETTINGS.relevant_share * much.sum())),
        dec.view.use_option[np.isin(dec.view.use_point, placements)],
    )


def _improving_placements(dec: Reformulation, certificate: LagrangianBound, found: InteriorSolution) -> Ints:
    """Return placements left out that have a negative reduced cost, a limited number of each job."""
    points, job = dec.view.training, dec.data.point_job[dec.view.training]
    pricing_reduced_cost = np.where(
        np.isin(points, found.blocks.placements),
        0.0,
        certificate.pricing_reduced_cost[dec.first_stage.columns["y"][points]],
    )
    result = [np.zeros(0, dtype=np.int64)]
    for j in np.unique(job):
        mine = np.flatnonzero((job == j) & (pricing_reduced_cost < -ROOT_SETTINGS.pricing_tol * abs(found.value)))
        result.append(
            points[mine[np.argsort(pricing_reduced_cost[mine], kind="stable")][: ROOT_SETTINGS.priced_placements]]
        )
    return np.concatenate(result)


def fit_schedule(dec: Reformulation, point: int, share: Floats, upper: Floats | None = None) -> Floats | None:
    """Clip a schedule to at most `upper` and scale it so that the job is done exactly; None if it cannot finish.

    `share`, `upper` [T]: share of each slot for which the job of `point` runs, and may run.
    """
    view, job = dec.view, dec.data.point_job[point]
    upper = view.reachable[job] if upper is None else upper
    share, wanted = np.clip(share, 0.0, upper), dec.data.job_work[job] / dec.data.point_capacity[point]
    done, free = float(share @ view.seconds), float((upper - share) @ view.seconds)
    if done >= wanted:
        return np.asarray(share * (wanted / done), dtype=np.float64)
    if done + free < wanted * (1 - JOB_DONE_TOL):
        return None
    more = min((wanted - done) / max(free, 1e-300), 1.0)
    return np.asarray(share + (upper - share) * more, dtype=np.float64)
