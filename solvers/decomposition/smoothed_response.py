"""What is used in each slot where everything is done where it costs least at given prices, what costs nearly as little having a share.

    share of a way    exp(-(cost - least) / (alike least)), over the sum of all ways
    a job in a slot   clip(1/2 + (pi - price_t / work_t) / (2 alike pi), 0, 1)  with the pi at which the job is done

As `smoothing` goes to 0 that is a supergradient of the bound: Nesterov, Mathematical Programming 103 (2005).
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

FAR = 8.0  # what costs so many times `alike` more than the least has no share
EXACT = 1e-8  # of a width, how near the price at which a job is done is found


class SmoothedResponse(NamedTuple):
    """Systems of each fleet option [K, T], watts at each site [R, T], and how much of each of the structure's choices for jobs."""

    systems: Floats
    watts: Floats
    job_columns: Floats


def smoothed_response(
    dec: Reformulation, duals: Duals, pricing_reduced_cost: Floats, smoothing: float
) -> SmoothedResponse:
    """By prices that fit each other (`Reformulation.complete_duals`); `pricing_reduced_cost`: reduced costs of the structure's columns there (`LagrangianBound.pricing_reduced_cost`)."""
    points, running, job_columns = _job_response(dec, duals, pricing_reduced_cost, smoothing)
    of_jobs = _resource_use(dec, points, running)
    serving = by_slot_chunks(
        lambda at: _resource_use(dec, *_serving_response(dec, duals, smoothing, at)), dec.view.slots, dec.parallel_map
    )
    return SmoothedResponse(*(one + other for one, other in zip(serving, of_jobs, strict=True)), job_columns)


def _serving_response(dec: Reformulation, duals: Duals, smoothing: float, at: slice = ALL_SLOTS) -> tuple[Ints, Floats]:
    """(points, replicas at work [points, T or slots `at`])."""
    view, data, beta, delta = dec.view, dec.data, duals.beta[:, at], duals.delta[:, at]
    flow = _softmin_shares(
        view.arc_cost[:, at] + beta[data.arc_pool], delta, view.arc_demand, view.demand[:, at], smoothing
    )
    load = _group_sum_matrix(data.arc_pool, data.pools) @ flow
    request_cost = dec.request_cost(duals, at)
    near = np.flatnonzero((request_cost <= beta[data.point_pool[view.serving]] * (1 + FAR * smoothing)).any(axis=1))
    points = view.serving[near]
    return points, _softmin_shares(
        request_cost[near], beta, data.point_pool[points], load, smoothing
    ) / data.point_capacity[points, None]


def _job_response(
    dec: Reformulation, duals: Duals, pricing_reduced_cost: Floats, smoothing: float
) -> tuple[Ints, Floats, Floats]:
    """(points, share of each slot in which a job runs there [points, T], choices of the structure). What a job usually costs is what it does
    with nothing scarce."""
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
    far[there] = (reduced_cost - least_cost[job])[there] / np.maximum(smoothing * np.abs(usual[job[there]]), 1e-300)
    near = np.flatnonzero(far <= FAR)
    points, job, weight = view.training[near], job[near], np.exp(-far[near])
    weight /= np.bincount(job, weights=weight, minlength=len(least_cost))[job]

    def of(j: int) -> Floats:
        mine, at = points[job == j], np.flatnonzero(view.job_seconds[j] > 0)
        work = view.job_seconds[j, at] * (data.point_capacity[mine] / data.job_work[j])[:, None]
        each = view.running_price(mine, duals.alpha, duals.sigma, at) / work
        low, high = np.zeros(len(mine)), each.max(axis=1, initial=0.0) * (1 + 2 * smoothing)
        share = lambda pi: np.clip(
            0.5 + (pi[:, None] - each) / np.maximum(2 * smoothing * pi, 1e-300)[:, None], 0.0, 1.0
        )
        for _ in range(int(np.ceil(-np.log2(EXACT * smoothing)))):
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
    """(systems [K, T], watts [R, T]) of so much of each point [points, T]."""
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
    return uses @ running, watts @ running


def _softmin_shares(cost: Floats, least_cost: Floats, of: Ints, amount: Floats, smoothing: float) -> Floats:
    """[., T]: an amount [groups, T] shared among the members of each group by how little more they cost than the least [groups, T] of it."""
    weight = np.maximum(cost - least_cost[of], 0.0)
    weight /= np.maximum(smoothing * np.abs(least_cost), 1e-300)[of]
    np.exp(-np.minimum(weight, 700.0), out=weight)
    total = _group_sum_matrix(of, len(amount)) @ weight
    weight *= np.divide(amount, total, out=np.zeros_like(amount), where=total > 0)[of]
    return weight


def _group_sum_matrix(of: Ints, groups: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(groups, len(of)))
