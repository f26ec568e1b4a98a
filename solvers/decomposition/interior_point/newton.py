"""Newton's equations of an interior-point method, solved by taking out the slots: first each site's rows in a slot, then the slot's rows of
demand, so that what is left ties together only what is decided once and the progress of jobs.

In each slot, with theta = column / reduced cost, slacks likewise:
    site      M = sum theta a a' + theta of the slacks      [b, b]     a: a replica's or a job's entries in the site's rows
    demand    S = sum theta_f - E' M^-1 E                   [D, D]     E: how flows tie pools to demand
    links     K = D - sum (L' M^-1 L + F' S^-1 F)           [l, l]     F = L of demand - E' M^-1 L
An arc with a gate, or a job with a switch, shares its row of `hosted` or `running` with one slack: both are taken out beforehand.
Birge and Qi, Management Science 34 (1988), for taking out the parts that linking columns hold together.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dtrtri
from threadpoolctl import ThreadpoolController

from solvers.arrays import Floats, Ints
from solvers.decomposition.interior_point.blocks import BlockProgram, SlotBlock, State

TINY = 1e-12  # relative, added to what must be positive
WIDE = 2e8  # multiplications of one product or factor, from which on more threads make it quicker
FEW_RUNS = 8  # rows side by side, up to which they are looked at run by run


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def threaded(threads: int, multiplications: float) -> AbstractContextManager:
    """While this lasts, linear algebra has so many threads if it is about so much that they help."""
    return _pools().limit(limits=threads, user_api="blas") if threads > 1 and multiplications > WIDE else nullcontext()


def divided(a: Floats, b: Floats, where: np.ndarray) -> Floats:
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=where)


@dataclass(frozen=True, slots=True)
class Eliminated:
    """A part's slots: of each site what its rows are solved with, how these depend on the links, and what it takes from those; of demand likewise."""

    sites: list[tuple[Floats, Floats]]
    links: list[Floats]
    pools: Floats  # [T, D, pools of all sites]
    half: Floats
    halves: Floats
    taken: Floats


