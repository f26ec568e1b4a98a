"""Elimination of one block of slots from the Newton equations: each site's rows first, then the rows `balance` of the demands.

In each slot, with theta = column / reduced cost, and likewise of slacks:
    site      M = sum theta a a' + theta of the slacks      [b, b]     a: entries of a replica or a job in the site's rows
    demand    S = sum theta_f - E' M^-1 E                   [D, D]     E: how flows couple pools to demand
    links     K = K0 - sum (L' M^-1 L + F' S^-1 F)          [l, l]     L: linking columns in the site's rows; F = theirs in balance - E' M^-1 L
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtri
from threadpoolctl import ThreadpoolController

from solvers.arrays import Floats
from solvers.decomposition.interior_point.blocks import BlockProgram
from solvers.decomposition.interior_point.lp_data import State
from solvers.decomposition.interior_point.scaling import Scaling
from solvers.decomposition.interior_point.settings import NEWTON, NewtonSettings
from solvers.decomposition.interior_point.site_blocks import SiteBlock, SlotBlock


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads(
    threads: int, multiplications: float, settings: NewtonSettings = NEWTON
) -> AbstractContextManager[Any]:
    """Give BLAS several threads within this context if a number of multiplications is worth it."""
    several = threads > 1 and multiplications > settings.threaded_multiplications
    return _pools().limit(limits=threads, user_api="blas") if several else nullcontext()


@dataclass(frozen=True, slots=True)
class EliminatedBlock:
    """Factors of a block's T slots, from which right-hand sides are reduced and prices recovered."""

    sites: list[tuple[Floats, Floats]]  # each site: M^-1 [T, b, b] and L [T, b, l]
    links: list[Floats]  # each site: sum L' M^-1 L [l, l]
    pools: Floats  # E' of all sites [T, D, pools]
    half: Floats  # H with H' H = S^-1 [T, D, D]
    halves: Floats  # H F [T D, links of the block]
    taken: Floats  # F' S^-1 F, summed over slots [links, links]


@dataclass(frozen=True, slots=True)
class ReducedSides:
    """Right-hand sides of a block once its slots are eliminated."""

    sites: list[Floats]  # each site: M^-1 times its sides [T, b]
    half: Floats  # [T D]
    of_sites: list[Floats]  # to subtract from the sides of each site's linking columns
    of_all: Floats  # to subtract from those of all linking columns of the block


def eliminate(program: BlockProgram, scaling: Scaling, block: SlotBlock) -> EliminatedBlock:
    """Eliminate the slots of a block: the rows of each site, then the rows of the demands."""
    o, at, demands = program, block.slots, program.demands
    slots = len(at)
    square = np.zeros((slots, demands, demands))
    diagonal = np.arange(demands)
    flow, unmet = scaling.flow[:, at], scaling.theta["unmet"][:, at]
    square[:, diagonal, diagonal] = (o.into_demand @ flow + unmet + ~o.carrying[:, at]).T
    of_links = np.zeros((slots, demands, len(block.link_columns)))
    # E' and M^-1 E of all sites, for one product
    of_pools, solved_pools = np.zeros((slots, demands, block.pools)), np.zeros((slots, block.pools, demands))
    scaled = _ScaledBlock(program, scaling, block)
    links, sites, before = [], [], 0
    for site in block.sites:
        b, l, n = site.rows, len(site.link_columns), len(site.pools)
        pools, here = slice(len(site.fleet_options), len(site.fleet_options) + n), slice(before, before + n)
        inverse, link = _inverse(scaled.site_matrix(site)), scaled.link_matrix(site)
        solved = inverse @ link  # [T, b, l]
        to_demand = np.ascontiguousarray((site.balance @ flow[site.arcs]).T).reshape(slots, n, demands)
        of_pools[:, :, here] = to_demand.transpose(0, 2, 1)
        solved_pools[:, here] = inverse[:, pools, pools] @ to_demand
        of_demand = np.ascontiguousarray((site.gates_balance @ scaled.gates[site.gated]).T).reshape(slots, demands, l)
        of_demand -= of_pools[:, :, here] @ solved[:, pools]
        # first-stage columns are consecutive, and so are those of jobs' progress
        first_progress = int(np.searchsorted(site.link_columns, len(o.moving)))
        for columns in (slice(0, first_progress), slice(first_progress, l)):
            if columns.start < columns.stop:
                first = int(np.searchsorted(block.link_columns, site.link_columns[columns.start]))
                of_links[:, :, first : first + columns.stop - columns.start] = of_demand[:, :, columns]
        links.append(link.reshape(slots * b, l).T @ solved.reshape(slots * b, l))
        sites.append((inverse, link))
        before += n
    square -= of_pools @ solved_pools
    half = _inverse_half(square)
    halves = (half @ of_links).reshape(slots * demands, len(block.link_columns))
    threads = 1 if len(o.parts) > 1 and o.parallel_map is not map else o.threads
    with blas_threads(threads, slots * demands * len(block.link_columns) ** 2):
        taken = halves.T @ halves
    return EliminatedBlock(sites, links, of_pools, half, halves, taken)


