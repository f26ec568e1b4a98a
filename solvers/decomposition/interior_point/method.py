"""Mehrotra's predictor-corrector method for the LP relaxation over all slots, from any starting point.

Being interior, its prices are central among the optimal ones, so that pricing seldom finds fleet options and placements that only seem to
pay; and it needs no cuts. Newton steps are in `newton.py`.

References: S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM Journal on Optimization 2 (1992);
J. Gondzio, "Multiple centrality corrections in a primal-dual method for linear programming", Computational Optimization and
Applications 6 (1996).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.decomposition.interior_point.blocks import BlockProgram
from solvers.decomposition.interior_point.iterate import (
    Change,
    Iterate,
    Residuals,
    dual_objective,
    residuals_at,
)
from solvers.decomposition.interior_point.lp_data import State
from solvers.decomposition.interior_point.newton import Newton
from solvers.decomposition.interior_point.settings import METHOD, SCALE_FLOOR
from solvers.decomposition.interior_point.starting_points import cold_start
from solvers.decomposition.lagrangian_bound import Duals
from solvers.decomposition.linking import FirstStagePoint


@dataclass(frozen=True, slots=True)
class InteriorSolution:
    """A solution with its value and relative duality gap, and an earlier iterate `warm` as a starting point for similar LPs."""

    blocks: BlockProgram
    at: Iterate
    warm: Iterate
    value: float
    duality_gap: float

    @property
    def unserved_share(self) -> float:
        """Cost of unmet demand as a share of the value, or unmet as a share of all demand, whichever is more."""
        unserved, demand = self.at.z["unmet"], self.blocks.view.demand
        return max(
            float((self.blocks.cost["unmet"] * unserved).sum()) / max(abs(self.value), SCALE_FLOOR),
            float(unserved.sum()) / max(float(demand.sum()), SCALE_FLOOR),
        )

    def point(self) -> FirstStagePoint:
        """Return the first-stage columns and the schedules of jobs."""
        o = self.blocks
        first_stage = o.lower.copy()
        first_stage[o.moving] += self.at.z["m"]
        return FirstStagePoint(first_stage, self.at.z["v"] * o.reach)

    def duals(self) -> Duals:
        """Return the prices by slot of all fleet options, sites, pools and demands, and of the first-stage rows; 0 where the LP has no row."""
        o, w = self.blocks, self.at.w
        alpha, sigma = np.zeros((len(o.view.data.option_site), o.slots)), np.where(o.limited[:, None], w["power"], 0.0)
        alpha[o.linking.fleet_options] = w["installed"]
        rows = np.zeros(o.first_stage.matrix.shape[0])
        equal, low, high = o.row_parts
        rows[equal] = self.at.free["equal"]
        np.add.at(rows, low, w["above"][: len(low)])
        np.add.at(rows, high, -w["above"][len(low) :])
        return Duals(alpha, sigma, w["capacity"], self.at.free["balance"], rows)


AddCut = Callable[[InteriorSolution, float], bool]
"""(iterate, cutoff) -> whether its prices prove, over all columns, that nothing lies below the cutoff."""


# Prices of an infeasible LP grow beyond all bounds; the iteration recognises that by itself
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def solve_interior_point(
    blocks: BlockProgram,
    tolerance: float,
    seconds_left: Callable[[], float],
    start: Iterate | None = None,
    cutoff: float = np.inf,
    iterations: int = METHOD.iteration_limit,
    add_cut: AddCut | None = None,
) -> InteriorSolution | None:
    """Solve the LP to a relative duality gap of `tolerance`.

    None where it is infeasible, out of time or iterations, or has no solution below `cutoff`. `add_cut` is asked whether the prices of
    an iterate prove the latter over all columns; where there is no solution it is called with the last iterate in any case.
    """
    if blocks.impossible:
        return None
    at = start or cold_start(blocks)
    warm, last, closest, stall = at, None, None, _StallTest()
    rows_at_zero = blocks.rows({name: np.zeros_like(values) for name, values in at.z.items()})
    fixed_cost = float(blocks.first_stage.cost @ blocks.lower)
    pairs = max(sum(int(which.sum()) for which in blocks.mask.values()), 1)
    for _ in range(iterations):
        now = residuals_at(blocks, at, fixed_cost, pairs)
        if now.duality_gap >= METHOD.warm_start_gap:
            warm = at
        violation = now.violation(tolerance, METHOD.residual_tol)
        solution = InteriorSolution(blocks, at, warm, now.value, now.duality_gap)
        if np.isfinite(violation):
            last = solution
        if stall.record(violation, now.violation(max(tolerance, METHOD.least_attainable_gap), METHOD.residual_tol)):
            closest = solution
        if stall.finished:
            break
        beyond = bool(np.isfinite(violation)) and dual_objective(rows_at_zero, at, fixed_cost) > cutoff
        proven = beyond and now.wrong <= METHOD.cutoff_dual_residual_tol
        if seconds_left() <= 0 or now.mean <= 0 or not np.isfinite(violation) or proven:
            break
        if beyond and add_cut is not None and add_cut(solution, cutoff):
            return None
        try:
            newton = Newton(blocks, at.z, at.w)
        except np.linalg.LinAlgError:  # the scaling spans more digits than there are
            break
        at = _predictor_corrector(newton, at, now, tolerance, pairs)
    if closest is not None and stall.acceptable and closest.value * (1 - closest.duality_gap) <= cutoff:
        return closest
    if add_cut is not None and last is not None:
        add_cut(last, -np.inf)
    return None


@dataclass(slots=True)
class _StallTest:
    """Watches the violation of the tolerances: where rounding stops its decrease, a near miss is accepted."""

    least: float = np.inf
    least_attainable: float = np.inf  # with the duality gap that rounding permits
    since: int = 0  # iterations since the least

    def record(self, violation: float, attainable_violation: float) -> bool:
        """Record an iterate; True if it is the best so far with respect to what rounding permits."""
        self.since, self.least = (0, violation) if violation < self.least else (self.since + 1, self.least)
        closer = attainable_violation < self.least_attainable
        if closer:
            self.least_attainable = attainable_violation
        return closer

    @property
    def acceptable(self) -> bool:
        return self.least_attainable <= METHOD.acceptable_factor

    @property
    def finished(self) -> bool:
        return self.least <= 1 or (self.since >= METHOD.stalled_iterations and self.acceptable)


def _predictor_corrector(newton: Newton, at: Iterate, now: Residuals, tolerance: float, pairs: int) -> Iterate:
    """Take one step: predictor, second-order corrector, and centrality corrections as long as they lengthen it."""
    mask, products = newton.blocks.mask, now.products
    predictor = _refined_step(newton, now, {name: -values for name, values in products.items()})
    steps = predictor_steps = _max_step(newton, predictor, 1.0)
    reached = at.moved(*steps, predictor)
    aim = math.fsum(float((reached.z[name] * reached.w[name])[which].sum()) for name, which in mask.items()) / pairs
    floor = METHOD.complementarity_floor_share * tolerance * now.scale / pairs
    centre = max(now.mean * min(aim / now.mean, 1.0) ** 3, floor)
    # second-order terms mislead where the predictor's step is short: they are damped then
    for damped in (1.0, predictor_steps[0] * predictor_steps[1]):
        apart = {name: centre - products[name] - damped * predictor[0][name] * predictor[1][name] for name in mask}
        change = _refined_step(newton, now, apart)
        steps = _max_step(newton, change, METHOD.step_share)
        if min(steps) >= METHOD.least_corrected_share * min(predictor_steps):
            break
    for _ in range(METHOD.centrality_corrections):
        corrected = _centrality_correction(newton, at, now, change, steps, apart, centre)
        if corrected is None:
            break
        change, steps, apart = corrected
    return at.moved(*steps, change)


def _centrality_correction(
    newton: Newton,
    at: Iterate,
    now: Residuals,
    change: Change,
    steps: tuple[float, float],
    apart: State,
    centre: float,
) -> tuple[Change, tuple[float, float], State] | None:
    """Correct a step so that outlying complementarity products come nearer to `centre`; None where that does not lengthen it.

    Returned: the change, its primal and dual step, and the right-hand sides of the products.
    """
    gain = METHOD.correction_step_gain
    low, high = METHOD.least_product_share * centre, METHOD.most_product_share * centre
    reached = at.moved(min(1.0, steps[0] + gain), min(1.0, steps[1] + gain), change)
    more: State = {}
    for name in newton.blocks.mask:
        product = reached.z[name] * reached.w[name]
        more[name] = apart[name] + np.maximum(np.clip(product, low, high) - product, -high)
    change = _refined_step(newton, now, more)
    reach = _max_step(newton, change, METHOD.step_share)
    longer = min(reach[0] - steps[0], reach[1] - steps[1]) >= 0
    if longer and sum(reach) >= sum(steps) + METHOD.least_correction_gain * gain:
        return change, reach, more
    return None


def _refined_step(newton: Newton, now: Residuals, apart: State) -> Change:
    """Solve for a Newton step, with iterative refinement where rounding leaves too much of the rows."""
    change, blocks, w, before = newton.step(now.short, now.off, apart), newton.blocks, newton.w, np.inf
    for _ in range(METHOD.refinements):
        rest = {name: now.short[name] - values for name, values in blocks.rows(change[0], change=True).items()}
        priced = math.fsum(
            float((np.abs(values) * np.abs(w[name])).sum()) for name, values in rest.items() if name in w
        )
        size = priced / now.scale
        if not METHOD.refinement_share * METHOD.residual_tol < size < before:
            break
        before = size
        none = {name: np.zeros_like(values) for name, values in apart.items()}
        more = newton.step(rest, {name: none[name] for name in now.off}, none)
        change = (_sum(change[0], more[0]), _sum(change[1], more[1]), _sum(change[2], more[2]))
    return change


def _sum(a: State, b: State) -> State:
    return {name: values + b[name] for name, values in a.items()}


def _max_step(newton: Newton, change: Change, share: float) -> tuple[float, float]:
    """Return primal and dual step: this share of the way to the boundary of the positive orthant, at most 1."""
    return _step_to_boundary(newton.per_z, change[0], share), _step_to_boundary(newton.per_w, change[1], share)


def _step_to_boundary(reciprocals: State, change: State, share: float) -> float:
    ratio = max(-float((change[name] * values).min(initial=0.0)) for name, values in reciprocals.items())
    return min(1.0, share / ratio) if ratio > 0 else 1.0
