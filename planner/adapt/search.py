"""Find what to sign today: the first stage of least expected cost over a tree, its value in fresh scenarios, and the figures beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.adapt.draws import Drawn, as_predicted, drawn
from planner.adapt.model import AdaptModel
from planner.adapt.tree import Tree, reduced
from planner.messages import Message
from solvers.interface import Options
from solvers.stochastic.data import Aim, FleetData, Leaves
from solvers.stochastic.outcomes import outcomes
from solvers.stochastic.tree import TreeSolution, rounded

PERFORMANCE, DEMAND = 5, 3  # most groups in the tree
SCREENED = 12  # scenarios whose own fleets say which options are worth considering
SAMPLES, SAMPLE_LEAVES = 5, 12  # independent samples that bound the optimum, and the scenarios of each
LEVEL = 0.95  # level of the statistical interval, one-sided at each end
PRICES = (
    1.0,
    1.5,
    2.0,
    3.0,
    4.0,
    6.0,
    10.0,
    20.0,
    1e3,
)  # factors on the price of work left undone that are tried in turn
SHARE_TOL = 1e-9
WHOLE = 1e3  # factor on the price of work left undone at which it is left only where nothing else is possible
USED = 1e-6
CHECKED, CHECK_SEED = (
    200,
    1000,
)  # scenarios, and what their seed has added, in which the promise is checked while its price is sought
FRESH = 1000  # fresh scenarios in which the first stage is valued
GAP = 5e-3  # relative gap of the programs


@dataclass(frozen=True, slots=True)
class Fresh:
    """Outcomes of the policy in fresh scenarios."""

    cost: Floats  # at the stated price of work left undone
    priced: Floats  # at the price that keeps the promise
    kept: Bools
    held: Floats  # [S, U]
    used: Floats  # [S, K] most systems at work
    needed: Floats  # [S, V] chips that carry all work


@dataclass(frozen=True, slots=True)
class Adapted:
    """All that is known of an adaptive plan, in the money of its program; see `planner.plan.rows.adapt`.

    `fixed`: everything decided at the start. `plain`: the fleet of the plain plan as the first stage. `perfect`, `performance`, `demand`: with
    all of it, the errors of predictions, or the demand known from the start. Each None where nothing was found in its time.
    """

    model: AdaptModel
    tree: Tree
    factor: float  # on the price of work left undone, which keeps the promise
    first: TreeSolution
    others: dict[str, TreeSolution]
    fixed_factor: float  # the same factor for the fixed plan
    gaps: Floats  # [sample] distance of the first stage from the best one, at the price of the promise
    fresh: Fresh
    certain: Leaves  # the scenario in which all is as predicted
    predicted: float  # cost of the plain plan's fleet in the scenario that is as predicted, without the price of what it leaves undone
    seconds: float


def screened(model: AdaptModel, scenarios: Drawn, planned: Floats, options: Options) -> tuple[AdaptModel, Floats]:
    """Keep the fleet options that some scenario would use were it known from the start, and all options of the plain plan."""
    count = min(SCREENED, scenarios.count)
    leaves = _leaves(model, scenarios).picked(np.arange(count))
    keep = np.zeros(len(model.options), dtype=bool)
    keep[model.data.option[planned > 0]] = True
    for price in (1.0, WHOLE):
        data = _dearer(model, price)
        for found in outcomes(data, leaves, np.full((count, len(planned)), np.nan), options):
            keep |= found.used > USED
    return model.restricted(keep), planned[keep[model.data.option]]


def _dearer(model: AdaptModel, price: float) -> FleetData:
    """Return the data with work left undone dearer by a factor."""
    return replace(model.data, lack_cost=price * model.data.lack_cost, job_undone=price * model.data.job_undone)


def _leaves(model: AdaptModel, scenarios: Drawn) -> Leaves:
    """Evaluate scenarios of which each is known after the start."""
    node = np.tile(np.arange(scenarios.count), (len(model.dates.at_s), 1))
    node[0] = 0
    return model.leaves(scenarios, node)


def searched(
    model: AdaptModel, planned: Floats, aim: Aim, count: int, seed: int, options: Options, say: Callable[[str], None]
) -> Adapted | None:
    """Find the first stage and all that is told about it; None where no first stage was found. `planned` [U]: systems of the plain plan."""
    began = time.perf_counter()
    options = replace(options, gap=max(options.gap, GAP), method="direct")
    scenarios = drawn(model.sampled, count, seed)
    model, planned = screened(model, scenarios, planned, options)
    tree = reduced(model, scenarios, PERFORMANCE, DEMAND)
    leaves, plain = tree.leaves, Aim(tail=aim.tail)
    say(Message.of("progress.adapt_tree", leaves=leaves.count, options=len(model.options)).text())
    check = drawn(model.sampled, CHECKED, seed + CHECK_SEED)

    def kept(found: TreeSolution, factor: float) -> float:
        share = float(valued(model, tree, found, check, factor, options).kept.mean())
        return share - float(
            np.sqrt(aim.promise * (1.0 - aim.promise) / CHECKED)
        )  # so that it holds in other samples too

    priced, first = promised(model, leaves, aim.promise, plain, options, kept)
    say(Message.of("progress.adapt_first", seconds=_since(began)).text())
    if not first.found:
        return None
    hired = replace(plain, fixed_use=True)
    given = np.where(model.data.stage == 0, planned, np.nan)
    fixed_factor, fixed = promised(model, leaves.knowing_nothing(), aim.promise, hired, options)
    data = _dearer(model, priced)
    divisible = replace(data, whole=np.zeros_like(data.whole))
    others = {
        name: rounded(divisible, known, plain, options, root)
        for name, known, root in (
            ("plain", leaves, given),
            ("perfect", leaves.knowing_everything(), None),
            ("performance", leaves.knowing(tree.performance), None),
            ("demand", leaves.knowing(tree.demand), None),
        )
    }
    say(Message.of("progress.adapt_values", seconds=_since(began)).text())
    gaps = _gaps(model, divisible, tree, first, seed, plain, options)
    say(Message.of("progress.adapt_gap", samples=len(gaps), seconds=_since(began)).text())
    fresh = valued(model, tree, first, drawn(model.sampled, FRESH, seed + 1), priced, options)
    certain = _leaves(model, as_predicted(model.sampled))
    (predicted,) = outcomes(model.data, certain, given[None], options)
    return Adapted(
        model, tree, priced, first, {"fixed": fixed, **others}, fixed_factor, gaps, fresh, certain, predicted.cost - predicted.lack,
        time.perf_counter() - began,
    )  # fmt: skip


def _since(began: float) -> str:
    return f"{time.perf_counter() - began:.1f}"


def _gaps(
    model: AdaptModel, data: FleetData, tree: Tree, first: TreeSolution, seed: int, how: Aim, options: Options
) -> Floats:
    """Return how far the first stage is from the best one of each of several samples of scenarios, in money at the price of the promise.

    Both are valued in the same scenarios, with all known from the first date after the start on, which is no dearer than the knowledge of the spec's dates.
    Reference: Mak, Morton and Wood, Monte Carlo bounding techniques for determining solution quality in stochastic programs, Operations
    Research Letters 24 (1999).
    """
    found = []
    for i in range(SAMPLES):
        leaves = _leaves(model, drawn(model.sampled, SAMPLE_LEAVES, seed + 2 + i))
        best = rounded(data, leaves, how, options)
        given = _given(model, tree, first, leaves)
        ours = np.array([each.cost for each in outcomes(data, leaves, given, options)])
        if best.bound is not None and how.tail is None:
            found.append(float(leaves.weight @ ours) - best.bound)
    return np.array(found)


def _given(model: AdaptModel, tree: Tree, first: TreeSolution, leaves: Leaves) -> Floats:
    """Return the counts that are settled in scenarios, [S, U], nan where they are decided once the scenario is known.

    Holdings of dates at which not everything is known follow the leaf next to the scenario.
    """
    settled = model.data.stage < max(model.dates.all_known, 1)
    return np.where(settled, first.held.T[_nearest(tree, leaves)], np.nan)


def promised(
    model: AdaptModel, leaves: Leaves, promise: float, how: Aim, options: Options,
    kept: Callable[[TreeSolution, float], float] | None = None,
) -> tuple[float, TreeSolution]:  # fmt: skip
    """Raise the price of work left undone until the promise is kept; returns the factor on it and the solution.

    The least of `PRICES` at which the tree and, where given, `kept` of a solution reach the promise; the largest where none does.
    """
    known: dict[int, tuple[bool, TreeSolution]] = {}

    def reaches(at: int) -> bool:
        if at not in known:
            found = rounded(_dearer(model, PRICES[at]), leaves, how, options)
            held = bool(found.found and leaves.weight @ found.kept >= promise - SHARE_TOL)
            known[at] = held and (kept is None or kept(found, PRICES[at]) >= promise - SHARE_TOL), found
        return known[at][0]

    low, high = 0, len(PRICES) - 1
    if reaches(low):
        high = low
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    reaches(low)
    return PRICES[low], known[low][1]


def money(found: TreeSolution, factor: float) -> Floats:
    """Return the cost of each leaf at the stated price of work left undone."""
    cost: Floats = found.cost - found.lack * (1.0 - 1.0 / factor)
    return cost


def valued(
    model: AdaptModel, tree: Tree, first: TreeSolution, scenarios: Drawn, factor: float, options: Options
) -> Fresh:
    """Value a first stage in fresh scenarios, of which each is served as far as that costs less than `factor` times the stated price of the lack."""
    leaves = _leaves(model, scenarios)
    found = list(outcomes(_dearer(model, factor), leaves, _given(model, tree, first, leaves), options))
    priced, lack = np.array([each.cost for each in found]), np.array([each.lack for each in found])
    kept = np.array([each.kept for each in found], dtype=bool)
    held, used = np.array([each.held for each in found]), np.array([each.used for each in found])
    needed = np.array([each.needed for each in found])
    return Fresh(priced - lack * (1.0 - 1.0 / factor), priced, kept, held, used, needed)


def _nearest(tree: Tree, leaves: Leaves) -> Ints:
    """Return the leaf of the tree next to each scenario."""
    known = np.hstack([tree.leaves.efficiency, tree.leaves.rate, tree.leaves.growth[:, :, 0]])
    asked = np.hstack([leaves.efficiency, leaves.rate, leaves.growth[:, :, 0]])
    size = np.maximum(known.max(axis=0), 1e-300)
    distance = (((asked / size)[:, None, :] - (known / size)[None, :, :]) ** 2).sum(axis=2)
    found: Ints = np.argmin(distance, axis=1)
    return found
