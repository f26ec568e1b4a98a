"""Benders loop: solve the node relaxation at trial points of the master (`benders_master.py`), whose duals become its next cuts.

Near the incumbent the master is asked first, within a local-branching neighbourhood; then over all first-stage points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.benders_master import BendersMaster, Neighbourhood
from solvers.decomposition.node_relaxation import ITERATION_LIMIT, Node, NodeRelaxation
from solvers.decomposition.root_relaxation import ROOT_SETTINGS
from solvers.decomposition.slots import VALUE_TOL
from solvers.decomposition.sub_mips import MAX_TIME_S


@dataclass(frozen=True, slots=True)
class BendersLoopSettings:
    """Tuning constants of the Benders loop."""

    # gap to which the relaxation at a trial point is solved, relative to its objective
    relative_tolerance: float = 1e-4
    # excess over the incumbent, relative to it, at which the solve of a trial point is cut off
    cutoff_slack: float = 0.05
    jobs_moved: int = 2  # jobs that the local-branching neighbourhood of the incumbent lets move
    # trial points in the neighbourhood without improvement before the master is asked over all
    fruitless_trials: int = 3
    # cost of unmet demand, as a multiple of its dual in its dearest slot: with it, an infeasible point still has a cut
    unmet_penalty: float = 30.0
    time_growth: float = 1.5  # factor on the master's time limit after a round without improvement
    proving_time_s: float = 20.0  # time limit [s] from which on a master without a solution counts as having none


SETTINGS = BendersLoopSettings()


class BendersLoop(NodeRelaxation):
    """Solve the subproblems at trial points of the Benders master and add their cuts."""

    def improve(
        self,
        master: BendersMaster,
        best: Node,
        enough: Callable[[float], float],
        within: Neighbourhood | None = None,
        near: bool = False,
        target: float = -np.inf,
    ) -> Node:
        """Evaluate trial points of the master until the incumbent is good enough; return the best node.

        Stops when the incumbent's objective is at most `target`, when the master's bound reaches `enough(objective)`, or when the
        master has no better point. `within`: search this part of the first stage alone. `near`: search the neighbourhood of the
        incumbent first, and again after each improvement."""
        self.integer_columns, self.master, self.iterations = master.integer_columns, master, ITERATION_LIMIT
        self.tolerance = min(self.tolerance, SETTINGS.relative_tolerance)
        # with integer counts, one more system may cost more than any penalty on unmet demand
        penalty = None if (self.integer_columns & self.count_columns).any() else self._unmet_penalty(best)
        times: dict[bytes, int] = {}
        longest, before = MAX_TIME_S, (best.found.value, master.lower_bound)
        tried = 0 if near else SETTINGS.fruitless_trials
        while self.seconds_left() > 0 and best.found.value > target and master.lower_bound < enough(best.found.value):
            now = best.found.value, master.lower_bound
            longest, before = MAX_TIME_S if now != before else SETTINGS.time_growth * longest, now
            part = self._local_branching(best) if tried < SETTINGS.fruitless_trials else None
            # over all points, none is sought above the bound that is enough
            below = best.found.value if part or within else min(enough(best.found.value), best.found.value)
            goal = master.solve(below, min(self.seconds_left(), longest), part or within)
            if goal is None and part is not None:
                tried = SETTINGS.fruitless_trials
                continue
            if (
                goal is None
                and not within
                and longest < SETTINGS.proving_time_s
                and master.lower_bound < below
                and not master.has_no_good_cuts
            ):  # the master ran out of time: the next round gives it more
                continue
            if goal is None:
                self.dec.log(f"nothing better proposed than {self.dec.format_value(best.found.value)}")
                self.dec.progress.report(bound=master.lower_bound)
                break
            chosen = np.where(self.integer_columns, goal, 0.0)
            key = chosen.tobytes()
            times[key] = times.get(key, 0) + 1
            if times[key] > 2 and part is not None:
                tried = SETTINGS.fruitless_trials
                continue
            if times[key] > 2 and (self.integer_columns & self.count_columns).any():
                break
            if times[key] > 2:
                master.add_no_good_cut(chosen)
                continue
            every, fleet_options = np.arange(len(self.dec.data.option_site)), self._options_used_by(goal)
            # options left out weaken the cut, and so does the penalty: a point proposed again is solved without either
            self.fleet_options, self.unmet = (fleet_options, penalty) if times[key] == 1 else (every, None)
            state = self.solve(
                chosen,
                np.where(self.integer_columns, goal, self.dec.first_stage.upper),
                best.found,
                best.found.value + SETTINGS.cutoff_slack * abs(best.found.value),
            )
            self.fleet_options = fleet_options
            better = state is not None and state.found.value < self.improvement_cutoff(best)
            tried = 0 if better and near else tried + 1
            best = best if state is None or state.found.value >= best.found.value else state
            self.dec.log(
                f"proposed: {self.dec.format_value(np.inf if state is None else state.found.value)}, best choices {self.dec.format_value(best.found.value)}"
            )
            self.dec.progress.report(bound=master.lower_bound)
        self.master = self.unmet = None
        return best

    def _unmet_penalty(self, best: Node) -> Floats | None:
        """Set the penalty on unmet demand [D, T] from its dual in its dearest slot; None where the node is over other slots."""
        delta = self.dec.extend_duals(best.found).delta
        if delta.shape != self.view.demand.shape:
            return None
        dearest = delta.max(axis=1, initial=0.0)
        return np.repeat(
            SETTINGS.unmet_penalty * np.maximum(dearest, VALUE_TOL * dearest.max(initial=1.0))[:, None],
            self.view.slots,
            axis=1,
        )

    def _local_branching(self, best: Node) -> Neighbourhood | None:
        """Restrict the master to the incumbent's sites and designs, with few jobs moved; None without jobs."""
        y, run, n = (self.dec.first_stage.columns[block].ravel() for block in ("y", "run", "n"))
        values = np.where(self.integer_columns, np.round(self.values(best)), 0.0)
        ones = y[y >= 0][values[y[y >= 0]] > 0.5]
        free = ~self.integer_columns
        for block in (y, run, n):
            free[block[block >= 0]] = True
        return (
            Neighbourhood(
                np.where(free, 0.0, values),
                np.where(free, self.dec.first_stage.upper, values),
                ones,
                SETTINGS.jobs_moved,
            )
            if len(ones)
            else None
        )

    def _options_used_by(self, values: Floats) -> Ints:
        """Add to the fleet options those that this first-stage point holds or runs jobs on."""
        y, n = (np.append(values, 0.0)[self.dec.first_stage.columns[block]] for block in ("y", "n"))
        used = self.dec.view.use_option[np.isin(self.dec.view.use_point, np.flatnonzero(y > 0.5))]
        return np.unique(
            np.concatenate(
                [self.fleet_options, self.dec.data.holding_option[n >= ROOT_SETTINGS.relevant_systems], used]
            )
        )
