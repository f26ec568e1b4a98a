"""A plan and a bound for a program too large to be searched: the linear part over all slots, choices made
on few or on all of them, better ones proposed, counts over all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.benders_loop import Proposing
from solvers.decomposition.benders_master import Proposals, Within
from solvers.decomposition.cheap_hosting import LeftOut
from solvers.decomposition.dive_and_branch import COSTS, COSTS_LARGE, HOPELESS, TOLERANCE, Search, choices
from solvers.decomposition.first_stage import carried
from solvers.decomposition.integer_recovery import Counts, WholePlan
from solvers.decomposition.lagrangian_bound import Bound, Prices
from solvers.decomposition.linking import Point
from solvers.decomposition.node_relaxation import PATIENCE, WORTH, Chosen, counted
from solvers.decomposition.reformulation import WHOLE, Decomposition
from solvers.decomposition.root_relaxation import MANY, ROUGH_LARGE, Linear, held, linear, mattering
from solvers.decomposition.slots import NOTHING
from solvers.decomposition.sub_mips import counts as counts_held
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
class Sketch:
    """`proven` holds for the full problem; `priced` of it by these prices alone, with nothing whole."""

    proven: float = -np.inf
    plan: WholePlan | None = None
    prices: Prices | None = None
    priced: float = -np.inf


def sketch(dec: Decomposition, options: Options, left: Callable[[], float], left_out: LeftOut) -> Sketch:
    """In the numbers of the decomposition, whose slots and structure are used; `left_out`: what a plan may cost more than it says."""
    tolerance = max(SHARE * options.gap, LEAST_SHARE)
    start = linear(dec, tolerance)
    if start is None:
        return Sketch(dec.least())
    dec.progress.report(bound=start.bound.value)
    proposals = None if start.large else Proposals(dec, dec.whole.integer & ~counted(dec), start.bound)
    merged = dec.data.windows > 1 or start.work >= MANY  # choices are made on merged slots first
    chosen = choices(
        dec, start, _share(left, CHOOSING_LARGE if start.large else CHOOSING), None if merged else proposals
    )
    far = (
        None
        if chosen is None
        else _over_all_slots(dec, chosen[0], chosen[1], max(tolerance, TOLERANCE), start.large, _share(left, COUNTING))
    )
    if start.climb is None:
        found = (
            Sketch(start.bound.value, None, start.prices, start.bound.value)
            if far is None
            else _proposed(dec, options, left_out, start, proposals, *far, chosen[2], merged, left)
        )
    else:
        plan = None if far is None else _settled(dec, _whole_counts(*far, True), options, left)
        enough = -np.inf if plan is None else plan.value - _gap(dec, options, left_out, far[1]) * abs(plan.value)
        start.climb.climb(lambda: left() <= 0 or start.climb.proven.value >= enough > -np.inf)
        found = Sketch(start.climb.proven.value, plan, start.climb.prices, start.climb.proven.value)
    dec.progress.report(np.inf if found.plan is None else found.plan.value, found.proven)
    return found


def _gap(dec: Decomposition, options: Options, left_out: LeftOut, chosen: Chosen) -> float:
    """What is asked less what may be left out at the sites that these choices open."""
    opened = np.append(chosen.most, 1.0)[dec.whole.columns["open"]] > 0
    return options.gap - min(float(left_out.by_site[opened].sum()), left_out.all) / max(
        abs(chosen.found.value), NOTHING
    )


def _proposed(
    dec: Decomposition, options: Options, left_out: LeftOut, start: Linear, proposals: Proposals, search: Search, found: Chosen, fleet_options: Ints, merged: bool, left: Callable[[], float]
) -> Sketch:  # fmt: skip
    """Choices that are as good as is asked, or as time allows, and counts for them; then whatever is proposed that is better, or proves more.
    Those made on `merged` slots are made better near by first."""
    proposing = Proposing(
        dec,
        dec.view,
        np.union1d(search.fleet_options, fleet_options),
        search.fixing,
        search.tolerance,
        _share(left, PROPOSING),
    )
    near = lambda share: lambda value: value - share * _gap(dec, options, left_out, found) * abs(value)
    known, found = proposing.fleet_options, proposing.proposed(proposals, found, near(CHOICES), near=merged)
    counts, plan = _counts(search, found, known, options, left)
    proposing.left = left
    while plan is not None and left() > 0 and proposals.proven < near(1.0)(plan.value):
        worth = found.found.value - WORTH * abs(found.found.value)
        better = proposing.proposed(
            proposals,
            found,
            lambda value, plan=plan: min(near(CERTAIN)(value), near(1.0)(plan.value)),
            near=merged,
            worth=worth,
        )
        if better.found.value > worth:  # what is left is in the counts, or nothing better is known
            plan = _with_counts(dec, options, proposing, proposals, counts, plan, near, left)
            break
        found, proposing.fleet_options = better, np.union1d(proposing.fleet_options, known)
        counts, other = _counts(search, found, proposing.fleet_options, options, left)
        plan = plan if other is None or other.value >= plan.value else other
    return Sketch(max(start.bound.value, proposals.proven), plan, start.prices, start.bound.value)


def _counts(
    search: Search, found: Chosen, fleet_options: Ints, options: Options, left: Callable[[], float]
) -> tuple[Chosen, WholePlan | None]:
    """Whole counts for these choices among the fleet options, and a plan with them."""
    search.fleet_options, search.left = fleet_options, _share(left, COUNTING)
    counts = _in_one_piece(search, found, options) or _whole_counts(search, found, False)
    return counts, _settled(search.dec, counts, options, left)


def _in_one_piece(search: Search, found: Chosen, options: Options) -> Chosen | None:
    """With the counts that cost least, where the whole program is small; None where they are not found so."""
    whole, seconds = search.dec.whole, min(search.left(), ASKED)
    if seconds <= 0:
        return None
    values = counts_held(search.dec, found.least, found.most, options.gap, seconds)
    if values is None:
        return None
    search.fleet_options = np.union1d(
        search.fleet_options, search.dec.data.holding_option[np.append(values, 0.0)[whole.columns["n"]] > HELD]
    )
    search.fixing, search.tolerance = whole.integer, min(search.tolerance, FINER)
    again = search.look(
        np.where(whole.integer, values, found.least), np.where(whole.integer, values, found.most), found.found
    )
    if again is not None:
        search.dec.say(f"in one piece: {search.dec.amount(again.found.value)}")
    return again


def _with_counts(
    dec: Decomposition, options: Options, proposing: Proposing, proposals: Proposals, counts: Chosen, plan: WholePlan, near: Callable, left: Callable[[], float]
) -> WholePlan:  # fmt: skip
    """The best plan of those that are proposed with whole counts, first with these choices."""
    proposals.fix(dec.whole.integer)
    free = counted(dec)
    these = Within(np.where(free, 0.0, counts.least), np.where(free, dec.whole.most, counts.most))
    for within, share in (
        (these, 1.0),
        (these, NEARLY),
        (None, 1.0),
        (None, NEARLY),
    ):  # a plan may be a little dearer than the counts it was made of
        while proposals.proven < near(1.0)(plan.value) and left() > 0:
            better = proposing.proposed(proposals, counts, near(share), within)
            if better is counts:
                break
            counts, other = better, _settled(dec, better, options, left)
            if other is None or other.value >= plan.value:  # what a look forgave was missing
                break
            plan = other
    return plan


def _share(left: Callable[[], float], share: float) -> Callable[[], float]:
    """What is left of a share of the time left now."""
    until = left() * (1 - share)
    return lambda: left() - until


def _over_all_slots(
    dec: Decomposition, chosen: Chosen, group: Ints, tolerance: float, large: bool, left: Callable[[], float]
) -> tuple[Search, Chosen] | None:
    """(a search over all slots, the choices there), counts as linear as they are."""
    opened = np.append(chosen.most, 1.0)[dec.whole.columns["open"]] > 0
    fleet_options, places = (
        np.flatnonzero(opened[dec.data.option_site]),
        dec.view.training[np.append(chosen.least, 0.0)[dec.whole.columns["y"][dec.view.training]] > 0],
    )
    known = np.union1d(mattering(dec, chosen.found, places), _spare(dec, chosen, group, fleet_options) if large else [])
    search = Search(
        dec,
        dec.view,
        known.astype(np.int64),
        dec.whole.integer & ~counted(dec),
        ROUGH_LARGE if large else tolerance,
        COSTS_LARGE if large else COSTS,
        1,
        left,
    )
    search.paced = large
    cutoff = chosen.found.value + HOPELESS[0] * max(abs(chosen.found.value), 1.0)
    found = search.look(chosen.least, chosen.most, chosen.found, cutoff, group)
    if found is None:  # not with the fleet options that matter on merged slots
        search.fleet_options = fleet_options
        found = search.look(chosen.least, chosen.most, chosen.found, cutoff, group)
    if found is None:
        dec.say("over all slots: no room for the choices")
        return None
    dec.say(f"over all slots: {dec.amount(found.found.value)} with linear counts")
    if search.open(found):
        found = search.run(found) or found
    return search, found


def _spare(dec: Decomposition, chosen: Chosen, group: Ints, fleet_options: Ints) -> Ints:
    """Of these fleet options the SPARE of each site that are nearest to paying, of kinds of which there are more to be had: merged slots have lower peaks, and the
    kinds that they hold may be all taken."""
    data, much = dec.data, held(dec, chosen.found)
    supply, option = data.supply_member[:, 0], data.holding_option[data.supply_member[:, 1]]
    taken = np.bincount(supply, weights=much[option], minlength=len(data.supply_limit))
    room = np.ones(len(much), dtype=bool)
    room[option[taken[supply] > TAKEN * data.supply_limit[supply]]] = False
    reduced, of_option = (
        np.append(dec.certify(dec.spread(chosen.found), dec.view.merged(group)).reduced, np.inf)[
            dec.whole.columns["n"]
        ],
        np.full(len(much), np.inf),
    )
    np.minimum.at(of_option, data.holding_option, reduced)
    among = fleet_options[room[fleet_options] & np.isfinite(of_option[fleet_options])]
    among = among[np.lexsort((of_option[among] / np.maximum(dec.option_cost[among], NOTHING), data.option_site[among]))]
    rank = np.arange(len(among)) - np.searchsorted(data.option_site[among], data.option_site[among])
    return among[rank < SPARE]


def _whole_counts(search: Search, found: Chosen, large: bool) -> Chosen:
    """With whole counts, of few kinds but those of jobs; where questions are large rounded together."""
    dec, training = search.dec, search.view.training
    used = dec.view.use_option[
        np.isin(dec.view.use_point, training[np.append(found.least, 0.0)[dec.whole.columns["y"][training]] > 0])
    ]
    search.fixing, search.iterations = search.dec.whole.integer, PATIENCE
    search.tolerance = min(search.tolerance, FINER_LARGE if large else FINER)
    for few in (
        FEW_HELD_LARGE if large else FEW
    ):  # what is as good is spread over many kinds, of which each is made whole
        kept, search.fleet_options = (
            search.fleet_options,
            np.union1d(np.flatnonzero(held(search.dec, found.found) >= few), used),
        )
        cutoff = found.found.value * (1 + WORSE)
        again = search.look(found.least, found.most, found.found, cutoff)
        if again is None or again.found.value > cutoff:
            search.fleet_options = kept
            break
        found = again
        search.dec.say(
            f"over {search.view.slots} slots: {search.dec.amount(found.found.value)} with {len(search.fleet_options)} fleet options"
        )
    if not large:
        left, search.left = search.left, _share(search.left, DIVING)
        whole = search.run(found) or found
        search.left = left
        counts = search.values(whole)[counted(dec)]
        if (np.abs(counts - np.round(counts)) <= WHOLE).all():
            return whole
        hours = None if whole is found else _hours(search, whole, found)  # few were not decided in time
        if hours is not None:
            return hours
    return _hours(search, found, found) or search.rounded(found)


def _hours(search: Search, state: Chosen, free: Chosen) -> Chosen | None:
    """With counts that are rounded together, and hours of jobs that go with them: no fewer systems, and more where these are not enough, as far as they
    are `free`. None where there are none, or not in time."""
    rounded, search.tolerance = search.rounded(state), max(search.tolerance, FINER)
    most = np.where(counted(search.dec), free.most, rounded.most)
    again = search.look(rounded.least, most, state.found, state.found.value * (1 + ROUNDING))
    search.dec.say(
        "hours for whole counts: none, or not in time"
        if again is None
        else f"hours for whole counts: {search.dec.amount(again.found.value)}"
    )
    return None if again is None else Chosen(rounded.least, rounded.most, again.found)


def _settled(dec: Decomposition, chosen: Chosen, options: Options, left: Callable[[], float]) -> WholePlan | None:
    """A plan with these choices and counts or little more, with which every slot has an answer."""
    whole, found = dec.whole, chosen.found
    prices = dec.spread(found)
    certificate = dec.certify(prices)
    values = np.clip(carried(found.blocks.structure, whole, found.point().structure), chosen.least, chosen.most)
    fleet_options, places = found.blocks.linked.fleet_options, found.blocks.places
    kept = _near(
        dec,
        values,
        certificate,
        np.flatnonzero(np.append(chosen.most, 1.0)[whole.columns["open"]][dec.data.option_site] > 0),
        places,
    )
    level = dec.level(np.union1d(kept, fleet_options), places)
    part = level.master.structure
    point = Point(carried(whole, part, values), found.point().running)
    bounds = (
        np.maximum(carried(whole, part, chosen.least), 0.0),
        np.minimum(carried(whole, part, chosen.most), part.most),
    )
    plan = Counts(dec, level, *bounds, options.gap, options.seed, left, ADDING).run(point, prices, certificate)
    if plan is not None:
        dec.progress.report(plan.value)
    return plan


def _near(dec: Decomposition, values: Floats, certificate: Bound, fleet_options: Ints, places: Ints) -> Ints:
    """The fleet options that are held, those that jobs use, and of the others as many again, which lack least to be worth it."""
    n, option = dec.whole.columns["n"], dec.data.holding_option
    kept = np.zeros(len(dec.data.option_site), dtype=bool)
    kept[option[np.append(values, 0.0)[n] > HELD]] = True
    kept[dec.view.use_option[np.isin(dec.view.use_point, places)]] = True
    lacks = np.full(len(kept), np.inf)
    np.minimum.at(
        lacks, option, np.append(certificate.entering, np.inf)[n] / np.maximum(dec.option_cost[option], WHOLE)
    )
    others = fleet_options[~kept[fleet_options]]
    more = others[np.argsort(lacks[others], kind="stable")][: max(int(kept.sum()), MORE)]
    return np.union1d(np.flatnonzero(kept), more)
