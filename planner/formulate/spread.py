"""Program data of a workload's spread over zones."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints
from planner.problem.calendar import BUSIEST_TOL
from planner.problem.facts import ResolvedSpec
from planner.problem.spread import is_asked, zones_of
from solvers.model.block_data.choice import ChoiceData
from solvers.model.block_data.spread import SpreadData


def spread_data(problem: ResolvedSpec, demand: Floats, choice: ChoiceData | None) -> SpreadData | None:
    """Build the data of the spread; None where no workload asks for one. `demand`: [workload, origin, slot].

    Of workloads that share a demand, the first one's busiest slots are tried.
    """
    if not is_asked(problem):
        return None
    zones, asked = zones_of(problem), [w.spec.spread for w in problem.serving]
    survives = np.array([s is not None and s.survive > 0 for s in asked])
    leads = np.ones(len(asked), dtype=bool) if choice is None else choice.leads() == np.arange(len(asked))
    return SpreadData(
        site_zone=np.array([zones.index(site.fails_with) for site in problem.sites]),
        largest_share=np.array([1.0 if s is None or s.largest_share is None else s.largest_share for s in asked]),
        zones=np.array([1 if s is None else s.zones for s in asked]),
        least_share=np.array([1.0 if s is None else s.least_share for s in asked]),
        survives=survives,
        tried_slots=tried_slots(problem, demand.sum(axis=1)[survives & leads]),
    )


def tried_slots(problem: ResolvedSpec, demand: Floats) -> Ints:
    """Find the busiest slot of each workload in each window, the first of those within `BUSIEST_TOL`; `demand`: [workload, slot]."""
    window, found = problem.calendar.window, set()
    for row in demand:
        for v in range(problem.calendar.windows):
            here = np.where(window == v, row, -1.0)
            found.add(int(np.argmax(here >= here.max() * (1 - BUSIEST_TOL))))
    return np.array(sorted(found), dtype=np.int64)
