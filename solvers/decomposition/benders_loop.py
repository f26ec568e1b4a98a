"""Better choices and counts, as they are proposed by all that is known (proposals.py): each is looked at, which tells more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.benders_master import BendersMaster, Neighbourhood
from solvers.decomposition.node_relaxation import PATIENCE, Node, NodeRelaxation
from solvers.decomposition.root_relaxation import LEAST
from solvers.decomposition.slots import NOTHING
from solvers.decomposition.sub_mips import LONGEST

FINE, FARTHER = (
    1e-4,
    0.05,
)  # of the value, how far from proven what was proposed is looked at, and beyond the best from where on not
MOVED, TRIED = (
    2,
    3,
)  # near the best: jobs that may be elsewhere, and looks that bring nothing better before all is looked at
UNMET = 30.0  # times what a demand pays in its dearest slot, that it costs where nothing carries it: a cut of what has no answer says by how much
LONGER = 1.5  # how much longer a proposal may take where the last brought nothing
PROVING = 20.0  # seconds that it may take, from which on nothing is taken to be left where nothing was found


class BendersLoop(NodeRelaxation):
    """Solve the subproblems at trial points of the Benders master and add their cuts."""

    def improve(
        self,
        master: BendersMaster,
        best: Node,
        enough: Callable[[float], float],
        within: Neighbourhood | None = None,
        near: bool = False,
        worth: float = -np.inf,
    ) -> Node:
        """The best of what is proposed, or proposed `within` a part of all there is, until it is below what is of `worth`, or so much is proven as is
        `enough` for its value, or nothing better is known of. `near`: first of what is near the best, and again wherever that is a better one."""
        self.integer_columns, self.master, self.iterations, self.tolerance = (
            master.integer_columns,
            master,
            PATIENCE,
            min(self.tolerance, FINE),
        )
        dear = (
            None if (self.integer_columns & self.count_columns).any() else self._unmet_price(best)
        )  # a system more may cost more than any price of what is left
        times: dict[bytes, int] = {}
        longest, before, tried = LONGEST, (best.found.value, master.lower_bound), 0 if near else TRIED
        while self.seconds_left() > 0 and best.found.value > worth and master.lower_bound < enough(best.found.value):
            now = best.found.value, master.lower_bound
            longest, before = LONGEST if now != before else LONGER * longest, now
            part = self._local_branching(best) if tried < TRIED else None
            below = (
                best.found.value if part or within else min(enough(best.found.value), best.found.value)
            )  # what leaves no more than that is not looked for
            goal = master.solve(below, min(self.seconds_left(), longest), part or within)
            if goal is None and part is not None:
                tried = TRIED
                continue
            if (
                goal is None
                and not within
                and longest < PROVING
                and master.lower_bound < below
                and not master.has_no_good_cuts
            ):  # not in time
                continue
            if goal is None:
                self.dec.log(f"nothing better proposed than {self.dec.format_value(best.found.value)}")
                self.dec.progress.report(bound=master.lower_bound)
                break
            chosen = np.where(self.integer_columns, goal, 0.0)
            key = chosen.tobytes()
            times[key] = times.get(key, 0) + 1
            if times[key] > 2 and part is not None:
                tried = TRIED
                continue
            if times[key] > 2 and (self.integer_columns & self.count_columns).any():
                break
            if times[key] > 2:
                master.add_no_good_cut(chosen)
                continue
            every, fleet_options = np.arange(len(self.dec.data.option_site)), self._options_used_by(goal)
            self.fleet_options, self.unmet = (
                (fleet_options, dear) if times[key] == 1 else (every, None)
            )  # what kinds that are left out would save weakens a cut, and a price of what is left
            state = self.solve(
                chosen,
                np.where(self.integer_columns, goal, self.dec.first_stage.upper),
                best.found,
                best.found.value + FARTHER * abs(best.found.value),
            )
            self.fleet_options = fleet_options
            better = state is not None and state.found.value < self.worth(best)
            tried = 0 if better and near else tried + 1
            best = best if state is None or state.found.value >= best.found.value else state
            self.dec.log(
                f"proposed: {self.dec.format_value(np.inf if state is None else state.found.value)}, best choices {self.dec.format_value(best.found.value)}"
            )
            self.dec.progress.report(bound=master.lower_bound)
        self.master = self.unmet = None
        return best

    def _unmet_price(self, best: Node) -> Floats | None:
        """[D, T]: UNMET times what each demand pays in its dearest slot of an answer, at the slots' lengths; None where that answer is of other slots."""
        delta = self.dec.extend_duals(best.found).delta
        if delta.shape != self.view.demand.shape:
            return None
        dearest = delta.max(axis=1, initial=0.0)
        return np.repeat(
            UNMET * np.maximum(dearest, NOTHING * dearest.max(initial=1.0))[:, None], self.view.slots, axis=1
        )

    def _local_branching(self, best: Node) -> Neighbourhood | None:
        """The same sites and designs, and all but MOVED jobs at the places where they are; None without jobs."""
        y, run, n = (self.dec.first_stage.columns[block].ravel() for block in ("y", "run", "n"))
        values = np.where(self.integer_columns, np.round(self.values(best)), 0.0)
        ones = y[y >= 0][values[y[y >= 0]] > 0.5]
        free = ~self.integer_columns
        for block in (y, run, n):
            free[block[block >= 0]] = True
        return (
            Neighbourhood(np.where(free, 0.0, values), np.where(free, self.dec.first_stage.upper, values), ones, MOVED)
            if len(ones)
            else None
        )

    def _options_used_by(self, values: Floats) -> Ints:
        """The fleet options, and those that these values hold or run jobs on."""
        y, n = (np.append(values, 0.0)[self.dec.first_stage.columns[block]] for block in ("y", "n"))
        used = self.dec.view.use_option[np.isin(self.dec.view.use_point, np.flatnonzero(y > 0.5))]
        return np.unique(np.concatenate([self.fleet_options, self.dec.data.holding_option[n >= LEAST], used]))
