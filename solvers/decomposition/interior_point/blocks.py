"""The LP relaxation in blocks: products with its matrix and the transpose, by which the interior-point method sees it.

The LP itself is in `lp_data.py`, its blocks are in `site_blocks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.interior_point.lp_data import LpData, State
from solvers.decomposition.interior_point.settings import BLOCKS, BlockSettings
from solvers.decomposition.interior_point.site_blocks import dense_if_small, slot_blocks
from solvers.decomposition.linking import Linking
from solvers.decomposition.slots import ParallelMap

MAPS = (
    "uses",
    "watts",
    "serves",
    "job_uses",
    "job_watts",
    "systems",
    "idle",
    "equal",
    "above",
    "into_demand",
    "into_pool",
)
PRICED_ROWS = ("capacity", "installed", "power", "hosted", "running", "above")
"""Rows with a slack; their prices are at least 0."""


class BlockProgram(LpData):
    """The LP relaxation over some fleet options, serving points and placements, within bounds of the first-stage columns.

    `go` and `back`: the maps of `LpData` named in `MAPS`, and their transposes, dense where small. `parts`: the blocks of slots.
    """

    def __init__(
        self,
        linking: Linking,
        points: Ints,
        lower: Floats | None = None,
        upper: Floats | None = None,
        parallel_map: ParallelMap = map,
        threads: int = 1,
        unmet_price: Floats | None = None,
        settings: BlockSettings = BLOCKS,
    ):
        """Build the LP; `parallel_map`: a map that may run on several blocks at once; `threads`: of BLAS, for large products;
        `unmet_price` [D, T]: price per request/s left unmet, absent where all demand must be met."""
        super().__init__(linking, points, lower, upper, unmet_price, settings)
        self.parallel_map, self.threads = parallel_map, threads
        most = settings.most_dense_entries
        self.go = {name: dense_if_small(getattr(self, name), most) for name in MAPS}
        self.back = {name: dense_if_small(getattr(self, name).T.tocsr(), most) for name in MAPS}
        self.parts = slot_blocks(self, parallel_map is not map)

    def over_slots(self, of_windows: Floats) -> Floats:
        """Repeat values of windows [n V] for each of their slots [n, T]."""
        return of_windows.reshape(-1, self.windows)[:, self.window]

    def to_switches(self, values: Floats) -> Floats:
        """Sum values of placements and slots [N, T] over the first-stage column that lets the job run."""
        there = self.switch >= 0
        return self._sum_by_column(self.switch[there], values[there])

    def to_gates(self, values: Floats) -> Floats:
        """Sum values of gated arcs and slots [G, T] over the first-stage column that is the arc's gate."""
        return self._sum_by_column(self.gates, values.sum(axis=1))

    def to_done(self, values: Floats) -> Floats:
        """Move values of placements [N] to the first-stage column that places the job there."""
        there = self.done >= 0
        return self._sum_by_column(self.done[there], values[there])

    def _sum_by_column(self, column: Ints, values: Floats) -> Floats:
        return np.asarray(np.bincount(column, weights=values, minlength=len(self.moving)), dtype=np.float64)

    def rows(self, z: Mapping[str, Floats], *, change: bool = False) -> State:
        """Return the left less the right side of each row at columns and slacks `z`; for a `change` of these, the change of the rows."""
        given, go = 0.0 if change else 1.0, self.go
        m, running = np.append(z["m"], 0.0), z["v"] * self.reach
        systems = self.over_slots(go["systems"] @ z["m"] + given * self.systems_fixed)
        idle = self.over_slots(go["idle"] @ z["m"] + given * self.idle_fixed)
        watts = given * self.limit - idle - go["watts"] @ z["x"] - go["job_watts"] @ running - z["power"]
        switched = np.where(self.switch >= 0, m[self.switch], given * self.switched)
        done = np.where(self.done >= 0, m[self.done], given * self.done_fixed)
        bounded = self.mask["upper"]
        return {
            "balance": go["into_demand"] @ z["f"] + z["unmet"] - given * self.view.demand,
            "capacity": self.mask["capacity"] * (go["serves"] @ z["x"] - go["into_pool"] @ z["f"] - z["capacity"]),
            "installed": self.there * (systems - go["uses"] @ z["x"] - go["job_uses"] @ running - z["installed"]),
            "power": self.mask["power"] * watts,
            "hosted": self.mask["hosted"] * (self.let * m[self.gates][:, None] - z["f"][self.gated] - z["hosted"]),
            "running": self.may_run * (switched - z["v"] - z["running"]),
            "progress": self.runs * ((self.rate * z["v"]).sum(axis=1) - done),
            "equal": go["equal"] @ z["m"] - given * self.equal_sides,
            "above": go["above"] @ z["m"] - given * self.above_sides - z["above"],
            "upper": np.where(bounded, z["m"] + z["upper"] - given * np.where(bounded, self.upper, 0.0), 0.0),
        }

    def worth(self, p: Mapping[str, Floats]) -> State:
        """Return the transposed matrix times the row prices `p`, by column block: cost less this is the reduced cost."""
        alpha, sigma, back = p["installed"], p["power"] * self.mask["power"], self.back
        flows = p["balance"][self.arc_demand] - p["capacity"][self.arc_pool]
        flows[self.gated] -= p["hosted"]
        job_price = back["job_uses"] @ alpha + back["job_watts"] @ sigma
        of_windows = (
            back["systems"] @ (alpha @ self.in_window).ravel() - back["idle"] @ (sigma @ self.in_window).ravel()
        )
        of_rows = of_windows + back["equal"] @ p["equal"] + back["above"] @ p["above"]
        return {
            "x": back["serves"] @ p["capacity"] - back["uses"] @ alpha - back["watts"] @ sigma,
            "f": flows,
            "unmet": p["balance"],
            "v": self.rate * p["progress"][:, None] - job_price * self.reach - p["running"],
            "m": of_rows
            + self.to_gates(self.let * p["hosted"])
            + self.to_switches(p["running"])
            - self.to_done(p["progress"]),
        }
