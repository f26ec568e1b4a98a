"""Rows of choices: quality, simplicity, looser limits, postponed jobs, dispatch over the year."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.values import Coded, Flag, Number, Text, Whole


class Without(TypedDict):
    """Describe the best plan without one architecture."""

    without: Text
    status: Text
    architectures: list[Text]
    value: Number | None
    bound: Number | None
    difference: Number | None


class QualityShare(TypedDict):
    """State the share of requests that one architecture answers."""

    architecture: Text
    quality: Number
    share: Number
    name: Text | None


class Quality(TypedDict):
    """State the quality that a workload reaches, and by which architectures."""

    workload: Text
    floor: Number
    source: Text
    mix: Text
    reached: Number
    lowest_hour: Number
    runner_up: NotRequired[Without | None]
    architectures: list[QualityShare]


class IfFirst(TypedDict):
    """State which deadlines move if the job goes first."""

    postponed: dict[str, Number | None]
    difference: Number | None


class Postponed(TypedDict):
    """State a job that waits for others by priority."""

    workload: Text
    path: Text
    priority: Whole
    asked_s: Number
    deadline_s: Number | None
    waits_for: list[Text] | None
    first: IfFirst | None


class Dispatch(TypedDict):
    """State how the fleet of a reduced plan does in all hours of a year."""

    slots: Whole
    cost: Number
    carbon_kg: Number
    difference: Number
    unmet: Number
    unfinished: Number
    left_out: list[Text]
    seconds: Number


class LadderStep(TypedDict):
    """State what the best plan with a number of deployments reaches."""

    deployments: Whole
    value: Number
    above: Number
    estimated: Flag


class BestFound(TypedDict):
    """Count the parts of the best plan found, which the plan may lose to by a share `within`."""

    value: Number
    unit: Text
    gap: NotRequired[Number | None]
    deployments: Whole
    kinds: Whole
    sites: Whole


class Simplicity(TypedDict):
    """Count the parts of the plan beside the parts of the best plan found."""

    within: Number
    deployments: Whole
    kinds: Whole
    sites: Whole
    fewest: Flag
    ladder: NotRequired[list[LadderStep]]
    best: BestFound


class LooserStep(TypedDict):
    """State how many times as much a chip does at a latency limit."""

    limit_s: Number
    times: Number


class Looser(TypedDict):
    """State what a slightly looser latency limit is worth."""

    workload: Text
    metric: Text
    percentile: Text
    limit_s: Number
    system: Text
    share: Number
    rate_per_chip: Number
    steps: list[LooserStep]
    worth: Number


class RunnerUp(TypedDict):
    """Name the unused system that comes closest to being used at a site."""

    site: Text
    system: Text | None
    how: Text | None
    margin: Number | None
    margin_unit: Text | None
    words: Text
    words_message: NotRequired[Coded]