class Newton:
    """The equations at one point: columns and slacks `z` > 0 with their reduced costs and prices `w` > 0."""

    def __init__(self, blocks: BlockProgram, z: Mapping[str, Floats], w: Mapping[str, Floats]):
        self.blocks, self.z, self.w = blocks, z, w
        self.per_z, self.per_w = (
            {name: divided(1.0, values[name], mask) for name, mask in blocks.mask.items()} for values in (z, w)
        )
        self.theta = {name: z[name] * self.per_w[name] for name in blocks.mask}
        theta, mask = self.theta, blocks.mask
        self.gated = theta["f"][blocks.gated]
        self.both_f, self.both_v = self.gated + theta["hosted"], theta["v"] + theta["running"]
        self.to_gate, self.to_switch = (
            divided(self.gated, self.both_f, mask["hosted"]),
            divided(theta["v"], self.both_v, mask["running"]),
        )
        self.flow, self.run = theta["f"].copy(), theta["v"] * (1 - self.to_switch)
        self.flow[blocks.gated] *= 1 - self.to_gate
        self._eliminate()

    def _eliminate(self) -> None:
        o, links = self.blocks, self._links()
        self.parts = list(o.parallel_map(self._taken_out, o.parts))
        for part, done in zip(o.parts, self.parts, strict=True):
            for site, of_site in zip(part.sites, done.links, strict=True):
                links[np.ix_(site.link_columns, site.link_columns)] -= of_site
            _take(links, part.link_columns, done.taken)
        with threaded(o.threads, len(o.moving) ** 3 / 3):
            self._factor(links)

    def _taken_out(self, part: SlotBlock) -> Eliminated:
        """The slots of a part taken out of the equations, with what that takes from those of the links: sites first, then demand."""
        o, at, demands = self.blocks, part.slots, self.blocks.demands
        slots = len(at)
        theta = {name: self.theta[name][:, at] for name in ("x", "installed", "capacity", "power")}
        flow, run, rate, reach = self.flow[:, at], self.run[:, at], o.rate[:, at], o.reach[:, at]
        gates, switched = (self.to_gate * o.let)[:, at], (self.to_switch * o.reach)[:, at]
        into_pool = o.into_pool @ flow
        square = np.zeros((slots, demands, demands))
        diagonal = np.arange(demands)
        square[:, diagonal, diagonal] = (o.into_demand @ flow + self.theta["unmet"][:, at] + ~o.carrying[:, at]).T
        sites, links, of_links = [], [], np.zeros((slots, demands, len(part.link_columns)))
        once, before = len(o.moving), 0
        of_pools, solved_pools = (
            np.zeros((slots, *shape)) for shape in ((demands, part.pools), (part.pools, demands))
        )  # of all sites, for one product
        for site in part.sites:
            b, l, rows, n = site.rows, len(site.link_columns), np.arange(site.rows), len(site.pools)
            own = site.squares[0] @ theta["x"][site.points] + site.squares[1] @ (
                run[site.placements] * reach[site.placements] ** 2
            )
            own = np.ascontiguousarray(own.T).reshape(slots, b, b)
            slack = [
                theta["installed"][site.fleet_options],
                theta["capacity"][site.pools] + into_pool[site.pools],
                theta["power"][site.power],
            ]
            none = np.concatenate(
                [
                    ~o.mask[name][which][:, at]
                    for name, which in (
                        ("installed", site.fleet_options),
                        ("capacity", site.pools),
                        ("power", site.power),
                    )
                ]
            )
            own[:, rows, rows] += (np.concatenate(slack) * (1 + 10 * TINY) + none).T
            link = site.fixed.reshape(b * l, 1) + site.gates @ gates[site.gated]
            if len(site.placements):
                link += (
                    site.progress @ (run * rate * reach)[site.placements] + site.switches @ switched[site.placements]
                )
            link = np.ascontiguousarray(link.T).reshape(slots, b, l)
            pools, here = slice(len(site.fleet_options), len(site.fleet_options) + n), slice(before, before + n)
            to_demand = np.ascontiguousarray((site.balance @ flow[site.arcs]).T).reshape(slots, n, demands)
            inverse = _inverse(own)
            solved = inverse @ link  # [T, b, l]
            of_pools[:, :, here], solved_pools[:, here] = (
                to_demand.transpose(0, 2, 1),
                inverse[:, pools, pools] @ to_demand,
            )
            of_demand = np.ascontiguousarray((site.gates_balance @ gates[site.gated]).T).reshape(slots, demands, l)
            of_demand -= of_pools[:, :, here] @ solved[:, pools]
            first_progress = int(
                np.searchsorted(site.link_columns, once)
            )  # those decided once side by side, then those of jobs' progress
            for columns in (slice(0, first_progress), slice(first_progress, l)):
                if columns.start < columns.stop:
                    first = int(np.searchsorted(part.link_columns, site.link_columns[columns.start]))
                    of_links[:, :, first : first + columns.stop - columns.start] = of_demand[:, :, columns]
            links.append(link.reshape(slots * b, l).T @ solved.reshape(slots * b, l))
            sites.append((inverse, link))
            before += n
        square -= of_pools @ solved_pools
        half = _half(square)
        halves = (half @ of_links).reshape(slots * demands, len(part.link_columns))
        with threaded(
            1 if len(o.parts) > 1 and o.parallel_map is not map else o.threads,
            slots * demands * len(part.link_columns) ** 2,
        ):
            taken = halves.T @ halves
        return Eliminated(sites, links, of_pools, half, halves, taken)

    def _links(self) -> Floats:
        """What the linking columns and the progress of jobs add by themselves, the lower half."""
        o, count = self.blocks, len(self.blocks.moving)
        own = divided(np.ones(count), self.theta["m"], o.mask["m"]) + divided(
            self.w["upper"], self.z["upper"], o.mask["upper"]
        )
        own += o.to_gates(divided(o.let**2, self.both_f, o.mask["hosted"])) + o.to_switches(
            divided(np.ones_like(self.both_v), self.both_v, o.mask["running"])
        )
        links = np.zeros((o.links, o.links))
        links[np.arange(count), np.arange(count)] = -own
        runs, done = np.flatnonzero(o.runs), np.flatnonzero(o.done >= 0)
        links[o.progress[runs], o.progress[runs]] = (self.run * o.rate**2).sum(axis=1)[runs]
        place, slot = np.nonzero(o.may_run & (o.switch >= 0))
        np.add.at(links, (o.progress[place], o.switch[place, slot]), (self.to_switch * o.rate)[place, slot])
        links[o.progress[done], o.done[done]] -= 1.0
        per = (1.0 / self.theta["above"])[:, None]
        if isinstance(o.go["above"], np.ndarray):
            links[:count, :count] -= o.back["above"] @ (o.go["above"] * per)
        else:
            above = (o.back["above"] @ o.above.multiply(per)).tocoo()
            links[above.row, above.col] -= above.data
        return links

    def _factor(self, links: Floats) -> None:
        """links = [-A, C'; C, B] with A and B positive, of which the lower half is there; rows with equal sides belong to the second part."""
        o, count = self.blocks, len(self.blocks.moving)
        first = links[:count, :count]  # taken apart in place: it is large
        self._scale = 1 / np.sqrt(np.maximum(-np.diag(first), 1e-300))
        first *= -self._scale[:, None]
        first *= self._scale
        first[np.arange(count), np.arange(count)] += TINY
        self._first = cho_factor(first, lower=True, overwrite_a=True, check_finite=False)
        self._cross = np.vstack([links[count:, :count], o.equal.toarray()])
        half = solve_triangular(self._first[0], (self._cross * self._scale).T, lower=True, check_finite=False)
        second = half.T @ half
        second[: o.links - count, : o.links - count] += links[count:, count:]
        self._scale_second = 1 / np.sqrt(np.maximum(np.diag(second), 1e-300))
        second = second * self._scale_second[:, None] * self._scale_second
        second[np.arange(len(second)), np.arange(len(second))] += TINY
        self._second = cho_factor(second, lower=True, check_finite=False)

    def _solve_links(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        solve_first = lambda side: self._scale * cho_solve(self._first, self._scale * side, check_finite=False)
        half = self._scale_second * cho_solve(
            self._second, self._scale_second * (second + self._cross @ solve_first(first)), check_finite=False
        )
        return solve_first(self._cross.T @ half - first), half

    def step(
        self, short: Mapping[str, Floats], off: Mapping[str, Floats], apart: Mapping[str, Floats]
    ) -> tuple[State, State, State]:
        """(changes of columns and slacks, of reduced costs and slacks' prices, of the free rows' prices) that make up for rows that are
        `short`, for reduced costs that are `off`, and bring each product of a pair nearer by what they are `apart`."""
        o, w, mask, theta = self.blocks, self.w, self.blocks.mask, self.theta
        h = {name: off[name] - apart[name] * self.per_z[name] for name in ("x", "f", "v", "m", "unmet")}
        side = {
            name: short[name] + apart[name] * self.per_w[name]
            for name in ("capacity", "installed", "power", "hosted", "running", "above")
        }
        flow = self.flow * h["f"]
        flow[o.gated] += self.to_gate * side["hosted"]
        run = self.run * h["v"] + self.to_switch * side["running"]
        here, replicas = run * o.reach, theta["x"] * h["x"]
        balance = (short["balance"] + o.go["into_demand"] @ flow + theta["unmet"] * h["unmet"]).T
        pools = side["capacity"] + o.go["serves"] @ replicas - o.go["into_pool"] @ flow
        fleet_options = side["installed"] - o.go["uses"] @ replicas - o.go["job_uses"] @ here
        power = side["power"] - o.go["watts"] @ replicas - o.go["job_watts"] @ here
        count = len(o.moving)
        right = np.zeros(o.links)
        right[:count] = (
            h["m"]
            + (apart["upper"] - w["upper"] * short["upper"]) * self.per_z["upper"]
            - o.back["above"] @ (side["above"] / theta["above"])
        )
        right[:count] -= o.to_gates(
            divided(o.let * (side["hosted"] - self.gated * h["f"][o.gated]), self.both_f, mask["hosted"])
        )
        right[:count] -= o.to_switches(divided(side["running"] - theta["v"] * h["v"], self.both_v, mask["running"]))
        runs = np.flatnonzero(o.runs)
        right[o.progress[runs]] = (short["progress"] + (o.rate * run).sum(axis=1))[runs]
        price = {
            "capacity": np.zeros((o.pools, o.slots)),
            "installed": np.zeros((o.fleet_options, o.slots)),
            "power": np.zeros((o.sites, o.slots)),
        }
        delta = np.zeros((o.demands, o.slots))

        def local(part: SlotBlock, done: Eliminated) -> tuple[list[Floats], Floats, list[Floats], Floats]:
            """(what each site's rows come to, what is left to demand, what the links of each site and of all are to make up for)."""
            at, found, link_columns = part.slots, [], []
            for site, (inverse, link) in zip(part.sites, done.sites, strict=True):
                rows = np.concatenate(
                    [fleet_options[site.fleet_options][:, at], pools[site.pools][:, at], power[site.power][:, at]]
                ).T
                found.append((inverse @ rows[:, :, None])[:, :, 0])
                link_columns.append(found[-1].ravel() @ link.reshape(found[-1].size, len(site.link_columns)))
            of_pools = np.concatenate(
                [
                    np.zeros((len(at), 0)),
                    *(
                        mine[:, len(site.fleet_options) :][:, : len(site.pools)]
                        for site, mine in zip(part.sites, found, strict=True)
                    ),
                ],
                axis=1,
            )
            half = (done.half @ (balance[at][:, :, None] - done.pools @ of_pools[:, :, None])).ravel()
            return found, half, link_columns, half @ done.halves

        def settled(part: SlotBlock, done: Eliminated, found: list[Floats], half: Floats) -> None:
            """Writes the prices of the part's slots down."""
            at, before = part.slots, 0
            of_demand = (
                done.half.transpose(0, 2, 1)
                @ (half - done.halves @ link_columns[part.link_columns]).reshape(len(at), o.demands, 1)
            )[:, :, 0]
            delta[:, at] = of_demand.T
            of_pools = (done.pools.transpose(0, 2, 1) @ of_demand[:, :, None])[:, :, 0]
            for site, (inverse, link), mine in zip(part.sites, done.sites, found, strict=True):
                first, last = len(site.fleet_options), len(site.fleet_options) + len(site.pools)
                tied = link @ link_columns[site.link_columns]
                tied[:, first:last] += of_pools[:, before : before + last - first]
                rows, before = (mine - (inverse @ tied[:, :, None])[:, :, 0]).T, before + last - first
                for name, which, values in (
                    ("installed", site.fleet_options, rows[:first]),
                    ("capacity", site.pools, rows[first:last]),
                    ("power", site.power, rows[last:]),
                ):
                    price[name][which[:, None], at] = values

        locals_ = list(o.parallel_map(local, o.parts, self.parts))
        for part, (_, _, of_sites, of_all) in zip(o.parts, locals_, strict=True):
            for site, mine in zip(part.sites, of_sites, strict=True):
                right[site.link_columns] -= mine
            right[part.link_columns] -= of_all
        m, rest = self._solve_links(right[:count], np.concatenate([right[count:], short["equal"]]))
        link_columns = np.concatenate([m, rest[: o.links - count]])
        list(
            o.parallel_map(
                settled, o.parts, self.parts, [found for found, _, _, _ in locals_], [half for _, half, _, _ in locals_]
            )
        )
        progress = np.zeros(len(o.placements))
        progress[runs] = link_columns[o.progress[runs]]
        free = {"balance": delta, "progress": progress, "equal": rest[o.links - count :]}
        return self._remaining_changes(m, price, free, h, side, short, apart)

    def _remaining_changes(
        self,
        m: Floats,
        price: State,
        free: State,
        h: State,
        side: State,
        short: Mapping[str, Floats],
        apart: Mapping[str, Floats],
    ) -> tuple[State, State, State]:
        """The changes that follow from those of the linking columns and of the prices."""
        o, z, w, mask, theta = self.blocks, self.z, self.w, self.blocks.mask, self.theta
        none = {
            "hosted": np.zeros_like(z["hosted"]),
            "running": np.zeros_like(z["running"]),
            "above": np.zeros_like(z["above"]),
        }
        worth = o.worth(price | free | none)
        padded = np.append(m, 0.0)
        open_to, switched = o.let * padded[o.gates][:, None], np.where(o.switch >= 0, padded[o.switch], 0.0)
        f, v = worth["f"] - h["f"], worth["v"] - h["v"]
        change = {"m": m} | {name: theta[name] * (worth[name] - h[name]) for name in ("x", "unmet")}
        change["f"] = self.flow * f
        change["f"][o.gated] -= self.to_gate * (side["hosted"] - open_to)
        change["v"] = self.run * v - self.to_switch * (side["running"] - switched)
        price["hosted"] = divided(side["hosted"] - open_to + self.gated * f[o.gated], self.both_f, mask["hosted"])
        price["running"] = divided(side["running"] - switched + theta["v"] * v, self.both_v, mask["running"])
        price["above"] = (side["above"] - o.go["above"] @ m) / theta["above"]
        for name in ("capacity", "installed", "power", "hosted", "running", "above"):
            change[name] = (apart[name] - z[name] * price[name]) * self.per_w[name]
        change["upper"] = np.where(mask["upper"], short["upper"] - m, 0.0)
        for name in ("m", "x", "f", "v", "unmet", "upper"):
            price[name] = (apart[name] - w[name] * change[name]) * self.per_z[name]
        return change, price, free


def _inverse(matrices: Floats) -> Floats:
    """Of positive ones [T, n, n], scaled to ones on the diagonal."""
    scale = 1 / np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), 1e-300))
    return np.linalg.inv(matrices * scale[:, :, None] * scale[:, None, :]) * scale[:, :, None] * scale[:, None, :]


def _half(matrices: Floats) -> Floats:
    """H [T, n, n] with H' H the inverse of positive ones."""
    n = np.arange(matrices.shape[1])
    scale = 1 / np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), 1e-300))
    scaled = matrices * scale[:, :, None]
    scaled *= scale[:, None, :]
    scaled[:, n, n] += TINY
    result = np.linalg.cholesky(scaled)
    for i in range(len(result) if matrices.shape[1] else 0):
        result[i] = dtrtri(result[i], lower=1)[0]
    result *= scale[:, None, :]
    return result


def _take(matrix: Floats, rows: Ints, values: Floats) -> None:
    """Takes values from these rows and columns of a matrix, of which only the lower half is looked at."""
    first = np.flatnonzero(np.diff(rows, prepend=-2) > 1)
    if len(first) > FEW_RUNS:
        matrix[np.ix_(rows, rows)] -= values
        return
    ends = np.append(first[1:], len(rows))[: len(first)]  # none where there are no rows
    for i, n in zip(first, ends, strict=True):
        for j, m in zip(first, ends, strict=True):
            if j <= i:
                matrix[rows[i] : rows[i] + n - i, rows[j] : rows[j] + m - j] -= values[i:n, j:m]
