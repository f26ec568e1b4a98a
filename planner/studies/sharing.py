"""Measure the value of sharing a fleet: compare the plan with plans without one capability at a time, then without all.

Which capabilities there are, and how a spec changes without each: `planner.studies.sharing_capabilities`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.formulate.limits import Unbounded
from planner.interpret.framing import sense_and_unit
from planner.messages import Message, enumerated
from planner.plan import Plan
from planner.report.words import amount, share_words, unsigned_zero
from planner.solving.standing import Progress
from planner.solving.variants import Answer, Variants
from planner.studies.base.planned import Base, planned, solved, study_options
from planner.studies.sharing_capabilities import (
    ALL_OFF,
    SILOED,
    Capability,
    at_even_pace,
    capabilities,
    edits_without,
)
from solvers.interface import Options
from solvers.model.data import PlanData
from solvers.search.joint import solve
from solvers.solution import Solution

ON = Message.of("studies.all_on").text()
CLAIMED = (
    ("utilisation", Message.of("sharing.utilisation").text(), 0.5),
    ("efficiency", Message.of("sharing.efficiency").text(), 1.0),
)  # by makers of such platforms


def _worse(share: float | None) -> str:
    """Say by how much a plan is worse, or better where its search found more."""
    share = share or 0.0
    better = share < 0 and f"{share:.2%}" != "-0.00%"
    return Message.of("sharing.better" if better else "sharing.worse", share=f"{abs(share):.2%}").text()


@dataclass(frozen=True, slots=True)
class Switched:
    """A plan with one capability off.

    `utilisation`: chips at work over chips held, mean over the horizon; `goodput`: share of training time that makes lasting progress;
    `efficiency`: lasting model FLOPs of training over the peak of its chips; the latter two weighted by chips and time. None without a
    plan or without training.
    """

    capability: str
    off: str
    status: str
    value: float | None = None
    gap: float | None = None
    chips: int | None = None
    utilisation: float | None = None
    goodput: float | None = None
    efficiency: float | None = None
    worse: float | None = None  # relative to the plan with all on, positive where it is worse

    def row(self) -> dict[str, Any]:
        """Return its figures as a row."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Sharing:
    """The plan with all capabilities, and one without each."""

    unit: str
    base: Switched
    rows_off: tuple[Switched, ...]
    status: str
    start: Base
    shared: str = "all"  # which workloads share systems with all on, as `sharing` of the spec says

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as one flat table."""
        return [row.row() for row in (self.base, *self.rows_off)]

    @property
    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {"unit": self.unit, "status": self.status, "base": self.start.row(), "rows": self.rows}

    @property
    def words(self) -> list[str]:
        """Summarise the value of one fleet and of all capabilities together."""
        off, words = {row.capability: row for row in self.rows_off}, [self.start.message.text()]
        siloed, nothing = off.get(SILOED), off.get(ALL_OFF)
        if siloed is not None and (more := self._more("utilisation", siloed)) is not None:
            used = {"used": f"{self.base.utilisation:.1%}", "apart": f"{siloed.utilisation:.1%}"}
            gives = unsigned_zero(share_words(more, "+.1%"))
            words.append(Message.of(f"sharing.fleet_{self.shared}", **used, more=gives).text())
            words.append(Message.of("sharing.separate", worse=_worse(siloed.worse)).text())
        if nothing is not None and nothing.worse is not None:
            words.append(Message.of("sharing.without_any", worse=_worse(nothing.worse)).text())
            for figure, claim, claimed in CLAIMED:
                if (more := self._more(figure, nothing)) is not None:
                    told = {
                        "more": unsigned_zero(share_words(more, "+.1%")),
                        "figure": claim,
                        "claimed": f"{claimed:.0%}",
                    }
                    words.append(
                        Message.of("sharing.holds" if more >= claimed else "sharing.does_not_hold", **told).text()
                    )
        if hopeless := [row.capability for row in self.rows_off if row.status == "infeasible"]:
            words.append(Message.of("sharing.hopeless", names=enumerated(hopeless, "or")).text())
        return words

    def _more(self, figure: str, row: Switched) -> float | None:
        """Compute the relative gain of the plan with all capabilities over a row, in one figure."""
        with_all, without = getattr(self.base, figure), getattr(row, figure)
        return with_all / without - 1.0 if with_all is not None and without and row.worse is not None else None

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows), formatted for people."""
        rows = [
            {
                "switched off": row.capability, "meaning": row.off, "status": row.status.replace("_", " "),
                self.unit: "" if row.value is None else amount(row.value),
                "worse by": "" if row.worse is None else unsigned_zero(f"{row.worse:+.2%}"),
                "gap": "" if row.gap is None else f"{row.gap:.2%}",
                "chips": "" if row.chips is None else f"{row.chips:,}",
                "utilisation": "" if row.utilisation is None else f"{row.utilisation:.1%}",
                "goodput": "" if row.goodput is None else f"{row.goodput:.1%}",
                Message.of("sharing.efficiency").text(): "" if row.efficiency is None else f"{row.efficiency:.1%}",
            }
            for row in (self.base, *self.rows_off)
        ]  # fmt: skip
        return [(Message.of("studies.head_capabilities").text(), rows)]


