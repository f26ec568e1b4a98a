"""Random small programs with every block, by all ways of a solve, against the reference search (`tests/solvers/reference_mip.py`).

Besides the blocks of `tests/solvers/test_all_blocks_bruteforce.py`: whole replicas with roles, spares and loading, porting, limits on parts
and orders, and power by window. A bound is never beyond the optimum, a plan never better than it and keeps every row.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from solvers.general import structure
from solvers.general.solve import solve_general
from solvers.interface import Options
from solvers.model.block_data.parts import PartLimits
from solvers.model.block_data.porting import PortData
from solvers.model.build import build, objective_vector
from solvers.search import joint
from solvers.search.joint import solve
from tests.solvers.model.test_phase_limits import staged
from tests.solvers.reference import best, near
from tests.solvers.reference_mip import optimum
from tests.solvers.test_all_blocks_bruteforce import problem
from tests.solvers.test_general import COARSE

EXACT = Options(gap=0.0)
MENDED = {
    20: "a plan that costs nothing, whose change was printed as a share",
    44: "a job beside points that rounding had left out",
    223: "a point that is free of a payment, dominated by one that is not",
    233: "fewer parts by a dominated point, which the program of the plan lacked",
    474: "requests that wait, none of them asked for in the slot in which a zone fails",
}  # programs in which something was wrong
WITHIN = 0.05  # share of the value that fewer parts may cost
AS_LARGE = replace(
    joint.SETTINGS, small=0, most_full=0
)  # whole replicas as in programs too large for a search over all points


def program_of(seed):
    """A random problem with every block; replicas are whole in three of four."""
    rng = np.random.default_rng((seed, 51))
    data = problem(rng, slots=(2, 4))
    if rng.random() < 0.75:
        data = with_whole_replicas(rng, data)
    if rng.random() < 0.5:
        data = staged(rng, data)
    if rng.random() < 0.4:
        groups = int(rng.integers(1, 3))
        member = np.argwhere(rng.random((len(data.point_pool), groups)) < 0.4)
        data = replace(
            data, ports=PortData(member=member, cost={"cost": rng.integers(0, 6, groups).astype(float)}, groups=groups)
        )
    return replace(data, parts=limits_on_parts(rng, data)) if rng.random() < 0.4 else data


def with_whole_replicas(rng, data):
    """Small replicas and large ones, of one worker and of several, with spares and without."""
    uses, points = len(data.point_uses), len(data.point_pool)
    serving = data.point_pool[data.point_uses[:, 0]] >= 0
    chance = lambda share: serving & (rng.random(uses) < share)
    workers = np.where(chance(0.3), rng.integers(1, 3, uses), 1)
    spares = np.where(chance(0.5), rng.integers(0, 3, uses), 0) if rng.random() < 0.3 else None
    loads = np.where(rng.random(points) < 0.7, 2 * rng.random(points), 0.0) if rng.random() < 0.6 else None
    systems = data.point_uses_systems * np.where(chance(0.4), 0.5, 1.0) * workers
    return replace(
        data,
        point_uses_systems=systems,
        use_workers=workers,
        use_spares=spares,
        point_whole=rng.random(points) < 0.85,
        point_load_s=loads,
    )


def limits_on_parts(rng, data):
    """Few sites, few kinds of systems, no few of a kind, and orders of two holdings."""
    holdings = len(data.holding_option)
    order = rng.permutation(np.arange(holdings) // 2)
    return PartLimits(
        counted=rng.random(holdings) < 0.9,
        most_sites=float(rng.choice([2, math.inf])),
        most_kinds=float(rng.choice([1, math.inf])),
        least_systems=int(rng.integers(1, 3)),
        order=order if rng.random() < 0.3 else None,
        order_least=rng.integers(1, 3, order.max() + 1),
        order_placed=rng.random(order.max() + 1) < 0.2,
    )


def test_the_reference_search_equals_enumeration():
    """On problems whose whole numbers can all be tried."""
    for seed in range(8):
        data = problem(np.random.default_rng(seed))
        expected, found = best(data), optimum(data)
        assert (found is None and expected is None) or near(found, expected) or found == expected


def by_parts(data, slots_of_a_part):
    """Value, bound and columns of the search by merged slots and parts, one group of slots for each."""
    program, sense = build(data), "max" if data.objective.maximises else "min"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "MOST_SLOTS", slots_of_a_part)
        found = solve_general(
            program, objective_vector(program, data), sense, data.slots, Options(time_limit_s=60.0), COARSE
        )
    return found.objective, found.bound, None if found.x is None else (program, found.x)


def as_large(data, within=0.0):
    """Value, bound and columns of a plan of whole replicas without a search over all points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "SETTINGS", AS_LARGE)
        found = solve(data, EXACT, within=within)
    if not found.values:
        return found.value, found.bound, None
    program = build(data)
    if (
        (found.values["x"] > 0) & (program.columns["x"] < 0)
    ).any():  # a plan over a part of the points may use dominated ones
        program = build(replace(data, keep_dominated=True))
    return found.value, found.bound, (program, program.vector(found.values))


def wrong(data, expected, value, bound, columns):
    """What is wrong with an answer."""
    sign = -1.0 if data.objective.maximises else 1.0
    slack = 1e-6 * max(1.0, abs(expected or 0.0))
    if expected is None or math.isinf(expected):
        return "a plan of what has none" if value is not None else ""
    if bound is not None and sign * bound > sign * expected + slack:
        return f"bound {bound} beyond {expected}"
    if value is None:
        return ""
    if sign * value < sign * expected - slack:
        return f"value {value} better than {expected}"
    program, x = columns
    arrays = program.arrays()
    if arrays.violation(x) > 1e-6 or np.abs(x - np.round(x))[arrays.integer].max(initial=0.0) > 1e-5:
        return "a row or a whole number is broken"
    return "" if near(float(objective_vector(program, data) @ x), value) else f"value {value} is not that of the plan"


def exact(data, expected, options):
    """What is wrong with an answer that has to be the optimum within the gap."""
    found = solve(data, options)
    if expected is None:
        return "" if found.status == "infeasible" else f"{found.status}, but nothing fits"
    if math.isinf(expected):
        return "" if found.status == "unbounded" else f"{found.status}, but endless"
    if found.value is None or found.status not in ("optimal", "within_gap"):
        return f"{found.status} {found.value} of {expected}"
    off = abs(found.value - expected)
    return "" if off <= (options.gap + 1e-6) * max(1.0, abs(expected)) else f"{found.value} is not {expected}"


@pytest.mark.parametrize("seeds", [(*range(4), *MENDED), range(600)], ids=["some", "600"])
def test_no_bound_is_beyond_the_optimum_and_no_plan_better(seeds):
    faults, plans = [], Counter()
    for seed in seeds:
        data = program_of(seed)
        expected = optimum(data)
        plans["optimum"] += expected is not None and math.isfinite(expected)
        ways = {
            "general": by_parts(data, 1 + seed % 2),
            "whole": as_large(data),
            "fewer": as_large(data, WITHIN),
        }
        for way, answer in ways.items():
            plans[way] += answer[0] is not None
            faults += [(seed, way, found)] if (found := wrong(data, expected, *answer)) else []
        for way, options in (("exact", EXACT), ("by general", Options(method="general"))):
            faults += [(seed, way, found)] if (found := exact(data, expected, options)) else []
    assert not faults, faults
    assert min(plans.values()) >= len(seeds) / 12, plans
