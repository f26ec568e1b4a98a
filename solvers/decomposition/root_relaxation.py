"""The linear part over all slots: on merged slots first, which say which fleet options and places of jobs to look at and where to start, then on
all of them. Its prices give a bound on the full problem over all of its columns (certificate.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.dual_ascent import Climb
from solvers.decomposition.first_stage import carried
from solvers.decomposition.interior_point.blocks import Blocks
from solvers.decomposition.interior_point.method import Inside, inside, taken_over
from solvers.decomposition.lagrangian_bound import Bound, Prices
from solvers.decomposition.linking import Linked
from solvers.decomposition.slot_clustering import APART_LARGE, cheap_places, grouping, groups_for
from solvers.decomposition.slots import NOTHING, Slotwise

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Decomposition

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
class Linear:
    """The linear part over all slots, and over the merged ones: `group` [T]; where questions are large over merged ones and the fleet options that matter
    only, with prices of all slots on their way up."""

    found: Inside
    at: Bound  # of the slots that were solved
    prices: Prices
    bound: Bound
    merged: Inside
    group: Ints
    work: float  # multiplications of an iteration over all slots, about
    climb: Climb | None = None

    @property
    def large(self) -> bool:
        return self.climb is not None


def blocks(
    dec: Decomposition,
    view: Slotwise,
    fleet_options: Ints,
    places: Ints,
    least: Floats | None = None,
    most: Floats | None = None,
    unmet: Floats | None = None,
) -> Blocks:
    """The program over these fleet options and places and this view's slots; bounds are over the whole structure's columns; `unmet`: as of the blocks."""
    inside_options = dec.inside(fleet_options)
    view = replace(view, training=places[inside_options[places]])
    part = dec.whole.part(dec.data, fleet_options, view.training)
    linked = Linked(view, part, fleet_options, dec.power_limit)
    of_part = lambda values: None if values is None else carried(dec.whole, part, values)
    across = dec.across if _work(dec, view.slots, part.size) > SIDE_BY_SIDE else map
    return Blocks(
        linked, view.serving[inside_options[view.serving]], of_part(least), of_part(most), across, dec.threads, unmet
    )


def linear(dec: Decomposition, tolerance: float) -> Linear | None:
    """None where it has no answer, or not in time. Where all slots at once are many, the fleet options that matter on few merged ones are looked at on more."""
    fleet_options, places = np.arange(len(dec.data.option_site)), cheap_places(dec.view, dec.alone)
    work = _work(dec, dec.view.slots, len(fleet_options) + 2 * len(places))
    large, tolerance = work > LARGE, min(tolerance, FINE) if work < LITTLE else tolerance
    group = (
        grouping(dec.view, FEW_LARGE, APART_LARGE) if large else grouping(dec.view, groups_for(dec.view, LEAST_SLOTS))
    )
    view = dec.view.merged(group)
    merged = inside(blocks(dec, view, fleet_options, places), ROUGH_FIRST if large else ROUGH, dec.left)
    if merged is None:
        dec.say(f"{view.slots} merged slots: no answer, or not in time: the bound is that of systems busy throughout")
        return None
    dec.say(f"{view.slots} merged slots: linear {dec.amount(merged.value)}")
    certificate = dec.certify(dec.spread(merged), view)
    places, here, onto = nearly(dec, merged, certificate, PLACES_LARGE if large else PLACES), dec.view, group
    if large:
        of_all, fleet_options, tolerance = (
            grouping(dec.view, SLOTS_LARGE, APART_LARGE),
            mattering(dec, merged, places, LEAST_FIRST),
            ROUGH_LARGE,
        )
        here, onto = dec.view.merged(of_all), group[np.unique(of_all, return_index=True)[1]]
        dec.say(f"{len(fleet_options)} fleet options matter, {len(places)} places")
    start, found, first = merged, None, None
    for number in range(TIMES):
        program = blocks(dec, here, fleet_options, places)
        again = inside(program, tolerance, dec.left, taken_over(start.blocks, start.warm, program, onto))
        if again is None:
            break
        found, certificate = again, dec.certify(dec.spread(again), here)
        dec.say(
            f"{here.slots} slots: linear {dec.amount(found.value)}, proven {dec.amount(certificate.value)}, {len(places)} places"
        )
        more = _wanted(dec, certificate, found)
        apart = (found.value - certificate.value) / (tolerance * max(abs(found.value), NOTHING))
        first = first or ((found, certificate) if apart <= PROVEN else None)
        if not len(more) or large or number == TIMES - 1 or apart <= ENOUGH:
            break
        places, start, onto = np.union1d(places, more), found, np.arange(here.slots)
    if large:
        if found is None:
            dec.say(
                f"{here.slots} slots: no answer for these fleet options, or not in time: prices are those of {view.slots} merged slots"
            )
        known, group = (merged, group) if found is None else (found, of_all)  # what was left out may have been needed
        climb = Climb(dec, _completed(dec, known, group))
        dec.say(f"over all {dec.view.slots} slots: proven {dec.amount(climb.proven.value)} so far")
        return Linear(known, certificate, climb.prices, climb.proven, known, group, work, climb)
    return (
        None
        if found is None
        else Linear(*(first or (found, certificate)), dec.spread(found), certificate, merged, group, work)
    )


def _completed(dec: Decomposition, found: Inside, group: Ints) -> Prices:
    """Prices of all slots from those of an answer's merged ones, systems and watts over the slots of a group in proportion to their length. FleetOptions
    that it left out are as dear as their holdings cost: where replicas would pay, the rest in all slots alike."""
    prices, seconds, data = dec.spread(found), dec.view.seconds, dec.data
    prices = prices.spread(group, seconds, prices.rows)
    left_out = ~np.isin(np.arange(len(data.option_site)), found.blocks.linked.fleet_options)
    bare = replace(prices, alpha=np.where(left_out[:, None], 0.0, prices.alpha))
    needed = np.where(left_out[:, None], dec.certify(bare).estimate.alpha, 0.0)
    room = np.append(dec.certify(replace(bare, beta=np.zeros_like(prices.beta))).reduced, np.inf)[
        dec.whole.columns["n"]
    ]
    option, covers = data.holding_option, data.covers()
    asked, longest = (
        np.zeros((len(left_out), data.windows)),
        np.bincount(dec.view.window, weights=seconds, minlength=data.windows),
    )
    np.add.at(asked.T, dec.view.window, needed.T)
    asked, longest = (covers * asked[option]).sum(axis=1), covers @ longest
    share, rest, some = np.ones(len(left_out)), np.full(len(left_out), np.inf), asked > 0
    np.minimum.at(share, option[some], np.maximum(room[some], 0.0) / asked[some])
    some = longest > 0
    np.minimum.at(rest, option[some], np.maximum(room - asked, 0.0)[some] / longest[some])
    rest = np.where(np.isfinite(rest), rest, 0.0)
    return replace(
        prices, alpha=np.where(left_out[:, None], share[:, None] * needed + rest[:, None] * seconds, prices.alpha)
    )


def _work(dec: Decomposition, slots: int, links: int) -> float:
    """Multiplications of one iteration, about."""
    return slots * len(dec.view.demand) * float(links) ** 2


def nearly(dec: Decomposition, found: Inside, certificate: Bound, most: int = PLACES) -> Ints:
    """The places where jobs run, and so many of those that would cost little more at these prices."""
    points, job = dec.view.training, dec.data.point_job[dec.view.training]
    entering = certificate.entering[dec.whole.columns["y"][points]]
    known, structure = found.blocks, found.point().structure
    result = [known.places[structure[known.structure.columns["y"][known.places]] > RUNS]]
    for j in np.unique(job):
        mine = np.flatnonzero(job == j)
        mine = mine[np.argsort(entering[mine], kind="stable")][: max(most // len(dec.data.job_work), 1)]
        result.append(points[mine[entering[mine] <= entering[mine[0]] + NEARLY * abs(found.value)]])
    return np.unique(np.concatenate(result))


def near_places(dec: Decomposition, entering: Floats, jobs: Ints, opened: np.ndarray) -> Ints:
    """Of each of these jobs the places at open sites at which it would cost least at these prices: EACH_SITE of a site, EACH_JOB in all."""
    points, y = dec.view.training, dec.whole.columns["y"]
    points = points[
        opened[dec.view.site[points]] & np.isin(dec.data.point_job[points], jobs) & np.isfinite(entering[y[points]])
    ]
    order = np.argsort(entering[y[points]], kind="stable")
    points = points[order][
        _rank((dec.data.point_job[points] * dec.data.sites + dec.view.site[points])[order]) < EACH_SITE
    ]
    return np.sort(points[_rank(dec.data.point_job[points]) < EACH_JOB])


def _rank(key: Ints) -> Ints:
    """Of each entry how many of the same key come before it."""
    order = np.argsort(key, kind="stable")
    rank = np.empty(len(key), dtype=np.int64)
    rank[order] = np.arange(len(key)) - np.searchsorted(key[order], key[order])
    return rank


def held(dec: Decomposition, found: Inside) -> Floats:
    """[fleet options]: systems, the most of all windows."""
    result, values = (
        np.zeros(len(dec.data.option_site)),
        carried(found.blocks.structure, dec.whole, found.point().structure),
    )
    np.maximum.at(result, dec.data.holding_option, np.append(values, 0.0)[dec.whole.columns["n"]])
    return result


def mattering(dec: Decomposition, found: Inside, places: Ints, least: float = LEAST) -> Ints:
    """The fleet options of which more is held than next to nothing, and those of the places: there are far more that are as good than are used."""
    much = held(dec, found)
    return np.union1d(
        np.flatnonzero(much >= min(least, LEAST_SHARE * much.sum())),
        dec.view.use_option[np.isin(dec.view.use_point, places)],
    )


def _wanted(dec: Decomposition, certificate: Bound, found: Inside) -> Ints:
    """Places left out at which their jobs would cost less than anywhere known."""
    points, job = dec.view.training, dec.data.point_job[dec.view.training]
    entering = np.where(np.isin(points, found.blocks.places), 0.0, certificate.entering[dec.whole.columns["y"][points]])
    result = [np.zeros(0, dtype=np.int64)]
    for j in np.unique(job):
        mine = np.flatnonzero((job == j) & (entering < -1e-5 * abs(found.value)))
        result.append(points[mine[np.argsort(entering[mine], kind="stable")][:NEW]])
    return np.concatenate(result)


def within(dec: Decomposition, point: int, share: Floats, most: Floats | None = None) -> Floats | None:
    """The share of each slot in which a job runs, just where it may (at most `most`) and just until it is done; None where it cannot be."""
    view, job = dec.view, dec.data.point_job[point]
    most = view.reachable[job] if most is None else most
    share, wanted = np.clip(share, 0.0, most), dec.data.job_work[job] / dec.data.point_capacity[point]
    done, free = float(share @ view.seconds), float((most - share) @ view.seconds)
    if done >= wanted:
        return share * (wanted / done)
    return (
        None
        if done + free < wanted * (1 - 1e-9)
        else share + (most - share) * min((wanted - done) / max(free, 1e-300), 1.0)
    )
