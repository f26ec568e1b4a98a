"""Large joint programs in parts: what is decided once, and the slots, each a program of its own.

    linear   over all slots at once, from within (start.py), with a bound over every column of the full problem (certificate.py)
    choices  made whole over all slots or on merged ones (choices.py), then proposed by all that is known, which proves more (proposals.py)
    counts   made whole over all slots, by a master with cuts from the slots (counts.py); of small programs in one piece (one_piece.py)

See master.py and slot_programs.py. Benders, Numerische Mathematik 4 (1962), for the cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.decomposition.first_stage import FirstStage, first_stage_of
from solvers.decomposition.interior_point.method import InteriorSolution
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound, lagrangian_bound
from solvers.decomposition.linking import FirstStagePoint
from solvers.decomposition.recovery_master import RecoveryMaster
from solvers.decomposition.slots import ALL_SLOTS, NOTHING, SlotView, by_slot_chunks, reduce_by_group
from solvers.decomposition.subproblems import SlotSubproblems
from solvers.interface import ProgressReporter
from solvers.model.data import PlanData
from solvers.model.schedule import can_finish
from solvers.program import Program

MISSING = 1.0  # price of a missing system in one slot, as a share of what the system costs over the horizon
UNDONE = 3.0  # price of a job left undone, in its dearest place
MOST_GROUPS, MOST_PACES = 84, 168  # of slots with a cut of their own, and of those in which jobs run at one pace
WHOLE = 1e-6  # how far from whole a number may be
MOST_IN_ONE_PIECE = 20_000  # columns, up to which counts are asked of the whole program
NEVER = 1e3  # times the dearest system in a slot: price of one that there cannot be


@dataclass(frozen=True, slots=True)
class RecoveryModel:
    """The search over some fleet options and places: the master with its slots' programs."""

    master: RecoveryMaster
    subproblems: SlotSubproblems


