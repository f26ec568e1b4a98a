"""Optimum of the reference program by a mixed-integer search, for problems with more whole numbers than can all be tried.

The rows are those of `tests/solvers/reference_program.py`. What a whole number allows, which stands there as bounds, stands here as rows
with the largest flow that the systems permit; payments for groups of points and limits on parts are added from their definitions. The
value is that of the linear program that is left with all whole numbers fixed; the search has to prove that nothing is better.
"""

from __future__ import annotations

import math

import highspy
import numpy as np
from scipy import sparse

from solvers.backends.highs import highs_lp, new_highs, set_threads
from tests.solvers.reference import Linear
from tests.solvers.reference_program import Reference

PROVEN = 1e-5  # largest relative difference of the value and what the search has proven
PRECISE = (
    ("presolve", "off"),
    ("mip_rel_gap", 0.0),
    ("mip_abs_gap", 0.0),
    ("mip_feasibility_tolerance", 1e-9),
    ("primal_feasibility_tolerance", 1e-9),
)


class Switched(Reference):
    """The program of one problem, with binaries and rows in place of `Reference.bounds`."""

    def __init__(self, data):
        super().__init__(data)
        self.binaries, self.said = {}, []  # bounds of the new columns; rows as (entries, side), each at most its side
        self._installed()
        self._placed()
        self._run()
        self._ported()
        self._parts()
        before = len(self.table.low)
        for key, (low, high) in self.binaries.items():
            self.whole.append(len(self.table.low))
            self.table.column(*key, low=low, high=high)
        more = np.zeros(len(self.table.low) - before)
        self.table.rows = [(np.append(row, more), low, high) for row, low, high in self.table.rows]
        for entries, side in self.said:
            self.table.at_most(entries, side)
        for limit in data.limits:
            self.table.rows.append((self.functional(limit.functional), -np.inf, limit.upper))

    def functional(self, name):
        found = super().functional(name)
        ports = self.data.ports
        for g, value in enumerate(ports.cost.get(name, ()) if ports is not None else ()):
            found[self.table.at["paid", g]] += value
        return found

    def at_most(self, entries, side=0.0):
        self.said.append((entries, side))

    def binary(self, *key, low=0.0):
        self.binaries.setdefault(key, (low, 1.0))
        return key

    def most(self, u):
        return float(math.floor(self.data.holding_upper[u] + 1e-9))

    def most_replicas(self, p):
        rooms = np.zeros(len(self.data.option_site))
        np.add.at(rooms, self.data.holding_option, self.data.holding_upper)
        return min(rooms[k] / s for k, s in self.uses[p])

    def most_flow(self, arc):
        """Requests/s that the systems of an arc's pool can serve."""
        members = [p for p in self.serving if self.data.point_pool[p] == self.data.arc_pool[arc]]
        return sum(self.data.point_capacity[p] * self.most_replicas(p) for p in members)

    def _installed(self):
        """Systems open their site; of each group of fleet options only one design is held."""
        data = self.data
        for u in range(self.U):
            option = data.holding_option[u]
            self.at_most([(("n", u), 1.0), (("open", self.holding_site[u]), -self.most(u))])
            if data.option_fabric[option] >= 0:
                design = self.binary("design", int(data.option_group[option]), int(data.option_fabric[option]))
                self.at_most([(("n", u), 1.0), (design, -self.most(u))])
        self.whole += [self.table.at["open", r] for r in range(self.R)]
        designs = list(self.binaries)
        for group in {key[1] for key in designs}:
            self.at_most([(key, 1.0) for key in designs if key[1] == group], 1.0)

    def _placed(self):
        data = self.data
        for w, r in self.placing:
            self.at_most([(("host", w, r), 1.0), (("open", r), -1.0)])
            for a in np.flatnonzero((data.arc_workload == w) & (data.arc_site == r)).tolist():
                for key in (key for key, i in self.table.at.items() if i in self.of_arc[a]):
                    self.at_most([(key, 1.0), (("host", w, r), -self.most_flow(a))])
        for w, r, e in data.tree_path.tolist():
            self.at_most([(("host", w, r), 1.0), (("edge", e), -1.0)])
        for w in self.spreading:
            most = sum(self.most_flow(a) for a in np.flatnonzero(data.arc_workload == w).tolist())
            for z, t in ((z, t) for z in self.zones for t in range(self.T)):
                self.at_most([(("short", w, z, t), 1.0), (("c", w, z), most)], most)

    def _run(self):
        """A job runs where it is chosen, in its time, on its full width; a point serves where it is deployed."""
        data, at = self.data, self.table.at
        for p, t in np.ndindex(self.P, self.T):
            if ("v", p, t) in at:
                runs = self.binary("runs", p, t)
                self.at_most([(("v", p, t), 1.0), (runs, -1.0)])
                self.at_most([(runs, 1.0), (("y", p), -1.0)])
                self.at_most([(runs, 1.0)], float(data.job_window_mask[data.point_job[p], t]))
                for k, systems in self.uses[p]:
                    here = [u for u in range(self.U) if data.holding_option[u] == k and self.covers(u, t)]
                    self.at_most([(runs, systems), *((("n", u), -1.0) for u in here)])
            if ("deployed", p, t) in at:
                self.at_most([(("x", p, t), 1.0), (("deployed", p, t), -self.most_replicas(p))])

    def _ported(self):
        """A point runs, also when a zone fails, where each of its groups is paid for."""
        ports = self.data.ports
        if ports is None:
            return
        for g in range(ports.groups):
            self.binary("paid", g, low=float(ports.paid is not None and ports.paid[g]))
        for p, g in ports.member.tolist():
            for key in [
                key for key in self.table.at if key[:2] in (("x", p), ("y", p)) or (key[0], key[2:3]) == ("h", (p,))
            ]:
                self.at_most([(key, 1.0), (("paid", g), -max(self.most_replicas(p), 1.0))])

    def _parts(self):
        """Few sites, few kinds of systems at each, each kind and each order with enough systems."""
        data, parts = self.data, self.data.parts
        if parts is None:
            return
        group = data.option_group[data.holding_option]
        counted = [u for u in range(self.U) if parts.counted[u]] if parts.limited else []
        for u in counted:
            self.at_most([(("n", u), 1.0), (self.binary("occupied", self.holding_site[u]), -self.most(u))])
            for t in (t for t in range(self.T) if self.covers(u, t)):
                kept = self.binary("kept", int(group[u]), t, self.holding_site[u])
                self.at_most([(("n", u), 1.0), (kept, -self.most(u))])
        kinds = [key for key in self.binaries if key[0] == "kept"]
        if math.isfinite(parts.most_sites):
            self.at_most([(key, 1.0) for key in self.binaries if key[0] == "occupied"], parts.most_sites)
        for r, t in np.ndindex(self.R, self.T) if math.isfinite(parts.most_kinds) else ():
            self.at_most([(key, 1.0) for key in kinds if key[2:] == (t, r)], parts.most_kinds)
        for key in kinds:
            here = [u for u in counted if group[u] == key[1] and self.covers(u, key[2])]
            self.at_most([(key, float(parts.least_systems)), *((("n", u), -1.0) for u in here)])
        for o, least in enumerate(parts.order_least.tolist()):
            mine, placed = np.flatnonzero(parts.order == o).tolist(), self.binary("placed", o)
            for u in mine:
                self.at_most([(("n", u), 1.0), (placed, -self.most(u))])
            self.at_most([(placed, float(least)), *((("n", u), -1.0) for u in mine)])
            if parts.order_placed is not None and parts.order_placed[o]:
                self.at_most([(placed, -1.0)], -1.0)