class _ScaledBlock:
    """The scaling in the slots of one block, and the matrices M and L of its sites."""

    def __init__(self, program: BlockProgram, scaling: Scaling, block: SlotBlock):
        o, at = program, block.slots
        self.slots, self.mask = len(at), {name: o.mask[name][:, at] for name in ("installed", "capacity", "power")}
        self.theta = {name: scaling.theta[name][:, at] for name in ("x", "installed", "capacity", "power")}
        self.run, self.rate, self.reach = scaling.run[:, at], o.rate[:, at], o.reach[:, at]
        self.gates, self.switched = (scaling.to_gate * o.let)[:, at], (scaling.to_switch * o.reach)[:, at]
        self.into_pool: Floats = np.asarray(o.into_pool @ scaling.flow[:, at])

    def site_matrix(self, site: SiteBlock) -> Floats:
        """M [T, b, b], with ones on the diagonal where there is no row."""
        theta, mask, b, rows = self.theta, self.mask, site.rows, np.arange(site.rows)
        jobs = self.run[site.placements] * self.reach[site.placements] ** 2
        own = site.squares[0] @ theta["x"][site.points] + site.squares[1] @ jobs
        own = np.ascontiguousarray(own.T).reshape(self.slots, b, b)
        options, pools, power = site.fleet_options, site.pools, site.power
        slack = [theta["installed"][options], theta["capacity"][pools] + self.into_pool[pools], theta["power"][power]]
        none = np.concatenate([~mask["installed"][options], ~mask["capacity"][pools], ~mask["power"][power]])
        own[:, rows, rows] += (np.concatenate(slack) * (1 + 10 * NEWTON.regularization) + none).T
        return own

    def link_matrix(self, site: SiteBlock) -> Floats:
        """L [T, b, l]."""
        b, l = site.rows, len(site.link_columns)
        link = site.fixed.reshape(b * l, 1) + site.gates @ self.gates[site.gated]
        if len(site.placements):
            progress = (self.run * self.rate * self.reach)[site.placements]
            link += site.progress @ progress + site.switches @ self.switched[site.placements]
        return np.ascontiguousarray(link.T).reshape(self.slots, b, l)


def reduce_sides(block: SlotBlock, done: EliminatedBlock, side: Mapping[str, Floats]) -> ReducedSides:
    """Eliminate a block's slots from right-hand sides: `installed`, `capacity`, `power` [., T], and `balance` [T, D]."""
    at, found, of_sites = block.slots, [], []
    for site, (inverse, link) in zip(block.sites, done.sites):
        rows = np.concatenate(
            [
                side["installed"][site.fleet_options][:, at],
                side["capacity"][site.pools][:, at],
                side["power"][site.power][:, at],
            ]
        ).T
        found.append((inverse @ rows[:, :, None])[:, :, 0])
        of_sites.append(found[-1].ravel() @ link.reshape(found[-1].size, len(site.link_columns)))
    pools = [mine[:, len(site.fleet_options) :][:, : len(site.pools)] for site, mine in zip(block.sites, found)]
    of_pools = np.concatenate([np.zeros((len(at), 0)), *pools], axis=1)
    half = (done.half @ (side["balance"][at][:, :, None] - done.pools @ of_pools[:, :, None])).ravel()
    return ReducedSides(found, half, of_sites, half @ done.halves)


def recover_prices(
    block: SlotBlock, done: EliminatedBlock, sides: ReducedSides, link_columns: Floats, price: State
) -> None:
    """Write the prices of the block's rows to `price`, from the values of the linking columns."""
    at, before = block.slots, 0
    demands = done.half.shape[1]
    rest = (sides.half - done.halves @ link_columns[block.link_columns]).reshape(len(at), demands, 1)
    of_demand = (done.half.transpose(0, 2, 1) @ rest)[:, :, 0]
    price["balance"][:, at] = of_demand.T
    of_pools = (done.pools.transpose(0, 2, 1) @ of_demand[:, :, None])[:, :, 0]
    for site, (inverse, link), mine in zip(block.sites, done.sites, sides.sites):
        first, last = len(site.fleet_options), len(site.fleet_options) + len(site.pools)
        tied = link @ link_columns[site.link_columns]
        tied[:, first:last] += of_pools[:, before : before + last - first]
        rows, before = (mine - (inverse @ tied[:, :, None])[:, :, 0]).T, before + last - first
        price["installed"][site.fleet_options[:, None], at] = rows[:first]
        price["capacity"][site.pools[:, None], at] = rows[first:last]
        price["power"][site.power[:, None], at] = rows[last:]


def _inverse_root_diagonal(matrices: Floats) -> Floats:
    """[T, n]: 1 / sqrt of the diagonals of matrices [T, n, n]."""
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    return np.asarray(1 / np.sqrt(np.maximum(diagonal, NEWTON.least_diagonal)), dtype=np.float64)


def _inverse(matrices: Floats) -> Floats:
    """Invert positive definite matrices [T, n, n], scaled to ones on the diagonal."""
    scale = _inverse_root_diagonal(matrices)
    inverse = np.linalg.inv(matrices * scale[:, :, None] * scale[:, None, :])
    return np.asarray(inverse * scale[:, :, None] * scale[:, None, :], dtype=np.float64)


def _inverse_half(matrices: Floats) -> Floats:
    """Return H [T, n, n] with H' H the inverse of positive definite matrices."""
    n = np.arange(matrices.shape[1])
    scale = _inverse_root_diagonal(matrices)
    scaled = matrices * scale[:, :, None]
    scaled *= scale[:, None, :]
    scaled[:, n, n] += NEWTON.regularization
    result = np.asarray(np.linalg.cholesky(scaled), dtype=np.float64)
    for i in range(len(result) if matrices.shape[1] else 0):
        result[i] = dtrtri(result[i], lower=1)[0]
    result *= scale[:, None, :]
    return result
