"""Insert an urgent job into a plan: on the fleet that it holds, and with systems free to be added; what it displaces, and what it costs."""

from __future__ import annotations

import copy
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catalog.units import DAY_S, HOUR_S
from planner.errors import Issue, SpecError
from planner.messages import Message, enumerated
from planner.pipeline import solve_document
from planner.plan import Plan
from planner.report.words import amount, counted, whole, with_unit
from planner.solving.standing import Progress
from planner.solving.variants import resolved
from planner.spec.document import Edits, edited
from planner.spec.model import parse_spec
from planner.studies.base.planned import REPLICAS, SAME, SCENARIOS, Base, planned

HELD, FREE = "on the fleet of the plan", "with systems free to be added"
AS_SEARCHED: Edits = (("simplicity.within", 0),)  # plans of fewer parts would hide what a small job costs
PRINTED = 1e-4  # share of an amount of four digits that may still change the last one
NOTHING = 1e-9  # share of the objective below which a difference is rounding
MOVED = 1e-6  # share of a workload's chip hours below which it is not said to move


@dataclass(frozen=True, slots=True)
class Insertion:
    """The plan with the job, on one of both fleets. `cost`: by how much it is worse than the plan without the job in the objective (dearer, dirtier, or less throughput), None without a plan."""

    fleet: str
    status: str
    cost: float | None
    added_chips: int
    moved: Mapping[
        str, float
    ]  # workload -> chip hours that it does less where and when it would without the job, and does elsewhere or at another time
    resumptions: float  # by how often jobs are interrupted more
    conflict: tuple[str, ...]  # limits in the way, in words
    doubt: float  # sum of the gaps of both plans, in the unit of the objective: smaller costs may come from the search
    late: Mapping[str, float | None]  # job -> by how much it is done after its deadline [s], None where it is left out

    @property
    def is_doubtful(self) -> bool:
        """Tell whether the gaps reach the digits that are printed of the cost."""
        return self.doubt > PRINTED * abs(self.cost or 0.0)

    def row(self) -> dict[str, Any]:
        """Return its figures as a row."""
        return {
            "fleet": self.fleet,
            "status": self.status,
            "cost": self.cost,
            "added_chips": self.added_chips,
            "moved_chip_hours": dict(self.moved),
            "resumptions": self.resumptions,
            "conflict": list(self.conflict),
            "doubt": self.doubt,
            "late_s": dict(self.late),
        }


