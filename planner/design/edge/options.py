"""Evaluate each task on each tier: whether it can run there, what it takes of the tier, and why it cannot.

A device works on one request at a time. A tier serves many at once, at the batch that carries most within the rest of the deadline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.errors import CatalogError
from catalog.lookup import Catalog
from catalog.units import MEGA, MILLI
from models.arrays import sum_of
from models.serving.kv_cache import reserve_bytes
from planner.errors import Issue, SpecError, issues_of
from planner.estimate.aggregated_search import search_one_pool
from planner.estimate.case import CaseFacts, resolve_case
from planner.estimate.limits import SearchLimits
from planner.estimate.serving_configuration import CONCURRENCY, MAX, Load, ServingConfiguration, draw_of_pools
from planner.evaluate.serving import engine_constants
from planner.messages import Argument, Message
from planner.problem.facts import SystemFacts
from planner.spec.stack.edge import DEVICE, DeviceFleet, EdgeSpec, Task, Tier

QUANTILE = 0.95  # share of the requests that end within the deadline


@dataclass(frozen=True, slots=True)
class Option:
    """A task on a tier. Where `why_not` is given it cannot run there."""

    task: int
    tier: int  # 0: the device, else 1 + the place of the tier
    why_not: str = ""
    evaluated: bool = True
    latency_s: float = 0.0  # within which 95 of 100 requests end, from sensor to action, alone on a device
    busy_s: float = 0.0  # mean time that a request holds the device
    longest_s: float = 0.0  # time within which 95 of 100 requests leave the device
    memory_bytes: float = 0.0  # that it takes of the device
    runtime_bytes: float = 0.0  # part that tasks on one device share
    usable_bytes: float = 0.0  # that an engine may fill
    systems: float = 0.0  # systems of all places of the tier that its requests take
    power_w: float = 0.0  # draw of a device while busy, or of a fully used system of the tier, above idle
    uplink_bytes_per_s: float = 0.0  # uplink of one device at work
    data_bytes_per_s: float = 0.0  # data of all devices, over the whole time
    precision: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """All tasks on all tiers, with the systems of devices and tiers."""

    spec: EdgeSpec
    catalog: Catalog
    table: tuple[tuple[Option, ...], ...]  # [task][tier]
    devices: tuple[SystemFacts, ...]  # by fleet
    systems: tuple[SystemFacts, ...]  # by tier
    assumptions: Mapping[str, Any]
    left: int = 0  # options that the limits left out

    def of(self, task: int, tier: int) -> Option:
        """Return one option."""
        return self.table[task][tier]


@dataclass(slots=True)
class Evaluation:
    """Options evaluated so far, kept by what they depend on, and the limits of their search."""

    catalog: Catalog
    limits: SearchLimits
    known: dict[tuple[str, ...], tuple[Option, CaseFacts]] = field(default_factory=dict)
    systems: dict[str, CaseFacts] = field(default_factory=dict)  # the last facts by system, of any task

    def option(self, spec: EdgeSpec, plain: Mapping[str, Any], t: int, tier: int) -> tuple[Option, CaseFacts]:
        """Evaluate a task, whose workload is `plain`, on a tier. Raises SpecError."""
        task, place = spec.tasks[t], spec.tiers[tier - 1] if tier else None
        fleet = next(fleet for fleet in spec.fleets if fleet.name == task.fleet)
        parts = (task, fleet, *([place] if place else []))
        key = (str(t), str(tier), repr(plain), *(part.model_dump_json(exclude={"workload"}) for part in parts))
        if key not in self.known:
            system, ended = (place or fleet).system, bool(self.limits.ended_by())
            if not ended or system not in self.systems:
                left_s = _left_s(task, fleet, place) if place else None
                self.systems[system] = _facts(self.catalog, plain, system, left_s)
            facts = self.systems[system]
            if ended:
                option = Option(t, tier, Message.of("edge.not_evaluated").text(), evaluated=False)
            elif place is None:
                option = _on_device(t, task, fleet, facts)
            else:
                option = _on_tier(t, tier, task, fleet, place, facts)
            self.known[key] = option, facts
        return self.known[key]


def find_options(
    spec: EdgeSpec, document: Mapping[str, Any], overlays: Sequence[Path], evaluation: Evaluation | None = None
) -> Options:
    """Evaluate every task on every tier. Raises SpecError with the problems of all names and figures."""
    evaluation = evaluation or Evaluation(catalog_of(spec, overlays), SearchLimits())
    problems: list[Issue] = []
    table: list[list[Option]] = []
    devices: dict[str, SystemFacts] = {}
    systems: dict[int, SystemFacts] = {}
    assumptions: dict[str, Any] = {}
    places = {fleet.name: i for i, fleet in enumerate(spec.fleets)}
    for t, task in enumerate(spec.tasks):
        table.append([])
        for tier in range(len(spec.tiers) + 1):
            where = f"tiers[{tier - 1}]" if tier else f"fleets[{places[task.fleet]}]"
            try:
                option, facts = evaluation.option(spec, document["tasks"][t]["workload"], t, tier)
            except SpecError as error:
                problems += [_placed(problem, where, t) for problem in error.problems]
                continue
            table[t].append(option)
            assumptions |= facts.ledger.assumptions
            if tier:
                systems[tier - 1] = facts.system
                continue
            devices[task.fleet] = facts.system
            if facts.system.chips != 1:
                words = Message.of(
                    "edge.device_has_chips", system=facts.system.name, count=str(facts.system.chips)
                ).text()
                problems.append(Issue(f"{where}.system", words))
    if problems:
        raise SpecError(problems)
    for i, fleet in enumerate(spec.fleets):
        if fleet.name not in devices:
            raise SpecError([Issue(f"fleets[{i}]", Message.of("edge.fleet_without_task").text())])
    return Options(
        spec, evaluation.catalog, tuple(map(tuple, table)), tuple(devices[fleet.name] for fleet in spec.fleets),
        tuple(systems[i] for i in range(len(spec.tiers))), assumptions,
        sum_of(not option.evaluated for row in table for option in row),
    )  # fmt: skip


def catalog_of(spec: EdgeSpec, overlays: Sequence[Path]) -> Catalog:
    """Load the catalog with overlays, records and overrides of a question. Raises SpecError."""
    try:
        catalog = Catalog.load(overlays, [spec.catalog] if spec.catalog else [])
        if spec.overrides:
            catalog = catalog.with_overrides({path: o.model_dump() for path, o in spec.overrides.items()})
        return catalog
    except CatalogError as error:
        raise SpecError(issues_of(error)) from None


def _placed(problem: Issue, where: str, task: int) -> Issue:
    """Move a problem of a case to its place in the question."""
    if problem.path.startswith("workload"):
        return Issue(f"tasks[{task}].{problem.path}", problem.message)
    return Issue(f"{where}.{problem.path}", problem.message)


def _left_s(task: Task, fleet: DeviceFleet, tier: Tier | None) -> float:
    """Compute the rest of the deadline for the engine of a tier [s]."""
    left = task.deadline - task.sensing
    if tier is None:
        return left
    moved = (task.upload + task.download) / fleet.uplink if fleet.uplink else 0.0
    return left - tier.rtt - moved


def _facts(catalog: Catalog, workload: Mapping[str, Any], system: str, left_s: float | None) -> CaseFacts:
    """Resolve a task on one system, within a limit on the end-to-end latency where one is left."""
    plain = {**workload, "disaggregation": "never"}
    if left_s is not None and left_s > MILLI:
        plain["slo"] = {"e2e": {"p95": f"{left_s:.9f} s"}}
    chips = int(catalog.get("systems", system).figure("chips").number) if catalog.has("systems", system) else 1
    return resolve_case({"workload": plain, "system": system, "chips": chips, "topology": "provider"}, catalog=catalog)


def _on_device(t: int, task: Task, fleet: DeviceFleet, facts: CaseFacts) -> Option:
    """Evaluate a task on the device: one request at a time."""

    def cannot(code: str, **arguments: Argument) -> Option:
        return Option(t, 0, Message.of(code, **arguments).text())

    if task.tiers is not None and DEVICE not in task.tiers:
        return cannot("edge.not_allowed")
    if fleet.availability < task.availability:
        return cannot("edge.available", available=f"{fleet.availability:.3%}", asked=f"{task.availability:.3%}")
    limit_w = fleet.power_limit_w()
    if limit_w is not None and limit_w <= facts.system.idle_w:
        return cannot("edge.idle", idle=facts.system.idle_w, allowed=limit_w)
    found = _best(facts, Load(CONCURRENCY, 1.0))
    if isinstance(found, str):
        return Option(t, 0, found)
    latency = task.sensing + found.latency("e2e", QUANTILE)
    if latency > task.deadline:
        return cannot("edge.late", taken=latency, deadline=task.deadline)
    known = engine_constants(facts.serving, facts.system, facts.constants.serving)
    return Option(
        t, 0, latency_s=latency, busy_s=found.latency("e2e", "mean"), longest_s=found.latency("e2e", QUANTILE),
        memory_bytes=float(found.point.memory_bytes), runtime_bytes=float(reserve_bytes(facts.architecture, found.layouts[-1], known)),
        usable_bytes=facts.system.hbm_bytes * float(known.usable_memory),
        power_w=_extra_w(facts, found), precision=found.precision,
    )  # fmt: skip


def _on_tier(t: int, tier: int, task: Task, fleet: DeviceFleet, place: Tier, facts: CaseFacts) -> Option:
    """Evaluate a task on a tier: the most requests per second of one system within the rest of the deadline."""

    def cannot(code: str, **arguments: Argument) -> Option:
        return Option(t, tier, Message.of(code, **arguments).text())

    if task.tiers is not None and place.name not in task.tiers:
        return cannot("edge.not_allowed")
    if place.availability < task.availability:
        return cannot("edge.available", available=f"{place.availability:.3%}", asked=f"{task.availability:.3%}")
    if fleet.uplink is None:
        return cannot("edge.no_uplink")
    left = _left_s(task, fleet, place)
    if left <= MILLI:
        to_go = task.deadline - task.sensing
        return cannot("edge.way", away=to_go - left, left=to_go)
    sent = task.requests_per_s * (task.upload + task.download)
    if sent > fleet.uplink:
        return cannot("edge.uplink", sent=sent / MEGA, carried=fleet.uplink / MEGA)
    found = _best(facts, Load(MAX))
    if isinstance(found, str):
        return Option(t, tier, found)
    rate = task.requests_per_s * fleet.count * fleet.duty
    return Option(
        t, tier, latency_s=task.deadline - left + found.latency("e2e", QUANTILE), systems=rate / found.requests_per_s,
        power_w=_extra_w(facts, found), uplink_bytes_per_s=sent,
        data_bytes_per_s=sent * fleet.count * fleet.duty, precision=found.precision,
    )  # fmt: skip


def _best(facts: CaseFacts, load: Load) -> ServingConfiguration | str:
    """Return the best configuration on one system, or why there is none."""
    try:
        found = search_one_pool(facts, load, None)
    except SpecError as error:
        return error.problems[0].message
    if found.best is None:
        return Message.of("edge.no_batch" if found.fitting else "edge.memory").text()
    return found.best


def _extra_w(facts: CaseFacts, found: ServingConfiguration) -> float:
    """Compute the power of a system above idle when it does nothing but this [W]."""
    return draw_of_pools(facts, found).system_w[0] - facts.system.idle_w
