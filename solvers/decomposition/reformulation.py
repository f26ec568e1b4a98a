"""A program split into its first stage and one subproblem per slot, scaled so that numbers are near 1.

    LP relaxation   over all slots (`root_relaxation.py`), with a Lagrangian bound over all columns (`lagrangian_bound.py`)
    binaries        by diving and branching on all or on merged slots (`dive_and_branch.py`), then by a Benders master (`benders_loop.py`)
    counts          by a master with Benders cuts from the slots (`integer_recovery.py`), or as a MIP if the program is small (`sub_mips.py`)

`Reformulation` holds what these steps share. Reference for the cuts: J. F. Benders, "Partitioning procedures for solving mixed-variables
programming problems", Numerische Mathematik 4 (1962).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.decomposition.coverage import estimated_columns
from solvers.decomposition.first_stage import FirstStage, first_stage_of
from solvers.decomposition.interior_point.method import InteriorSolution
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound, lagrangian_bound
from solvers.decomposition.linking import FirstStagePoint
from solvers.decomposition.recovery_master import RecoveryMaster
from solvers.decomposition.slots import ALL_SLOTS, VALUE_TOL, ParallelMap, SlotView, by_slot_chunks, reduce_by_group
from solvers.decomposition.subproblems import SlotSubproblems
from solvers.interface import ABSOLUTE_GAP, ProgressReporter
from solvers.model.data import PlanData
from solvers.model.schedule import can_finish
from solvers.program import Program

UNSERVED_PRICE_FACTOR = 1.0
"""Price of a request/s left unserved in one slot, as a multiple of the cost of its systems over the whole horizon."""
SHORTFALL_PRICE_FACTOR = 0.6
"""The same for a system or a watt that is lacking."""
UNDONE_PRICE_FACTOR = 3.0
"""Price of a job left undone, as a multiple of its cost at its most expensive placement."""
MOST_CUT_GROUPS = 84
"""Groups of slots that have a Benders cut each."""
MOST_PACE_GROUPS = 168
"""Groups of slots within each of which a job runs at one pace."""
INTEGRALITY_TOL = 1e-6
"""A value this close to an integer counts as integer."""
MOST_MIP_COLUMNS = 20_000
"""Largest program [columns] that is also built and solved in one piece."""
UNAVAILABLE_PRICE_FACTOR = 1e3
"""Price of a system in a window in which it cannot be held, as a multiple of the highest price of a system in a slot."""


@dataclass(frozen=True, slots=True)
class RecoveryModel:
    """Benders master and slot subproblems over some fleet options and placements."""

    master: RecoveryMaster
    subproblems: SlotSubproblems


class Reformulation:
    """A problem in scaled numbers: its first stage, its slots, prices of what may be lacking, and bounds on it."""

    def __init__(
        self,
        data: PlanData,
        functional: str,
        build: Callable[[PlanData], Program],
        threads: int,
        progress: ProgressReporter,
        seconds_left: Callable[[], float] = lambda: np.inf,
        parallel_map: ParallelMap = map,
    ):
        """Build the first stage for the functional that is minimised; `threads`: of BLAS and of the solver."""
        self.parallel_map, self.functional, self._build = parallel_map, functional, build
        self.data, self.threads, self.seconds_left = data, threads, seconds_left
        self.progress, self.log, self.format_value = progress, progress.emit, progress.format_value
        self.absolute_gap = ABSOLUTE_GAP / abs(progress.unit_factor)  # in the scaled units of the objective
        self.view = SlotView.of(data, functional, np.flatnonzero(can_finish(data)))
        self.groups, self.pace_groups = self._slot_groups(MOST_CUT_GROUPS), self._slot_groups(MOST_PACE_GROUPS)
        self.power_limit = data.power_limit()[0]
        self.first_stage = build_first_stage(data, self.view, functional, build)
        self.row_of = {key: row for row, key in enumerate(self.first_stage.keys)}
        # [fleet options, V] where systems can be held
        self.available = np.zeros((len(data.option_site), data.windows), dtype=bool)
        np.logical_or.at(self.available, data.holding_option, data.covers())
        cost = data.holding_cost.get(functional, np.zeros(len(data.holding_option)))
        self.option_cost = np.zeros(len(data.option_site))
        np.maximum.at(self.option_cost, data.holding_option, cost)
        # [fleet options, T] cost of a system, spread evenly over the slots
        self.system_slot_cost = np.tile(
            (np.maximum(self.option_cost, VALUE_TOL) / self.view.slots)[:, None], (1, self.view.slots)
        )
        # cost of each placement's job at these prices
        self.standalone_job_cost = self.view.least_job_cost(
            self.view.training, self.system_slot_cost, np.zeros((self.data.sites, self.view.slots))
        )
        self.undone_price = self._undone_prices(self.standalone_job_cost)

    @cached_property
    def program(self) -> Program | None:
        """The whole program, in scaled numbers; None if it is large."""
        return self._build(self.data) if estimated_columns(self.data) <= MOST_MIP_COLUMNS else None

    def _slot_groups(self, count: int) -> Ints:
        """Divide the slots into `count` groups or a few more, each of consecutive slots of one window; returns the group of each slot."""
        slots = self.data.slots
        key = self.data.slot_window * slots + np.arange(slots) * min(count, slots) // max(slots, 1)
        group: Ints = np.unique(key, return_inverse=True)[1]
        return group

    def _undone_prices(self, cost: Floats) -> Floats:
        """Return prices of jobs left undone, well above the cost of their most expensive placement: the master is always feasible."""
        price, there = np.zeros(len(self.data.job_work)), np.isfinite(cost)
        width = np.zeros(len(self.data.point_job))
        np.add.at(width, self.view.use_point, self.view.use_systems * self.option_cost[self.view.use_option])
        np.maximum.at(
            price,
            self.data.point_job[self.view.training[there]],
            UNDONE_PRICE_FACTOR * (cost[there] + width[self.view.training[there]]),
        )
        once = self.first_stage.cost[
            np.concatenate(
                [
                    self.first_stage.columns[block][self.first_stage.columns[block] >= 0].ravel()
                    for block in ("open", "host", "z")
                ]
            )
        ]
        undone: Floats = price + float(once.max(initial=0.0)) + VALUE_TOL
        return undone

    def recovery_model(self, fleet_options: Ints, placements: Ints) -> RecoveryModel:
        """Build a Benders master without cuts over these fleet options and placements."""
        usable = self.usable_points(fleet_options)
        view = replace(self.view, training=placements[usable[placements]])
        part = self.first_stage.part(self.data, fleet_options, view.training)
        master = RecoveryMaster(
            view, part, fleet_options, self.groups, self.pace_groups, self.power_limit, self.undone_price
        )
        return RecoveryModel(
            master, SlotSubproblems(view, fleet_options, self._slack_prices(fleet_options), self.threads)
        )

    def usable_points(self, fleet_options: Ints) -> Bools:
        """Tell which points use none but these fleet options [P]."""
        kept = np.zeros(len(self.data.option_site), dtype=bool)
        kept[fleet_options] = True
        usable = np.ones(len(self.data.point_pool), dtype=bool)
        usable[self.view.use_point[~kept[self.view.use_option]]] = False
        return usable

    def _slack_prices(self, fleet_options: Ints) -> tuple[Floats, Floats, Floats]:
        """Return prices of demand unserved, systems lacking and watts lacking in a slot, high enough that none is at the optimum."""
        data, view = self.data, self.view
        usual = np.median(self.option_cost[self.option_cost > 0]) if (self.option_cost > 0).any() else float(view.slots)
        each = np.maximum(self.option_cost, usual)
        serving = np.isin(view.use_point, view.serving)
        dear = (
            np.median(
                each[view.use_option[serving]]
                * view.use_systems[serving]
                / data.point_capacity[view.use_point[serving]]
            )
            if serving.any()
            else usual
        )
        powered = data.holding_power_w > 0
        watt = np.median(each[data.holding_option[powered]] / data.holding_power_w[powered]) if powered.any() else usual
        return (
            np.full(len(view.demand), UNSERVED_PRICE_FACTOR * max(dear, usual)),
            SHORTFALL_PRICE_FACTOR * each[fleet_options],
            np.full(data.sites, SHORTFALL_PRICE_FACTOR * watt),
        )

    def evaluate(self, model: RecoveryModel, point: FirstStagePoint) -> float:
        """Solve the subproblems at a first-stage point, add their Benders cuts to the master, and return the cost of the point."""
        answer = model.subproblems.answer(*model.master.slot_inputs(point))
        model.master.add_cuts(model.master.keep(answer))
        return model.master.first_stage_cost(point) + float(answer.value.sum())

    def extend_duals(self, found: InteriorSolution) -> Duals:
        """Extend the prices of an LP relaxation to all fleet options, pools and rows.

        What it left out, or could not serve in a slot, costs as much as the price of demand permits.
        """
        duals, o, data = found.duals(), found.blocks, self.data
        rows = np.zeros(len(self.first_stage.keys))
        rows[[self.row_of[key] for key in o.first_stage.keys]] = duals.rows
        beta = np.where(o.served, duals.beta, 0.0)
        always_served: Bools = np.all(o.served, axis=1)
        arcs = np.flatnonzero(~always_served[data.arc_pool])
        pools = data.arc_pool[arcs]
        np.maximum.at(
            beta, pools, np.where(o.served[pools], 0.0, duals.delta[o.view.arc_demand[arcs]] - o.view.arc_cost[arcs])
        )
        alpha = duals.alpha.copy()
        alpha[~self.available[:, o.view.window]] = UNAVAILABLE_PRICE_FACTOR * max(
            float(alpha.max(initial=0.0)), VALUE_TOL
        )
        return replace(duals, alpha=alpha, beta=beta, rows=rows)

    def complete_duals(self, duals: Duals) -> Duals:
        """Replace the prices of requests by those that prices of systems and watts imply.

        At a pool this is the least cost of a replica per request, of a demand the least over its arcs.
        """
        view, data, dearest = self.view, self.data, duals.delta.max(initial=0.0)

        def of(at: slice) -> tuple[Floats, Floats]:
            request_cost = self.request_cost(duals, at)
            beta, delta = (
                np.full((data.pools, request_cost.shape[1]), np.inf),
                np.full((len(view.demand), request_cost.shape[1]), np.inf),
            )
            pools, cheapest = reduce_by_group(np.minimum, request_cost, data.point_pool[view.serving])
            beta[pools] = cheapest
            beta = np.where(np.isfinite(beta), beta, dearest)
            np.minimum.at(delta, view.arc_demand, view.arc_cost[:, at] + beta[data.arc_pool])
            return beta, np.where(np.isfinite(delta), delta, 0.0)

        beta, delta = by_slot_chunks(of, view.slots, self.parallel_map)
        return replace(duals, beta=beta, delta=delta)

    def request_cost(self, duals: Duals, at: slice = ALL_SLOTS) -> Floats:
        """Return the cost of a request at each serving point, at these prices of systems and watts [serving, T or slots `at`]."""
        view, data, points = self.view, self.data, self.view.serving
        mine = np.flatnonzero(np.isin(view.use_point, points))
        uses = sparse.csr_array(
            (view.use_systems[mine], (np.searchsorted(points, view.use_point[mine]), view.use_option[mine])),
            shape=(len(points), len(data.option_site)),
        )
        cost: Floats = (
            view.point_cost[points, at]
            + data.point_power_w[points, None] * duals.sigma[view.site[points], at]
            + np.asarray(uses @ duals.alpha[:, at])
        )
        return cost / data.point_capacity[points, None]

    def trivial_bound(self) -> float:
        """Return the Lagrangian bound at prices of systems that are busy in all slots, and no price of power."""
        sigma, beta, delta = (
            np.zeros((count, self.view.slots)) for count in (self.data.sites, self.data.pools, len(self.view.demand))
        )
        duals = Duals(self.system_slot_cost, sigma, beta, delta, np.zeros(len(self.first_stage.keys)))
        return self.lagrangian_bound(self.complete_duals(duals)).value

    def lagrangian_bound(
        self, duals: Duals, view: SlotView | None = None, within: tuple[Floats, Floats] | None = None
    ) -> LagrangianBound:
        """Return the Lagrangian bound at these prices, over all columns.

        `view`: the slots that the prices are of; `within`: bounds of the first-stage columns (`lagrangian_bound.lagrangian_bound`).
        """
        return lagrangian_bound(
            replace(self.view if view is None else view, training=self.view.training),
            self.first_stage,
            self.power_limit,
            duals,
            within,
            self.parallel_map,
        )


def build_first_stage(
    data: PlanData, view: SlotView, functional: str, build: Callable[[PlanData], Program]
) -> FirstStage:
    """Build the first stage, from the program with one slot per window."""
    windows = data.windows
    into = np.zeros((data.slots, windows))
    into[np.arange(data.slots), data.slot_window] = 1.0
    peak = np.zeros((*data.demand.shape[:2], windows))
    for w in range(windows):
        peak[:, :, w] = data.demand[:, :, data.slot_window == w].max(axis=2, initial=0.0)
    capacity, usable = np.zeros(len(data.point_pool)), np.concatenate([view.serving, view.training])
    capacity[usable] = data.point_capacity[usable]
    short = replace(
        data, order=None, slot_window=np.arange(windows), slot_hours_s=data.slot_hours_s @ into, demand=peak, point_capacity=capacity,
        point_cost={name: values @ into for name, values in data.point_cost.items()},
        arc_cost={name: values @ into for name, values in data.arc_cost.items()},
        job_window_mask=(data.job_window_mask @ into) > 0 if len(data.job_work) else np.zeros((0, windows), dtype=bool),
    )  # fmt: skip
    return first_stage_of(build(short), short, functional)
