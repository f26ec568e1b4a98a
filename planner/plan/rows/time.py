"""Rows over time: slots, routes, lines, failures, preemptions."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.values import Number, Text, Whole


class Flow(TypedDict):
    """State a flow of output tokens from a site to an origin."""

    origin: Text
    site: Text
    workload: Text
    tokens_per_s: Number
    pool: Text
    line: NotRequired[Text]
    """With `lines` in the spec: the line type that the requests take; empty where they stay in their region."""


class Route(Flow):
    """State a flow while a zone fails."""

    slot: NotRequired[Whole]


class SlotRoute(Flow):
    """State a flow in one slot."""

    slot: Whole


class Slot(TypedDict):
    """State power, energy and active replicas of one site in one slot."""

    site: Text
    slot: Whole
    window: Whole
    day: NotRequired[Any]
    hour_utc: Whole
    seconds: Number
    power_w: Number
    own_power_w: Number
    energy_j: Number
    price_per_j: Number
    carbon_kg_per_j: Number
    active: dict[str, Number]
    resident: NotRequired[dict[str, list[Whole]]]
    grid_w: NotRequired[Number]
    ppa_w: NotRequired[dict[str, Number]]
    charge_w: NotRequired[Number]
    discharge_w: NotRequired[Number]
    stored_j: NotRequired[Number]


class LineTraffic(TypedDict):
    """Sum the bytes of one kind of traffic of a workload over the horizon."""

    workload: Text
    traffic: Text
    bytes: Number


class Line(TypedDict):
    """Describe a line between sites or regions that is rented or used."""

    line: Text
    kind: Text
    units: Whole | None
    capacity_bytes_per_s: Number | None
    ready_s: Number
    busiest_slot: Whole
    busiest_from: Text
    peak_bytes_per_s: Number
    use: Number | None
    cost: dict[str, Number]
    traffic: list[LineTraffic]


_StreamWords = TypedDict("_StreamWords", {"from": Text})


class Stream(_StreamWords):
    """State the share of a stream of control, telemetry or weights on a line."""

    workload: Text
    traffic: Text
    to: Text
    kind: Text
    windows: list[Whole]
    share: Number


class Spread(TypedDict):
    """State the smallest and the largest share of any hour's requests in a zone."""

    workload: Text
    zone: Text
    sites: list[Text]
    least_share: Number
    largest_share: Number


class Failure(TypedDict):
    """State routes and active replicas while a zone fails."""

    zone: Text
    slot: Whole
    routes: list[Route]
    active: dict[str, Number]


class ClosedLoop(TypedDict):
    """State the sessions asked for and reached, and the mean rate that they send."""

    workload: Text
    sessions: Number
    tasks_per_s: Number
    reached: Number


class PreemptionRow(TypedDict):
    """State the time that a job loses to being preempted."""

    workload: Text
    point: Text
    restart_s: Number
    resumptions: Number
    lost_s: Number
    lost_share: Number
