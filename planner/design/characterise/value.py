"""What the systems on offer do with each workload of a spec per price, per cost and per watt, each for itself at its best operating point."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog.units import DAY_S, HOUR_S, YEAR_S
from models.arrays import sum_of
from planner.candidates.apis import ROLE
from planner.candidates.cache import OutOfMemory, OutOfTime
from planner.candidates.fleet_options import FleetOption, charged
from planner.candidates.points import OperatingPoint, serving_run
from planner.candidates.search import find_candidates
from planner.errors import LimitReached
from planner.estimate.limits import SearchLimits
from planner.messages import Message
from planner.problem.electricity import slot_prices
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.intervals import serving_bounds, serving_tier, training_bounds
from planner.problem.phases import terms_of
from planner.resolve.resolver import resolve_document

Row = dict[str, Any]
OF_VALUE = (
    "how", "site", "tokens_per_s", "tokens_per_day", "interval_80", "tier", "price", "tokens_per_s_per_price", "cost_per_h", "tokens_per_cost",
    "power_w", "tokens_per_j",
)  # fmt: skip


def value_of_systems(
    document: Mapping[str, Any], overlays: Sequence[Path] = (), limits: SearchLimits | None = None
) -> list[Row]:
    """List a row for each workload of a spec and each way to buy or rent a system, the most tokens per cost first.

    Of the sites, networks and operating points that a plan would choose from, that counts which gives most tokens per cost at full load.
    A system that can be had but does not serve the workload within its limits has a row without figures. Raises SpecError, or LimitReached.
    """
    limits = limits or SearchLimits()
    problem = resolve_document(document, overlays)
    if math.isfinite(limits.memory_bytes):
        solver = problem.spec.solver.model_copy(update={"memory": limits.memory_bytes})
        problem = replace(problem, spec=problem.spec.model_copy(update={"solver": solver}))
    try:
        found = find_candidates(problem, until=time.perf_counter() + limits.left_s)
    except OutOfTime as error:
        reason = limits.reason("memory" if isinstance(error, OutOfMemory) else "time").text()
        raise LimitReached(Message.of("limits.value", reason=reason).text()) from None
    points: dict[str, list[OperatingPoint]] = {w.name: [] for w in (*problem.serving, *problem.training)}
    for pool in found.pools:
        points[pool.workload.name] += pool.points
    for name, several in found.training.items():
        points[name] += several
    ways = list(dict.fromkeys((o.system, o.how) for o in problem.offers if o.system in problem.systems))
    return [row for name, mine in points.items() for row in _ranked(problem, name, mine, ways)]


def with_value(rows: Sequence[Row], value: Sequence[Row]) -> list[Row]:
    """Join the rows of systems that can carry a workload with the rows of what they do: one row for each way to have the system, or one without."""
    found: list[Row] = []
    for row in rows:
        mine = [each for each in value if (each["workload"], each["system"]) == (row["workload"], row["system"])]
        found += [{**row, **{name: each.get(name) for name in OF_VALUE}} for each in mine or [{}]]
    return found


def _ranked(
    problem: ResolvedSpec, name: str, points: Sequence[OperatingPoint], ways: Sequence[tuple[str, str]]
) -> Iterator[Row]:
    """Yield the rows of a workload."""
    best: dict[tuple[str, str], Row] = {}
    for point in points:
        kinds = {(use.option.system.name, use.option.offer.how) for use in point.uses}
        if len(kinds) > 1 or point.uses[0].role == ROLE:
            continue  # two kinds of systems together, or tokens of an API
        if (row := _row(problem, point)) is None:
            continue
        (way,) = kinds
        if way not in best or row["tokens_per_cost"] > best[way]["tokens_per_cost"]:
            best[way] = row
    yield from sorted(best.values(), key=lambda row: -row["tokens_per_cost"])
    yield from (_without(name, system, how) for system, how in ways if (system, how) not in best)


def _row(problem: ResolvedSpec, point: OperatingPoint) -> Row | None:
    """Evaluate a point at full load, per system; None where no system of it can be held."""
    systems = sum_of(use.systems for use in point.uses)
    cost_per_s = drawn_w = price = 0.0
    for use in point.uses:
        held_per_s = holding_per_s(problem, use.option)
        if held_per_s is None:
            return None
        meter_w = (use.systems * use.option.idle_it_w + use.extra_it_w) * use.option.pue
        drawn_w += meter_w
        price += use.systems * use.option.capital
        cost_per_s += use.systems * held_per_s + (meter_w * mean_price_per_j(problem, use.option) if use.option.owned else 0.0)  # fmt: skip
    tokens = point.serving.spec.lengths.output if isinstance(point.workload, ServingFacts) else 1.0
    rate, (low, high), tier = point.capacity * tokens / systems, *_spread(problem, point)
    first = point.uses[0].option
    return {
        "workload": point.workload.name,
        "system": first.system.name,
        "how": first.offer.how,
        "site": point.site,
        "chips": first.system.chips,
        "tokens_per_s": rate,
        "tokens_per_day": rate * DAY_S,
        "interval_80": [rate * low, rate * high],
        "tier": tier,
        "price": price / systems if first.owned else None,
        "tokens_per_s_per_price": rate * systems / price if first.owned and price else None,
        "cost_per_h": cost_per_s * HOUR_S / systems,
        "tokens_per_cost": rate * systems / cost_per_s,
        "power_w": drawn_w / systems,
        "tokens_per_j": rate * systems / drawn_w,
        "layout": dict(point.uses[-1].layout),
        "precision": point.uses[-1].precision,
    }


def _without(name: str, system: str, how: str) -> Row:
    """Write the row of a system that no operating point of the workload stands on."""
    return {"workload": name, "system": system, "how": how, "site": None, "tokens_per_s": None}


def _spread(problem: ResolvedSpec, point: OperatingPoint) -> tuple[tuple[float, float], str]:
    """Return the 80 % interval of the throughput over the throughput, and how far it is from what was measured."""
    if point.interval:
        low, high = training_bounds(point.interval, {}, 1.0)["capacity"]
        return (low, high), point.interval.tier
    known = problem.constants.measured_serving
    chips = [point.serving.measured_as(use.option.system.chip, use.precision) for use in point.uses]
    run = serving_run(point)
    low, high = serving_bounds(known, chips, {}, 1.0, run)["capacity"]
    return (low, high), serving_tier(known, chips, run.kind)


def holding_per_s(problem: ResolvedSpec, option: FleetOption) -> float | None:
    """Compute the mean cost per second of holding one system from its delivery on, without energy [currency/s]; None where it cannot be held.

    Owned: present value of price less worth left, network, building, staff and software over the discounted time held, and rent of the hall.
    """
    terms = terms_of(problem, option.site, option.offer)
    if not terms:
        return None
    term, calendar = terms[0], problem.calendar
    if not option.owned:
        return term.price + option.software_per_year / YEAR_S
    held = term.mask(calendar)
    worth_s = float((calendar.seconds * calendar.discount)[held].sum())
    return charged(problem.economics, option, term) / worth_s + option.hall_per_s


def mean_price_per_j(problem: ResolvedSpec, option: FleetOption) -> float:
    """Compute the mean price of electricity at the site of an option, each hour alike [currency/J]."""
    calendar = problem.calendar
    weight = calendar.seconds * calendar.discount
    return float(slot_prices(option.site.price_per_j, calendar, problem.economics) @ weight / weight.sum())
