"""The lines and spread blocks of the joint program against enumeration on small random problems: every whole number is tried, and
what remains is a linear program written here straight from the definition, sharing no code with `solvers`."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers.backends import Options
from solvers.data import Limit, LineData, Objective, PlanData, SpreadData
from solvers.joint import solve

SMALL = dict(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
TOLERANCE = 1e-6
MOST = 500  # plans in all


# --- random problems -----------------------------------------------------------------------------------------------


def problems(**asked):
    return st.integers(0, 2**32 - 1).map(lambda seed: problem(np.random.default_rng(seed), **asked))


def problem(rng, lines=True, spread=None, objectives=("cost", "cost", "carbon_kg", "throughput")):
    """One or two workloads from one or two origins at up to three sites; no jobs, which have nothing to do with lines."""
    whole = lambda low, high: int(rng.integers(low, high, endpoint=True))
    chance = lambda share=0.5: bool(rng.random() < share)
    table = lambda *shape, low=0, high=5: rng.integers(low, high, shape, endpoint=True).astype(float)
    sites, slots, origins = whole(2, 3), whole(1, 2), whole(1, 2)
    workloads = 1 if sites == 3 or chance(0.7) else 2
    window = np.arange(slots) if chance(0.4) else np.zeros(slots, dtype=int)
    windows = int(window.max()) + 1
    use_spread = chance(0.5) if spread is None else spread
    arcs, uses, sizes = [], [], []
    made, channel = [], lambda line, side: 2 * line + side
    usable = []

    def line(capacity, upper, ready):
        made.append((capacity, upper))
        usable.append([v >= ready for v in range(windows)])
        return len(made) - 1

    for w, o, r in itertools.product(range(workloads), range(origins), range(sites)):
        if lines and (o, r) != (0, 0) and len(made) < 3 and chance(0.8):
            for _ in range(1 if chance(0.7) else 2):
                l = line(float(whole(2, 9)) if chance(0.8) else np.inf, float(2 if chance(0.3) else 1), whole(0, 1) if chance(0.2) else 0)
                uses += [(len(arcs), channel(l, 0)), (len(arcs), channel(l, 1))]
                sizes += [float(whole(0, 3)), float(whole(0, 3))]
                arcs.append((w, o, r, w * sites + r))
        elif chance(0.9):
            arcs.append((w, o, r, w * sites + r))
    A, P = len(arcs), workloads * sites
    arc = np.array(arcs, dtype=int).reshape(-1, 4)
    demand = table(workloads, origins, slots, high=4)
    served = {(a[0], a[1]) for a in arcs}
    demand *= np.array([[(w, o) in served for o in range(origins)] for w in range(workloads)], dtype=bool)[:, :, None]
    objective = str(rng.choice(objectives))
    block = None
    if lines:
        block = line_block(rng, workloads, sites, windows, window, made, usable, uses, sizes)
    zones = None
    if use_spread:
        zone = np.arange(sites) if chance(0.7) else np.array([0, 1, 1][:sites])
        zones = SpreadData(
            site_zone=zone, largest_share=np.where([chance() for _ in range(workloads)], rng.choice([0.5, 0.6, 0.8], workloads), 1.0),
            zones=table(workloads, low=1, high=2).astype(int), least_share=rng.choice([0.1, 0.3], workloads),
            survives=np.array([chance(0.4) for _ in range(workloads)]), tried_slots=np.array([int(demand.sum(axis=(0, 1)).argmax())]))
    return PlanData(
        slot_window=window, slot_hours_s=table(slots, low=1, high=3), site_power_limit_w=np.where([chance(0.3) for _ in range(sites)], 6.0, np.inf),
        site_fixed={"cost": table(sites, high=4) if chance(0.3) else np.zeros(sites)},
        lot_site=np.arange(sites), lot_group=np.arange(sites), lot_fabric=np.full(sites, -1),
        holding_lot=np.arange(sites), holding_window=np.full(sites, -1), holding_upper=np.minimum(table(sites, low=1, high=4), 2),
        holding_cost={"cost": table(sites, low=1, high=9), "carbon_kg": table(sites)}, holding_power_w=table(sites, high=2),
        point_pool=np.arange(P), point_job=np.full(P, -1), point_uses=np.array([(p, p % sites) for p in range(P)]),
        point_uses_systems=table(P, low=1, high=2), point_capacity=table(P, low=3, high=6), point_power_w=table(P, high=2),
        point_cost={"cost": table(P, slots, high=2), "carbon_kg": table(P, slots, high=2)},
        arc_workload=arc[:, 0], arc_origin=arc[:, 1], arc_site=arc[:, 2], arc_pool=arc[:, 3], arc_cost={"cost": table(A, slots, high=2)},
        demand=demand, lines=block, spread=zones,
        limits=(Limit("limits.budget", "cost", float(whole(20, 60))),) if chance(0.3) or objective == "throughput" else (),
        objective=Objective("throughput", -1) if objective == "throughput" else Objective(objective))  # fmt: skip


def line_block(rng, workloads, sites, windows, window, made, usable, uses, sizes):
    whole = lambda low, high: int(rng.integers(low, high, endpoint=True))
    chance = lambda share=0.5: bool(rng.random() < share)
    made, usable = list(made), list(usable)
    if len(made) < 5:  # one more for what is sent beside requests
        made.append((float(whole(2, 6)) if chance(0.7) else np.inf, float(2 if chance(0.3) else 1)))
        usable.append([True] * windows)
    L = len(made)
    usable = np.array(usable, dtype=bool).reshape(L, windows)
    ready = sorted({tuple(column) for column in usable.T}, key=sum)
    stage = np.array([ready.index(tuple(column)) for column in usable.T])
    there = {g: [l for l in range(L) if usable[l, v]] for v, g in enumerate(stage)}
    home = whole(-1, sites - 1)
    streams = [(w, r) for w in range(workloads) for r in range(sites) if r != home and chance(0.35)]
    ways, way_uses, rates = [], [], []
    for i, g in itertools.product(range(len(streams)), sorted(there)):
        for l in there[g]:
            if chance(0.6):
                way_uses.append((len(ways), 2 * l + whole(0, 1)))
                ways.append((i, g))
                rates.append(float(whole(0, 2)))
    needs = np.array([[r != home and chance(0.5) for r in range(sites)] for _ in range(workloads)], dtype=bool)
    hops, sends = [], []
    for w, a, b in itertools.product(range(workloads), range(-1, sites), range(sites)):
        if a not in (b, home) and b != home and chance(0.5 if a < 0 else 0.8):
            hops.append((w, a, b))
            sends += [(len(hops) - 1, g, 2 * l + whole(0, 1)) for g in sorted(there) for l in there[g] if chance(0.5)]
    pairs = lambda rows, width: np.array(rows, dtype=int).reshape(-1, width)
    hop, send, way, stream = pairs(hops, 3), pairs(sends, 3), pairs(ways, 2), pairs(streams, 2)
    money = lambda size: {"cost": rng.integers(0, 3, size, endpoint=True).astype(float)}
    return LineData(
        line_capacity=np.array([c for c, _ in made]), line_upper=np.array([u for _, u in made]), line_usable=usable,
        line_cost={"cost": rng.integers(1, 5, L, endpoint=True).astype(float)}, channel_line=np.repeat(np.arange(L), 2), window_stage=stage,
        arc_uses=pairs(uses, 2), arc_uses_bytes=np.array(sizes), stream_workload=stream[:, 0], stream_site=stream[:, 1],
        way_stream=way[:, 0], way_stage=way[:, 1], way_cost=money(len(ways)), way_uses=pairs(way_uses, 2), way_uses_rate=np.array(rates),
        needs_weights=needs, hop_workload=hop[:, 0], hop_from=hop[:, 1], hop_to=hop[:, 2], send_hop=send[:, 0], send_stage=send[:, 1],
        send_channel=send[:, 2], send_rate=rng.integers(0, 2, len(sends), endpoint=True).astype(float), send_cost=money(len(sends)))  # fmt: skip


# --- enumeration ---------------------------------------------------------------------------------------------------


def placing(data):
    """(workload, site) pairs where it matters whether a workload is placed: where it sends something."""
    lines = data.lines
    return [] if lines is None else sorted({(int(w), int(r)) for w, r in zip(lines.stream_workload, lines.stream_site, strict=True)}
                                           | {(int(w), int(r)) for w, r in np.argwhere(lines.needs_weights)})  # fmt: skip


def counted_lines(data):
    return [] if data.lines is None else [l for l, c in enumerate(data.lines.line_capacity) if np.isfinite(c)]


def zone_choices(data):
    """Per workload, the sets of zones that count."""
    if data.spread is None:
        return [()]
    zones = sorted(set(data.spread.site_zone.tolist()))
    return list(itertools.product(*[
        [some for size in range(k, len(zones) + 1) for some in itertools.combinations(zones, size)] if k > 1 else [()] for k in data.spread.zones
    ]))  # fmt: skip


def plans_in_all(data):
    units = np.prod([data.lines.line_upper[l] + 1 for l in counted_lines(data)], initial=1.0)
    return np.prod(data.holding_upper + 1) * 2 ** len(placing(data)) * units * len(zone_choices(data))


def enumerate_best(data):
    """The best value over all whole plans, None where there is none."""
    target, maximised = data.objective.functional, data.objective.maximises
    pairs, counted = placing(data), counted_lines(data)
    plans = []
    for n in itertools.product(*[range(int(u) + 1) for u in data.holding_upper]):
        for units in itertools.product(*[range(int(data.lines.line_upper[l]) + 1) for l in counted]):
            for here in itertools.product((False, True), repeat=len(pairs)):
                for zones in zone_choices(data):
                    fixed = {name: 0.0 for name in (*data.functionals(), target)}
                    for name, values in data.holding_cost.items():
                        fixed[name] += float(values @ n)
                    stands = {r for r in range(len(n)) if n[r]} | {r for (_, r), there in zip(pairs, here, strict=True) if there}
                    fixed["cost"] += sum(data.site_fixed["cost"][r] for r in stands)
                    fixed["cost"] += sum(data.lines.line_cost["cost"][l] * u for l, u in zip(counted, units, strict=True))
                    if all(fixed[limit.functional] <= limit.upper + 1e-9 for limit in data.limits):
                        plans.append((fixed[target], len(plans), n, dict(zip(counted, units, strict=True)), dict(zip(pairs, here, strict=True)), zones, fixed))
    best, programs = None, {}
    for least, _, n, units, here, zones, fixed in sorted(plans, key=lambda plan: plan[:2]):
        if not maximised and best is not None and least >= best:
            break
        key = tuple(here.values()), zones
        if key not in programs:
            programs[key] = rest(data, here, zones)
        value = programs[key](n, units, fixed)
        if value is not None and (best is None or (value > best if maximised else value < best)):
            best = value
    return best


def rest(data, here, zones):
    """The linear program that is left, as a function of the numbers of systems and units; weights by the cuts that they must cross."""
    T, A, P, R = data.slots, len(data.arc_pool), len(data.point_pool), data.sites
    lines, spread, W = data.lines, data.spread, data.demand.shape[0]
    held = lambda w, r: here.get((w, r), True)
    columns = [("f", a, t) for a in range(A) for t in range(T)] + [("x", p, t) for p in range(P) for t in range(T)] + [("factor",)]
    if lines is not None:
        columns += [("way", x) for x in range(len(lines.way_stream))] + [("send", y) for y in range(len(lines.send_hop))]
    failing = [] if spread is None or not spread.survives.any() else [(z, int(t)) for z in sorted(set(spread.site_zone.tolist())) for t in set(spread.tried_slots.tolist())]
    columns += [("g", z, a, t) for z, t in failing for a in range(A)] + [("h", z, p, t) for z, t in failing for p in range(P)]
    at = {column: i for i, column in enumerate(columns)}
    upper_rows, upper_sides, equal_rows, equal_sides = [], [], [], []

    def row(entries, side, equal=False):
        entry = np.zeros(len(columns))
        for column, value in entries:
            entry[at[column]] += value
        (equal_rows if equal else upper_rows).append(entry)
        (equal_sides if equal else upper_sides).append(side if callable(side) else lambda n, units, fixed: side)

    top = np.full(len(columns), np.inf)
    site_of = lambda p: int(data.lot_site[data.point_uses[p, 1]])
    ready = lambda a, t: lines is None or all(lines.line_usable[lines.channel_line[c], data.slot_window[t]] for b, c in lines.arc_uses if b == a)
    for a, t in itertools.product(range(A), range(T)):
        if not (held(data.arc_workload[a], data.arc_site[a]) and ready(a, t)):
            top[at["f", a, t]] = 0
    grows = lambda w: data.objective.maximises

    def demand_rows(flow, w, t):
        for o in range(data.demand.shape[1]):
            mine = [(flow(a), 1.0) for a in range(A) if (data.arc_workload[a], data.arc_origin[a]) == (w, o)]
            asked = data.demand[w, o, t]
            row([*mine, (("factor",), -asked)], 0.0, True) if grows(w) else row(mine, asked, True)

    def fits(flow, run, t):
        """`flow` and `run` are columns, or None where nothing is."""
        for q in set(data.arc_pool.tolist()) | set(range(P)):
            row([(flow(a), 1.0) for a in range(A) if data.arc_pool[a] == q and flow(a)] + [(run(p), -data.point_capacity[p]) for p in range(P) if data.point_pool[p] == q and run(p)], 0.0)
        for r in range(R):
            there = [p for p in range(P) if site_of(p) == r and run(p)]
            row([(run(p), data.point_uses_systems[p]) for p in there], lambda n, units, fixed, r=r: n[r])
            if np.isfinite(data.site_power_limit_w[r]):
                row([(run(p), data.point_power_w[p]) for p in there], lambda n, units, fixed, r=r: data.site_power_limit_w[r] - n[r] * data.holding_power_w[r])
        if lines is None:
            return
        g = lines.window_stage[data.slot_window[t]]
        for c in range(len(lines.channel_line)):
            l = int(lines.channel_line[c])
            if np.isfinite(lines.line_capacity[l]):
                load = [(flow(a), size) for (a, k), size in zip(lines.arc_uses, lines.arc_uses_bytes, strict=True) if k == c and flow(a)]
                load += [(("way", int(x)), rate) for (x, k), rate in zip(lines.way_uses, lines.way_uses_rate, strict=True) if k == c and lines.way_stage[x] == g]
                load += [(("send", y), lines.send_rate[y]) for y in range(len(lines.send_hop)) if lines.send_channel[y] == c and lines.send_stage[y] == g]
                row(load, lambda n, units, fixed, l=l: units[l] * lines.line_capacity[l])

    for t in range(T):
        for w in range(W):
            demand_rows(lambda a, t=t: ("f", a, t), w, t)
        fits(lambda a, t=t: ("f", a, t), lambda p, t=t: ("x", p, t), t)
    if lines is not None:
        for y, h in enumerate(lines.send_hop):
            w, a = lines.hop_workload[h], lines.hop_from[h]
            top[at["send", y]] = 1.0 if a < 0 or here.get((w, a), False) else 0.0
        for i, (w, r) in enumerate(zip(lines.stream_workload, lines.stream_site, strict=True)):
            for g in set(lines.window_stage.tolist()):
                row([(("way", x), 1.0) for x in range(len(lines.way_stream)) if (lines.way_stream[x], lines.way_stage[x]) == (i, g)], float(here[w, r]), True)
        for w in range(W):
            needing = [r for r in range(R) if lines.needs_weights[w, r] and here[w, r]]
            others = [r for r in range(R) if (w, r) in here and here[w, r] and r not in needing]
            for size, g in itertools.product(range(1, len(needing) + len(others) + 1), set(lines.window_stage.tolist())):
                for some in itertools.combinations(needing + others, size):
                    if set(some) & set(needing):
                        into = [(("send", y), -1.0) for y, h in enumerate(lines.send_hop) if lines.hop_workload[h] == w and lines.send_stage[y] == g
                                and lines.hop_to[h] in some and lines.hop_from[h] not in some]  # fmt: skip
                        row(into, -1.0)
    if spread is not None:
        zone = lambda a: int(spread.site_zone[data.arc_site[a]])
        for w, t in itertools.product(range(W), range(T)):
            asked = data.demand[w, :, t].sum()
            for z in set(spread.site_zone.tolist()) if asked else ():
                inside = [a for a in range(A) if data.arc_workload[a] == w and zone(a) == z]
                for sign, share in ((1.0, spread.largest_share[w]), *([(-1.0, spread.least_share[w])] if z in zones[w] else [])):
                    entries = [(("f", a, t), sign) for a in inside]
                    row([*entries, (("factor",), -sign * share * asked)], 0.0) if grows(w) else row(entries, sign * share * asked)
        for z, t in failing:
            flow = lambda a, z=z, t=t: None if zone(a) == z else ("g", z, a, t) if spread.survives[data.arc_workload[a]] else ("f", a, t)
            run = lambda p, z=z, t=t: None if spread.site_zone[site_of(p)] == z else ("h", z, p, t) if spread.survives[p // R] else ("x", p, t)
            for a in range(A):
                if zone(a) == z or not spread.survives[data.arc_workload[a]] or not (held(data.arc_workload[a], data.arc_site[a]) and ready(a, t)):
                    top[at["g", z, a, t]] = 0
            for w in np.flatnonzero(spread.survives):
                demand_rows(lambda a, z=z, t=t: ("g", z, a, t), w, t)
            fits(flow, run, t)

    def functional(name):
        line = [(("f", a, t), data.arc_cost[name][a, t]) for a in range(A) for t in range(T) if name in data.arc_cost]
        line += [(("x", p, t), data.point_cost[name][p, t]) for p in range(P) for t in range(T)]
        if lines is not None and name == "cost":
            line += [(("way", x), c) for x, c in enumerate(lines.way_cost["cost"])] + [(("send", y), c) for y, c in enumerate(lines.send_cost["cost"])]
        return line

    for limit in data.limits:
        row(functional(limit.functional), lambda n, units, fixed, limit=limit: limit.upper - fixed[limit.functional])
    cost = np.zeros(len(columns))
    if data.objective.maximises:
        cost[at["factor",]] = -1.0
    else:
        top[at["factor",]] = 0.0
        for column, value in functional(data.objective.functional):
            cost[at[column]] += value
    matrices, bounds = (np.array(upper_rows), np.array(equal_rows)), list(zip(np.zeros(len(columns)), top, strict=True))

    def best(n, units, fixed):
        sides = ([side(n, units, fixed) for side in some] for some in (upper_sides, equal_sides))
        answer = linprog(cost, matrices[0], next(sides), matrices[1], next(sides), bounds, method="highs")
        if answer.status in (3, 4):
            return np.inf
        if answer.status != 0:
            return None
        return -answer.fun if data.objective.maximises else answer.fun + fixed[data.objective.functional]

    return best


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def compare(data, solution):
    best = enumerate_best(data)
    if best is None:
        assert solution.status == "infeasible"
    elif best == np.inf:
        assert solution.status == "unbounded"
    else:
        assert solution.status == "optimal" and near(solution.value, best), (solution.status, solution.value, best)


# --- the tests -----------------------------------------------------------------------------------------------------


@settings(max_examples=260, **SMALL)
@given(problems())
def test_equals_enumeration(data):
    if plans_in_all(data) <= MOST:
        compare(data, solve(data, Options(gap=0.0)))


@settings(max_examples=80, **SMALL)
@given(problems(lines=False, spread=True))
def test_spread_alone_equals_enumeration(data):
    compare(data, solve(data, Options(gap=0.0)))


@settings(max_examples=100, **SMALL)
@given(problems())
def test_cbc_through_pulp_agrees(data):
    ours, other = (solve(data, Options(solver=name, gap=0.0)) for name in ("highs", "pulp"))
    assert ours.status == other.status
    assert ours.value is None or near(ours.value, other.value)


@settings(max_examples=100, **SMALL)
@given(problems(objectives=("cost",)), st.sampled_from(["units", "capacity", "share", "zones", "survives"]))
def test_relaxing_never_costs_more(data, what):
    lines, spread = data.lines, data.spread
    if what in ("units", "capacity"):
        field = "line_upper" if what == "units" else "line_capacity"
        relaxed = replace(data, lines=replace(lines, **{field: getattr(lines, field) * 2}))
    elif spread is None:
        return
    else:
        change = {"share": {"largest_share": np.minimum(spread.largest_share * 1.2, 1.0)}, "zones": {"zones": np.ones_like(spread.zones)},
                  "survives": {"survives": np.zeros_like(spread.survives)}}[what]  # fmt: skip
        relaxed = replace(data, spread=replace(spread, **change))
    before, after = solve(data, Options(gap=0.0)), solve(relaxed, Options(gap=0.0))
    if before.status == "optimal":
        assert after.status == "optimal" and after.value <= before.value + TOLERANCE * max(1.0, before.value)


@settings(max_examples=40, **SMALL)
@given(problems(lines=False, spread=False))
def test_a_block_that_asks_for_nothing_changes_nothing(data):
    """No lines in use and no wish for spread: the same plan as without the blocks."""
    windows, W, R = data.windows, data.demand.shape[0], data.sites
    empty = LineData(line_capacity=np.zeros(0), line_upper=np.zeros(0), line_usable=np.zeros((0, windows), dtype=bool), window_stage=np.zeros(windows, dtype=int))
    free = SpreadData(site_zone=np.arange(R), largest_share=np.ones(W), zones=np.ones(W, dtype=int), least_share=np.full(W, 0.1), survives=np.zeros(W, dtype=bool))
    without, within = solve(data, Options(gap=0.0)), solve(replace(data, lines=empty, spread=free), Options(gap=0.0))
    assert (without.status, without.value) == (within.status, within.value)
    assert all(np.array_equal(without.values[block], within.values[block]) for block in without.values)


@pytest.mark.parametrize("method", ["direct", "branch"])
@settings(max_examples=25, **SMALL)
@given(data=problems())
def test_both_searches_agree(data, method):
    ours, other = solve(data, Options(gap=0.0, method=method)), solve(data, Options(gap=0.0))
    assert ours.status == other.status and (ours.value is None or near(ours.value, other.value))