class Reformulation:
    """One problem, in numbers near 1."""

    def __init__(self, data: PlanData, functional: str, build: Callable[[PlanData], Program], threads: int, progress: ProgressReporter,
                 seconds_left: Callable[[], float] = lambda: np.inf, parallel_map: Callable[..., Iterable] = map):  # fmt: skip
        """`progress`: is told how it goes; `parallel_map`: a map, that may do several things at the same time."""
        self.parallel_map, self.functional, self._build = parallel_map, functional, build
        self.data, self.threads, self.progress, self.log, self.format_value, self.seconds_left = (
            data,
            threads,
            progress,
            progress.emit,
            progress.format_value,
            seconds_left,
        )
        self.view = SlotView.of(data, functional, np.flatnonzero(can_finish(data)))
        self.groups, self.pace_groups = self._slot_groups(MOST_GROUPS), self._slot_groups(MOST_PACES)
        self.power_limit = data.power_limit()[0]
        self.first_stage = build_first_stage(data, self.view, functional, build)
        self.row_of = {key: row for row, key in enumerate(self.first_stage.keys)}
        self.available = np.zeros(
            (len(data.option_site), data.windows), dtype=bool
        )  # [fleet options, V] where there may be any systems
        np.logical_or.at(self.available, data.holding_option, data.covers())
        cost = data.holding_cost.get(functional, np.zeros(len(data.holding_option)))
        self.option_cost = np.zeros(len(data.option_site))
        np.maximum.at(self.option_cost, data.holding_option, cost)
        self.system_slot_cost = np.tile(
            (np.maximum(self.option_cost, NOTHING) / self.view.slots)[:, None], (1, self.view.slots)
        )  # of a system in a slot
        self.standalone_job_cost = self.view.least_job_cost(
            self.view.training, self.system_slot_cost, np.zeros((self.data.sites, self.view.slots))
        )  # cost of each point's job at what systems cost
        self.undone_price = self._undone_prices(self.standalone_job_cost)

    @cached_property
    def program(self) -> Program | None:
        """The whole program, in these numbers; None where it is not small."""
        return self._build(self.data) if estimated_columns(self.data) <= MOST_IN_ONE_PIECE else None

    def _slot_groups(self, count: int) -> Ints:
        """[T]: group of each slot, of one window and so many in all or little more."""
        slots = self.data.slots
        return np.unique(
            self.data.slot_window * slots + np.arange(slots) * min(count, slots) // max(slots, 1), return_inverse=True
        )[1]

    def _undone_prices(self, cost: Floats) -> Floats:
        """Prices of jobs left undone, so that the master always has an answer: far above what the dearest place costs."""
        price, there = np.zeros(len(self.data.job_work)), np.isfinite(cost)
        width = np.zeros(len(self.data.point_job))
        np.add.at(width, self.view.use_point, self.view.use_systems * self.option_cost[self.view.use_option])
        np.maximum.at(
            price,
            self.data.point_job[self.view.training[there]],
            UNDONE * (cost[there] + width[self.view.training[there]]),
        )
        once = self.first_stage.cost[
            np.concatenate(
                [
                    self.first_stage.columns[block][self.first_stage.columns[block] >= 0].ravel()
                    for block in ("open", "host", "z")
                ]
            )
        ]
        return price + float(once.max(initial=0.0)) + NOTHING

    def recovery_model(self, fleet_options: Ints, placements: Ints) -> RecoveryModel:
        """A level over these fleet options and these points of jobs, with nothing known yet."""
        usable = self.usable_points(fleet_options)
        view = replace(self.view, training=placements[usable[placements]])
        part = self.first_stage.part(self.data, fleet_options, view.training)
        master = RecoveryMaster(
            view, part, fleet_options, self.groups, self.pace_groups, self.power_limit, self.undone_price
        )
        return RecoveryModel(
            master, SlotSubproblems(view, fleet_options, self._slack_prices(fleet_options), self.threads)
        )

    def usable_points(self, fleet_options: Ints) -> np.ndarray:
        """[P]: points that use none but these fleet options."""
        kept = np.zeros(len(self.data.option_site), dtype=bool)
        kept[fleet_options] = True
        usable = np.ones(len(self.data.point_pool), dtype=bool)
        usable[self.view.use_point[~kept[self.view.use_option]]] = False
        return usable

    def _slack_prices(self, fleet_options: Ints) -> tuple[Floats, Floats, Floats]:
        """Prices of demand not served, systems too few and watts too many in a slot: high enough that none is at the best point."""
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
            np.full(len(view.demand), MISSING * max(dear, usual)),
            0.6 * MISSING * each[fleet_options],
            np.full(data.sites, 0.6 * MISSING * watt),
        )

    def evaluate(self, model: RecoveryModel, point: FirstStagePoint) -> float:
        """What a point costs by the slots, whose answer stays as cuts."""
        answer = model.subproblems.answer(*model.master.slot_inputs(point))
        model.master.add_cuts(model.master.keep(answer))
        return model.master.first_stage_cost(point) + float(answer.value.sum())

    # -- prices ----------------------------------------------------------------------------------------------------

    def extend_duals(self, found: InteriorSolution) -> Duals:
        """The prices of an answer over all fleet options, pools and rows: what it left out, or had nothing for in a slot, is as dear as demand lets it be."""
        duals, o, data = found.duals(), found.blocks, self.data
        rows = np.zeros(len(self.first_stage.keys))
        rows[[self.row_of[key] for key in o.first_stage.keys]] = duals.rows
        beta = np.where(o.served, duals.beta, 0.0)
        arcs = np.flatnonzero(~o.served.all(axis=1)[data.arc_pool])
        pools = data.arc_pool[arcs]
        np.maximum.at(
            beta, pools, np.where(o.served[pools], 0.0, duals.delta[o.view.arc_demand[arcs]] - o.view.arc_cost[arcs])
        )
        alpha = duals.alpha.copy()  # of systems that there can be none of in a window
        alpha[~self.available[:, o.view.window]] = NEVER * max(float(alpha.max(initial=0.0)), NOTHING)
        return replace(duals, alpha=alpha, beta=beta, rows=rows)

    def complete_duals(self, duals: Duals) -> Duals:
        """The same prices of systems and watts with those of requests that they lead to: at a pool the least that a replica asks for, of demand
        the least over its arcs."""
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
        """[serving, T or slots `at`]: what a request costs at each point that serves, at these prices of systems and watts."""
        view, data, points = self.view, self.data, self.view.serving
        mine = np.flatnonzero(np.isin(view.use_point, points))
        uses = sparse.csr_array(
            (view.use_systems[mine], (np.searchsorted(points, view.use_point[mine]), view.use_option[mine])),
            shape=(len(points), len(data.option_site)),
        )
        cost = (
            view.point_cost[points, at]
            + data.point_power_w[points, None] * duals.sigma[view.site[points], at]
            + uses @ duals.alpha[:, at]
        )
        return cost / data.point_capacity[points, None]

    def trivial_bound(self) -> float:
        """What a plan costs at least, with every system busy throughout."""
        none = lambda count: np.zeros((count, self.view.slots))
        duals = Duals(
            self.system_slot_cost,
            none(self.data.sites),
            none(self.data.pools),
            none(len(self.view.demand)),
            np.zeros(len(self.first_stage.keys)),
        )
        return self.lagrangian_bound(self.complete_duals(duals)).value

    def lagrangian_bound(
        self, duals: Duals, view: SlotView | None = None, within: tuple[Floats, Floats] | None = None
    ) -> LagrangianBound:
        """The bound at these prices over every column there is; `view`: the slots that they are of; `within`: see certificate.py."""
        return lagrangian_bound(
            replace(self.view if view is None else view, training=self.view.training),
            self.first_stage,
            self.power_limit,
            duals,
            within,
            self.parallel_map,
        )


def estimated_columns(data: PlanData) -> int:
    """About the columns of the full program."""
    return int(
        data.slots * (len(data.arc_site) + (data.point_pool >= 0).sum())
        + (
            data.job_window_mask.sum(axis=1)
            * np.bincount(data.point_job[data.point_job >= 0], minlength=len(data.job_work))
        ).sum()
        if len(data.job_work)
        else data.slots * (len(data.arc_site) + len(data.point_pool))
    )


def build_first_stage(
    data: PlanData, view: SlotView, functional: str, build: Callable[[PlanData], Program]
) -> FirstStage:
    """What is decided once, from the program on one slot per window."""
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
