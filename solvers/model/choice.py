"""The choice block: demand that any of several workloads may serve, such as one workload on several architectures.

The rows `balance` of the routing block sum over the arcs of all workloads of a group.

Sets
    g             groups of workloads that share the demand of their first member
    w             workloads of a group
    o             origins
    a             arcs
    t             slots
Data
    score_w       quality score of a workload
    least_g       least mean score, over all slots or in each
    seconds_t     time that a slot stands for
    D_{o,t}       demand of the group [requests/s]
    most_{w,o,t}  requests/s that the arcs of w can carry
Variables
    serve_w       in {0, 1}, 1 when w serves; only in groups that a single workload must serve, and 0 for workloads that may not serve
Objective
    None of its own.
Constraints
    one           sum_{w of g} serve_w = 1    for each g that a single workload must serve
    chosen        sum_{a of w,o} f_{a,t} <= most_{w,o,t} serve_w    for each w, o, t
    score         sum_{a of w of g, t} seconds_t score_w f_{a,t} >= least_g sum_{o,t} seconds_t D_{o,t}
                  for each g; D times lambda where throughput is maximised; for each t alone where the mean of every slot counts;
                  sum_{a of w of g} f_{a,t} in place of sum_o D_{o,t} where requests may wait
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.model.block_data.choice import ChoiceData
from solvers.model.data import PlanData
from solvers.model.deferral import may_wait
from solvers.program import Program


def add_choice(program: Program, data: PlanData, most: Floats) -> None:
    """Add the block, after routing; `most` [A, T]: requests/s that an arc can carry."""
    choice = data.choice
    if choice is None:
        return
    program.presolve = False
    grouped, flow = choice.group >= 0, program.columns["f"]
    alone = np.where(grouped, choice.one[choice.group], False) if len(choice.one) else grouped
    serve = program.add_columns(
        "serve",
        choice.group.shape,
        upper=choice.able.astype(float),
        integer=True,
        where=alone | (grouped & ~choice.able),
    )
    member = np.flatnonzero(alone)
    groups = np.flatnonzero(choice.one)
    row_of = np.full(len(choice.one), -1)
    row_of[groups] = np.arange(len(groups))
    program.add_rows("one", 1.0, 1.0, row_of[choice.group[member]], serve[member], 1.0, index=groups[:, None])

    arc, at = np.nonzero((flow >= 0) & (serve >= 0)[data.arc_workload][:, None])
    rows = ChosenRows.of(data, most, arc, at)
    rows.add(program, "chosen", flow, np.column_stack(rows.index))
    _add_scores(program, data, choice, flow)


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """Rows that let a workload serve an origin in a slot only where it is chosen."""

    arc: Ints  # [F] arc of each flow
    at: Ints  # [F] slot of each flow
    row: Ints  # [F] row of each flow
    workload: Ints  # [rows]
    origin: Ints
    slot: Ints
    together: Floats  # [rows] most requests/s

    @classmethod
    def of(cls, data: PlanData, most: Floats, arc: Ints, at: Ints) -> ChosenRows:
        """Gather the rows of some flows (`arc`, `at`) of workloads that have a binary `serve`; `most` [A, T]."""
        shape = (data.demand.shape[0], data.demand.shape[1], data.slots)
        key = data.arc_workload[arc], data.arc_origin[arc], at
        together, used = np.zeros(shape), np.zeros(shape, dtype=bool)
        (np.add if data.objective.maximises else np.maximum).at(together, key, most[arc, at])
        used[key] = True
        w, o, t = np.nonzero(used)
        number = np.full(shape, -1)
        number[w, o, t] = np.arange(len(t))
        return cls(arc, at, number[key], w, o, t, together[w, o, t])

    @property
    def index(self) -> tuple[Ints, Ints, Ints]:
        """Return (workload, origin, slot) of the rows."""
        return self.workload, self.origin, self.slot

    def add(self, program: Program, block: str, flow: Ints, index: Ints) -> None:
        """Add the rows over the columns `flow` [A, T]."""
        rows = len(self.slot)
        program.add_rows(
            block,
            -np.inf,
            0.0,
            np.concatenate([self.row, np.arange(rows)]),
            np.concatenate([flow[self.arc, self.at], program.columns["serve"][self.workload]]),
            np.concatenate([np.ones(len(self.arc)), -self.together]),
            index=index,
        )


def _add_scores(program: Program, data: PlanData, choice: ChoiceData, flow: Ints) -> None:
    asked = data.demand.sum(axis=1) * data.slot_hours_s  # [W, T] requests; those of a group are its lead's
    leads, factor, waits = choice.leads(), program.columns["lambda"], may_wait(data)
    for g in np.flatnonzero(np.isfinite(choice.least)):
        lead = leads[np.flatnonzero(choice.group == g)[0]]
        if waits[lead]:
            _add_scores_of_served(program, data, choice, flow, int(g))
            continue
        part = np.arange(data.slots) if choice.hourly[g] else np.zeros(data.slots, dtype=np.int64)
        size = np.bincount(part, weights=asked[lead])  # [parts]
        arc, at = np.nonzero((flow >= 0) & (choice.group == g)[data.arc_workload][:, None] & (size[part] > 0))
        rows, vals, cols = (
            part[at],
            choice.score[data.arc_workload[arc]] * data.slot_hours_s[at] / size[part[at]],
            flow[arc, at],
        )
        grows = bool(data.scaled()[lead] > 0)
        kept = np.flatnonzero(size > 0)
        if grows:
            rows, cols = np.append(rows, kept), np.append(cols, np.full(len(kept), int(factor)))
            vals = np.append(vals, np.full(len(kept), -choice.least[g]))
        row_of = np.full(len(size), -1)
        row_of[kept] = np.arange(len(kept))
        program.add_rows(
            "score",
            0.0 if grows else choice.least[g],
            np.inf,
            row_of[rows],
            cols,
            vals,
            index=np.column_stack([np.full(len(kept), g), kept]),
        )


def _add_scores_of_served(program: Program, data: PlanData, choice: ChoiceData, flow: Ints, g: int) -> None:
    """Add `score` of a group whose requests may wait: what counts is served in a slot, not what arrives in it."""
    arc, at = np.nonzero((flow >= 0) & (choice.group == g)[data.arc_workload][:, None])
    part = at if choice.hourly[g] else np.zeros(len(at), dtype=np.int64)
    kept, row = np.unique(part, return_inverse=True)
    above = choice.score[data.arc_workload[arc]] - choice.least[g]
    vals = above * data.slot_hours_s[at] / data.slot_hours_s.max()
    index = np.column_stack([np.full(len(kept), g), kept])
    program.add_rows("score", 0.0, np.inf, row.reshape(-1), flow[arc, at], vals, index=index)
