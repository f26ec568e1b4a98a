"""What sharing a fleet is worth: the plan against plans in which one capability at a time is switched off, each solved again.

Capabilities: one fleet for all workloads, resuming by itself after a failure, fast storage for checkpoints, a network without
copies on the way, and KV caches kept between requests. What "off" means is a figure of each, printed with the answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.units import HOUR_S, show
from planner.document import Edits
from planner.formulate import Unbounded
from planner.framing import sense_and_unit
from planner.pipeline import THREADS, Progress, options_of
from planner.problem import Problem
from planner.resolve import resolve_document
from planner.variants import Answer, Variants, answered

ON = "all on"
BY_HAND_S = 4 * HOUR_S  # until somebody has restarted a run
SLOWER_STORAGE = 10.0
COPIES = 2.0  # times that a message is moved where it is copied on the way


@dataclass(frozen=True, slots=True)
class Capability:
    """What is switched off, what that means, and the figures of the spec that say so."""

    name: str
    off: str
    edits: Edits


@dataclass(frozen=True, slots=True)
class Switched:
    """A plan with one capability off. `utilisation`: chips at work over chips held, in the mean over the horizon; `goodput`: lasting
    progress of training over its time, weighted by chips. None where there is no plan, or no training."""

    capability: str
    off: str
    status: str
    value: float | None = None
    gap: float | None = None
    chips: int | None = None
    utilisation: float | None = None
    goodput: float | None = None
    worse: float | None = None  # relative to the plan with all on, positive where it is worse

    def row(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Sharing:
    """The plan as asked, and one row for each capability off."""

    unit: str
    base: Switched
    rows_off: tuple[Switched, ...]
    status: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row.row() for row in (self.base, *self.rows_off)]

    @property
    def document(self) -> dict[str, Any]:
        return {"unit": self.unit, "status": self.status, "rows": self.rows}

    @property
    def words(self) -> list[str]:
        siloed = self.rows_off[0] if self.rows_off else None
        if siloed is None or siloed.utilisation is None or self.base.utilisation is None or siloed.worse is None:
            return []
        more = self.base.utilisation / siloed.utilisation - 1.0
        return [
            f"One fleet is at work {self.base.utilisation:.1%} of the time, fleets of their own {siloed.utilisation:.1%}: sharing gives {more:+.1%}.",
            f"Fleets of their own are {siloed.worse:.2%} worse.",
        ]

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        rows = [
            {
                "switched off": row.capability, "meaning": row.off, "status": row.status.replace("_", " "),
                self.unit: "" if row.value is None else f"{row.value:,.6g}",
                "worse by": "" if row.worse is None else f"{row.worse:+.2%}",
                "chips": "" if row.chips is None else f"{row.chips:,}",
                "utilisation": "" if row.utilisation is None else f"{row.utilisation:.1%}",
                "goodput": "" if row.goodput is None else f"{row.goodput:.1%}",
            }
            for row in (self.base, *self.rows_off)
        ]  # fmt: skip
        return [("One capability off at a time", rows)]


def sharing(document: Mapping[str, Any], *, overlays: Sequence[Path] = (), progress: Progress | None = None) -> Sharing:
    """Raises SpecError for an invalid spec."""
    began, say = time.perf_counter(), progress or (lambda line: None)
    problem = resolve_document(document, overlays)
    variants, options = Variants(document, overlays, problem), options_of(problem.spec, THREADS)
    sense, unit = sense_and_unit(document)
    found: list[Switched] = []
    for capability in (Capability(ON, "", ()), *capabilities(problem)):
        changed = variants.problem(capability.edits)
        try:
            answer = answered(changed, variants.candidates(changed, capability.edits), options)
        except Unbounded:
            answer = None
        found.append(_switched(capability, answer, variants, document, found[0].value if found else None, sense))
        say(f"{capability.name}: {found[-1].status}  {time.perf_counter() - began:.1f} s")
    return Sharing(unit, found[0], tuple(found[1:]), found[0].status)


def capabilities(problem: Problem) -> list[Capability]:
    """Those that a spec has something to switch off of; fleets of their own first."""
    found = []
    if problem.spec.sharing != "none" and len(problem.serving) + len(problem.training) > 1:
        found.append(Capability("one fleet for all workloads", "each workload has systems of its own", (("sharing", "none"),)))
    if problem.spec.sharing == "all" and problem.serving and problem.training:
        found.append(Capability("one fleet for serving and training", "systems of their own for either", (("sharing", "kind"),)))
    if problem.training:
        slow = problem.constants.reliability.storage_bytes_per_s / SLOWER_STORAGE
        found += [
            _overridden(problem, "resuming by itself", f"restarted by hand after {show(BY_HAND_S, 's')}", {"defaults/recovery_s/value": show(BY_HAND_S, "s")}),
            _overridden(problem, "fast storage for checkpoints", f"storage at {show(slow, 'byte/s')}", {"defaults/checkpoint_storage_bytes_per_s/value": show(slow, "byte/s")}),
        ]
    slowed = tuple((f"{site.path}.network_share", site.network.used_share / COPIES) for site in problem.sites if site.network is not None)
    if slowed:
        found.append(Capability("zero-copy network", f"every message is moved {COPIES:g} times", slowed))
    kept = [w for w in problem.serving if w.spec.cache is not None]
    if kept:
        found.append(Capability("KV caches kept between requests", "every prompt is computed anew", tuple((f"{w.path}.cache", None) for w in kept)))
    return found


def _overridden(problem: Problem, name: str, off: str, figures: Mapping[str, str]) -> Capability:
    """With other figures of the catalog, besides those that the spec overrides itself."""
    stated = {path: override.model_dump() for path, override in problem.spec.overrides.items()}
    return Capability(name, off, (("overrides", stated | {path: {"value": value, "note": off} for path, value in figures.items()}),))


def _switched(capability: Capability, answer: Answer | None, variants: Variants, document: Mapping[str, Any], base: float | None, sense: str) -> Switched:
    if answer is None or answer.value is None:
        return Switched(capability.name, capability.off, "unbounded" if answer is None else answer.solution.status)
    plan = answer.plan(document)
    seconds = answer.problem.calendar.window_seconds()
    held = sum(
        round(float(count)) * answer.form.lots[k].system.chips * float(seconds[term.first : term.last + 1].sum())
        for (k, term), count in zip(answer.form.holdings, answer.solution.values["n"])
    )
    chips = {point["id"]: _chips(answer.problem, point) for w in plan["workloads"] for point in w["points"]}
    busy: dict[str, float] = dict.fromkeys(chips, 0.0)
    for row in plan["schedule"]:
        for point, replicas in row["active"].items():
            busy[point] += replicas * chips[point] * row["seconds"]
    trained = [(busy[point["id"]], point["goodput"]) for w in plan["workloads"] if w["kind"] == "training" for point in w["points"]]
    value = plan.objective["value"]
    return Switched(
        capability.name, capability.off, answer.solution.status, value, plan.gap, plan["totals"]["chips"],
        utilisation=sum(busy.values()) / held if held else None,
        goodput=sum(b * g for b, g in trained) / sum(b for b, _ in trained) if any(b for b, _ in trained) else None,
        worse=None if base is None else (value / base - 1.0) * (1.0 if sense == "min" else -1.0),
    )  # fmt: skip


def _chips(problem: Problem, point: Mapping[str, Any]) -> float:
    return sum(pool["systems_per_replica"] * problem.systems[pool["system"]].chips for pool in point["pools"] if pool["role"] != "api")
