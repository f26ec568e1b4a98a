"""The deployments of a plan as what can be simulated: workers, closed form, replicas and load by slot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from models.arrays import sum_of
from models.serving.continuous_batching import ServingPoint
from models.serving.decode import ServingLayouts
from models.serving.prefix_cache import PrefixCache, Zipf
from planner.evaluate import disaggregated, serving
from planner.evaluate.power_caps import slowed
from planner.evaluate.serving_state import drafting, reuse_of
from planner.messages import say
from planner.plan import Plan
from planner.plan.rows.points import Point
from planner.problem.engine import EngineChoice
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.replay.closed import PointAt
from planner.replay.requests import Stream
from planner.replay.simulate import Server
from planner.replay.steps import Worker
from planner.verify.fleet.options import CheckedOption, FleetOptions, key_at
from planner.verify.points.serving import choice_of, layout_on

MEAN = "mean"
WHOLE = 1e-6  # replicas beyond a whole number that count as none


@dataclass(frozen=True, slots=True)
class Pace:
    """Factors on what the simulation finds: on its clock (the rate), on times up to the first token, and on times per output token [1]."""

    rate: float = 1.0
    first_token: float = 1.0
    decode: float = 1.0


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment of a plan that can be simulated; rates of all its replicas by slot [request/s], and the weight of each slot [s]."""

    workload: str
    point: str
    site: str
    server: Server
    point_at: PointAt
    stream: Stream
    pace: Pace
    replicas: int
    capacity: float  # what a replica serves at full load [request/s]
    rates: tuple[float, ...]
    weights: tuple[float, ...]
    share: float  # part of the requests of its workload over the calendar
    limits: Mapping[str, float]  # at the site, by metric: that of its highest percentile [s]
    planned_s: Mapping[str, float]  # what the plan states at full load, by "ttft.p95"
    classes: bool = False

    @property
    def busiest(self) -> float:
        """Return the rate of all replicas in the busiest slot [request/s]."""
        return max(self.rates)

    @property
    def typical(self) -> float:
        """Return the mean rate of all replicas over the calendar [request/s]."""
        return sum_of(rate * weight for rate, weight in zip(self.rates, self.weights)) / sum_of(self.weights)


def deployments_of(plan: Plan, problem: ResolvedSpec) -> tuple[list[Deployed], list[dict[str, str]]]:
    """Read the deployments of a plan that answer requests, and why others are left out.

    All whole replicas that the busiest slot needs share the load of every slot.
    """
    options, facts = FleetOptions(problem), {each.name: each for each in problem.serving}
    found, left_out = [], []
    served = _rates(plan, problem)
    for workload in plan.workloads:
        if workload["name"] not in facts:
            continue
        rows = [(row, served.get(row["id"], ())) for row in workload["points"]]
        total = sum_of(_requests(problem, rates) for _, rates in rows)
        for row, rates in rows:
            if not rates or max(rates) <= 0.0:
                continue
            reason = _reason(facts[workload["name"]], row)
            if reason:
                left_out.append({"workload": workload["name"], "point": row["id"], "reason": reason})
                continue
            share = _requests(problem, rates) / total
            found.append(_deployed(plan, problem, options, facts[workload["name"]], row, rates, share))
    return found, left_out


def _requests(problem: ResolvedSpec, rates: Iterable[float]) -> float:
    """Sum the requests of the calendar."""
    return float(sum_of(rate * float(seconds) for rate, seconds in zip(rates, problem.calendar.seconds)))


def _rates(plan: Plan, problem: ResolvedSpec) -> dict[str, list[float]]:
    """Sum the rate of each point by slot: its replicas at work times what each serves [request/s]."""
    capacity = {row["id"]: row["capacity"] for workload in plan.workloads for row in workload["points"]}
    found: dict[str, list[float]] = {}
    for slot in plan.schedule:
        for point, active in slot["active"].items():
            rates = found.setdefault(point, [0.0] * problem.calendar.slots)
            rates[slot["slot"]] += active * capacity[point]
    return found


def _reason(workload: ServingFacts, row: Point) -> str:
    """Say why a point cannot be simulated; empty where it can."""
    roles = [pool["role"] for pool in row["pools"]]
    if roles == ["api"]:
        return say("replay.left_out_api")
    if workload.spec.session is not None:
        return say("replay.left_out_session")
    if workload.spec.media:
        return say("replay.left_out_media")
    return "" if roles in (["serve"], ["prefill", "decode"]) else say("replay.left_out_pools")


