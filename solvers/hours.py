"""Other hours for jobs, as few as may be, where counts that were made whole leave them too few systems or watts.

    min sum_{p,t} high |v - before| + price (v - before)
    subject to  uses v <= systems, watts v <= free in every slot;  sum_t seconds_t rate_p v_{p,t} = work_j;  0 <= v_{p,t} <= what may run.

`high` is the highest price, so that nothing moves because hours are cheaper, and what has to move goes where they are.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from solvers.decomposition.linking import Linked, Point
from solvers.model.data import Floats

NEAR, EXACT = 1e-7, 1e-9  # how much less than there is may be taken, of 1 and more, and how far rows may be broken


def nearest(linked: Linked, point: Point, price: Floats, taken: Floats) -> Point | None:
    """The point with jobs run at hours nearest to its own, so that in every slot they leave `taken` [lots, T] systems to others. `price`
    [places, T] of running there for a slot. None where there are none."""
    view, data, before = linked.view, linked.view.data, point.running
    systems, _, _, left = linked.given(point)
    systems, watts = systems - taken, left + linked.watts @ before
    moves = linked.most_running(point.structure)
    place, slot = np.nonzero(moves > 0)
    if not len(place):
        return point
    limits = sparse.vstack([linked.uses, linked.watts]).tocoo()
    most = np.vstack([systems, watts])
    by_slot = sparse.csr_array((np.ones(len(place)), (slot * before.shape[0] + place, np.arange(len(place)))), shape=(before.size, len(place)))
    into = sparse.kron(sparse.eye_array(view.slots), limits).tocsr() @ by_slot
    upper = most.T.ravel()
    bound = np.flatnonzero((np.diff(into.indptr) > 0) & np.isfinite(upper))
    into, upper = into[bound], upper[bound]
    work = data.point_capacity[linked.places] / data.job_work[data.point_job[linked.places]]
    done = sparse.csr_array((work[place] * view.seconds[slot], (place, np.arange(len(place)))), shape=(before.shape[0], len(place)))
    runs = np.flatnonzero(np.diff(done.indptr))
    now, dear = before[place, slot], price[place, slot]
    high = max(float(dear.max()), 1e-12)
    both = lambda matrix: sparse.hstack([matrix, -matrix])
    wanted = point.structure[linked.structure.columns["y"][linked.places]]
    found = linprog(
        np.concatenate([high + dear, high - dear]), A_ub=both(into), b_ub=upper - NEAR * np.maximum(upper, 1.0) - into @ now, A_eq=both(done)[runs], b_eq=(wanted - done @ now)[runs],
        bounds=np.column_stack([np.zeros(2 * len(place)), np.concatenate([np.maximum(moves[place, slot] - now, 0.0), now])]), method="highs",
        options={"primal_feasibility_tolerance": EXACT},
    )  # fmt: skip
    if found.x is None:
        return None
    running = np.zeros_like(before)
    more, less = np.split(found.x, 2)
    running[place, slot] = now + more - less
    return Point(point.structure, running)