def sharing(
    document: Mapping[str, Any],
    *,
    overlays: Sequence[Path] = (),
    progress: Progress | None = None,
    so_far: Callable[[Sharing], None] | None = None,
) -> Sharing:
    """Solve the spec with and without each capability. `so_far` is told the study after each. Raises SpecError for an invalid spec."""
    began, say = time.perf_counter(), progress or (lambda line: None)
    start = planned(dict(document), overlays, progress=progress)
    document, options = start.document, study_options(start.problem)
    sense, unit = sense_and_unit(document)
    found: list[Switched] = []

    def study() -> Sharing:
        shared = start.problem.spec.sharing
        return Sharing(unit, found[0], tuple(found[1:]), found[0].status, start.base(found[0].value), shared)

    if not start.plan.has_answer:
        found.append(Switched(ON, "", start.plan.status))
        return study()
    for capability in (Capability(ON, ""), *capabilities(start.problem, document)):
        answer, status = _without(capability, start.variants, options)
        found.append(_switched(capability, answer, status, document, found[0].value if found else None, sense))
        say(
            Message.of(
                "progress.elapsed",
                name=capability.name,
                status=found[-1].status,
                seconds=f"{time.perf_counter() - began:.1f}",
            ).text()
        )
        if so_far is not None:
            so_far(study())
    return study()


def _without(capability: Capability, variants: Variants, options: Options) -> tuple[Answer | None, str]:
    """Solve the spec without a capability; returns the status too, also where there is no answer."""

    def paced(data: PlanData, limits: Options) -> Solution:
        return solve(at_even_pace(data) if capability.even_pace else data, limits)

    try:
        answer = solved(
            variants,
            edits_without(variants.base, capability),
            options,
            solve_program=paced,
            prepare=lambda form: form,  # the accounts read the program at its own pace
        )
    except Unbounded:
        return None, "unbounded"
    return answer, "limit" if answer is None else answer.solution.status


def _switched(
    capability: Capability,
    answer: Answer | None,
    status: str,
    document: Mapping[str, Any],
    base: float | None,
    sense: str,
) -> Switched:
    if answer is None or answer.value is None:
        return Switched(capability.name, capability.off, status)
    plan = answer.plan(document)
    value = plan.value
    use = use_of(plan, {name: system.chips for name, system in answer.problem.systems.items()}, held_chip_s(answer))
    return replace(
        use, capability=capability.name, off=capability.off, status=status, value=value, gap=plan.gap, chips=plan.totals["chips"],
        worse=None if base is None else (value / base - 1.0) * (1.0 if sense == "min" else -1.0),
    )  # fmt: skip


def held_chip_s(answer: Answer) -> float:
    """Multiply the chips held by the seconds for which they are held [chip s]."""
    seconds = answer.problem.calendar.window_seconds()
    return sum(
        round(float(count))
        * answer.form.fleet_options[k].system.chips
        * float(seconds[term.first : term.last + 1].sum())
        for (k, term), count in zip(answer.form.holdings, answer.solution.values["n"])
    )


def use_of(plan: Plan, chips_of: Mapping[str, float], held: float) -> Switched:
    """Compute utilisation, goodput and efficiency of the chips of a plan from its schedule; `chips_of` a system, `held` [chip s]."""
    chips = {
        point["id"]: sum(pool["systems_per_replica"] * chips_of[pool["system"]] for pool in point["pools"] if pool["role"] != "api")
        for w in plan.document["workloads"] for point in w["points"]
    }  # fmt: skip
    busy: dict[str, float] = dict.fromkeys(chips, 0.0)
    for row in plan.document["schedule"]:
        for point, replicas in row["active"].items():
            busy[point] += replicas * chips[point] * row["seconds"]
    jobs = [w for w in plan.document["workloads"] if w["kind"] != "serving"]
    trained = [(busy[point["id"]], point["goodput"], point["mfu"]) for w in jobs for point in w["points"]]
    worked = sum(b for b, *_ in trained)
    return Switched(
        "", "", plan.status,
        utilisation=sum(busy.values()) / held if held else None,
        goodput=sum(b * lasting for b, lasting, _ in trained) / worked if worked else None,
        efficiency=sum(b * lasting * mfu for b, lasting, mfu in trained) / worked if worked else None,
    )  # fmt: skip
