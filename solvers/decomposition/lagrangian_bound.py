"""The Lagrangian bound: a lower bound on the full problem, over all of its columns, at any prices of the slots' rows.

The rows of the slots are relaxed at the given prices. The rest separates into replicas (which raised prices of systems make
worthless), flows, jobs and the first stage. The code is apart from the search that finds the prices and needs only their signs: poor
prices give a weak bound, never a wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.first_stage import FirstStage
from solvers.decomposition.slots import ParallelMap, SlotView

BRACKET_DOUBLINGS = 20
"""Times that the upper end of the search for a job's price is doubled."""
BISECTIONS = 60
"""Times that the interval of this search is halved."""


@dataclass(frozen=True, slots=True)
class Duals:
    """Prices of all systems, watts, pools and demands by slot, and of the first-stage rows; signs as in a minimisation."""

    alpha: Floats  # [K, T] at least 0
    sigma: Floats  # [R, T] at least 0
    beta: Floats  # [Q, T] at least 0
    delta: Floats  # [D, T]
    rows: Floats  # rows of the first stage

    def disaggregated(self, group: Ints, seconds: Floats, rows: Floats) -> Duals:
        """Divide prices of merged slots among all slots in proportion to their `seconds` [T]; `rows`: of the first stage there."""
        part = seconds / np.bincount(group, weights=seconds)[group]
        alpha, sigma, beta, delta = (each[:, group] * part for each in (self.alpha, self.sigma, self.beta, self.delta))
        return Duals(alpha, sigma, beta, delta, rows)

    def mixed(self, other: Duals, share: float) -> Duals:
        """Return the convex combination with other prices; the bound is concave in them."""
        return Duals(
            *(
                share * getattr(self, name) + (1 - share) * getattr(other, name)
                for name in ("alpha", "sigma", "beta", "delta", "rows")
            )
        )


@dataclass(frozen=True, slots=True)
class LagrangianCut:
    """constant + slope m is at most the cost of any plan with first stage m.  `alpha`: the raised prices of systems."""

    constant: float
    slope: Floats  # slope of the first-stage columns; inf where the column must be 0
    alpha: Floats  # [K, T]


@dataclass(frozen=True, slots=True)
class LagrangianBound:
    """The bound, the cut that it follows from, and the reduced costs of the first-stage columns."""

    value: float
    cut: LagrangianCut
    reduced_cost: Floats
    # the same before each job's price is adjusted: below 0 for a placement that would improve the LP relaxation
    pricing_reduced_cost: Floats


def lagrangian_cut(
    view: SlotView,
    first_stage: FirstStage,
    power_limit: Floats,
    duals: Duals,
    parallel_map: ParallelMap = map,
) -> LagrangianCut:
    """Relax the rows of the slots at these prices and charge the rest of the slots to the first stage.

    alpha_{k,t}  raised until capacity beta - cost - power sigma <= sum uses alpha for every replica, so that replicas add nothing
    flows        min(0, cost + beta - delta) x largest flow of each arc and slot, charged to the arc's gate
    open_r       fixed cost - sigma x power limit
    n_u          cost + idle power x sigma - alpha over the slots it covers
    y_p          least cost of the job there at these prices
    run_{p,w}    0 here; see `_charge_job_windows`

    `power_limit`: of sites [R], or of sites and windows [R, V], infinite for none.
    """
    data = view.data
    limit, sigma, beta = (
        _power_limit(view, power_limit),
        _power_duals(view, power_limit, duals),
        np.maximum(duals.beta, 0.0),
    )
    limited = np.isfinite(limit)
    alpha = view.raise_alpha(beta, sigma, np.maximum(duals.alpha, 0.0), parallel_map)
    watts = (np.where(limited, limit, 0.0) * sigma).sum(axis=1)
    constant, slope = float((duals.delta * view.demand).sum()), first_stage.cost.copy()
    place = first_stage.columns["open"]
    slope[place[place >= 0]] -= watts[place >= 0]  # a site has power where it is open
    constant -= float(watts[place < 0].sum())
    _add_holding_terms(view, first_stage, alpha, sigma, slope)
    saved = (
        np.minimum(view.arc_cost + beta[data.arc_pool] - duals.delta[view.arc_demand], 0.0)
        * view.demand[view.arc_demand]
    )
    gated = first_stage.arc_gate >= 0
    np.add.at(slope, first_stage.arc_gate[gated], saved[gated].sum(axis=1))
    constant += float(saved[~gated].sum())
    cost = view.least_job_cost(view.training, alpha, sigma, parallel_map)
    place = first_stage.columns["y"][view.training] if len(view.training) else np.zeros(0, dtype=np.int64)
    there = place >= 0
    slope[place[there]] += cost[there]
    return LagrangianCut(constant, slope, alpha)


