"""Rows of a plan that is adapted later: what to sign, what to keep open, triggers, and what knowing more is worth."""

from __future__ import annotations

from typing import NotRequired, final

from typing_extensions import TypedDict

from planner.plan.rows.adapt_policy import Commitment, DemandPath, Layout, PerformanceGroup
from planner.plan.rows.robust import StatedRange
from planner.plan.rows.values import Flag, Number, Text, Whole


class Way(TypedDict):
    """Name a way to obtain a system at a site."""

    site: Text
    system: Text
    how: Text
    offer: Text
    topology: Text
    network_size: Whole | None


class Signed(Way):
    """State systems that are signed at the start: `count` systems; `from_s`: since when they are there, from the start."""

    count: Whole
    from_s: Number


class Kept(Way):
    """State the systems owned already that stay at the start: `count` of them at a site."""

    count: Whole


class Open(Way):
    """State an option that is kept open: the last date at which it must be decided (null: any time, for it is there at once), in which share of
    the fresh scenarios it is used, and how many systems there at the mean of these scenarios and at most in nine of ten."""

    decided_s: Number | None
    share: Number
    mean: Number
    high: Number
    returns: NotRequired[Flag]
    """Whether its systems, which are rented already, go back then instead of coming."""


class Trigger(Way):
    """State a rule of the tree: where `workload` (null: whatever the scenario) needs at least `above` times the systems that are predicted by the
    date `decided_s`, obtain `count` systems on average. `share`: of the scenarios of the tree, by weight, in which the tree does so; `agrees`: share in
    which the rule says the same as the tree."""

    decided_s: Number
    workload: Text | None
    above: Number
    count: Number
    share: Number
    agrees: Number


class TreeOrder(Way):
    """State what the leaves of the tree order of an option at a date: `counts` of systems, and their `cost` on the mean of the leaves."""

    decided_s: Number
    cost: Number
    counts: list[Number]


class TreeNeed(TypedDict):
    """State the systems that a workload needs over those predicted by a date, of each leaf: `over`."""

    workload: Text
    decided_s: Number
    over: list[Number]


class DecisionTree(TypedDict):
    """State the leaves of the tree: `weight`, `cost` and `kept` (whether all is served and done) of each, their `needs`, and their later `orders`, from
    which the triggers follow."""

    weight: list[Number]
    cost: list[Number]
    kept: list[Flag]
    needs: list[TreeNeed]
    orders: list[TreeOrder]


class Need(TypedDict):
    """State the chips that the work of a window of the calendar takes, from the start, at most in one of ten, five of ten (`typical`) and nine of ten
    fresh scenarios, and the chips of the systems that are there then of those signed, owned and rented already (`signed`). A scenario counts its hardest hour of serving and the mean of its jobs; work that is
    left undone or that an API does counts as if systems did it."""

    from_s: Number
    low: Number
    typical: Number
    high: Number
    signed: Number


class DecisionDate(TypedDict):
    """State a date of decision, from the start, and the knowledge then."""

    at_s: Number
    performance: Flag
    demand: Flag
    prices: NotRequired[Flag]


class Delivery(TypedDict):
    """State the time from an order of an offer to its delivery that scenarios draw, triangular."""

    offer: Text
    low_s: Number
    typical_s: Number
    high_s: Number


class Fresh(TypedDict):
    """State how the first stage fares in fresh scenarios, each adapted to."""

    scenarios: Whole
    seed: Whole
    kept: Number
    cost: Number
    cost_error: Number
    p10: Number
    p90: Number


class FixedPlan(TypedDict):
    """State the plan that decides everything at the start and keeps the promise in the tree."""

    cost: Number
    kept: Number


class Values(TypedDict):
    """State differences in the tree of expected costs, or with `risk` "cvar" of the mean of the dearest: `adapting` at the stated price of unserved demand, the
    others at the price that keeps the promise; null where the search found no plan to compare with. Below 0, the other plan was the better one."""

    adapting: Number | None
    stochastic: Number | None
    perfect: Number | None
    performance: Number | None
    demand: Number | None
    prices: NotRequired[Number | None]
    deliveries: NotRequired[Number | None]


class StatisticalGap(TypedDict):
    """State how far the first stage is from the best one, by samples of scenarios: mean, and a bound at the level of confidence."""

    samples: Whole
    scenarios: Whole
    mean: Number
    bound: Number
    level: Number
    share: Number


@final
class Adaptation(TypedDict):
    """State what to sign today and what to keep open, under uncertain performance and demand."""

    promise: Number
    risk: Text
    dates: list[DecisionDate]
    sign: list[Signed]
    kept: NotRequired[list[Kept]]
    prices: NotRequired[list[StatedRange]]
    deliveries: NotRequired[list[Delivery]]
    open: list[Open]
    triggers: list[Trigger]
    needs: NotRequired[list[Need]]
    tree: NotRequired[DecisionTree]
    commitments: NotRequired[list[Commitment]]
    layouts: NotRequired[list[Layout]]
    groups: NotRequired[list[PerformanceGroup]]
    paths: NotRequired[list[DemandPath]]
    leaves: Whole
    slots: Whole
    tree_cost: Number
    tree_kept: Number
    unserved_factor: Number
    fresh: Fresh
    fixed: FixedPlan | None
    values: Values
    gap: StatisticalGap | None
    other_cost: Number
    plain_cost: Number
    seconds: NotRequired[Number]
