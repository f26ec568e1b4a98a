"""State a spec from a later day on: horizon, phases, moments, growth, jobs, limits, and the systems held by then.

The horizon ends where it did, rounded up to whole years. Growth of demand and changes of prices per year count from the day on, and what has grown by then
stands in the figures. Not here: the systems held (`held`), and the observations (`answer`).
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from catalog.units import DAY_S, YEAR_S, parse_money
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.plan import Plan
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import seconds_from
from planner.report.why.oldest import BUY
from planner.spec.changes import scaled
from planner.spec.document import changed, edited
from planner.spec.model import PlanSpec
from planner.spec.quantities import offer_price
from planner.studies.base.varied import price_edits, times, work_path
from planner.studies.replan.held import Holding, Place, aged, orders, owned_entries, rented_entries, running

BY_PHASE = ("price_by_phase", "power_by_phase", "factor_by_phase")
STRAIGHT = ("budget", "carbon")
"""Limits of the whole horizon of which a part in proportion to the time has been used."""
_WORKLOAD = re.compile(r"workloads\[(\d+)\](.*)")
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Observed:
    """Facts known on `day` beside the figures that the spec states already.

    `rates`: workloads whose demand is as observed, so that none of its growth is added; `prices`: (system, how) whose price is; `done`: shares of jobs
    that are done; `delivered`, `expected`: systems that have come by place, and the day on which the rest comes; `assignments`: each PATH=VALUE on
    the spec from the day on, whose places are those of the plan's spec.
    """

    day: date
    rates: Collection[str] = ()
    prices: Collection[tuple[str, str]] = ()
    done: Mapping[str, float] = field(default_factory=dict)
    delivered: Mapping[Place, int] = field(default_factory=dict)
    expected: Mapping[Place, date] = field(default_factory=dict)
    assignments: Sequence[str] = ()

    @property
    def stated(self) -> set[str]:
        """Return the places that are stated anew."""
        return {each.partition("=")[0].strip() for each in self.assignments}


@dataclass(frozen=True, slots=True)
class Rebased:
    """A spec from a day on, with the holdings as delivered, and notes on what could not be carried over."""

    document: Document
    holdings: tuple[Holding, ...]
    notes: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class _Clock:
    """The time between the start of a plan and a later day."""

    start: date
    day: date
    years: int

    @property
    def elapsed_s(self) -> float:
        return (self.day - self.start).days * DAY_S

    @property
    def left_s(self) -> float:
        return self.years * YEAR_S - self.elapsed_s

    @property
    def grown_years(self) -> float:
        return self.elapsed_s / YEAR_S

    def passed(self, moment: Any, parsed: date | float | None) -> bool:
        """Tell whether a moment of the spec has passed."""
        return moment is not None and seconds_from(self.start, parsed) <= self.elapsed_s

    def moved(self, parsed: date | float) -> str:
        """Write a later moment of the spec as a day."""
        return (self.start + timedelta(days=math.ceil(seconds_from(self.start, parsed) / DAY_S))).isoformat()


def rebased(
    document: Mapping[str, Any], plan: Plan, problem: ResolvedSpec, holdings: Sequence[Holding], known: Observed
) -> Rebased:
    """Return the spec from `known.day` on. `document`: the plan's spec with the figures as observed; `holdings`: with the counts as delivered.

    Raises SpecError for a day outside the horizon, and with every job that is past its deadline and not done.
    """
    spec = problem.spec
    clock = _Clock(spec.horizon.start, known.day, spec.horizon.years)
    if not 0.0 < clock.elapsed_s < spec.horizon.years * YEAR_S:
        end = spec.horizon.start + timedelta(days=int(spec.horizon.years * YEAR_S // DAY_S))
        told = Message.of(
            "replan.day_outside", day=known.day.isoformat(), start=spec.horizon.start.isoformat(), end=end.isoformat()
        )
        raise SpecError([Issue("--date", told.text())])
    result: Document = copy.deepcopy(dict(document))
    years = max(1, math.ceil(clock.left_s / YEAR_S - 1e-6))
    result["horizon"] = {**(result.get("horizon") or {}), "start": known.day.isoformat(), "years": years}
    phase = _phases(result, spec, clock, holdings, years)
    _offers(result, spec, clock, holdings, known, phase)
    _sites(result, spec, clock)
    _decisions(result, spec, clock)
    gone = _workloads(result, spec, clock, known, phase)
    _held(result, plan, spec, clock, holdings, known)
    notes = [*_limits(result, clock, holdings, years), *_notes(plan, spec, clock, years, holdings)]
    result = changed(result, known.assignments, {})
    _leave_out(result, spec, gone)
    return Rebased(result, tuple(holdings), tuple(notes))


def _phases(result: Document, spec: PlanSpec, clock: _Clock, holdings: Sequence[Holding], years: int) -> str | None:
    """Drop the phases that are over, begin the one in force with the horizon, and carry figures by phase over; returns its name."""
    if not spec.phases:
        return None
    starts = [seconds_from(clock.start, phase.start) for phase in spec.phases]
    now = max(i for i, start_s in enumerate(starts) if start_s <= clock.elapsed_s)
    past, name = [phase.name for phase in spec.phases[:now]], spec.phases[now].name
    current, later = dict(result["phases"][now]), result["phases"][now + 1 :]
    current["start"] = clock.day.isoformat()
    is_last = now + 1 == len(starts)
    left_s = years * YEAR_S if is_last else starts[now + 1] - clock.elapsed_s
    share = left_s / ((clock.years * YEAR_S if is_last else starts[now + 1]) - starts[now])
    if current.get("budget") is not None:
        current["budget"] = _share_of(current["budget"], share)
    if current.get("capital") is not None:
        spent = sum(h.count * h.price for h in holdings if h.offer.how == BUY and h.phase == name)
        current["capital"] = _less(current["capital"], spent)
    moved = [
        {**each, "start": clock.moved(phase.start)} for each, phase in zip(later, spec.phases[now + 1 :], strict=True)
    ]
    result["phases"] = [current, *moved]
    blocks = [*(result.get("offers") or ()), *result["sites"], *(w.get("demand") or {} for w in result["workloads"])]
    for block in blocks:
        for key in BY_PHASE:
            if block.get(key):
                block[key] = _in_force(block[key], past, name)
        if block.get("supply_by_phase"):
            block["supply_by_phase"] = {p: n for p, n in block["supply_by_phase"].items() if p not in past}
    return name


def _in_force(figures: Mapping[str, Any], past: Sequence[str], now: str) -> dict[str, Any]:
    """Carry the latest figure of the phases that are over into the one in force, unless it has its own."""
    latest = [figures[name] for name in past if name in figures]
    kept = {name: value for name, value in figures.items() if name not in past}
    return {now: latest[-1], **kept} if latest and now not in kept else kept


def _offers(
    result: Document, spec: PlanSpec, clock: _Clock, holdings: Sequence[Holding], known: Observed, phase: str | None
) -> None:
    """Move the moments of offers and APIs, let prices change, and take from the supply what has been ordered."""
    for i, offer in enumerate(spec.offers or ()):
        stated, mine = result["offers"][i], [each for each in holdings if each.offer.order == f"offers[{i}]"]
        _times_of(stated, offer, clock)
        if offer.available_until is not None:
            if clock.passed(offer.available_until, offer.available_until):
                stated.pop("available_until")
                stated["supply"] = 0
            else:
                stated["available_until"] = clock.moved(offer.available_until)
        ordered = sum(each.count + each.late for each in mine)
        if offer.supply is not None:
            stated["supply"] = max(min(int(stated["supply"]), offer.supply) - ordered, 0)
        if ordered:
            stated.pop("least", None)
        if phase is not None and phase in (stated.get("supply_by_phase") or {}):
            taken = sum(each.count + each.late for each in mine if each.phase == phase)
            stated["supply_by_phase"][phase] = max(stated["supply_by_phase"][phase] - taken, 0)
        if stated.get("price") is None:
            continue
        if (offer.system, offer.how) in known.prices:
            _apply(result, f"offers[{i}]", _over_phase(stated, offer.how == BUY, phase))
        elif offer.price_change_per_year:
            _apply(result, f"offers[{i}]", (1.0 + offer.price_change_per_year) ** clock.grown_years)
    if spec.offers is not None:
        result["offers"] += list(orders(holdings, known.expected, known.day, spec.currency))
    for i, api in enumerate(spec.apis or ()):
        _times_of(result["apis"][i], api, clock)
        if api.price_change_per_year:
            _apply(result, f"apis[{i}]", (1.0 + api.price_change_per_year) ** clock.grown_years)


def _over_phase(stated: Document, bought: bool, phase: str | None) -> float:
    """Return the factor by which the price of the phase in force becomes the stated one: an observed price was compared with the price before all phases."""
    now = (stated.get("price_by_phase") or {}).get(phase)
    return 1.0 if now is None else offer_price(stated["price"], bought, 1)[0] / offer_price(now, bought, 1)[0]


def _apply(result: Document, path: str, factor: float) -> None:
    result.update(edited(result, price_edits(result, path, factor)))


def _times_of(stated: Document, block: Any, clock: _Clock) -> None:
    """Move when something becomes available: it is there where that has passed."""
    if block.available_from is None:
        return
    if clock.passed(block.available_from, block.available_from):
        stated.pop("available_from")
    else:
        stated["available_from"] = clock.moved(block.available_from)


def _sites(result: Document, spec: PlanSpec, clock: _Clock) -> None:
    for stated, site in zip(result["sites"], spec.sites, strict=True):
        _times_of(stated, site, clock)


def _decisions(result: Document, spec: PlanSpec, clock: _Clock) -> None:
    """Keep the dates of `adapt` that lie ahead; where none does, the spec states none, and the usual ones count."""
    if spec.adapt is None or spec.adapt.dates is None:
        return
    pairs = zip(result["adapt"]["dates"], spec.adapt.dates, strict=True)
    ahead = [{**stated, "at": clock.moved(each.at)} for stated, each in pairs if not clock.passed(each.at, each.at)]
    result["adapt"] = {key: value for key, value in result["adapt"].items() if key != "dates"}
    if ahead:
        result["adapt"]["dates"] = ahead


def _workloads(result: Document, spec: PlanSpec, clock: _Clock, known: Observed, phase: str | None) -> list[int]:
    """Let demand grow, leave of each job the work that is not done, and return the places of jobs that are done.

    Raises SpecError with every job past its deadline and every demand with a forecast, and where nothing is left.
    """
    problems: list[Issue] = []
    gone: list[int] = []
    for i, workload in enumerate(spec.workloads):
        place = f"workloads[{i}].deadline"
        if workload.kind == "serving":
            if workload.demand.forecast is not None and (path := f"workloads[{i}].demand.forecast") not in known.stated:
                problems.append(Issue(path, Message.of("replan.forecast", place=path).text()))
            factor = _growth(
                workload.demand, result["workloads"][i]["demand"], workload.name in known.rates, clock, spec, phase
            )
            if factor != 1.0:
                _multiply(result, work_path(result, i), factor)
        elif (done := _done(workload, clock, known)) >= 1.0:
            gone.append(i)
        elif workload.deadline <= clock.elapsed_s and place not in known.stated:
            told = Message.of("replan.past_deadline", job=workload.name, done=f"{done:.0%}", place=place)
            problems.append(Issue(f"workloads[{i}]", told.text()))
        else:
            _rest_of(result, i, workload, done, clock)
    if len(gone) == len(spec.workloads):
        problems.append(Issue("workloads", Message.of("replan.all_done").text()))
    if problems:
        raise SpecError(problems)
    return gone


def _done(job: Any, clock: _Clock, known: Observed) -> float:
    """Return the share of a job that is done: as observed, else in proportion to the time between its start and its deadline."""
    deadline_s = min(job.deadline, clock.years * YEAR_S)
    planned = (clock.elapsed_s - job.start) / (deadline_s - job.start)
    return known.done.get(job.name, min(max(planned, 0.0), 1.0))


def _rest_of(result: Document, i: int, job: Any, done: float, clock: _Clock) -> None:
    """State the work that is left of a job, with start and deadline from the day on."""
    stated = result["workloads"][i]
    stated["start"] = f"{max(job.start - clock.elapsed_s, 0.0):.0f} s"
    if stated.get("deadline") is not None:
        stated["deadline"] = f"{max(job.deadline - clock.elapsed_s, DAY_S):.0f} s"
    for key in ("tokens", "iterations"):
        if stated.get(key) is not None and done > 0.0:
            _multiply(result, f"workloads[{i}].{key}", 1.0 - done)


def _multiply(result: Document, path: str, factor: float) -> None:
    result.update(edited(result, ((path, times(result, path, factor)),)))


def _growth(
    demand: Any, stated: Document, is_observed: bool, clock: _Clock, spec: PlanSpec, phase: str | None
) -> float:
    """Return the factor on a stated demand: what has grown since the start; of an observed one what undoes the factor of the phase in force."""
    if not is_observed:
        return float((1.0 + demand.growth_per_year) ** clock.grown_years)
    if phase is None or not demand.factor_by_phase:
        return 1.0
    in_turn = _running_factors(demand.factor_by_phase, [each.name for each in spec.phases or ()])
    first = next((factor for factor in in_turn if factor > 0.0), 1.0)
    now = float((stated.get("factor_by_phase") or {}).get(phase, 1.0))
    return first / now if now > 0.0 else 1.0


def _running_factors(factors: Mapping[str, float], names: Sequence[str]) -> list[float]:
    """Return the factor in force in each of some phases, in their order."""
    found, now = [], 1.0
    for name in names:
        now = float(factors.get(name, now))
        found.append(now)
    return found


def _leave_out(result: Document, spec: PlanSpec, gone: Sequence[int]) -> None:
    """Leave out the jobs that are done, and their names and places elsewhere in the spec."""
    if not gone:
        return
    names = {spec.workloads[i].name for i in gone}
    place = {old: new for new, old in enumerate(i for i in range(len(spec.workloads)) if i not in gone)}
    result["workloads"] = [each for i, each in enumerate(result["workloads"]) if i not in gone]
    for api in result.get("apis") or ():
        if api.get("workloads"):
            api["workloads"] = [name for name in api["workloads"] if name not in names]
    if result.get("assumptions"):
        kept = {}
        for path, reason in result["assumptions"].items():
            found = _WORKLOAD.fullmatch(path)
            if found is None:
                kept[path] = reason
            elif int(found[1]) in place:
                kept[f"workloads[{place[int(found[1])]}]{found[2]}"] = reason
        result["assumptions"] = kept


def _held(
    result: Document, plan: Plan, spec: PlanSpec, clock: _Clock, holdings: Sequence[Holding], known: Observed
) -> None:
    """State the systems owned and rented on the day."""
    owned = aged(result.get("owned") or (), plan, clock.elapsed_s, spec.owned)
    ends = {
        i: clock.start + timedelta(days=math.ceil(seconds_from(clock.start, entry.until) / DAY_S))
        for i, entry in enumerate(spec.rented)
    }
    rented = running(result.get("rented") or (), plan, clock.day, ends)
    for key, entries in (
        ("owned", [*owned, *owned_entries(holdings, known.day, spec.currency)]),
        ("rented", [*rented, *rented_entries(holdings, known.day, spec.currency)]),
    ):
        result.pop(key, None)
        if entries:
            result[key] = entries


def _limits(result: Document, clock: _Clock, holdings: Sequence[Holding], years: int) -> Iterator[Message]:
    """Scale the ceilings of the whole horizon to the new one, and leave of the ceiling on purchases the part that is not spent; yields notes."""
    limits = result.get("limits") or {}
    for key in STRAIGHT:
        if limits.get(key) is not None:
            limits[key] = _share_of(limits[key], years / clock.years)
    if limits.get("capital") is not None:
        spent = sum(h.count * h.price for h in holdings if h.offer.how == BUY)
        if spent >= parse_money(str(limits["capital"]), "")[0]:
            yield Message.of("replan.overspent")
        limits["capital"] = _less(limits["capital"], spent)


def _share_of(written: Any, share: float) -> Any:
    """Multiply an amount that is written as a number or with its unit."""
    return scaled(float(written) if isinstance(written, int) else written, share)


def _less(written: Any, spent: float) -> Any:
    """Take an amount from a ceiling that is written with its unit; a thousandth of the ceiling is left at least, for none may be 0."""
    return _share_of(written, max(1.0 - spent / parse_money(str(written), "")[0], 1e-3))


def _notes(plan: Plan, written: PlanSpec, clock: _Clock, years: int, holdings: Sequence[Holding]) -> list[Message]:
    """Name the parts that the spec from the day on could not take over."""
    notes = []
    if years * YEAR_S > clock.left_s + DAY_S:
        end = clock.day + timedelta(days=int(years * YEAR_S // DAY_S))
        notes.append(Message.of("replan.whole_years", years=years, end=end.isoformat()))
    limits = plan.document["spec"].get("limits") or {}
    if used := [key for key in STRAIGHT if limits.get(key) is not None]:
        notes.append(Message.of("replan.straight_line", names=", ".join(f"limits.{key}" for key in used)))
    spec = plan.document["spec"]
    again = [name for name, there in (
        ("lines", spec.get("lines")), ("kv_tiers", spec.get("kv_tiers")), ("porting", spec.get("porting")),
        ("electricity", any(site.get("electricity") for site in spec["sites"])),
    ) if there]  # fmt: skip
    if written.offers is None and any(each.late for each in holdings):
        notes.append(Message.of("replan.orders_of_catalog"))
    unpriced = [o.system for o in written.offers or () if o.price is None and o.price_change_per_year]
    if unpriced or spec.get("economics", {}).get("escalation"):
        notes.append(Message.of("replan.prices_of_today"))
    if again:
        notes.append(Message.of("replan.decided_anew", names=", ".join(again)))
    return notes