def lagrangian_bound(
    view: SlotView,
    first_stage: FirstStage,
    power_limit: Floats,
    duals: Duals,
    within: tuple[Floats, Floats] | None = None,
    parallel_map: ParallelMap = map,
) -> LagrangianBound:
    """Relax the first-stage rows as well and minimise over the columns.

    value = sides of all rows x their prices + each column x reduced cost, at the bound that this asks for; of each job's placements only
    the cheapest counts. `within`: bounds of the first-stage columns for which value and reduced costs hold, if narrower than its own.
    """
    found = lagrangian_cut(view, first_stage, power_limit, duals, parallel_map)
    open_above, open_below = np.isposinf(first_stage.row_upper), np.isneginf(first_stage.row_lower)
    rows = np.clip(duals.rows, np.where(open_above, 0.0, -np.inf), np.where(open_below, 0.0, np.inf))
    sides = np.where(rows > 0, first_stage.row_lower, first_stage.row_upper)
    value = found.constant + float((rows * np.where(rows == 0.0, 0.0, sides)).sum())
    reduced_cost = found.slope - first_stage.matrix.T @ rows
    lower, upper, _ = first_stage.propagate_bounds(
        *((np.zeros(first_stage.size), first_stage.upper) if within is None else within)
    )
    reduced_cost = np.where(upper > 0, reduced_cost, np.inf)  # fixed at 0
    _charge_job_windows(view, first_stage, found, _power_duals(view, power_limit, duals), reduced_cost)
    pricing_reduced_cost = reduced_cost.copy()
    value += _price_assignments(view, first_stage, reduced_cost)
    sure = np.where(np.isfinite(reduced_cost), reduced_cost, 0.0)
    value += float((np.minimum(sure, 0.0) * upper + np.maximum(sure, 0.0) * lower).sum())
    return LagrangianBound(value, found, reduced_cost, pricing_reduced_cost)


def _power_limit(view: SlotView, power_limit: Floats) -> Floats:
    """Return the power limit by slot [R, T]."""
    return np.broadcast_to(power_limit.reshape(view.data.sites, -1), (view.data.sites, view.data.windows))[
        :, view.window
    ]


def _power_duals(view: SlotView, power_limit: Floats, duals: Duals) -> Floats:
    """Return the prices of power [R, T], 0 at sites without a limit."""
    return np.where(np.isfinite(_power_limit(view, power_limit)), np.maximum(duals.sigma, 0.0), 0.0)


def _add_holding_terms(
    view: SlotView, first_stage: FirstStage, alpha: Floats, sigma: Floats, reduced_cost: Floats
) -> None:
    """Charge each holding its idle power, less the price of its systems in the slots that it covers."""
    data = view.data
    windows = data.windows
    earned, power = np.zeros((len(alpha), windows)), np.zeros((len(sigma), windows))
    np.add.at(earned.T, view.window, alpha.T)
    np.add.at(power.T, view.window, sigma.T)
    covers = data.covers()
    option = data.holding_option
    net = (covers * (data.holding_power_w[:, None] * power[data.option_site[option]] - earned[option])).sum(axis=1)
    place = first_stage.columns["n"]
    held = place >= 0
    reduced_cost[place[held]] += net[held]


