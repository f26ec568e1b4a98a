"""Newton steps of the interior-point method, by block elimination.

The slots are eliminated block by block (`slot_elimination.py`); what remains couples the first-stage columns and the progress of jobs alone
(`link_system.py`).

Reference: J. R. Birge and L. Qi, "Computing block-angular Karmarkar projections with applications to stochastic programming",
Management Science 34 (1988).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvers.arrays import Floats
from solvers.decomposition.interior_point.blocks import PRICED_ROWS, BlockProgram
from solvers.decomposition.interior_point.iterate import Change
from solvers.decomposition.interior_point.link_system import LinkSystem
from solvers.decomposition.interior_point.lp_data import State
from solvers.decomposition.interior_point.scaling import divided, scaling_at
from solvers.decomposition.interior_point.site_blocks import SlotBlock
from solvers.decomposition.interior_point.slot_elimination import (
    EliminatedBlock,
    ReducedSides,
    eliminate,
    recover_prices,
    reduce_sides,
)


class Newton:
    """The Newton equations at one iterate, factored: columns and slacks `z` > 0 with their reduced costs and prices `w` > 0."""

    def __init__(self, blocks: BlockProgram, z: Mapping[str, Floats], w: Mapping[str, Floats]):
        """Factor; raises `numpy.linalg.LinAlgError` where rounding leaves a matrix that is not positive definite."""
        self.blocks, self.z, self.w = blocks, z, w
        self.scaling = scaling_at(blocks, z, w)
        self.per_z, self.per_w = self.scaling.per_z, self.scaling.per_w
        self.parts: list[EliminatedBlock] = list(blocks.parallel_map(self._eliminate, blocks.parts))
        self.links = LinkSystem(blocks, self.scaling, self.parts)

    def _eliminate(self, block: SlotBlock) -> EliminatedBlock:
        return eliminate(self.blocks, self.scaling, block)

    def step(self, short: Mapping[str, Floats], off: Mapping[str, Floats], apart: Mapping[str, Floats]) -> Change:
        """Solve for the changes that add `short` to the rows, take `off` from the dual residual, and add `apart` to the products z w.

        Returned: changes of columns and slacks, of reduced costs and prices, and of the prices of free rows.
        """
        o, count = self.blocks, len(self.blocks.moving)
        h = {name: off[name] - apart[name] * self.per_z[name] for name in ("x", "f", "v", "m", "unmet")}
        side = {name: short[name] + apart[name] * self.per_w[name] for name in PRICED_ROWS}
        run = self.scaling.run * h["v"] + self.scaling.to_switch * side["running"]
        sides = self._slot_sides(h, side, short, run)
        right = self._link_sides(h, side, short, apart, run)

        def reduce(block: SlotBlock, done: EliminatedBlock) -> ReducedSides:
            return reduce_sides(block, done, sides)

        reduced: list[ReducedSides] = list(o.parallel_map(reduce, o.parts, self.parts))
        for block, part in zip(o.parts, reduced):
            for site, mine in zip(block.sites, part.of_sites):
                right[site.link_columns] -= mine
            right[block.link_columns] -= part.of_all
        m, rest = self.links.solve(right[:count], np.concatenate([right[count:], short["equal"]]))
        link_columns = np.concatenate([m, rest[: o.links - count]])
        price = {
            "capacity": np.zeros((o.pools, o.slots)),
            "installed": np.zeros((o.fleet_options, o.slots)),
            "power": np.zeros((o.sites, o.slots)),
            "balance": np.zeros((o.demands, o.slots)),
        }

        def recover(block: SlotBlock, done: EliminatedBlock, part: ReducedSides) -> None:
            recover_prices(block, done, part, link_columns, price)

        list(o.parallel_map(recover, o.parts, self.parts, reduced))
        progress, runs = np.zeros(len(o.placements)), np.flatnonzero(o.runs)
        progress[runs] = link_columns[o.progress[runs]]
        free = {"balance": price.pop("balance"), "progress": progress, "equal": rest[o.links - count :]}
        return self._remaining_changes(m, price, free, h, side, short, apart)

    def _slot_sides(self, h: State, side: State, short: Mapping[str, Floats], run: Floats) -> State:
        """Return the right-hand sides of the slots' rows once columns and slacks are eliminated; `balance` is [T, D]."""
        o, s = self.blocks, self.scaling
        flow = s.flow * h["f"]
        flow[o.gated] += s.to_gate * side["hosted"]
        running, replicas = run * o.reach, s.theta["x"] * h["x"]
        return {
            "balance": (short["balance"] + o.go["into_demand"] @ flow + s.theta["unmet"] * h["unmet"]).T,
            "capacity": side["capacity"] + o.go["serves"] @ replicas - o.go["into_pool"] @ flow,
            "installed": side["installed"] - o.go["uses"] @ replicas - o.go["job_uses"] @ running,
            "power": side["power"] - o.go["watts"] @ replicas - o.go["job_watts"] @ running,
        }

    def _link_sides(
        self, h: State, side: State, short: Mapping[str, Floats], apart: Mapping[str, Floats], run: Floats
    ) -> Floats:
        """Return the right-hand sides of the linking columns before slots are eliminated [links]."""
        o, s, mask, count = self.blocks, self.scaling, self.blocks.mask, len(self.blocks.moving)
        right = np.zeros(o.links)
        right[:count] = (
            h["m"]
            + (apart["upper"] - self.w["upper"] * short["upper"]) * self.per_z["upper"]
            - o.back["above"] @ (side["above"] / s.theta["above"])
        )
        right[:count] -= o.to_gates(
            divided(o.let * (side["hosted"] - s.gated * h["f"][o.gated]), s.both_f, mask["hosted"])
        )
        right[:count] -= o.to_switches(divided(side["running"] - s.theta["v"] * h["v"], s.both_v, mask["running"]))
        runs = np.flatnonzero(o.runs)
        right[o.progress[runs]] = (short["progress"] + (o.rate * run).sum(axis=1))[runs]
        return right

    def _remaining_changes(
        self,
        m: Floats,
        price: State,
        free: State,
        h: State,
        side: State,
        short: Mapping[str, Floats],
        apart: Mapping[str, Floats],
    ) -> Change:
        """Return all changes, given the changes of the linking columns and of the prices of rows that were not eliminated."""
        o, s, z, w, mask, theta = self.blocks, self.scaling, self.z, self.w, self.blocks.mask, self.scaling.theta
        none = {name: np.zeros_like(z[name]) for name in ("hosted", "running", "above")}
        worth = o.worth(price | free | none)
        padded = np.append(m, 0.0)
        open_to, switched = o.let * padded[o.gates][:, None], np.where(o.switch >= 0, padded[o.switch], 0.0)
        f, v = worth["f"] - h["f"], worth["v"] - h["v"]
        change = {"m": m} | {name: theta[name] * (worth[name] - h[name]) for name in ("x", "unmet")}
        change["f"] = s.flow * f
        change["f"][o.gated] -= s.to_gate * (side["hosted"] - open_to)
        change["v"] = s.run * v - s.to_switch * (side["running"] - switched)
        price["hosted"] = divided(side["hosted"] - open_to + s.gated * f[o.gated], s.both_f, mask["hosted"])
        price["running"] = divided(side["running"] - switched + theta["v"] * v, s.both_v, mask["running"])
        price["above"] = (side["above"] - o.go["above"] @ m) / theta["above"]
        for name in PRICED_ROWS:
            change[name] = (apart[name] - z[name] * price[name]) * self.per_w[name]
        change["upper"] = np.where(mask["upper"], short["upper"] - m, 0.0)
        for name in ("m", "x", "f", "v", "unmet", "upper"):
            price[name] = (apart[name] - w[name] * change[name]) * self.per_z[name]
        return change, price, free
