"""Electricity and requests that may wait, against enumeration: every whole-numbered plan is tried, and what remains is a
linear program written here from the definition, slot by slot, sharing no code with `solvers`."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers.backends import Options
from solvers.data import Limit, Objective, PlanData
from solvers.joint import solve
from solvers.meter_data import Chronology, MeterData

SMALL = dict(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
TOLERANCE = 1e-6


def problems(objectives=("cost", "carbon_kg", "throughput"), **changes):
    return st.integers(0, 2**32 - 1).map(lambda seed: problem(np.random.default_rng(seed), objectives, **changes))


def problem(rng, objectives, least_price=-3):
    whole = lambda low, high: int(rng.integers(low, high, endpoint=True))
    chance = lambda share=0.5: bool(rng.random() < share)
    table = lambda *shape, low=0, high=5: rng.integers(low, high, shape, endpoint=True).astype(float)
    R, T = whole(1, 2), whole(2, 5)
    pools = [r for r in range(R)]
    point_pool, point_job, uses = [], [], []
    for r in pools:
        for _ in range(whole(1, 2)):
            uses.append(r)
            point_pool.append(r)
            point_job.append(-1)
    jobs = whole(0, 1)
    for _ in range(whole(1, 2) if jobs else 0):
        uses.append(whole(0, R - 1))
        point_pool.append(-1)
        point_job.append(0)
    P, metered = len(uses), np.array([r for r in range(R) if chance(0.8)], dtype=int)
    M = len(metered)
    contract = np.array([whole(0, M - 1) for _ in range(whole(0, 2))] if M else [], dtype=int)
    battery = np.array([m for m in range(M) if chance(0.6)], dtype=int)
    peak = np.array([whole(0, M - 1) for _ in range(whole(0, 2))] if M else [], dtype=int)
    C, B, N = len(contract), len(battery), len(peak)
    following = np.arange(1, T + 1)
    cut = whole(1, T)  # one ring, or two
    following[cut - 1] = 0
    if cut < T:
        following[T - 1] = cut
    upper_j, upper_w, upper_c = table(B, high=9), table(B, high=4), table(C, high=6)
    given_size = np.array([chance(0.3) for _ in range(B)], dtype=bool)
    meters = MeterData(
        meter_site=metered, grid_upper_w=np.where([chance(0.3) for _ in range(M)], table(M, low=1, high=6), np.inf),
        grid_cost={"cost": table(M, T, low=least_price), "carbon_kg": table(M, T)},
        peak_meter=peak, peak_slot=table(N, T, high=1) > 0, peak_cost={"cost": table(N, high=4)},
        contract_meter=contract, contract_least_w=np.where([chance(0.3) for _ in range(C)], upper_c, 0.0), contract_upper_w=upper_c,
        contract_share=table(C, T, high=4) / 4, contract_cost={"cost": table(C, high=3)}, taken_cost={"cost": table(C, T, high=2), "carbon_kg": table(C, T, high=1)},
        battery_meter=battery, battery_least_j=np.where(given_size, upper_j, 0.0), battery_upper_j=upper_j,
        battery_least_w=np.where(given_size, upper_w, 0.0), battery_upper_w=upper_w, battery_efficiency=table(B, low=2, high=4) / 4,
        battery_energy_cost={"cost": table(B, high=2) / 2}, battery_power_cost={"cost": table(B, high=2) / 2},
    )  # fmt: skip
    objective = str(rng.choice(objectives))
    unmetered = np.array([r not in metered for r in range(R)])
    own_cost = lambda *shape: table(*shape, low=least_price, high=3)
    site_of = np.array(uses)
    return PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=table(T, low=1, high=3), site_power_limit_w=np.where([chance(0.3) for _ in range(R)], table(R, low=3, high=9), np.inf),
        lot_site=np.arange(R), lot_group=np.arange(R), lot_fabric=np.full(R, -1), holding_lot=np.arange(R), holding_window=np.full(R, -1),
        holding_upper=table(R, low=1, high=3), holding_cost={"cost": table(R, low=1), "carbon_kg": table(R)}, holding_power_w=table(R, high=2),
        point_pool=np.array(point_pool), point_job=np.array(point_job), point_uses=np.column_stack([np.arange(P), site_of]),
        point_uses_systems=table(P, low=1, high=2) / 2, point_capacity=table(P, low=2, high=5), point_power_w=table(P, high=3),
        point_cost={"cost": own_cost(P, T) * unmetered[site_of][:, None], "carbon_kg": table(P, T, high=2)},
        arc_workload=np.zeros(R, dtype=int), arc_origin=np.zeros(R, dtype=int), arc_site=np.arange(R), arc_pool=np.arange(R), arc_cost={"cost": table(R, T, high=1)},
        demand=table(1, 1, T, high=4), job_work=table(jobs, low=1, high=8), job_window_mask=table(jobs, T, high=4) > 0,
        meters=meters if M else None, wait_slots=np.array([whole(0, 2)]), order=Chronology(next=following, step_s=table(T, low=1, high=2)),
        limits=tuple(Limit(name, name, float(whole(15, 90))) for name in ("cost", "carbon_kg") if chance(0.3)),
        objective=Objective("throughput", -1) if objective == "throughput" else Objective(objective),
    )  # fmt: skip


def enumerate_best(data, held=None):
    """Best value over all whole-numbered plans; `held` = (functional, value) must be kept while cost is made least."""
    jobs = [[p for p in range(len(data.point_job)) if data.point_job[p] == j] for j in range(len(data.job_work))]
    best, maximised = None, data.objective.maximises and held is None
    for n in itertools.product(*[range(int(u) + 1) for u in data.holding_upper]):
        for chosen in itertools.product(*jobs):
            value = linear(data, np.array(n, dtype=float), chosen)
            if value is not None and (best is None or (value > best if maximised else value < best)):
                best = value
    return best


def linear(data, n, chosen):
    """The best value of the objective with the counts and the points of jobs given; None where there is none."""
    T, P, m = len(data.slot_window), len(data.point_pool), data.meters
    site = data.point_uses[:, 1]
    columns, bounds = {}, []

    def column(key, low=0.0, high=None):
        columns[key] = len(bounds)
        bounds.append((low, high))
        return columns[key]

    rows, sides, kinds = [], [], []

    def row(entries, kind, side):
        rows.append(entries)
        sides.append(side)
        kinds.append(kind)

    serving = [p for p in range(P) if data.point_pool[p] >= 0]
    for t in range(T):
        for r in range(len(data.lot_site)):
            column(("f", r, t))
        for p in serving:
            column(("run", p, t))
        for p in chosen:
            runs = data.job_window_mask[data.point_job[p], t] and n[site[p]] >= data.point_uses_systems[p]
            column(("run", p, t), 0.0, 1.0 if runs else 0.0)
        column(("q", t))
    column("factor", 0.0, None if data.objective.maximises else 0.0)
    running = [*serving, *chosen]
    wait, step, demand = int(data.wait_slots[0]), data.order.step_s, data.demand[0, 0]
    previous = {int(after): t for t, after in enumerate(data.order.next)}
    for t in range(T):
        arriving = demand[t] * step[t]
        entries = [(("f", r, t), step[t]) for r in range(len(data.lot_site))] + [(("q", t), 1.0), (("q", previous[t]), -1.0)]
        if data.objective.maximises:
            row([*entries, ("factor", -arriving)], "=", 0.0)
        else:
            row(entries, "=", arriving)
        patient, at = 0.0, t
        for _ in range(wait):
            patient += demand[at] * step[at]
            at = previous[at]
        row([(("q", t), 1.0)] + ([("factor", -patient)] if data.objective.maximises else []), "<", 0.0 if data.objective.maximises else patient)
        for r in range(len(data.lot_site)):  # what runs is what is needed
            row([(("f", r, t), -1.0)] + [(("run", p, t), data.point_capacity[p]) for p in serving if data.point_pool[p] == r], "=", 0.0)
            row([(("run", p, t), data.point_uses_systems[p]) for p in running if site[p] == r], "<", n[r])
            if np.isfinite(data.site_power_limit_w[r]):
                row([(("run", p, t), data.point_power_w[p]) for p in running if site[p] == r], "<", data.site_power_limit_w[r] - n[r] * data.holding_power_w[r])
    for p in chosen:
        row([(("run", p, t), data.slot_hours_s[t] * data.point_capacity[p]) for t in range(T)], "=", data.job_work[data.point_job[p]])
    if m is not None:
        for c in range(len(m.contract_meter)):
            column(("contract", c), m.contract_least_w[c], m.contract_upper_w[c])
        for b in range(len(m.battery_meter)):
            column(("energy", b), m.battery_least_j[b], m.battery_upper_j[b])
            column(("power", b), m.battery_least_w[b], m.battery_upper_w[b])
        for k in range(len(m.peak_meter)):
            column(("peak", k))
        for t in range(T):
            for i, r in enumerate(m.meter_site):
                high = m.grid_upper_w[i]
                column(("grid", i, t), 0.0, None if np.isinf(high) else high)
            for c in range(len(m.contract_meter)):
                column(("taken", c, t))
                row([(("taken", c, t), 1.0), (("contract", c), -m.contract_share[c, t])], "<", 0.0)
            for b in range(len(m.battery_meter)):
                for name in ("charge", "discharge", "stored"):
                    column((name, b, t))
        for t in range(T):
            for i, r in enumerate(m.meter_site):
                entries = [(("run", p, t), data.point_power_w[p]) for p in running if site[p] == r] + [(("grid", i, t), -1.0)]
                entries += [(("taken", c, t), -1.0) for c in range(len(m.contract_meter)) if m.contract_meter[c] == i]
                entries += [((name, b, t), s) for b in range(len(m.battery_meter)) if m.battery_meter[b] == i for name, s in (("charge", 1.0), ("discharge", -1.0))]
                row(entries, "=", -n[r] * data.holding_power_w[r])
            for b, eta in enumerate(m.battery_efficiency):
                row([(("charge", b, t), 1.0), (("discharge", b, t), 1.0), (("power", b), -1.0)], "<", 0.0)
                row([(("stored", b, t), 1.0), (("energy", b), -1.0)], "<", 0.0)
                after = int(data.order.next[t])
                row([(("stored", b, after), 1.0), (("stored", b, t), -1.0), (("charge", b, t), -step[t] * eta), (("discharge", b, t), step[t] / eta)], "=", 0.0)
            for k, i in enumerate(m.peak_meter):
                if m.peak_slot[k, t]:
                    row([(("grid", i, t), 1.0), (("peak", k), -1.0)], "<", 0.0)

    def functional(name):
        get = lambda part, *at: float(part[name][at]) if name in part else 0.0
        entries = [(("f", r, t), get(data.arc_cost, r, t)) for r in range(len(data.lot_site)) for t in range(T)]
        entries += [(("run", p, t), get(data.point_cost, p, t)) for p in running for t in range(T)]
        if m is not None:
            entries += [(("grid", i, t), get(m.grid_cost, i, t)) for i in range(len(m.meter_site)) for t in range(T)]
            entries += [(("peak", k), get(m.peak_cost, k)) for k in range(len(m.peak_meter))]
            entries += [(("contract", c), get(m.contract_cost, c)) for c in range(len(m.contract_meter))]
            entries += [(("taken", c, t), get(m.taken_cost, c, t)) for c in range(len(m.contract_meter)) for t in range(T)]
            entries += [((block, b), get(part, b)) for b in range(len(m.battery_meter)) for block, part in (("energy", m.battery_energy_cost), ("power", m.battery_power_cost))]
        return entries, float(n @ data.holding_cost[name])

    def vector(entries):
        line = np.zeros(len(bounds))
        for key, value in entries:
            line[columns[key]] += value
        return line

    for limit in data.limits:
        entries, constant = functional(limit.functional)
        row(entries, "<", limit.upper - constant)
    constant = 0.0
    if data.objective.maximises:
        cost = vector([("factor", -1.0)])
    else:
        entries, constant = functional(data.objective.functional)
        cost = vector(entries)
    dense = [vector(entries) for entries in rows]
    upper = [i for i, kind in enumerate(kinds) if kind == "<"]
    equal = [i for i, kind in enumerate(kinds) if kind == "="]
    pick = lambda numbers: (np.array([dense[i] for i in numbers]), [sides[i] for i in numbers])
    found = linprog(cost, *(pick(upper) if upper else (None, None)), *(pick(equal) if equal else (None, None)), bounds, method="highs")
    if found.status == 3:
        return np.inf if data.objective.maximises else -np.inf
    if found.status != 0:
        return None
    return -found.fun if data.objective.maximises else found.fun + constant


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


@settings(max_examples=500, **SMALL)
@given(problems())
def test_equals_enumeration(data):
    solution, best = solve(data, Options(gap=0.0)), enumerate_best(data)
    if best is None:
        assert solution.status == "infeasible"
    elif np.isinf(best):
        assert solution.status == "unbounded"
    else:
        assert solution.status == "optimal" and near(solution.value, best)


@settings(max_examples=60, **SMALL)
@given(problems())
def test_cbc_agrees(data):
    ours, other = (solve(data, Options(solver=name, gap=0.0)) for name in ("highs", "pulp"))
    if other.status == "limit" and ours.status == "infeasible":
        return  # CBC now and then ends without a proof; it may not contradict one
    assert ours.status == other.status
    assert ours.value is None or near(ours.value, other.value)


RELAXED = {
    "connection": lambda m: replace(m, grid_upper_w=m.grid_upper_w + 1),
    "contract": lambda m: replace(m, contract_upper_w=m.contract_upper_w + 1),
    "least": lambda m: replace(m, contract_least_w=m.contract_least_w * 0.5, battery_least_j=m.battery_least_j * 0.5, battery_least_w=m.battery_least_w * 0.5),
    "share": lambda m: replace(m, contract_share=np.minimum(m.contract_share + 0.25, 1.0)),
    "battery": lambda m: replace(m, battery_upper_j=m.battery_upper_j + 1, battery_upper_w=m.battery_upper_w + 1),
    "peak": lambda m: replace(m, peak_slot=np.zeros_like(m.peak_slot)),
}


@settings(max_examples=80, **SMALL)
@given(problems(objectives=("cost",)), st.sampled_from([*RELAXED, "wait"]))
def test_relaxing_never_costs_more(data, what):
    if what == "wait":
        loose = replace(data, wait_slots=data.wait_slots + 1)
    elif data.meters is None:
        return
    else:
        loose = replace(data, meters=RELAXED[what](data.meters))
    before, after = solve(data, Options(gap=0.0)), solve(loose, Options(gap=0.0))
    if before.status == "optimal":
        assert after.status in ("optimal", "unbounded")
        assert after.value is None or after.value <= before.value + TOLERANCE * max(1.0, abs(before.value))


# --- each constraint alone -----------------------------------------------------------------------------------------


def alone(price=(1.0, 4.0), power=1.0, demand=(1.0, 1.0), **meter):
    """One site, one system, one point of one watt per request: load is what is served."""
    T = len(price)
    order = Chronology(next=np.roll(np.arange(T), -1), step_s=np.ones(T))
    parts = {name: meter.pop(name) for name in ("wait_slots",) if name in meter}
    meters = MeterData(**({"meter_site": np.array([0]), "grid_upper_w": np.array([np.inf]), "grid_cost": {"cost": np.array([price]), "carbon_kg": np.ones((1, T))}} | meter))
    return PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=np.ones(T), site_power_limit_w=np.array([np.inf]),
        lot_site=np.zeros(1, dtype=int), lot_group=np.zeros(1, dtype=int), lot_fabric=np.array([-1]), holding_lot=np.zeros(1, dtype=int), holding_window=np.array([-1]),
        holding_upper=np.array([9.0]), holding_cost={"cost": np.zeros(1)}, holding_power_w=np.zeros(1), point_pool=np.zeros(1, dtype=int), point_job=np.array([-1]),
        point_uses=np.zeros((1, 2), dtype=int), point_uses_systems=np.ones(1), point_capacity=np.ones(1), point_power_w=np.array([power]), point_cost={"cost": np.zeros((1, T))},
        arc_workload=np.zeros(1, dtype=int), arc_origin=np.zeros(1, dtype=int), arc_site=np.zeros(1, dtype=int), arc_pool=np.zeros(1, dtype=int), arc_cost={"cost": np.zeros((1, T))},
        demand=np.array([[demand]], dtype=float), meters=meters, order=order, **parts,
    )  # fmt: skip


def battery(energy=1.0, power=9.0, eta=1.0, price=0.0):
    return dict(
        battery_meter=np.array([0]), battery_least_j=np.zeros(1), battery_upper_j=np.array([energy]), battery_least_w=np.zeros(1), battery_upper_w=np.array([power]),
        battery_efficiency=np.array([eta]), battery_energy_cost={"cost": np.array([price])}, battery_power_cost={"cost": np.zeros(1)},
    )  # fmt: skip


def contract(upper=1.0, share=(1.0, 1.0), price=0.0, least=0.0, taken=0.0):
    return dict(
        contract_meter=np.array([0]), contract_least_w=np.array([least]), contract_upper_w=np.array([upper]), contract_share=np.array([share]),
        contract_cost={"cost": np.array([price])}, taken_cost={"cost": np.full((1, len(share)), taken)},
    )  # fmt: skip


PEAK = dict(peak_meter=np.array([0]), peak_slot=np.array([[True, True]]), peak_cost={"cost": np.array([10.0])})

CASES = {  # the derivation of each value stands beside it
    "all from the grid": (alone(), 1 + 4),
    "a battery moves one unit to the cheap hour": (alone(**battery()), 1 + 1),
    "of half the size half of it": (alone(**battery(energy=0.5)), 1.5 + 2),
    "or of half the power": (alone(**battery(power=0.5)), 1.5 + 2),
    "with losses more is charged": (alone(**battery(energy=9, eta=0.5)), 1 + 4),  # 1 W out takes 4 W in: 4 > 4 - 0, equal
    "with small losses it pays": (alone(**battery(energy=9, eta=0.8)), 1 + 1 / 0.64),
    "its price counts": (alone(**battery(price=2.0)), 1 + 1 + 2),
    "a peak is paid for once": (alone(**PEAK), 1 + 4 + 10),
    "a peak keeps the battery small": (alone(**PEAK, **battery()), 1 + 4 + 10),  # moving x saves 3x and adds 10x
    "a contract of 1 W takes the load over": (alone(**contract()), 0),
    "of what it produces": (alone(**contract(share=(1.0, 0.5))), 2),
    "at its price": (alone(**contract(price=3.0)), 3),
    "unless it is too dear": (alone(**contract(price=6.0)), 5),
    "where the least is owed": (alone(**contract(price=6.0, least=1.0)), 6),
    "paid as taken": (alone(**contract(taken=2.0)), 1 + 2),
    "waiting one slot moves the dear hour": (alone(wait_slots=np.array([1])), 1 + 1),
    "a negative price pays for the load alone": (alone(price=(-2.0, 4.0)), -2 + 4),
    "and for what a battery can move": (alone(price=(-2.0, 4.0), **battery()), -2 - 2),
    "but not for burning it in a battery beyond its modules": (alone(price=(-2.0, -2.0), **battery(eta=0.5, power=1.0)), None),
}


@pytest.mark.parametrize("name", CASES)
def test_one_constraint_alone(name):
    data, expected = CASES[name]
    if expected is None:
        # a module that charges at c and one that discharges at 1 - c keep the level where 0.5 c = (1 - c) / 0.5: c = 0.8, so 0.6 W are lost
        expected = -2 * (1 + 0.6) * 2
    assert solve(data, Options(gap=0.0)).value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_connection_limits_what_is_bought():
    data = alone()
    tight = replace(data, meters=replace(data.meters, grid_upper_w=np.array([0.9])))
    assert solve(tight, Options(gap=0.0)).status == "infeasible"
    helped = alone(**contract(upper=0.1))
    helped = replace(helped, meters=replace(helped.meters, grid_upper_w=np.array([0.9])))
    assert solve(helped, Options(gap=0.0)).value == pytest.approx(0.9 * 5)


def test_nothing_idles_for_money_without_a_meter_either():
    """A replica that runs without requests would earn 3 per slot at a price below 0."""
    data = replace(alone(), meters=None, point_cost={"cost": np.array([[-3.0, 1.0]])})
    solution = solve(data, Options(gap=0.0))
    assert solution.value == pytest.approx(-3 + 1)
    assert solution.values["x"].tolist() == [[1.0, 1.0]]


def test_a_wasteful_point_is_kept_where_power_pays():
    data = alone(price=(-2.0, 4.0))
    two = replace(
        data, point_pool=np.zeros(2, dtype=int), point_job=np.full(2, -1), point_uses=np.array([[0, 0], [1, 0]]), point_uses_systems=np.ones(2),
        point_capacity=np.ones(2), point_power_w=np.array([1.0, 3.0]), point_cost={"cost": np.zeros((2, 2))},
    )  # fmt: skip
    assert solve(two, Options(gap=0.0)).value == pytest.approx(-2 * 3 + 4 * 1)


@settings(max_examples=40, **SMALL)
@given(problems(objectives=("cost", "carbon_kg"), least_price=0))
def test_an_empty_block_changes_nothing(data):
    """A meter with nothing behind it is the same as a price on every watt."""
    if data.meters is None:
        return
    m, site = data.meters, data.point_uses[:, 1]
    bare = MeterData(meter_site=m.meter_site, grid_upper_w=np.full(len(m.meter_site), np.inf), grid_cost=m.grid_cost)
    watt = {name: np.zeros((data.sites, data.slots)) for name in ("cost", "carbon_kg")}
    for name, table in watt.items():
        table[m.meter_site] = m.grid_cost[name]
    without = replace(
        data, meters=None,
        point_cost={name: data.point_cost[name] + data.point_power_w[:, None] * watt[name][site] for name in watt},
        holding_cost={name: data.holding_cost[name] + data.holding_power_w * watt[name].sum(axis=1) for name in watt},
    )  # fmt: skip
    one, other = solve(replace(data, meters=bare), Options(gap=0.0)), solve(without, Options(gap=0.0))
    assert one.status == other.status
    assert one.value is None or near(one.value, other.value)