def _charge_job_windows(
    view: SlotView, first_stage: FirstStage, found: LagrangianCut, sigma: Floats, reduced_cost: Floats
) -> None:
    """Add to each placement of a job the reduced costs of the windows in which it runs there.

    With the price price_t of running through slot t, which does work_t of the job, and the reduced cost r_w of window w,
        cost >= pi + sum_w min(0, r_w + sum_{t in w} min(0, price_t - pi work_t))        for any price pi of the job.
    The right side is concave in pi and its largest value is taken, found by bisection of its slope. The cut charges pi to y, and to each
    window what it saves.
    """
    data, run, y = view.data, first_stage.columns["run"], first_stage.columns["y"]
    points = view.training[(run[view.training] >= 0).any(axis=1) & np.isfinite(reduced_cost[y[view.training]])]
    points = points[np.isfinite(view.least_job_cost(points, found.alpha, sigma))]
    window = np.zeros((view.slots, data.windows))
    window[np.arange(view.slots), view.window] = 1.0
    standalone_job_cost = view.least_job_cost(points, found.alpha, sigma)
    for j in np.unique(data.point_job[points]):
        mine = np.flatnonzero(data.point_job[points] == j)
        price = view.running_price(points[mine], found.alpha, sigma)
        work = view.job_seconds[j] * data.point_capacity[points[mine], None] / data.job_work[j]
        window_cost = np.append(reduced_cost, 0.0)[run[points[mine]]]

        def cost(
            pi: Floats, price: Floats = price, work: Floats = work, window_cost: Floats = window_cost
        ) -> tuple[Floats, Floats]:
            """Return the right side and its slope at prices pi [points]."""
            less = np.minimum(price - pi[:, None] * work, 0.0)
            runs = window_cost + less @ window < 0
            return pi + np.where(runs, window_cost + less @ window, 0.0).sum(axis=1), 1 - (
                np.where(less < 0, work, 0.0) @ window * runs
            ).sum(axis=1)

        pi_low = np.where(work > 0, price / np.where(work > 0, work, 1.0), np.inf).min(axis=1, initial=np.inf)
        window_total = np.where(np.isfinite(window_cost), np.abs(window_cost), 0.0).sum(axis=1)
        pi_low, pi_high = (
            np.minimum(pi_low, 0.0) - window_total,
            np.maximum(standalone_job_cost[mine], 0.0) + window_total + 1.0,
        )
        for _ in range(BRACKET_DOUBLINGS):
            rising = cost(pi_high)[1] > 0
            pi_high = np.where(rising, 2 * pi_high, pi_high)
        for _ in range(BISECTIONS):
            middle = 0.5 * (pi_low + pi_high)
            rising = cost(middle)[1] > 0
            pi_low, pi_high = np.where(rising, middle, pi_low), np.where(rising, pi_high, middle)
        pi = np.where(cost(pi_low)[0] >= cost(pi_high)[0], pi_low, pi_high)
        reduced_cost[y[points[mine]]] += cost(pi)[0] - standalone_job_cost[mine]
        found.slope[y[points[mine]]] += pi - standalone_job_cost[mine]
        place, there = run[points[mine]], run[points[mine]] >= 0
        found.slope[place[there]] += (np.minimum(price - pi[:, None] * work, 0.0) @ window)[there]
    reduced_cost[run[run >= 0]] = 0.0  # counted with the placement


def _price_assignments(view: SlotView, first_stage: FirstStage, reduced_cost: Floats) -> float:
    """Adjust the price of each job: one of its placements is chosen in any case, so the least reduced cost is part of the bound."""
    place = first_stage.columns["y"][view.training] if len(view.training) else np.zeros(0, dtype=np.int64)
    total = 0.0
    job = view.data.point_job[view.training]
    for j in np.unique(job):
        mine = place[(job == j) & (place >= 0)]
        smallest = float(reduced_cost[mine].min())
        total += smallest
        if np.isfinite(smallest):
            reduced_cost[mine] -= smallest
    return total
