"""The linear part over all slots from within: a primal-dual method that starts anywhere and takes the slots apart (newton.py).

Its prices are central among all that are as good, so fleet options and places that were left out seldom seem to pay; and it needs no cuts.
Mehrotra, SIAM Journal on Optimization 2 (1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Ints
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.interior_point.blocks import BlockProgram, State
from solvers.decomposition.interior_point.newton import Newton
from solvers.decomposition.lagrangian_bound import Duals
from solvers.decomposition.linking import FirstStagePoint

STEP = 0.9  # of the way to where the first column or price would be 0
ITERATIONS = 120
NEAR_NOTHING = 1e-3  # values below count as this when things are relative to them
ENOUGH = 0.2  # of the tolerance, which products need not be below: nearer to 0 the equations lose their digits
SHORT = 1e-4  # of the value, that rows may be short and reduced costs off, each at the other's price
ALMOST = 1e-3  # of the value, that reduced costs may be off for prices to say that there is nothing below a cutoff
DIGITS = 1e-5  # of the value: a nearer answer than that may not be had
NEAR, STALLED = (
    20.0,
    8,
)  # times what is asked for that is taken where no more digits are to be had, and iterations that tell
WARM = 0.02  # how far primal and dual are apart where other programs start
ANYWHERE = (
    0.25  # of a start anywhere, mixed with that from other slots: what these lack takes more room than their answer has
)
PACES = ("v", "running")  # columns and slacks of jobs at work
LEFT = 1e-3  # of demand, that nothing carries where a start is anywhere, if it may be so
ROOM = 0.1  # of a limit, that is left where a start is anywhere
MOSTLY = 0.9  # of a job that is to be done somewhere, from which on it starts as it is
REFINED, REFINE = (
    2,
    0.1,
)  # times that a step makes up for what rounding left of its own rows, at most, and share of SHORT from which on
WORSE = 0.2  # of the direct step, that one towards the centre must reach
CORRECTED, FARTHER, PAYS = (
    2,
    0.2,
    0.1,
)  # corrections of an iteration, at most; how much farther they aim, and the share of it that they must gain
LOWEST, HIGHEST = 0.1, 10.0  # of the mean aimed at, between which products should be
Change = tuple[State, State, State]  # of columns and slacks, of reduced costs and prices, of the prices of free rows


@dataclass(frozen=True, slots=True)
class Iterate:
    """Columns and slacks `z`, their reduced costs and prices `w`, and the prices of free rows."""

    z: State
    w: State
    free: State

    def moved(self, far: float, far_prices: float, change: Change) -> Iterate:
        by = lambda old, new, share: {name: values + share * new[name] for name, values in old.items()}
        return Iterate(
            by(self.z, change[0], far), by(self.w, change[1], far_prices), by(self.free, change[2], far_prices)
        )


@dataclass(frozen=True, slots=True)
class InteriorSolution:
    """An answer: its value and how far from proven it is, relatively, and an earlier iterate for others to start from."""

    blocks: BlockProgram
    at: Iterate
    warm: Iterate
    value: float
    duality_gap: float

    @property
    def unserved_share(self) -> float:
        """Share of the value that is the price of what nothing carries, or of all demand that it is, whichever is more."""
        unserved, demand = self.at.z["unmet"], self.blocks.view.demand
        return max(
            float((self.blocks.cost["unmet"] * unserved).sum()) / max(abs(self.value), NEAR_NOTHING),
            float(unserved.sum()) / max(float(demand.sum()), NEAR_NOTHING),
        )

    def point(self) -> FirstStagePoint:
        o = self.blocks
        first_stage = o.lower.copy()
        first_stage[o.moving] += self.at.z["m"]
        return FirstStagePoint(first_stage, self.at.z["v"] * o.reach)

    def duals(self) -> Duals:
        """Of all fleet options, sites, pools and demand in each slot and of the rows of the structure; 0 where the program has none."""
        o, w = self.blocks, self.at.w
        alpha, sigma = np.zeros((len(o.view.data.option_site), o.slots)), np.where(o.limited[:, None], w["power"], 0.0)
        alpha[o.linking.fleet_options] = w["installed"]
        rows = np.zeros(o.first_stage.matrix.shape[0])
        equal, low, high = o.row_parts
        rows[equal] = self.at.free["equal"]
        np.add.at(rows, low, w["above"][: len(low)])
        np.add.at(rows, high, -w["above"][len(low) :])
        return Duals(alpha, sigma, w["capacity"], self.at.free["balance"], rows)


@np.errstate(
    over="ignore", invalid="ignore", divide="ignore"
)  # where there is no answer prices grow beyond all bounds, which is told below
def solve_interior_point(blocks: BlockProgram, tolerance: float, seconds_left: Callable[[], float], start: Iterate | None = None, cutoff: float = np.inf, iterations: int = ITERATIONS,
           add_cut: Callable[[InteriorSolution, float], bool] | None = None) -> InteriorSolution | None:  # fmt: skip
    """The program's answer to the tolerance, relative; None where it has none, or not in time or so many iterations, or none below the cutoff.
    `add_cut`: whether the prices of what was tried prove so much, which where there is no answer is asked of the last in any case."""
    if blocks.impossible:
        return None
    at = start or _cold_start(blocks)
    warm, mask = at, blocks.mask
    nothing = blocks.rows({name: np.zeros_like(values) for name, values in at.z.items()})
    base = float(blocks.first_stage.cost @ blocks.lower)
    count = max(sum(int(which.sum()) for which in mask.values()), 1)
    closest, last, merit, since, near = None, None, np.inf, 0, np.inf
    for _ in range(iterations):
        z, w = at.z, at.w
        short = {name: -values for name, values in blocks.rows(z).items()}
        off = _dual_residual(blocks, at)
        products = {name: z[name] * w[name] for name in mask}  # 0 where there is no such pair
        mean = sum(float(values.sum()) for values in products.values()) / count
        value = base + sum(float((blocks.cost[name] * z[name]).sum()) for name in ("m", "x", "f", "v", "unmet"))
        scale = max(abs(value), NEAR_NOTHING)
        duality_gap = mean * count / scale
        missing = (
            sum(
                float((np.abs(values) * np.abs(w[name] if name in w else at.free[name])).sum())
                for name, values in short.items()
            )
            / scale
        )
        wrong = sum(float((np.abs(values) * z[name]).sum()) for name, values in off.items()) / scale
        if duality_gap >= WARM:
            warm = at
        far_off, far_from_near = (
            max(duality_gap / wanted, missing / SHORT, wrong / SHORT) for wanted in (tolerance, max(tolerance, DIGITS))
        )
        last = InteriorSolution(blocks, at, warm, value, duality_gap) if np.isfinite(far_off) else last
        since, merit = (0, far_off) if far_off < merit else (since + 1, merit)
        if far_from_near < near:
            closest, near = InteriorSolution(blocks, at, warm, value, duality_gap), far_from_near
        if merit <= 1 or (since >= STALLED and near <= NEAR):
            break
        beyond = np.isfinite(far_off) and _dual_objective(nothing, at, base) > cutoff
        if seconds_left() <= 0 or mean <= 0 or not np.isfinite(far_off) or (beyond and wrong <= ALMOST):
            break
        if beyond and add_cut is not None and add_cut(last, cutoff):
            return None
        try:
            newton = Newton(blocks, z, w)
        except np.linalg.LinAlgError:  # numbers too far apart
            break
        direct = _step(newton, short, off, {name: -values for name, values in products.items()}, scale)
        far = _max_step(newton, direct, 1.0)
        reached = at.moved(*far, direct)
        aim = sum(float((reached.z[name] * reached.w[name])[which].sum()) for name, which in mask.items()) / count
        centre = max(mean * min(aim / mean, 1.0) ** 3, ENOUGH * tolerance * scale / count)
        direct_far = far
        for damped in (
            1.0,
            far[0] * far[1],
        ):  # what products change by beyond the linear is far off where the step is short
            second = {name: centre - products[name] - damped * direct[0][name] * direct[1][name] for name in mask}
            change = _step(newton, short, off, second, scale)
            far = _max_step(newton, change, STEP)
            if min(far) >= WORSE * min(direct_far):
                break
        for _ in range(CORRECTED):
            better = _centrality_correction(blocks, at, change, far, centre, newton, short, off, second, scale)
            if better is None:
                break
            change, far, second = better
        at = at.moved(*far, change)
    if near <= NEAR and closest.value * (1 - closest.duality_gap) <= cutoff:
        return closest
    if add_cut is not None and last is not None:
        add_cut(last, -np.inf)
    return None


def _centrality_correction(
    blocks: BlockProgram,
    at: Iterate,
    change: Change,
    far: tuple[float, float],
    centre: float,
    newton: Newton,
    short: State,
    off: State,
    apart: State,
    scale: float,
):
    """(change, how far, what products are apart) once more, with products that would be far from the others brought nearer; None where that
    does not reach farther. Gondzio, Computational Optimization and Applications 6 (1996)."""
    aims = tuple(min(1.0, step + FARTHER) for step in far)
    reached = at.moved(*aims, change)
    more = {}
    for name in blocks.mask:
        product = reached.z[name] * reached.w[name]
        more[name] = apart[name] + np.maximum(
            np.clip(product, LOWEST * centre, HIGHEST * centre) - product, -HIGHEST * centre
        )
    change = _step(newton, short, off, more, scale)
    reach = _max_step(newton, change, STEP)
    return (
        (change, reach, more)
        if min(reach[0] - far[0], reach[1] - far[1]) >= 0 and sum(reach) >= sum(far) + PAYS * FARTHER
        else None
    )


def _step(newton: Newton, short: State, off: State, apart: State, scale: float) -> Change:
    """The step, refined where rounding left its rows further off, at their prices, than they may be."""
    change, blocks, w, at_once = newton.step(short, off, apart), newton.blocks, newton.w, np.inf
    for _ in range(REFINED):
        rest = {name: short[name] - values for name, values in blocks.rows(change[0], change=True).items()}
        size = (
            sum(float((np.abs(values) * np.abs(w[name])).sum()) for name, values in rest.items() if name in w) / scale
        )
        if not REFINE * SHORT < size < at_once:
            break
        at_once = size
        none = {name: np.zeros_like(values) for name, values in apart.items()}
        more = newton.step(rest, {name: none[name] for name in off}, none)
        change = tuple(
            {name: values + again[name] for name, values in part.items()}
            for part, again in zip(change, more, strict=True)
        )
    return change


def _dual_objective(nothing: State, at: Iterate, base: float) -> float:
    """The value of the prices; `nothing`: what the rows come to without any columns."""
    duals = at.w | at.free | {"upper": -at.w["upper"]}
    return base - sum(float((values * duals[name]).sum()) for name, values in nothing.items())


def _dual_residual(blocks: BlockProgram, at: Iterate) -> State:
    """What reduced costs differ from those that prices make."""
    worth = blocks.worth(
        {name: at.w[name] for name in ("capacity", "installed", "power", "hosted", "running", "above")} | at.free
    )
    off = {
        name: np.where(blocks.mask[name], blocks.cost[name] - worth[name] - at.w[name], 0.0)
        for name in ("x", "f", "v", "unmet", "m")
    }
    off["m"] = off["m"] + at.w["upper"]
    return off


def _max_step(newton: Newton, change: Change, damp: float) -> tuple[float, float]:
    """How far columns and prices may go."""
    result = []
    for per, moves in ((newton.per_z, change[0]), (newton.per_w, change[1])):
        ratio = max(-float((moves[name] * values).min(initial=0.0)) for name, values in per.items())
        result.append(min(1.0, damp / ratio) if ratio > 0 else 1.0)
    return result[0], result[1]


def _cold_start(blocks: BlockProgram) -> Iterate:
    """Demand spread over all arcs, replicas and systems to match, and prices near what systems cost."""
    o, view, slots = blocks, blocks.view, blocks.slots
    ones = lambda count, value: np.full((count, slots), float(value))
    z: State = {}
    z["f"] = o.arc_upper / np.maximum(o.into_demand.sum(axis=1), 1.0)[o.arc_demand][:, None]
    among = np.maximum((o.serves > 0).sum(axis=1), 1)
    serves = np.asarray(o.serves.sum(axis=0)).ravel()
    pool = view.data.point_pool[o.points]
    z["x"] = np.maximum((o.into_pool @ z["f"] / among[:, None])[pool] / serves[:, None], 0.01)
    z["v"], z["unmet"] = ones(len(o.placements), 0.05), LEFT * view.demand
    upper = np.where(o.mask["upper"], o.upper, np.inf)
    z["m"] = np.minimum(np.maximum(0.1 * np.where(np.isfinite(upper), upper, 1.0), 0.05), 0.5 * upper)
    z["upper"] = np.where(o.mask["upper"], upper - z["m"], 1.0)
    z |= {
        "capacity": ones(o.pools, 0.5),
        "installed": ones(o.fleet_options, 0.5),
        "power": np.maximum(ones(o.sites, 1.0), ROOM * o.limit),
    }
    z |= {
        "hosted": np.maximum(0.3 * o.let, 1e-3),
        "running": ones(len(o.placements), 0.1),
        "above": np.maximum(1.0, ROOM * np.abs(o.above_sides)),
    }
    without_hosting_cost = o.rows(
        z | {name: np.zeros_like(z[name]) for name in ("capacity", "installed", "power", "hosted", "running", "above")}
    )
    z |= {
        name: np.maximum(z[name], without_hosting_cost[name])
        for name in ("capacity", "installed", "power", "hosted", "running", "above")
    }
    cost = o.cost["m"]
    usual = max(float(np.abs(cost).mean()) if len(cost) else 0.0, 1e-3)
    systems_held = o.systems.tocsc()
    each = np.zeros(o.fleet_options)
    np.maximum.at(each, systems_held.indices // o.windows, np.repeat(cost, np.diff(systems_held.indptr)))
    alpha = (
        np.maximum(each, 0.1 * max(float(np.median(each)) if len(each) else 0.0, 1e-3))[:, None]
        * np.ones(slots)
        / slots
    )
    need = o.uses.T @ alpha
    beta = np.full((o.pools, slots), np.inf)
    np.minimum.at(beta, pool, (need + o.cost["x"]) / serves[:, None])
    w: State = {
        "installed": alpha,
        "power": ones(o.sites, 0.1 * np.median(alpha) if alpha.size else 1.0),
        "capacity": np.maximum(np.where(np.isfinite(beta), 0.9 * beta, 0.0), 1e-4),
    }
    delta = np.full((o.demands, slots), np.inf)
    np.minimum.at(delta, o.arc_demand, o.cost["f"] + w["capacity"][o.arc_pool])
    delta = np.where(np.isfinite(delta), delta, 0.0)
    w["hosted"] = 0.05 * np.maximum(delta[o.arc_demand[o.gated]], 0.0) + 1e-6
    w["running"] = 0.1 * (o.job_uses.T @ alpha) + 1e-6
    w["above"] = np.full(o.above.shape[0], 0.01 * usual)
    w["x"] = np.maximum(
        o.cost["x"] + need - serves[:, None] * w["capacity"][pool], 0.1 * np.median(need) if need.size else 1.0
    )
    flow = o.cost["f"] + w["capacity"][o.arc_pool] - delta[o.arc_demand]
    flow[o.gated] += w["hosted"]
    w["f"] = np.maximum(flow, max(0.1 * float(np.median(delta)) if delta.size else 0.0, 1e-4))
    w["v"], w["unmet"] = (
        np.maximum(o.job_uses.T @ alpha, 1e-3),
        np.maximum(o.cost["unmet"] - delta, ROOM * o.cost["unmet"]),
    )
    w["m"], w["upper"] = np.maximum(0.3 * np.abs(cost), 0.1 * usual), np.where(o.mask["upper"], 0.1 * usual, 0.0)
    return Iterate(
        _masked(o, z),
        _masked(o, w),
        {"balance": delta, "progress": np.zeros(len(o.placements)), "equal": np.zeros(o.equal.shape[0])},
    )


def _masked(blocks: BlockProgram, values: State) -> State:
    return {name: np.where(mask, values[name], 0.0) for name, mask in blocks.mask.items()}


def warm_start_from(
    old: BlockProgram, at: Iterate, new: BlockProgram, group: Ints, keep_job_pace: bool = False
) -> Iterate:
    """An iterate of one program as a start for another: `group` [slots] is the slot of the old one that each of the new is like, whose length
    says what part of its prices. What the old one does not know starts as anywhere, jobs that are sent somewhere on their way (`_start_moved_jobs`). `keep_job_pace`:
    jobs go on as they were, unmixed; one without an hour to spare has no way back to its pace."""
    fresh, part = _cold_start(new), new.view.seconds / old.view.seconds[group]
    data, z, w, free = new.view.data, {}, {}, {}
    same = lambda count: (np.arange(count), np.arange(count), count)
    arcs, gated, placements = (
        (old.arcs, new.arcs, len(data.arc_pool)),
        (old.arcs[old.gated], new.arcs[new.gated], len(data.arc_pool)),
        (old.placements, new.placements, len(data.point_job)),
    )
    known = {
        "x": (old.points, new.points, len(data.point_pool)), "f": arcs, "hosted": gated, "v": placements, "running": placements, "power": same(old.sites),
        "unmet": same(old.demands), "installed": (old.linking.fleet_options, new.linking.fleet_options, len(data.option_site)), "capacity": same(old.pools),
    }  # fmt: skip
    for name, which in known.items():
        row = _rows_of(*which)
        covered = (row >= 0)[:, None] & np.vstack([old.mask[name], np.zeros((1, old.slots), dtype=bool)])[row][:, group]
        for onto, values, start, times in ((z, at.z, fresh.z, 1.0), (w, at.w, fresh.w, part)):
            onto[name] = np.where(
                covered, np.vstack([values[name], np.zeros((1, old.slots))])[row][:, group] * times, start[name]
            )
    _scale_to_demand(old, new, group, z)
    free["balance"] = at.free["balance"][:, group] * part
    free["progress"] = np.append(at.free["progress"], 0.0)[_rows_of(*placements)]
    marked = np.zeros(old.first_stage.size)
    marked[old.moving] = 1.0 + np.arange(len(old.moving))
    row = map_columns(old.first_stage, new.first_stage, marked)[new.moving].astype(np.int64) - 1
    for name in ("m", "upper"):
        z[name], w[name] = (
            np.where(row >= 0, np.append(values[name], 0.0)[row], start[name])
            for values, start in ((at.z, fresh.z), (at.w, fresh.w))
        )
    bounded = new.mask["upper"]
    upper = np.where(bounded, new.upper, np.inf)
    z["m"] = np.where(bounded, np.clip(z["m"], 1e-6 * upper, (1 - 1e-6) * upper), z["m"])
    z["upper"], w["upper"] = (
        np.where(bounded, upper - z["m"], 1.0),
        np.where(bounded, np.maximum(w["upper"], 1e-9), 0.0),
    )
    keys = lambda o: [
        (o.first_stage.keys[row], side)
        for part, side in zip(o.row_parts, ("equal", "low", "high"), strict=True)
        for row in part
    ]
    was = {key: i for i, key in enumerate(keys(old))}
    row = np.array([was.get(key, -1) for key in keys(new)], dtype=np.int64)
    equal, above = row[: len(new.row_parts[0])], row[len(new.row_parts[0]) :]
    free["equal"] = np.append(at.free["equal"], 0.0)[equal]
    above = np.where(above >= 0, above - len(old.row_parts[0]), -1)
    z["above"], w["above"] = (
        np.where(above >= 0, np.append(values["above"], 0.0)[above], start["above"])
        for values, start in ((at.z, fresh.z), (at.w, fresh.w))
    )
    if not keep_job_pace:
        _start_moved_jobs(new, _rows_of(*placements) < 0, z, w, free)
    result = Iterate(_masked(new, z), _masked(new, w), free)
    if np.array_equal(group, np.arange(old.slots)):
        return result
    mixed = lambda a, b: {name: (1 - ANYWHERE) * values + ANYWHERE * b[name] for name, values in a.items()}
    return Iterate(
        mixed(result.z, fresh.z) | {name: result.z[name] for name in (PACES if keep_job_pace else ())},
        mixed(result.w, fresh.w),
        mixed(result.free, fresh.free),
    )


def _start_moved_jobs(o: BlockProgram, unknown: np.ndarray, z: State, w: State, free: State) -> None:
    """Jobs that are to be done at places `unknown` so far, or that did less than all there, start with what is left to do spread evenly over the
    slots' room, and pay what that takes at the prices there are: from where they were most of the steps went by until they were on their way."""
    shares = np.where(o.may_run & ~unknown[:, None], np.minimum(z["v"], 1 - ROOM), 0.0)
    placements = np.flatnonzero(o.runs & (o.done < 0) & (o.done_fixed > 0.5) & ((o.rate * shares).sum(axis=1) < MOSTLY))
    if not len(placements):
        return
    rate, may, share, price = (
        o.rate[placements],
        o.may_run[placements],
        shares[placements],
        free["progress"][placements],
    )
    room = np.where(may, 1 - ROOM - share, 0.0)
    share = (
        share
        + room
        * np.clip((1 - (rate * share).sum(axis=1)) / np.maximum((rate * room).sum(axis=1), NEAR_NOTHING), 0.0, 1.0)[
            :, None
        ]
    )
    share = np.maximum(share, NEAR_NOTHING)
    takes = (o.cost["v"] + (o.back["job_uses"] @ w["installed"] + o.back["job_watts"] @ w["power"]) * o.reach)[
        placements
    ]
    done = (rate * share * may).sum(axis=1)
    price = np.maximum(
        price, np.divide((takes * share * may).sum(axis=1), done, out=np.zeros(len(placements)), where=done > 0)
    )
    floor = ROOM * np.maximum(takes, np.maximum(takes.mean(axis=1), NEAR_NOTHING)[:, None])
    z["v"][placements], z["running"][placements] = share, 1 - share
    w["v"][placements], w["running"][placements] = (
        np.maximum(takes - price[:, None] * rate, floor),
        np.maximum(price[:, None] * rate - takes, floor),
    )
    free["progress"][placements] = price


def _scale_to_demand(old: BlockProgram, new: BlockProgram, group: Ints, z: State) -> None:
    """Flows and what carries them brought to each slot's own demand, where that of the old slots was another."""
    old_demand = old.view.demand[:, group]
    times = np.divide(new.view.demand, old_demand, out=np.ones_like(old_demand), where=old_demand > 0)
    if (times == 1.0).all():
        return
    before = new.into_pool @ z["f"]
    z["f"], z["hosted"] = z["f"] * times[new.arc_demand], z["hosted"] * times[new.arc_demand[new.gated]]
    more = np.divide(new.into_pool @ z["f"], before, out=np.ones_like(before), where=before > 0)
    z["x"], z["capacity"] = z["x"] * more[new.view.data.point_pool[new.points]], z["capacity"] * more


def _rows_of(before: Ints, after: Ints, count: int) -> Ints:
    """Of each that there is after: where it was before, -1 for nowhere."""
    place = np.full(count, -1)
    place[before] = np.arange(len(before))
    return place[after]
