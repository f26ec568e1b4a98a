"""Input of the program over a scenario tree: index sets and arrays. Not here: the program (`solvers.stochastic.tree`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints, no_floats, no_ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetData:
    """What all scenarios share; every index is a position.

    Sizes: K fleet options, U holdings, V windows, R sites, T slots, C classes of demand, W workloads, Q pools, A arcs, G ways to serve, J jobs,
    H uses of options by jobs, S leaves. A holding is a decision at one stage on systems of one option over some windows. Of a return,
    `parent` is the holding that it ends early; its cost is what the return saves, below 0.
    """

    # holdings
    option: Ints  # [U]
    stage: Ints  # [U] decision date at which it is decided
    covers: Bools  # [U, V] windows in which its systems are there; of a return, windows in which they no longer are
    parent: Ints  # [U] holding that a return ends, -1 for holdings that are no returns
    lower: Floats  # [U]
    upper: Floats  # [U]
    whole: Bools  # [U]
    power_w: Floats  # [U] of one idle system at the meter

    # fleet options
    option_site: Ints  # [K]
    by_use: Bools  # [K] paid for by use, so that nothing has to be held
    size: Floats = field(
        default_factory=lambda: no_floats(0)
    )  # [K] of one system, such as its chips; 0: not counted in what is needed
    supply_limit: Floats = field(default_factory=lambda: no_floats(0))
    supply_member: Ints = field(default_factory=lambda: no_ints(0, 2))  # rows (supply, option)

    # time and room
    window: Ints  # [T]
    seconds: Floats  # [T]
    room_w: Floats  # [R, T], inf: unlimited

    # serving
    demand: Floats  # [C, T] requests/s
    class_workload: Ints  # [C]
    arc_class: Ints  # [A]
    arc_pool: Ints  # [A]
    arc_cost: Floats  # [A, T] of one request/s over a slot
    way_pool: Ints  # [G]
    way_option: Ints  # [G]
    way_power_w: Floats  # [G] above idle, of one system at work
    way_cost: Floats  # [G, T] of one system at work over a slot, without payment by use
    use_price: Floats  # [K, T] of one system of an option that is paid by use, over a slot
    on_offer: Bools = field(
        default_factory=lambda: np.zeros((0, 0), dtype=bool)
    )  # [K, T] whether systems that are paid by use can be had; empty: always
    lack_cost: Floats  # [W, T] of one request/s that is not served over a slot

    # jobs
    job_work: Floats = field(default_factory=lambda: no_floats(0))
    job_mask: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))  # [J, T]
    job_option: Ints = field(default_factory=lambda: no_ints(0))  # [H]
    job_of: Ints = field(default_factory=lambda: no_ints(0))  # [H]
    job_power_w: Floats = field(default_factory=lambda: no_floats(0))  # [H]
    job_cost: Floats = field(default_factory=lambda: no_floats(0, 0))  # [H, T]
    job_undone: Floats = field(default_factory=lambda: no_floats(0))  # [J] cost of leaving all of a job undone

    @property
    def slots(self) -> int:
        """Number of slots."""
        return len(self.window)

    @property
    def pools(self) -> int:
        """Number of pools."""
        return int(max(self.way_pool.max(initial=-1), self.arc_pool.max(initial=-1))) + 1

    def usable(self) -> Bools:
        """[K, T]: slots in which systems of an option are there without being held."""
        return np.broadcast_to(self.by_use[:, None], self.use_price.shape) & (
            self.on_offer if self.on_offer.size else True
        )

    def held(self, covers: Bools | None = None) -> Floats:
        """[U, T]: systems there by a unit of a holding, below 0 for a return; `covers` [U, V] of a scenario in place of the planned windows."""
        sign = np.where(self.parent < 0, 1.0, -1.0)[:, None]
        there = self.covers if covers is None else covers
        found: Floats = np.where(there[:, self.window], sign, 0.0)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCosts:
    """Costs of work in scenarios, beside holdings."""

    arc: Floats  # [S, A, T]
    way: Floats  # [S, G, T]
    job: Floats  # [S, H, T]
    use: Floats  # [S, K, T]

    def picked(self, leaves: Ints) -> UseCosts:
        """Keep some scenarios."""
        return UseCosts(arc=self.arc[leaves], way=self.way[leaves], job=self.job[leaves], use=self.use[leaves])


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """Scenarios at the leaves of a tree, with their weights."""

    weight: Floats  # [S], sum 1
    efficiency: Floats  # [S, G] requests/s of one system
    rate: Floats  # [S, H] work units/s of one system
    growth: Floats  # [S, C, T] factor on demand
    cost: Floats  # [S, U] of one unit of a holding
    use_factor: Floats  # [S, K] factor on payments by use
    node: Ints  # [dates, S] leaves that are alike to who decides at a date have one number
    covers: Bools | None = None  # [S, U, V] windows in which the systems are there, where deliveries differ
    costs: UseCosts | None = None  # where prices differ, in place of the data's

    @property
    def count(self) -> int:
        """Number of leaves."""
        return len(self.weight)

    def picked(self, leaves: Sequence[int] | Ints) -> Leaves:
        """Keep some leaves, at equal weights."""
        at = np.asarray(leaves, dtype=np.int64)
        return Leaves(
            weight=np.full(len(at), 1.0 / max(len(at), 1)), efficiency=self.efficiency[at], rate=self.rate[at],
            growth=self.growth[at], cost=self.cost[at], use_factor=self.use_factor[at], node=self.node[:, at],
            covers=None if self.covers is None else self.covers[at], costs=None if self.costs is None else self.costs.picked(at),
        )  # fmt: skip

    def costs_of(self, data: FleetData, leaf: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return what arcs [A, T], ways [G, T], jobs [H, T] and uses [K, T] cost in a leaf."""
        if self.costs is None:
            return data.arc_cost, data.way_cost, data.job_cost.reshape(-1, data.slots), data.use_price
        costs = self.costs
        return costs.arc[leaf], costs.way[leaf], costs.job[leaf].reshape(-1, data.slots), costs.use[leaf]

    def knowing_nothing(self) -> Leaves:
        """Let every date decide for all leaves alike."""
        return replace(self, node=np.zeros_like(self.node))

    def knowing_everything(self) -> Leaves:
        """Let every date, the start too, decide for each leaf apart."""
        return replace(self, node=np.tile(np.arange(self.count), (len(self.node), 1)))

    def knowing(self, group: Ints) -> Leaves:
        """Let every date know, beside what it knows, which group [S] a leaf belongs to."""
        joint = self.node * (int(group.max(initial=0)) + 1) + group
        return replace(self, node=np.array([np.unique(row, return_inverse=True)[1].ravel() for row in joint]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """The objective.

    `tail`: level of the conditional value at risk; None for the expected cost. `fixed_use`: systems that are paid by use are hired at the
    start, one count per slot for all leaves.
    """

    tail: float | None = None
    fixed_use: bool = False


def dearer(data: FleetData, factor: float) -> FleetData:
    """Return the data with work left undone dearer by a factor."""
    return replace(data, lack_cost=factor * data.lack_cost, job_undone=factor * data.job_undone)
