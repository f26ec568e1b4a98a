"""The choice block: demand that any of several workloads may answer, such as one workload on several architectures.

Sets        groups g of workloads w that share the demand of the first of them, origins o, arcs a, slots t.
Data        score_w; least_g of the mean score, over all slots or in each; s_t seconds; D_{o,t} the group's demand; most_{w,o,t} what the arcs of w can carry.
Variables   serve_w  1 when w answers; only in groups where one alone must, and for workloads that may not answer at all (0)
Objective   nothing of its own.
Constraints balance  as in routing, over the arcs of all workloads of the group
            one      sum_{w of g} serve_w = 1                                                    where one alone must answer
            chosen   sum_{a of w, o} f_{a,t} <= most_{w,o,t} serve_w
            score    sum_{a of w of g, t} s_t score_w f_{a,t} >= least_g sum_{o,t} s_t D_{o,t}       (D times lambda)
                     or for each t alone, where requests may not wait
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solvers.arrays import Floats
from solvers.model.choice_data import ChoiceData

if TYPE_CHECKING:
    from solvers.model.data import PlanData
    from solvers.program import Program


def add_choice(program: Program, data: PlanData, most: Floats) -> None:
    """Comes after routing; `most` [A, T]: requests/s that an arc can carry."""
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
    shape = (len(choice.group), data.demand.shape[1], data.slots)
    together = np.zeros(shape)
    (np.add if data.objective.maximises else np.maximum).at(
        together, (data.arc_workload[arc], data.arc_origin[arc], at), most[arc, at]
    )
    used = np.zeros(shape, dtype=bool)
    used[data.arc_workload[arc], data.arc_origin[arc], at] = True
    w, o, t = np.nonzero(used)
    row = np.full(shape, -1)
    row[w, o, t] = np.arange(len(t))
    program.add_rows(
        "chosen",
        -np.inf,
        0.0,
        np.concatenate([row[data.arc_workload[arc], data.arc_origin[arc], at], np.arange(len(t))]),
        np.concatenate([flow[arc, at], serve[w]]),
        np.concatenate([np.ones(len(arc)), -together[w, o, t]]),
        index=np.column_stack([w, o, t]),
    )
    _add_scores(program, data, choice, flow)


def _add_scores(program: Program, data: PlanData, choice: ChoiceData, flow) -> None:
    asked = data.demand.sum(axis=1) * data.slot_hours_s  # [W, T] requests; those of a group stand at its lead
    leads, factor = choice.leads(), program.columns["lambda"]
    for g in np.flatnonzero(np.isfinite(choice.least)):
        lead = leads[np.flatnonzero(choice.group == g)[0]]
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