def _deployed(
    plan: Plan, problem: ResolvedSpec, options: FleetOptions, workload: ServingFacts, row: Point, rates: Sequence[float], share: float
) -> Deployed:  # fmt: skip
    used = [options[key_at(row["site"], pool)] for pool in row["pools"]]
    choice = choice_of(workload, used[0], row["pools"][0])
    layouts = [layout_on(option, pool, workload) for option, pool in zip(used, row["pools"], strict=True)]
    server = _server(problem, workload, used, layouts, row, choice)
    point_at = _point_at(problem, workload, used, layouts, row, choice)
    by = (
        workload.engine.correction(*workload.measured_as(used[0].system.chip, choice.precision))
        if len(used) == 1
        else disaggregated.correction_of(workload, (used[0].system, used[1].system), choice)
    )
    speed = 1.0
    if row.get("power_cap") is not None:
        speed = row["capacity"] / float(point_at(float(row["pools"][-1]["batch"])).requests_per_s)
    rtt = _round_trip(plan, problem, row)
    limits: dict[str, float] = {}
    for limit in workload.spec.limits_at_site(rtt):  # a later one is of a higher percentile
        if limit.percentile != MEAN:
            limits[limit.metric] = limit.seconds
    stream = Stream(0.0, server.worker.lengths, workload.spec.arrival_cv**2)
    if server.cache:
        stream = replace(stream, prefix_tokens=min(server.cache.prefix_tokens, float(stream.lengths.prompt) - 1.0))
    if server.cache and isinstance(server.cache.reuse, Zipf):
        stream = replace(stream, prefixes=int(server.cache.reuse.prefixes), exponent=server.cache.reuse.exponent)
    fullest = server.cache.imbalance if server.cache else 1.0
    return Deployed(
        workload=workload.name, point=row["id"], site=row["site"], server=server,
        point_at=point_at if speed == 1.0 else lambda batch: slowed(point_at(batch), speed),
        stream=stream,
        pace=Pace(by.throughput * speed / fullest, by.ttft / speed, by.tpot / speed),
        replicas=max(ceil(max(rates) / row["capacity"] - WHOLE), 1),
        capacity=row["capacity"], rates=tuple(rates), weights=tuple(float(each) for each in problem.calendar.seconds), share=share,
        limits=limits, planned_s=row["latency_s"], classes=bool(workload.spec.classes),
    )  # fmt: skip


def _round_trip(plan: Plan, problem: ResolvedSpec, row: Point) -> float:
    """Return the longest round trip of the requests that a point's pool is sent [s]."""
    found = [0.0]
    for route in plan.routes:
        if route["pool"] == row["pool"]:
            ways = problem.routes(route["workload"], route["origin"], route["site"])
            if (path := ways.get(route.get("line", ""))) is not None:
                found.append(float(path.rtt_s))
    return max(found)


def _worker(
    problem: ResolvedSpec, workload: ServingFacts, option: CheckedOption, layout: ServingLayouts, choice: EngineChoice
) -> Worker:
    return Worker(
        workload.architecture,
        serving.rates_of(workload, option.system, choice.precision, option.scaleout),
        layout,
        serving.engine_constants(workload, option.system, problem.constants.serving),
        serving.precisions_of(choice),
        serving.lengths_of(workload, choice),
        drafting(workload.spec.speculation),
    )


def _server(
    problem: ResolvedSpec,
    workload: ServingFacts,
    used: Sequence[CheckedOption],
    layouts: Sequence[ServingLayouts],
    row: Point,
    choice: EngineChoice,
) -> Server:
    workers = [_worker(problem, workload, option, layout, choice) for option, layout in zip(used, layouts, strict=True)]
    reuse = reuse_of(workload.spec, used[0].system, choice.waiting)
    cache = reuse if isinstance(reuse, PrefixCache) else None
    if len(workers) == 1:
        return Server(workers[0], cache=cache)
    link = disaggregated.link_of(workload.spec, (used[0].system, used[1].system), used[0].scaleout, used[1].scaleout)
    counts = (row["pools"][0]["workers"], row["pools"][1]["workers"])
    return Server(workers[1], workers[0], counts, link, cache)


def _point_at(
    problem: ResolvedSpec,
    workload: ServingFacts,
    used: Sequence[CheckedOption],
    layouts: Sequence[ServingLayouts],
    row: Point,
    choice: EngineChoice,
) -> PointAt:
    """Return the closed form of a replica by the requests in decode, of a decode worker where pools are apart."""
    constants, counts = problem.constants.serving, [pool["workers"] for pool in row["pools"]]

    def one(batch: float) -> ServingPoint:
        return serving.evaluate(workload, used[0].system, used[0].scaleout, layouts[0], batch, choice, constants)

    def two(batch: float) -> ServingPoint:
        return disaggregated.evaluate(
            workload, (used[0].system, used[1].system), (used[0].scaleout, used[1].scaleout), (layouts[0], layouts[1]), batch,
            (counts[0], counts[1]), choice, constants,
        ).point  # fmt: skip

    return one if len(used) == 1 else two
