"""Find what to sign today: the first stage of least expected cost over a tree, its value in fresh scenarios, and the figures beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats
from planner.adapt.draws import Drawn, as_predicted, drawn
from planner.adapt.model import AdaptModel
from planner.adapt.tree import Tree, reduced
from planner.messages import Message
from planner.solving.deadline import Deadline
from solvers.interface import Options
from solvers.stochastic.data import Aim, FleetData, Leaves, dearer
from solvers.stochastic.outcomes import Outcome, outcomes
from solvers.stochastic.promise import SHARE_TOL, promised
from solvers.stochastic.tree import TreeSolution, solved, unsolved

LEAVES, PERFORMANCE = (
    (60, 15),
    3,
)  # most leaves of the tree, fewer where the time is too short for so many; least groups of performance in it
SCREENED = 12  # scenarios whose own fleets say which options are worth considering
SAMPLES, SAMPLE_LEAVES = 5, 12  # independent samples that bound the optimum, and the scenarios of each
LEVEL = 0.95  # level of the statistical interval, one-sided at each end
WHOLE = 1e3  # factor on the price of work left undone at which it is left only where nothing else is possible
USED = 1e-6
CHECKED, CHECK_SEED = (
    200,
    1000,
)  # scenarios that check the promise while its price is sought, and what their seed has added
FRESH = 1000  # fresh scenarios in which the first stage is valued
KNOWLEDGE = ("performance", "demand", "prices", "deliveries")  # what knowing alone is worth
ALWAYS = KNOWLEDGE[:2]
GAP = 5e-3  # relative gap of the programs
SHARES = {
    "first": 0.5,
    "fresh": 0.5,
    "fixed": 0.4,
    "gaps": 0.6,
}  # most of the time left that goes to each, in this order


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

    `fixed`: everything decided at the start. `plain`: the fleet of the plain plan as the first stage, later orders in whole systems, as in `first`.
    `perfect`, `performance`, `demand`: with all of it, the errors of predictions, or the demand known from the start, in divisible systems. Each None where
    nothing was found in its time.
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


@dataclass(frozen=True, slots=True)
class Question:
    """The question: its promise, the aim, and the scenarios, by number and seed, of which the tree is made."""

    promise: float
    aim: Aim
    count: int
    seed: int


def screened(model: AdaptModel, scenarios: Drawn, planned: Floats, options: Options) -> tuple[AdaptModel, Floats]:
    """Keep the fleet options that some scenario would use were it known from the start, and all options of the plain plan."""
    count = min(SCREENED, scenarios.count)
    leaves = _leaves(model, scenarios).picked(np.arange(count))
    keep = np.zeros(len(model.options), dtype=bool)
    keep[model.data.option[planned > 0]] = True
    for price in (1.0, WHOLE):
        data = dearer(model.data, price)
        for found in outcomes(data, leaves, np.full((count, len(planned)), np.nan), options):
            keep |= found.used > USED
    return model.restricted(keep), planned[keep[model.data.option]]


def _leaves(model: AdaptModel, scenarios: Drawn) -> Leaves:
    """Evaluate scenarios of which each is known after the start."""
    node = np.tile(np.arange(scenarios.count), (len(model.dates.at_s), 1))
    node[0] = 0
    return model.leaves(scenarios, node)


def searched(
    model: AdaptModel, planned: Floats, question: Question, deadline: Deadline, options: Options, say: Callable[[str], None]
) -> Adapted | None:  # fmt: skip
    """Find the first stage and all that is told about it until the deadline; None where no first stage was found.

    `planned` [U]: systems of the plain plan. What the time does not reach is left out: figures beside the plan, then fresh scenarios.
    """
    began = time.perf_counter()
    options, plain, seed = replace(options, gap=max(options.gap, GAP), method="direct"), question.aim, question.seed

    def within(part: str) -> Options:
        return deadline.options(options, SHARES[part])

    scenarios = drawn(model.sampled, question.count, seed)
    model, planned = screened(model, scenarios, planned, within("first"))
    check = drawn(model.sampled, CHECKED, seed + CHECK_SEED)
    for most in LEAVES:
        tree = reduced(model, scenarios, most, PERFORMANCE)
        say(Message.of("progress.adapt_tree", leaves=tree.leaves.count, options=len(model.options)).text())
        keeps = _Keeps(model, tree, check, question.promise, within("first"))
        best = promised(model.data, tree.leaves, question.promise, plain, within("first"), keeps)
        if best.solution.found:
            break
    leaves, first = tree.leaves, best.solution
    say(Message.of("progress.adapt_first", seconds=_since(began)).text())
    if not first.found:
        return None
    fresh = valued(model, tree, first, drawn(model.sampled, FRESH, seed + 1), best.factor, within("fresh"))
    given = np.where(model.data.stage == 0, planned, np.nan)
    certain = _leaves(model, as_predicted(model.sampled))
    predicted = next(outcomes(model.data, certain, given[None], options), None)
    if fresh is None or predicted is None:
        return None
    hired = replace(plain, fixed_use=True)
    fixed = promised(model.data, leaves.knowing_nothing(), question.promise, hired, within("fixed"))
    data = dearer(model.data, best.factor)
    divisible = replace(data, whole=np.zeros_like(data.whole))
    gaps = _gaps(model, data, tree, first, seed, plain, within("gaps"))
    say(Message.of("progress.adapt_gap", samples=len(gaps), seconds=_since(began)).text())
    groups = {name: getattr(tree, name) for name in KNOWLEDGE if name in ALWAYS or getattr(tree, name).any()}
    others = {
        name: solved(data if root is not None else divisible, known, plain, deadline.options(options), root)
        if deadline.left_s > 0
        else unsolved(data, known)
        for name, known, root in (
            ("perfect", leaves.knowing_everything(), None),
            ("plain", leaves, given),
            *((name, leaves.knowing(group), None) for name, group in groups.items()),
        )
    }
    say(Message.of("progress.adapt_values", seconds=_since(began)).text())
    return Adapted(
        model, tree, best.factor, first, {"fixed": fixed.solution, **others}, fixed.factor, gaps, fresh, certain, predicted.cost - predicted.lack,
        time.perf_counter() - began,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Keeps:
    """Tells whether a first stage keeps a promise in scenarios, by a standard error, so that it does in other samples too."""

    model: AdaptModel
    tree: Tree
    scenarios: Drawn
    promise: float
    options: Options

    def __call__(self, found: TreeSolution, factor: float) -> bool:
        """Value scenarios until it is sure; False where the time is up before."""
        count = self.scenarios.count
        error = float(np.sqrt(self.promise * (1.0 - self.promise) / count))
        most, lost, tried = count * (1.0 - self.promise - error), 0, 0
        for each in _outcomes(self.model, self.tree, found, self.scenarios, factor, self.options):
            lost, tried = lost + (not each.kept), tried + 1
            if lost > most + SHARE_TOL:
                return False
        return tried == count


def _since(began: float) -> str:
    return f"{time.perf_counter() - began:.1f}"


def _gaps(
    model: AdaptModel, data: FleetData, tree: Tree, first: TreeSolution, seed: int, how: Aim, options: Options
) -> Floats:
    """Return how far the first stage is from the best one of each of several samples of scenarios, in money at the price of the promise.

    Both are valued in the same scenarios, with all known from the first date after the start on, which is no dearer than the knowledge of the spec's dates.
    Samples that the time does not reach are left out.
    Reference: Mak, Morton and Wood, Monte Carlo bounding techniques for determining solution quality in stochastic programs, Operations
    Research Letters 24 (1999).
    """
    found, until = [], Deadline.after(options.time_limit_s)
    for i in range(SAMPLES if how.tail is None else 0):
        if until.left_s <= 0:
            break
        scenarios = drawn(model.sampled, SAMPLE_LEAVES, seed + 2 + i)
        leaves = _leaves(model, scenarios)
        best = solved(data, leaves, how, until.options(options))
        given = _given(model, tree, first, leaves, scenarios)
        ours = np.array([each.cost for each in outcomes(data, leaves, given, until.options(options))])
        if best.bound is not None and len(ours) == leaves.count:
            found.append(float(leaves.weight @ ours) - best.bound)
    return np.array(found)


def _given(model: AdaptModel, tree: Tree, first: TreeSolution, leaves: Leaves, scenarios: Drawn) -> Floats:
    """Return the counts that are settled in scenarios, [S, U], nan where they are decided once the scenario is known.

    Holdings of dates that do not know everything are taken from the leaf that a scenario follows at their date.
    """
    stage, leaf = model.data.stage, tree.followed(model, leaves, scenarios)
    held = first.held[np.arange(len(stage))[:, None], leaf[stage]].T
    return np.where(stage < max(model.dates.all_known, 1), held, np.nan)


def money(found: TreeSolution, factor: float) -> Floats:
    """Return the cost of each leaf at the stated price of work left undone."""
    cost: Floats = found.cost - found.lack * (1.0 - 1.0 / factor)
    return cost


def valued(
    model: AdaptModel, tree: Tree, first: TreeSolution, scenarios: Drawn, factor: float, options: Options
) -> Fresh | None:
    """Value a first stage in fresh scenarios, of which each is served as far as that costs less than `factor` times the stated price of the lack.

    As many scenarios as the time allows; None where it allows fewer than two.
    """
    found = list(_outcomes(model, tree, first, scenarios, factor, options))
    if len(found) < 2:
        return None
    priced, lack = np.array([each.cost for each in found]), np.array([each.lack for each in found])
    kept = np.array([each.kept for each in found], dtype=bool)
    held, used = np.array([each.held for each in found]), np.array([each.used for each in found])
    needed = np.array([each.needed for each in found])
    return Fresh(priced - lack * (1.0 - 1.0 / factor), priced, kept, held, used, needed)


def _outcomes(
    model: AdaptModel, tree: Tree, first: TreeSolution, scenarios: Drawn, factor: float, options: Options
) -> Iterator[Outcome]:
    leaves = _leaves(model, scenarios)
    given = _given(model, tree, first, leaves, scenarios)
    return outcomes(dearer(model.data, factor), leaves, given, options)