@dataclass(frozen=True, slots=True)
class Urgent:
    """What an urgent job does to a plan. `before`: objective without it; `sense`: "min" or "max"."""

    job: str
    unit: str
    sense: str
    before: float
    insertions: tuple[Insertion, ...]
    base: Base

    @property
    def status(self) -> str:
        """Return the status of the plan on the fleet that is held, or, where there is none, of the other."""
        held, free = self.insertions
        return held.status if held.cost is not None else free.status

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as one flat table."""
        return [
            {key: value for key, value in insertion.row().items() if not isinstance(value, (dict, list))}
            for insertion in self.insertions
        ]

    @property
    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "job": self.job,
            "unit": self.unit,
            "sense": self.sense,
            "before": self.before,
            "base": self.base.row(),
            "insertions": [i.row() for i in self.insertions],
        }

    @property
    def words(self) -> list[str]:
        """Say what the job costs, and what makes room for it."""
        said = [self.base.message.text()]
        for insertion in self.insertions:
            fleet = Message.of("urgent.fleet_held" if insertion.fleet == HELD else "urgent.fleet_free").text()
            if insertion.cost is None:
                limits = "; ".join(insertion.conflict) or insertion.status
                said.append(Message.of("urgent.no_plan", fleet=fleet, job=self.job, limits=limits).text())
                continue
            told = {"fleet": fleet, "job": self.job, "cost": self._shown(insertion)}
            if insertion.added_chips:
                said.append(
                    Message.of("urgent.costs_more", **told, chips=counted(insertion.added_chips, "chip")).text()
                )
            else:
                said.append(Message.of("urgent.costs", **told).text())
            if insertion.moved:
                parts = (
                    Message.of("urgent.chip_hours", hours=whole(hours), name=name).text()
                    for name, hours in insertion.moved.items()
                )
                said.append(Message.of("urgent.displaces", names=enumerated(parts)).text())
            for name, late_s in insertion.late.items():
                said.append(
                    Message.of("urgent.left_out", name=name).text()
                    if late_s is None
                    else Message.of("urgent.late", name=name, days=f"{late_s / DAY_S:,.1f}").text()
                )
            if insertion.resumptions > 0.5:
                said.append(Message.of("urgent.interrupted", times=_times(round(insertion.resumptions))).text())
        if REPLICAS in self.base.relaxed:
            said.append(Message.of("urgent.divisible", job=self.job).text())
        doubt = max((i.doubt for i in self.insertions if i.cost is not None and i.is_doubtful), default=0.0)
        if doubt > SAME * abs(self.before):
            said.append(Message.of("urgent.doubt", doubt=f"{amount(doubt)} {self.unit}").text())
        return said

    @property
    def gained(self) -> str:
        """Name what the job adds to the objective: more of a cost, or less of a maximised amount."""
        return f"{self.unit} {'less' if self.sense == 'max' else 'more'}"

    def _shown(self, insertion: Insertion) -> str:
        """Print what an insertion costs: money and carbon as such, of a throughput the loss, beside what there was."""
        if self.sense == "max":
            return f"{amount(insertion.cost or 0.0)} of {with_unit(self.before, self.unit)}"
        return f"{amount(insertion.cost or 0.0)} {self.unit}"

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows), formatted for people."""
        rows = [
            {
                "fleet": i.fleet,
                "status": i.status.replace("_", " "),
                self.gained: "" if i.cost is None else amount(i.cost),
                "chips more": i.added_chips,
                "displaced (chip hours)": ", ".join(f"{name} {whole(hours)}" for name, hours in i.moved.items()),
                "interruptions more": whole(i.resumptions),
            }
            for i in self.insertions
        ]
        return [(Message.of("studies.head_with", job=self.job).text(), rows)]


def _times(count: int) -> str:
    """Count times."""
    return Message.of("urgent.time").text() if count == 1 else Message.of("urgent.times", count=count).text()


def urgent(
    document: Mapping[str, Any], job: Mapping[str, Any], *, overlays: Sequence[Path] = (), progress: Progress | None = None
) -> Urgent:  # fmt: skip
    """Solve a spec without and with a further job, on the systems that it holds without it and with any on offer.

    `job`: a workload as specs state it, of any kind. Its deadline stands; what makes room are the hours of other jobs, requests that may
    wait, and systems that stood idle. Raises SpecError for a spec without offers or with phases,
    and for a job that specs refuse.
    """
    began, say = time.perf_counter(), progress or (lambda line: None)
    spec = parse_spec(document)
    if spec.offers is None:
        raise SpecError([Issue("offers", Message.of("urgent.needs_offers").text())])
    if spec.phases is not None:
        raise SpecError([Issue("phases", Message.of("urgent.without_phases").text())])
    with_job: Edits = (("workloads", [*copy.deepcopy(document["workloads"]), dict(job)]),)
    chips_of = {system.name: system.chips for system in resolved(edited(document, with_job), overlays).systems.values()}
    start = planned(dict(document), overlays, progress=progress)
    plain = edited(start.document, AS_SEARCHED)
    more = edited(plain, (("workloads", [*copy.deepcopy(plain["workloads"]), dict(job)]),))
    base = solve_document(plain, overlays=overlays) if start.plan.has_answer else start.plan
    say(Message.of("progress.without_it", status=base.status, seconds=f"{time.perf_counter() - began:.1f}").text())
    if base.objective["value"] is None:
        raise SpecError([Issue("workloads", Message.of("urgent.no_plan_without", status=base.status).text())])
    insertions = []
    offers: Edits = (("offers", _held_offers(plain, base)),)
    for fleet, edits in ((HELD, offers), (FREE, ())):
        # On fewer systems a network costs more of each, so that the plan without the job is solved on the same offers.
        without = solve_document(edited(plain, edits), overlays=overlays) if edits else base
        plan = solve_document(edited(more, edits), overlays=overlays)
        insertions.append(_insertion(fleet, without, plan, chips_of))
        say(
            Message.of(
                "progress.elapsed", name=fleet, status=plan.status, seconds=f"{time.perf_counter() - began:.1f}"
            ).text()
        )
    objective = base.objective
    robust = [SCENARIOS] if spec.robust is not None else []
    stated = replace(start, relaxed=tuple(code for code in start.relaxed if code not in robust)).base(
        objective["value"]
    )
    return Urgent(job["name"], objective["unit"], objective["sense"], base.value, tuple(insertions), stated)


