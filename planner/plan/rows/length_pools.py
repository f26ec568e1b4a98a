"""Rows of a plan about pools by prompt length: what each takes, the boundaries tried, and the plan without pools."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.values import Flag, Number, Text, Whole


class LengthPool(TypedDict):
    """State a pool: its workload in the plan, the prompts that it takes, and its share of requests and tokens."""

    name: Text
    above: Whole
    up_to: Whole | None
    share: Number
    input_share: Number
    output_share: Number
    requests_per_s: Number
    input: Number
    output: Number
    ttft: NotRequired[dict[Text, Number]]
    """Limits that the pool keeps on the time to first token, by percentile [s], where pools keep those asked for together and not each alone."""


class DividedWorkload(TypedDict):
    """State a workload of the spec with pools: as asked, where it is divided, and its pools; neither where one pool costs less."""

    workload: Text
    asked: dict[str, Any]
    searched: Flag
    boundaries: list[Whole]
    pools: list[LengthPool]


class TriedBoundaries(TypedDict):
    """State boundaries that were tried, by workload, with a bound of their plans and the value of the plan where one was made."""

    boundaries: dict[Text, list[Whole]]
    bound: Number | None
    value: Number | None
    together: NotRequired[list[Text]]
    """Workloads whose pools keep the limits on the time to first token together."""


class Undivided(TypedDict):
    """State the plan with one pool for each workload."""

    status: Text
    value: Number | None
    bound: Number | None
    gap: Number | None


class LengthPools(TypedDict):
    """State the division by prompt length: workloads, boundaries tried, the plan without, and what the division saves of its value."""

    workloads: list[DividedWorkload]
    undivided: Undivided
    saving: Number | None
    proven: Flag
    tried: list[TriedBoundaries]
    untried: Whole
