"""Rows of the policy of an adaptive plan: what may be held and its price, how it serves, and what the leaves of the tree stand for."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.points import Pool
from planner.plan.rows.values import Flag, Number, Text, Whole


class Commitment(TypedDict):
    """State systems that are ordered, or given back, at one date: the last date at which it is decided, the time for which they are there (or no longer
    are), the `cost` of one of them (of a return, below 0: what it saves), the `most` that may be held (null: no limit), and `counts`: one for a decision
    of the start, one for each leaf of the tree for a later one."""

    site: Text
    system: Text
    how: Text
    offer: Text
    topology: Text
    network_size: Whole | None
    tenant: NotRequired[Text]
    decided_s: Number
    from_s: Number
    until_s: Number
    returns: Flag
    cost: Number
    most: Number | None
    counts: list[Number]


class Layout(TypedDict):
    """State one way to serve a workload or to run a job at a site: the requests/s, or trained tokens/s, of one system as predicted, and the pools of a
    replica. In a scenario the batch is chosen again, and the best layout of an option serves."""

    workload: Text
    site: Text
    capacity: Number
    pools: list[Pool]


class PerformanceGroup(TypedDict):
    """State a group of leaves that are alike in performance: measured over predicted, by chip, of `tpot`, `ttft` and `throughput`, and of the steps of
    jobs on `dense` and `moe` networks."""

    weight: Number
    errors: dict[str, dict[str, Number]]


class DemandPath(TypedDict):
    """State a path of demand: the factor on the planned demand of each workload in every window between dates."""

    weight: Number
    factors: dict[str, list[Number]]
