"""Lines and spread against the reference that tries every whole-numbered plan (`tests/solvers/reference.py`)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.data import Limit, LineData, Objective, PlanData, SpreadData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES, agree, agree_with_each_other, best

EXACT = Options(gap=0.0)


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
                l = line(
                    float(whole(2, 9)) if chance(0.8) else np.inf,
                    float(2 if chance(0.3) else 1),
                    whole(0, 1) if chance(0.2) else 0,
                )
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
            site_zone=zone,
            largest_share=np.where([chance() for _ in range(workloads)], rng.choice([0.5, 0.6, 0.8], workloads), 1.0),
            zones=table(workloads, low=1, high=2).astype(int),
            least_share=rng.choice([0.1, 0.3], workloads),
            survives=np.array([chance(0.4) for _ in range(workloads)]),
            tried_slots=np.array([int(demand.sum(axis=(0, 1)).argmax())]),
        )
    return PlanData(
        slot_window=window, slot_hours_s=table(slots, low=1, high=3), site_power_limit_w=np.where([chance(0.3) for _ in range(sites)], 6.0, np.inf),
        site_fixed={"cost": table(sites, high=4) if chance(0.3) else np.zeros(sites)},
        option_site=np.arange(sites), option_group=np.arange(sites), option_fabric=np.full(sites, -1),
        holding_option=np.arange(sites), holding_window=np.full(sites, -1), holding_upper=np.minimum(table(sites, low=1, high=4), 2),
        holding_cost={"cost": table(sites, low=1, high=9), "carbon_kg": table(sites)}, holding_power_w=table(sites, high=2),
        point_pool=np.arange(P), point_job=np.full(P, -1), point_uses=np.array([(p, p % sites) for p in range(P)]),
        point_uses_systems=table(P, low=1, high=2), point_capacity=table(P, low=3, high=6), point_power_w=table(P, high=2),
        point_cost={"cost": table(P, slots, high=2), "carbon_kg": table(P, slots, high=2)},
        arc_workload=arc[:, 0], arc_origin=arc[:, 1], arc_site=arc[:, 2], arc_pool=arc[:, 3], arc_cost={"cost": table(A, slots, high=2)},
        demand=demand, lines=block, spread=zones,
        limits=(Limit("limits.budget", "cost", float(whole(20, 60))),) if chance(0.3) or objective == "throughput" else (),
        objective=Objective("throughput", -1) if objective == "throughput" else Objective(objective))  # fmt: skip


def line_block(rng, workloads, sites, windows, window, made, usable, uses, sizes, joined=0.5):
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
        if a not in (b, home) and b != home and chance(joined if a < 0 else 0.8):
            hops.append((w, a, b))
            sends += [
                (len(hops) - 1, g, 2 * l + whole(0, 1)) for g in sorted(there) for l in there[g] if chance(joined)
            ]
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


# --- the tests -----------------------------------------------------------------------------------------------------


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(problems())
def test_equals_enumeration(data):
    agree(solve(data, EXACT), best(data))


@settings(max_examples=few_of(40), **SMALL)
@given(problems(lines=False, spread=True))
def test_spread_alone_equals_enumeration(data):
    agree(solve(data, EXACT), best(data))


@settings(max_examples=few_of(40), **SMALL)
@given(problems())
def test_cbc_through_pulp_agrees(data):
    ours, other = (solve(data, Options(solver=name, gap=0.0)) for name in ("highs", "pulp"))
    agree_with_each_other(ours, other)


@settings(max_examples=few_of(40), **SMALL)
@given(problems(lines=False, spread=False))
def test_an_empty_block_changes_nothing(data):
    """No lines in use and no wish for spread: the same plan as without the blocks."""
    windows, W, R = data.windows, data.demand.shape[0], data.sites
    empty = LineData(
        line_capacity=np.zeros(0),
        line_upper=np.zeros(0),
        line_usable=np.zeros((0, windows), dtype=bool),
        window_stage=np.zeros(windows, dtype=int),
    )
    free = SpreadData(
        site_zone=np.arange(R),
        largest_share=np.ones(W),
        zones=np.ones(W, dtype=int),
        least_share=np.full(W, 0.1),
        survives=np.zeros(W, dtype=bool),
    )
    without, within = solve(data, EXACT), solve(replace(data, lines=empty, spread=free), EXACT)
    assert (without.status, without.value) == (within.status, within.value)
    assert all(np.array_equal(without.values[block], within.values[block]) for block in without.values)


@pytest.mark.parametrize("method", ["direct", "branch"])
@settings(max_examples=few_of(25), **SMALL)
@given(data=problems())
def test_both_searches_agree(data, method):
    ours, other = solve(data, Options(gap=0.0, method=method)), solve(data, EXACT)
    agree_with_each_other(ours, other)
