"""Use of systems and power by the minimisers of the Lagrangian at given prices, smoothed so that near-ties share.

    share of an alternative   exp(-(cost - least cost) / (smoothing x least cost)), over the sum of all alternatives
    a job in a slot           clip(1/2 + (pi - price_t / work_t) / (2 smoothing pi), 0, 1), with the pi at which the job is done

As `smoothing` goes to 0, use less supply becomes a supergradient of the Lagrangian bound.

Reference: Y. Nesterov, "Smooth minimization of non-smooth functions", Mathematical Programming 103 (2005).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.decomposition.lagrangian_bound import Duals
from solvers.decomposition.slots import ALL_SLOTS, by_slot_chunks

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation

SHARE_CUTOFF = 8.0
"""An alternative that exceeds the least cost by this multiple of the smoothing width has no share."""
JOB_PRICE_TOL = 1e-8
"""Error of the price at which a job is done, relative to the smoothing width."""
LARGEST_EXPONENT = 700.0
"""Exponents are cut here, before their exponential underflows."""
TINY = 1e-300
"""Divisors are raised to this."""


class SmoothedResponse(NamedTuple):
    """Systems of each fleet option [K, T], watts at each site [R, T], and values of the first-stage columns of jobs."""

    systems: Floats
    watts: Floats
    job_columns: Floats


def smoothed_response(
    dec: Reformulation, duals: Duals, pricing_reduced_cost: Floats, smoothing: float
) -> SmoothedResponse:
    """Return the smoothed use at prices completed by `Reformulation.complete_duals`.

    `pricing_reduced_cost`: of the first-stage columns at these prices, as in `LagrangianBound`.
    """
    points, running, job_columns = _job_response(dec, duals, pricing_reduced_cost, smoothing)
    of_jobs = _resource_use(dec, points, running)
    systems, watts = by_slot_chunks(
        lambda at: _resource_use(dec, *_serving_response(dec, duals, smoothing, at)), dec.view.slots, dec.parallel_map
    )
    return SmoothedResponse(systems + of_jobs[0], watts + of_jobs[1], job_columns)


def _serving_response(dec: Reformulation, duals: Duals, smoothing: float, at: slice = ALL_SLOTS) -> tuple[Ints, Floats]:
    """Return serving points and their replicas at work [points, T or slots `at`]."""
    view, data, beta, delta = dec.view, dec.data, duals.beta[:, at], duals.delta[:, at]
    flow = _softmin_shares(
        view.arc_cost[:, at] + beta[data.arc_pool], delta, view.arc_demand, view.demand[:, at], smoothing
    )
    load = _group_sum_matrix(data.arc_pool, data.pools) @ flow
    request_cost = dec.request_cost(duals, at)
    near = np.flatnonzero(
        (request_cost <= beta[data.point_pool[view.serving]] * (1 + SHARE_CUTOFF * smoothing)).any(axis=1)
    )
    points = view.serving[near]
    return points, _softmin_shares(
        request_cost[near], beta, data.point_pool[points], load, smoothing
    ) / data.point_capacity[points, None]


def _job_response(
    dec: Reformulation, duals: Duals, pricing_reduced_cost: Floats, smoothing: float
) -> tuple[Ints, Floats, Floats]:
    """Return points, the share of each slot for which a job runs there [points, T], and the first-stage columns of jobs.

    Costs are relative to what the job costs where nothing is scarce.
    """
    view, data, columns = dec.view, dec.data, dec.first_stage.columns
    reduced_cost, job = (
        np.append(pricing_reduced_cost, np.inf)[columns["y"][view.training]],
        data.point_job[view.training],
    )
    there = np.isfinite(reduced_cost) & np.isfinite(dec.standalone_job_cost)
    least_cost, usual = np.full(len(data.job_work), np.inf), np.full(len(data.job_work), np.inf)
    np.minimum.at(least_cost, job[there], reduced_cost[there])
    np.minimum.at(usual, job[there], dec.standalone_job_cost[there])
    far = np.full(len(job), np.inf)
    far[there] = (reduced_cost - least_cost[job])[there] / np.maximum(smoothing * np.abs(usual[job[there]]), TINY)
    near = np.flatnonzero(far <= SHARE_CUTOFF)
    points, job, weight = view.training[near], job[near], np.exp(-far[near])
    weight /= np.bincount(job, weights=weight, minlength=len(least_cost))[job]

    def of(j: int) -> Floats:
        mine, at = points[job == j], np.flatnonzero(view.job_seconds[j] > 0)
        work = view.job_seconds[j, at] * (data.point_capacity[mine] / data.job_work[j])[:, None]
        each = view.running_price(mine, duals.alpha, duals.sigma, at) / work
        low, high = np.zeros(len(mine)), each.max(axis=1, initial=0.0) * (1 + 2 * smoothing)

        def share(pi: Floats, each: Floats = each) -> Floats:
            return np.clip(0.5 + (pi[:, None] - each) / np.maximum(2 * smoothing * pi, TINY)[:, None], 0.0, 1.0)

        for _ in range(int(np.ceil(-np.log2(JOB_PRICE_TOL * smoothing)))):
            middle = 0.5 * (low + high)
            enough = np.einsum("pt,pt->p", work, share(middle)) >= 1
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        found = np.zeros((len(mine), view.slots))
        found[:, at] = share(high) * view.reachable[j, at]
        return found

    running, jobs = np.zeros((len(points), view.slots)), np.unique(job)
    for j, found in zip(jobs, dec.parallel_map(of, jobs), strict=True):
        running[job == j] = weight[job == j, None] * found
    job_columns, run = np.zeros(dec.first_stage.size), columns["run"][points]
    job_columns[columns["y"][points]] = weight
    for w in range(data.windows):
        some = run[:, w] >= 0
        job_columns[run[some, w]] = running[some][:, view.window == w].max(axis=1, initial=0.0)
    return points, running, job_columns


def _resource_use(dec: Reformulation, points: Ints, running: Floats) -> tuple[Floats, Floats]:
    """Return the systems [K, T] and watts [R, T] of points at work [points, T]."""
    view, data = dec.view, dec.data
    position = np.full(len(data.point_pool), -1)
    position[points] = np.arange(len(points))
    mine = np.flatnonzero(position[view.use_point] >= 0)
    uses = sparse.csr_array(
        (view.use_systems[mine], (view.use_option[mine], position[view.use_point[mine]])),
        shape=(len(data.option_site), len(points)),
    )
    watts = sparse.csr_array(
        (data.point_power_w[points], (view.site[points], np.arange(len(points)))), shape=(data.sites, len(points))
    )
    return np.asarray(uses @ running), np.asarray(watts @ running)


def _softmin_shares(cost: Floats, least_cost: Floats, of: Ints, amount: Floats, smoothing: float) -> Floats:
    """Share an amount [groups, T] among the members of each group [., T] by how little they exceed its least cost [groups, T]."""
    weight = np.maximum(cost - least_cost[of], 0.0)
    weight /= np.maximum(smoothing * np.abs(least_cost), TINY)[of]
    np.exp(-np.minimum(weight, LARGEST_EXPONENT), out=weight)
    total = _group_sum_matrix(of, len(amount)) @ weight
    weight *= np.divide(amount, total, out=np.zeros_like(amount), where=total > 0)[of]
    return weight


def _group_sum_matrix(of: Ints, groups: int) -> sparse.csr_array:
    """Return the matrix [groups, members] that sums the members of each group."""
    return sparse.csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(groups, len(of)))
