"""Which slots are merged, and which places of jobs they are looked at with."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from solvers.decomposition.slot_clustering import (
    JOB_WEIGHT,
    JOB_WEIGHT_LARGE,
    PLACEMENTS,
    cheapest_placements,
    cluster_slots,
)


def view_of(jobs: int, sites: int, kinds: int, supply: np.ndarray, systems: np.ndarray, limited: int):
    """One fleet option of each kind at each site, of which the first kinds are limited, and one point of each job on each."""
    option_site, of_kind = np.divmod(np.arange(sites * kinds), kinds)
    job, option = np.divmod(np.arange(jobs * sites * kinds), sites * kinds)
    members = np.flatnonzero(of_kind < limited)
    data = SimpleNamespace(
        sites=sites, job_work=np.ones(jobs), point_job=job, point_pool=np.full(len(job), -1), option_site=option_site, holding_option=np.arange(len(option_site)),
        supply_limit=supply[:limited], supply_member=np.column_stack([of_kind[members], members]),
    )  # fmt: skip
    points = np.arange(len(job))
    return SimpleNamespace(
        data=data,
        training=points,
        site=option_site[option],
        use_point=points,
        use_option=option,
        use_systems=systems[job],
    ), of_kind[option]


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 30), st.integers(2, 12))
def test_kinds_of_places_are_supplied_for_all_jobs(seed, jobs, sites, kinds):
    random = np.random.default_rng(seed)
    supply, systems = random.integers(5, 60, kinds).astype(float), random.integers(1, 30, jobs).astype(float)
    view, kind = view_of(jobs, sites, kinds, supply, systems, kinds)
    cost = (random.uniform(1, 2, kinds)[kind] * random.uniform(0.95, 1.05, len(kind))) * systems[view.data.point_job]
    cost[random.random(len(cost)) < 0.1] = np.inf
    placements = cheapest_placements(view, cost)
    assert np.isfinite(cost[placements]).all() and (np.diff(placements) > 0).all()
    there = np.unique(kind[np.isfinite(cost)])
    offered = np.unique(kind[placements])
    narrowest = sum(systems[j] for j in range(jobs) if np.isfinite(cost[view.data.point_job == j]).any())
    assert supply[offered].sum() >= PLACEMENTS.supply_factor * narrowest or np.array_equal(offered, there)
    for j in range(jobs):  # the cheapest of each job is always among them
        mine = np.flatnonzero((view.data.point_job == j) & np.isfinite(cost))
        assert not len(mine) or mine[np.argmin(cost[mine])] in placements


def test_a_kind_without_a_limit_asks_for_no_others():
    """The cheapest kind is not limited, so places are those of each job and site that cost least."""
    jobs, sites, kinds = 60, 20, 4
    view, kind = view_of(jobs, sites, kinds, np.full(kinds, 1.0), np.full(jobs, 10.0), 3)
    placements = cheapest_placements(view, np.where(kind == 3, 1.0, 2.0 + kind))
    assert len(placements) == 2 * jobs * sites and set(kind[placements]) == {3, 0}


def test_peaks_of_demand_stay_apart_where_there_are_too_many_jobs_for_slots_of_each():
    """Twelve days, on each of which another job may run, and the same two hours of peak on each, of sixty demands."""
    days, hours = 12, 24
    demand = np.tile(np.where(np.arange(hours) >= hours - 2, 1.4, 0.9 + 0.02 * (np.arange(hours) % 2)), (60, days))
    reachable = np.repeat(np.eye(days), hours, axis=1)
    view = SimpleNamespace(
        demand=demand, reachable=reachable, window=np.zeros(days * hours, dtype=int), slots=days * hours
    )
    peaks = []
    for apart in (JOB_WEIGHT, JOB_WEIGHT_LARGE):
        group = cluster_slots(view, days, apart)
        peaks.append(max(demand[0, group == g].mean() for g in range(group.max() + 1)))
    assert peaks[0] < 1.1 and peaks[1] > 1.3
