"""Every block of the joint program at once against the reference that tries every whole-numbered plan (`tests/solvers/reference.py`).

Fleet, fabrics, routing, hosting with its tree, lines, weights, spread, jobs and their interruptions, storage, power, electricity,
deferrable requests, limits and supply are all there in every problem. The runs here take part of the problems; for all of them set FLOPWATT_ALL_CASES=1.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.block_data.electricity import Chronology, MeterData
from solvers.model.data import Limit, Objective, PlanData, SpreadData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.model.test_lines import line_block
from tests.solvers.reference import SMALL, TIMES, TOLERANCE, agree, agree_with_each_other, best

EXACT = Options(gap=0.0)
OBJECTIVES = ("cost", "cost", "cost", "carbon_kg", "throughput")


def problems(objectives=OBJECTIVES):
    return st.integers(0, 2**32 - 1).map(lambda seed: problem(np.random.default_rng(seed), objectives))


def problem(rng, objectives=OBJECTIVES, apis=0, slots=(2, 3)):
    """Two or three sites, the first with two designs of fabric; one or two workloads, one job, one or two windows; so many slots.

    With `apis` 1 the last site is an API: it takes no weights, no streams and no power, and nothing is paid to hold its systems.
    """
    whole = lambda low, high: int(rng.integers(low, high, endpoint=True))
    chance = lambda share=0.5: bool(rng.random() < share)
    table = lambda *shape, low=0, high=5: rng.integers(low, high, shape, endpoint=True).astype(float)
    R, T = whole(2, 3), whole(*slots)
    O, W = whole(1, 2), 1 if R == 3 or chance(0.6) else 2
    window = np.sort(rng.integers(0, 2, T)) if chance() else np.zeros(T, dtype=int)
    window -= window.min()
    V = int(window.max()) + 1

    # fleet options: two designs at site 0, one way of obtaining at the others
    option_site = np.array([0, 0, *range(1, R)])
    by_window = V > 1 and chance(0.3)
    holdings = [
        (0, -1),
        (1, -1),
        *((k, w) for k in range(2, R + 1) for w in (range(V) if by_window and k == 2 else [-1])),
    ]
    U = len(holdings)
    holding_option, holding_window = np.array(holdings).T
    last = np.where((holding_window >= 0) & chance(0.5), V - 1, holding_window)

    # points: each pool = (workload, site) has one or two, the job one or two
    point_pool, point_job, uses = [], [], []
    for w, r in itertools.product(range(W), range(R)):
        for option in np.flatnonzero(option_site == r).tolist() if r == 0 else [r + 1] * whole(1, 2):
            uses.append((len(point_pool), option))
            point_pool.append(w * R + r)
            point_job.append(-1)
    for _ in range(whole(1, 2)):
        uses.append((len(point_pool), whole(0, R)))
        point_pool.append(-1)
        point_job.append(0)
    P = len(point_pool)

    arcs, made, usable, arc_uses, sizes = [], [], [], [], []
    for w, o, r in itertools.product(range(W), range(O), range(R)):
        if (o, r) != (0, 0) and len(made) < 2 and chance(0.7):
            arc_uses += [(len(arcs), 2 * len(made)), (len(arcs), 2 * len(made) + 1)]
            sizes += [float(whole(0, 3)), float(whole(1, 3))]
            made.append((float(whole(3, 9)), float(whole(1, 2))))
            usable.append([v >= (V > 1 and chance(0.2)) for v in range(V)])
            arcs.append((w, o, r, w * R + r))
            if chance(0.3):
                arcs.append((w, o, r, w * R + r))
        elif chance(0.9):
            arcs.append((w, o, r, w * R + r))
    A, arc = len(arcs), np.array(arcs, dtype=int).reshape(-1, 4)
    demand = table(W, O, T, low=0, high=3)
    served = {(a[0], a[1]) for a in arcs}
    demand *= np.array([[(w, o) in served for o in range(O)] for w in range(W)], dtype=bool)[:, :, None]

    objective = str(rng.choice(objectives))
    edges = whole(1, 2)
    spread = SpreadData(
        site_zone=np.arange(R) if chance(0.7) else np.array([0, 1, 1][:R]), largest_share=np.where([chance(0.6) for _ in range(W)], rng.choice([0.5, 0.7, 0.8], W), 1.0),
        zones=table(W, low=1, high=2).astype(int), least_share=rng.choice([0.1, 0.3], W),
        survives=np.array([chance(0.25) for _ in range(W)]), tried_slots=np.array([int(demand.sum(axis=(0, 1)).argmax())]))  # fmt: skip
    data = PlanData(
        slot_window=window, slot_hours_s=table(T, low=1, high=3), site_power_limit_w=np.where([chance(0.4) for _ in range(R)], table(R, low=7, high=14), np.inf),
        site_fixed={"cost": table(R, high=4)}, option_site=option_site, option_group=option_site, option_fabric=np.array([0, 1, *[-1] * (R - 1)]),
        holding_option=holding_option, holding_window=holding_window, holding_last=last, holding_upper=table(U, low=1, high=2),
        holding_cost={"cost": table(U, low=1, high=9), "carbon_kg": table(U)}, holding_power_w=table(U, high=2),
        supply_limit=table(1, low=2, high=5), supply_member=np.array([(0, u) for u in range(U) if chance(0.7)], dtype=int).reshape(-1, 2),
        point_pool=np.array(point_pool), point_job=np.array(point_job), point_uses=np.array(uses), point_uses_systems=table(P, low=1, high=2) / 2,
        point_capacity=table(P, low=3, high=6), point_power_w=table(P, high=3), point_cost={"cost": table(P, T, high=2), "carbon_kg": table(P, T, high=2)},
        arc_workload=arc[:, 0], arc_origin=arc[:, 1], arc_site=arc[:, 2], arc_pool=arc[:, 3], arc_cost={"cost": table(A, T, high=2)}, demand=demand,
        host_cost={"cost": table(W, R, high=3)}, edge_workload=np.zeros(edges, dtype=int), edge_cost={"cost": table(edges, high=3)},
        tree_path=np.array([(0, r, e) for e in range(edges) for r in range(R) if chance()], dtype=int).reshape(-1, 3),
        job_work=table(1, low=1, high=5), job_window_mask=(table(1, T, high=3) > 0) | (np.arange(T) == whole(0, T - 1)),
        lines=beside(line_block(rng, W, R - apis, V, window, made, usable, arc_uses, sizes, joined=0.8), apis), spread=spread,
        meters=meter_block(rng, R - apis, T), wait_slots=rng.integers(0, 3, W), order=order(rng, T),
        limits=tuple(Limit(f"limits.{name}", name, float(whole(40, 150))) for name in ("cost", "carbon_kg") if objective == "throughput" or chance(0.4)),
        objective=Objective("throughput", whole(-1, W - 1)) if objective == "throughput" else Objective(objective))  # fmt: skip
    of_job = data.point_job >= 0
    restart, reads = of_job * table(P, high=2) * chance(0.6) / 4, of_job * table(P, high=4)
    if apis:
        data, reads = bought(data), reads * (data.point_site() < R - 1)
    return replace(
        data,
        point_restart_s=restart,
        point_storage=reads,
        site_storage=np.where([chance() for _ in range(R)], table(R, low=2, high=4), np.inf),
        site_racks=np.where([chance(0.4) for _ in range(R)], table(R, low=1, high=3), np.inf),
        holding_racks=rng.choice([0.0, 0.5, 1.0, 2.0], U),
    )


def bought(data):
    """The last site as an API."""
    last, here = data.sites - 1, data.option_site[data.holding_option] == data.sites - 1
    there = data.point_site() == last
    own = np.arange(data.sites) < last
    return replace(
        data,
        site_fixed={name: values * own for name, values in data.site_fixed.items()},
        site_power_limit_w=np.where(own, data.site_power_limit_w, np.inf),
        holding_cost={name: values * ~here for name, values in data.holding_cost.items()},
        holding_power_w=data.holding_power_w * ~here,
        point_power_w=data.point_power_w * ~there,
        host_cost={name: values * own for name, values in data.host_cost.items()},
        tree_path=data.tree_path[data.tree_path[:, 1] < last],
    )


def beside(lines, apis):
    """Lines between own sites, and APIs that need no weights."""
    return replace(lines, needs_weights=np.pad(lines.needs_weights, ((0, 0), (0, apis))))


def order(rng, slots):
    """One ring, or two."""
    following, cut = np.arange(1, slots + 1), int(rng.integers(1, slots, endpoint=True))
    following[cut - 1] = 0
    if cut < slots:
        following[slots - 1] = cut
    return Chronology(next=following, step_s=rng.integers(1, 2, slots, endpoint=True).astype(float))


def meter_block(rng, sites, slots):
    """A contract, a battery and a peak at one or two metered sites, prices of either sign."""
    chance = lambda share=0.5: bool(rng.random() < share)
    table = lambda *shape, low=0, high=5: rng.integers(low, high, shape, endpoint=True).astype(float)
    metered = np.sort(rng.permutation(sites)[: int(rng.integers(1, 2, endpoint=True))])
    M = len(metered)
    of = lambda: rng.integers(0, M, 1)
    upper_j, upper_w, upper_c = table(1, low=1, high=9), table(1, low=1, high=4), table(1, low=1, high=6)
    sized, owed = chance(0.3), chance(0.3)
    return MeterData(
        meter_site=metered, grid_upper_w=np.where([chance(0.5) for _ in range(M)], table(M, low=3, high=9), np.inf),
        grid_cost={"cost": table(M, slots, low=-3), "carbon_kg": table(M, slots)},
        peak_meter=of(), peak_slot=table(1, slots, high=1) > 0, peak_cost={"cost": table(1, low=1, high=4)},
        contract_meter=of(), contract_least_w=upper_c * owed, contract_upper_w=upper_c, contract_share=table(1, slots, high=4) / 4,
        contract_passes=np.array([chance(0.5)]), peak_grid=np.array([chance(0.7)]),
        contract_cost={"cost": table(1, high=3)}, taken_cost={"cost": table(1, slots, high=2), "carbon_kg": table(1, slots, high=1)},
        battery_meter=of(), battery_least_j=upper_j * sized, battery_upper_j=upper_j, battery_least_w=upper_w * sized, battery_upper_w=upper_w,
        battery_efficiency=table(1, low=2, high=4) / 4, battery_energy_cost={"cost": table(1, high=2) / 2}, battery_power_cost={"cost": table(1, high=2) / 2})  # fmt: skip


@settings(max_examples=few_of(45) * TIMES, **SMALL)
@given(problems())
def test_equals_enumeration(data):
    agree(solve(data, EXACT), best(data))


@settings(max_examples=few_of(20) * TIMES, **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_an_api_over_lines_equals_enumeration(seed):
    data = problem(np.random.default_rng(seed), apis=1)
    agree(solve(data, EXACT), best(data))


@settings(max_examples=few_of(45) * TIMES, **SMALL)
@given(problems())
def test_cbc_through_pulp_agrees(data):
    ours, other = (solve(data, Options(solver=name, gap=0.0)) for name in ("highs", "pulp"))
    if other.status == "limit" and ours.status in ("infeasible", "unbounded"):
        return  # CBC now and then ends without a proof; it may not contradict one
    agree_with_each_other(ours, other)


@settings(max_examples=few_of(20) * TIMES, **SMALL)
@given(problems())
def test_both_searches_agree(data):
    agree_with_each_other(*(solve(data, Options(gap=0.0, method=method)) for method in ("direct", "branch")))


def within(part, **changes):
    """The problem with some fields of a block changed, each by a function of its value."""
    return lambda data: replace(
        data,
        **{
            part: replace(
                getattr(data, part),
                **{name: change(getattr(getattr(data, part), name)) for name, change in changes.items()},
            )
        },
    )


RELAXED = {
    "power": lambda d: replace(d, site_power_limit_w=d.site_power_limit_w + 2),
    "supply": lambda d: replace(d, supply_limit=d.supply_limit + 1),
    "systems": lambda d: replace(d, holding_upper=d.holding_upper + 1),
    "functionals": lambda d: replace(d, limits=tuple(replace(limit, upper=limit.upper + 10) for limit in d.limits)),
    "time of the job": lambda d: replace(d, job_window_mask=np.ones_like(d.job_window_mask)),
    "design": lambda d: replace(d, option_fabric=np.full_like(d.option_fabric, -1)),
    "patience": lambda d: replace(d, wait_slots=d.wait_slots + 1),
    "units of a line": within("lines", line_upper=lambda units: units + 1),
    "capacity of a line": within("lines", line_capacity=lambda rate: 2 * rate),
    "readiness of a line": within("lines", line_usable=np.ones_like),
    "share of a zone": within("spread", largest_share=lambda share: np.minimum(1.25 * share, 1.0)),
    "zones": within("spread", zones=np.ones_like),
    "least share": within("spread", least_share=lambda share: share / 2),
    "survival": within("spread", survives=np.zeros_like),
    "connection": within("meters", grid_upper_w=lambda watts: watts + 2),
    "peak": within("meters", peak_slot=np.zeros_like),
    "contract": within("meters", contract_upper_w=lambda watts: watts + 1),
    "least contract": within("meters", contract_least_w=np.zeros_like),
    "way of a contract": within("meters", contract_passes=np.zeros_like),
    "purchases in a peak": within("meters", peak_grid=np.zeros_like),
    "output": within("meters", contract_share=lambda share: np.minimum(share + 0.25, 1.0)),
    "restart": lambda d: replace(d, point_restart_s=d.point_restart_s / 2),
    "storage": lambda d: replace(d, site_storage=d.site_storage + 1),
    "racks": lambda d: replace(d, site_racks=d.site_racks + 0.5),
    "battery": within("meters", battery_upper_j=lambda joules: joules + 1, battery_upper_w=lambda watts: watts + 1),
    "least battery": within("meters", battery_least_j=np.zeros_like, battery_least_w=np.zeros_like),
}


@pytest.mark.parametrize("limit", RELAXED)
@settings(max_examples=4 * TIMES, **SMALL)
@given(data=problems(objectives=("cost", "carbon_kg")))
def test_relaxing_a_limit_never_costs_more(data, limit):
    before = solve(data, EXACT)
    if before.status == "optimal":
        after = solve(RELAXED[limit](data), EXACT)
        assert after.status == "unbounded" or after.value <= before.value + TOLERANCE * max(1.0, abs(before.value))