def _held_offers(document: Mapping[str, Any], plan: Plan) -> list[dict[str, Any]]:
    """Write the offers by which a plan obtained systems, each at its site, with as many as it holds at most."""
    rows = [(row, row.get("windows")) for row in plan.document["fleet"]]
    last = max((windows[1] for _, windows in rows if windows), default=0)
    held: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * (last + 1))
    for row, windows in rows:
        first, end = windows or (0, last)
        for window in range(first, end + 1):
            held[row["offer"], row["site"]][window] += row["count"]
    offers = {f"offers[{i}]": offer for i, offer in enumerate(document["offers"])}
    return [
        {
            **{key: value for key, value in offers[path].items() if key != "least"},
            "supply": max(counts),
            "regions": [site],
        }
        for (path, site), counts in held.items()
        if path in offers and max(counts)
    ]


def _insertion(fleet: str, base: Plan, plan: Plan, chips_of: Mapping[str, int]) -> Insertion:
    """Compare a plan with the job with one without it."""
    if not plan.has_answer or plan.objective["value"] is None:
        diagnosis = plan.document.get("diagnosis")
        words = tuple(row["words"] for row in diagnosis["conflict"]) if diagnosis else ()
        return Insertion(fleet, plan.status, None, 0, {}, 0.0, words, 0.0, {})
    before, after = _chips_at_work(base, chips_of), _chips_at_work(plan, chips_of)
    usual = {name: _usual(rows) for name, rows in before.items()}
    moved = {}
    for workload, rows in after.items():
        away = sum(
            max(usual.get(workload, {}).get(place, 0.0) - chips, 0.0) * seconds for place, chips, seconds in rows
        )
        if away > MOVED * sum(chips * seconds for _, chips, seconds in rows):
            moved[workload] = away / HOUR_S
    more = _resumptions(plan) - _resumptions(base)
    chips = max(plan.totals["chips"] - base.totals["chips"], 0)
    sign = -1.0 if plan.objective["sense"] == "max" else 1.0
    cost = sign * (plan.value - base.value)
    cost = 0.0 if abs(cost) <= NOTHING * abs(base.value) else cost
    late = {
        row["workload"]: None if row["deadline_s"] is None else row["deadline_s"] - row["asked_s"]
        for row in plan.document.get("postponed", ())
    }
    bounds = [(each.document["bound"], each.value) for each in (base, plan)]
    doubt = sum(abs(bound - value) for bound, value in bounds if bound is not None)
    return Insertion(fleet, plan.status, cost, chips, moved, more, (), doubt, late)


Slot = tuple[tuple[Any, ...], float, float]  # (site, day, hour), chips at work, seconds


def _chips_at_work(plan: Plan, chips_of: Mapping[str, int]) -> dict[str, list[Slot]]:
    """List the chips at work for each workload in each slot; `chips_of` a system."""
    found: dict[str, list[Slot]] = {}
    for workload in plan.document["workloads"]:
        each = {
            point["id"]: sum(pool["systems_per_replica"] * chips_of.get(pool["system"], 0) for pool in point["pools"])
            for point in workload["points"]
        }
        found[workload["name"]] = [
            (
                (row["site"], row.get("day"), row["hour_utc"]),
                sum(active * each[name] for name, active in row["active"].items() if name in each),
                row["seconds"],
            )
            for row in plan.document["schedule"]
        ]
    return found


def _usual(slots: Sequence[Slot]) -> dict[tuple[Any, ...], float]:
    """Average the chips at work by site, day and hour over all windows of a plan."""
    work: dict[tuple[Any, ...], float] = defaultdict(float)
    time_s: dict[tuple[Any, ...], float] = defaultdict(float)
    for place, chips, seconds in slots:
        work[place] += chips * seconds
        time_s[place] += seconds
    return {place: work[place] / time_s[place] for place in work}


def _resumptions(plan: Plan) -> float:
    return float(sum(row["resumptions"] for row in plan.document.get("preemptions", ())))