def optimum(data):
    """The best value of the objective, None where there is no plan, infinite where there is no best."""
    program = Switched(data)
    table = program.table
    sign = -1.0 if data.objective.maximises else 1.0
    if data.objective.maximises:
        cost = -table.vector([(("factor",), 1.0)])
    else:
        cost = program.functional(data.objective.functional)
    status, x, bound = searched(table, cost, program.whole)
    if status == "infeasible":
        return None
    if status == "unbounded":
        return sign * -math.inf
    lower, upper = np.array(table.low, dtype=float), np.array(table.high, dtype=float)
    of_bounds = len(program.whole) - len(program.binaries) - program.R
    whole = np.round(x[program.whole])
    reference = program.whole
    program.whole = reference[:of_bounds]
    bounds = program.bounds(whole[:of_bounds], whole[:of_bounds])
    program.whole = reference
    assert bounds is not None, "the search chose two designs of one fabric"
    lower, upper = bounds
    lower[reference], upper[reference] = np.maximum(lower[reference], whole), np.minimum(upper[reference], whole)
    value, _ = Linear(table, cost).best(lower, upper)
    assert abs(value - bound) <= PROVEN * max(1.0, abs(value)), (value, bound)
    return sign * value


def searched(table, cost, whole):
    """(status, columns, proven bound) of a search over the rows of a table."""
    matrix = sparse.csc_array(np.array([row for row, _, _ in table.rows]))
    sides = tuple(np.array([row[k] for row in table.rows], dtype=float) for k in (1, 2))
    integer = np.isin(np.arange(len(cost)), whole)
    statuses = highspy.HighsModelStatus
    for objective in (cost, np.zeros_like(cost)):  # the second tells what is unbounded from what is infeasible
        highs = new_highs()
        for name, value in (("threads", set_threads()), *PRECISE):
            assert highs.setOptionValue(name, value) == highspy.HighsStatus.kOk, name
        columns = np.array(table.low, dtype=float), np.array(table.high, dtype=float)
        highs.passModel(highs_lp(objective, matrix, sides, columns, integer))
        highs.run()
        status = highs.getModelStatus()
        if status not in (statuses.kUnbounded, statuses.kUnboundedOrInfeasible):
            break
    if status == statuses.kInfeasible:
        return "infeasible", None, math.inf
    assert status == statuses.kOptimal, status
    if objective is not cost:
        return "unbounded", None, -math.inf
    return "optimal", np.array(highs.getSolution().col_value), highs.getInfo().mip_dual_bound
