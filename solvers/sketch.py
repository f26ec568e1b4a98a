"""A plan and a bound for a program too large to be solved in one piece, each from the program on merged slots.

    bound     the linear program on merged slots, solved from within; its prices, spread over the slots that were merged, give a
              bound on the full problem over all of its columns (certificate.py)
    choices   sites, designs, hosts and places of jobs: the same merged slots with whole numbers, over what the linear answer holds
    repair    every slot by itself; where something is missing, the system that its price pays for best is added, one after the other,
              then those go that nothing misses
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from solvers import backends
from solvers.certificate import Prices, bound
from solvers.coarse import groupings, merged, restricted
from solvers.data import Floats, Ints, PlanData
from solvers.decomposition import ENOUGH, Decomposition
from solvers.hourwise import Structure
from solvers.master import Point
from solvers.outcome import Options
from solvers.program import Program
from solvers.slot_programs import SlotAnswer
from solvers.warm import interior
from solvers.whole import WholePlan

HELD, TAKEN = 0.05, 0.005  # systems, and share of a job, from which on the linear answer holds a lot and a place
ADDITIONS = 400  # systems added in the repair, at most
SHARE = 0.5  # of the time left, that the search for choices may take
ROUGH = 1e-2  # gap at which it ends


@dataclass(slots=True)
class Sketch:
    """`proven` holds for the full problem."""

    proven: float = -np.inf
    plan: WholePlan | None = None


def sketch(dec: Decomposition, options: Options, build: Callable[[PlanData], Program], left: Callable[[], float]) -> Sketch:
    """In the numbers of the decomposition, whose slots and structure are used."""
    data, found, linear = dec.data, Sketch(), None
    *coarse, fine = groupings(dec.view)
    coarse = coarse or [fine]
    for group in coarse:
        answer = _bounded(dec, merged(data, group), group, build, found, left())
        linear = linear or answer
        if left() <= 0.6 * options.time_limit_s:
            break
    if linear is None:
        return found
    held, y = linear
    lots = np.zeros(len(data.lot_site), dtype=bool)
    lots[data.holding_lot[held > HELD]] = True
    jobs = data.point_job >= 0
    first = restricted(merged(data, coarse[0]), lots, ~jobs | (y > TAKEN))
    choices = _whole(first, options, build, SHARE * left(), dec.say)
    if choices is None:
        return found
    places = np.flatnonzero(choices["y"] > 0.5)
    opened = (choices["open"] > 0.5) | (data.site_fixed.get(dec.functional, np.zeros(data.sites)) <= 0)
    # where the lots of the linear answer do not do: all lots of the sites that are open, then of all sites
    for more in (lots, lots | opened[data.lot_site], np.ones_like(lots)):
        found.plan = _repaired(dec, choices, coarse[0], np.flatnonzero(more), places, left)
        if found.plan is not None:
            break
    return found


def _bounded(dec: Decomposition, coarse: PlanData, group: Ints, build: Callable[[PlanData], Program], found: Sketch, seconds: float) -> tuple[Floats, Floats] | None:
    """(systems held [U], shares of places [P]) of the linear program on merged slots; its bound is kept."""
    program = build(coarse)
    arrays = program.arrays()
    answer = interior(arrays.matrix, arrays.row_lower, arrays.row_upper, arrays.lower, arrays.upper, program.functional(dec.functional), seconds)
    if answer is None:
        return None
    x, duals = answer
    by = program.by_block(duals)
    slots, origins = coarse.slots, coarse.demand.shape[1]
    alpha, sigma, beta, delta = (np.zeros((size, slots)) for size in (len(coarse.lot_site), coarse.sites, coarse.pools, len(dec.view.demand)))
    for block, prices in (("installed", alpha), ("power", sigma), ("capacity", beta)):
        index, values = by.get(block, (np.zeros((0, 2), dtype=np.int64), np.zeros(0)))
        prices[index[:, 0], index[:, 1]] = -np.minimum(values, 0.0)
    index, values = by.get("balance", (np.zeros((0, 3), dtype=np.int64), np.zeros(0)))
    delta[index[:, 0] * origins + index[:, 1], index[:, 2]] = values
    known = {(block, tuple(key)): value for block, (index, values) in by.items() for key, value in zip(index.tolist(), values.tolist(), strict=True)}
    rows = np.array([known.get(key, 0.0) for key in dec.whole.keys])
    share = dec.view.seconds / np.bincount(group, weights=dec.view.seconds)[group]
    spread = Prices(*(prices[:, group] * share for prices in (alpha, sigma, beta, delta)), rows)
    found.proven = max(found.proven, bound(dec.view, dec.whole, dec.power_limit, spread).value)
    dec.say(f"{slots} merged slots: {program.row_count:,} x {program.column_count:,}, linear {float(program.functional(dec.functional) @ x):.6g}, proven {found.proven:.6g}")
    held, y = program.columns["n"], program.columns["y"]
    return np.where(held >= 0, x[held], 0.0), np.where(y >= 0, x[y], 0.0)


def _whole(data: PlanData, options: Options, build: Callable[[PlanData], Program], seconds: float, say: Callable[[str], None]) -> dict[str, Floats] | None:
    program = build(data)
    asked = replace(options, method="direct", time_limit_s=max(seconds, 1.0), gap=max(options.gap, ROUGH), progress=None)
    raw = backends.solve(program, program.functional(data.objective.functional), "min", asked, polished=False)
    say(f"choices: {program.row_count:,} x {program.column_count:,}, {raw.status} {raw.objective or np.nan:.6g} in {raw.seconds:.1f} s")
    return None if raw.x is None else dict(program.values(raw.x))


def _repaired(dec: Decomposition, counts: dict[str, Floats], group: Ints, lots: Ints, places: Ints, left: Callable[[], float]) -> WholePlan | None:
    """The counts on all slots, with systems added until nothing is missing; None where that cannot be had."""
    data = dec.data
    level = dec.level(np.arange(data.slots), lots, places)
    master, columns = level.master, level.master.structure.columns
    structure = np.zeros(master.structure.size)
    for block, index in columns.items():
        there = index >= 0
        if block in counts and counts[block].shape == index.shape:
            structure[index[there]] = counts[block][there]
    structure = np.where(master.structure.integer, np.round(structure), structure)
    n = columns["n"]
    gates = {int(u): _gates(data, columns, int(data.holding_lot[u])) for u in np.flatnonzero(n >= 0)}
    for u, columns_of_gates in gates.items():  # the merged program had no column for a choice that only one lot was left for
        if structure[n[u]] > 0.5:
            structure[columns_of_gates] = 1.0
    if not _holds(master.structure, structure):
        dec.say("choices that do not hold on all slots")
        return None
    for p in places:
        pattern = _pattern(dec, int(p), counts["v"][p][group])
        if pattern is None:
            dec.say("a job that would not be done on all slots")
            return None
        master.add_pattern(int(p), pattern)
    point = Point(structure, np.ones(len(places)))
    cost = np.zeros(len(data.lot_site))
    held = np.flatnonzero(n >= 0)
    cost[data.holding_lot[held]] = master.structure.cost[n[held]]
    one_more = {int(u): np.eye(1, master.structure.size, n[u])[0] for u in held}
    for number in range(ADDITIONS):
        answer = level.programs.answer(*master.given(point))
        missing = level.programs.missing()[0]
        if missing <= ENOUGH:
            break
        worth = _worth(dec, lots, answer)
        room = [u for u in held if _holds(master.structure, _with_one(point.structure, one_more[u], gates[u]))]
        if not room or left() <= 0:
            dec.say(f"repair: {missing:.3g} missing and no room for more")
            return None
        best = max(room, key=lambda u: worth[u] / max(cost[data.holding_lot[u]], 1e-12))
        if worth[best] <= 0:
            dec.say(f"repair: {missing:.3g} missing, and no system would help")
            return None
        point = Point(_with_one(point.structure, one_more[best], gates[best]), point.patterns)
        if number % 20 == 0:
            dec.say(f"repair: {missing:.3g} missing")
    else:
        return None
    dec.say(f"repaired: {master.linear_cost(point) + float(answer.value.sum()):.6g} with {number} systems added")
    needed: set[int] = set()
    while left() > 0:  # the dearest for what its price says it saves goes first
        worth = _worth(dec, lots, answer)
        spare = [u for u in held if u not in needed and point.structure[n[u]] > 0.5]
        if not spare:
            break
        least = max(spare, key=lambda u: cost[data.holding_lot[u]] - worth[u])
        fewer = Point(point.structure - one_more[least], point.patterns)
        if not _holds(master.structure, fewer.structure):
            needed.add(least)
            continue
        tried = level.programs.answer(*master.given(fewer))
        if level.programs.missing()[0] <= ENOUGH and master.linear_cost(fewer) + tried.value.sum() < master.linear_cost(point) + answer.value.sum():
            point, answer = fewer, tried
        else:
            needed.add(least)
    value = master.linear_cost(point) + float(answer.value.sum())
    dec.say(f"trimmed: {value:.6g}")
    return WholePlan(level, point, value)


def _pattern(dec: Decomposition, point: int, share: Floats) -> Floats | None:
    """The share of each slot in which a job runs, just where it may and just until it is done; None where it cannot be."""
    view, job = dec.view, dec.data.point_job[point]
    most = view.reachable[job]
    pattern, wanted = np.clip(share, 0.0, most), dec.data.job_work[job] / dec.data.point_capacity[point]
    done, free = float(pattern @ view.seconds), float((most - pattern) @ view.seconds)
    if done >= wanted:
        return pattern * (wanted / done)
    return None if done + free < wanted * (1 - 1e-9) else pattern + (most - pattern) * min((wanted - done) / max(free, 1e-300), 1.0)


def _gates(data: PlanData, columns: Mapping[str, Ints], lot: int) -> Ints:
    """The columns that must be 1 where a lot holds anything: its site's opening and its design."""
    found = np.array([columns["open"][data.lot_site[lot]], columns["z"][data.lot_group[lot], data.lot_fabric[lot]] if data.lot_fabric[lot] >= 0 else -1])
    return found[found >= 0]


def _with_one(structure: Floats, one: Floats, gates: Ints) -> Floats:
    more = structure + one
    more[gates] = 1.0
    return more


def _worth(dec: Decomposition, lots: Ints, answer: SlotAnswer) -> Floats:
    """[U]: what one system more would save in the slots, less what its idle power takes of the site's."""
    data, alpha = dec.data, np.zeros(len(dec.data.lot_site))
    alpha[lots] = answer.alpha.sum(axis=0)
    return alpha[data.holding_lot] - data.holding_power_w * answer.sigma.sum(axis=0)[data.lot_site[data.holding_lot]]


def _holds(structure: Structure, values: Floats) -> bool:
    """Whether everything decided once keeps its rows and bounds."""
    sides = structure.matrix @ values
    return bool((values <= structure.most + 1e-9).all() and (sides <= structure.row_upper + 1e-9).all() and (sides >= structure.row_lower - 1e-9).all())
