"""Solve the plan that a study starts from, decide what the study relaxes to be fast, and say in its first sentence what that changes.

A study solves a spec many times. Divisible replicas take the least time; they are relaxed only where the plan is not proven to be worse than
the best one with divisible replicas by more than the asked gap, nor to be better. Without this proof the two are the same as far as anybody knows.
Scenarios of `robust` and the later steps of a plan (fewer parts, surer) are left to `plan`. Not here: the questions (the studies).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.candidates.cache import OutOfTime
from planner.formulate.limits import Unbounded
from planner.messages import Message
from planner.pipeline import solve_unverified
from planner.plan import Plan
from planner.problem.facts import ResolvedSpec
from planner.report.words import listed, share_words, with_unit
from planner.solving.deadline import LEAST_S, THREADS, options_of
from planner.solving.standing import Progress
from planner.solving.variants import Answer, Variants, answered, resolved
from planner.spec.document import Edits, edited
from planner.spec.requirements.priority import put_off
from solvers.interface import Options
from solvers.memory import MemoryWatch, most_for_a_step

WHOLE, DIVISIBLE = "whole", "divisible"
SAME = 1e-6  # relative: values that differ by less are equal, as far as solvers tell and amounts are printed
REPLICAS, SCENARIOS, STEPS, OBJECTIVE = "base.replicas", "base.scenarios", "base.steps", "base.objective"
"""Codes of what a study may leave out."""


@dataclass(frozen=True, slots=True)
class Base:
    """The plan of a spec beside what a study starts from: `plan` and `start` in `unit`, None without one; `relaxed`: codes of the omitted requests."""

    status: str
    plan: float | None
    start: float | None
    unit: str
    relaxed: tuple[str, ...] = ()

    @property
    def message(self) -> Message:
        """Say what the plan comes to, and what the study starts from where that is something else."""
        if self.plan is None:
            return Message.of("base.none", status=self.status.replace("_", " "))
        shown = {"plan": with_unit(self.plan, self.unit)}
        if self.start is None:
            return Message.of("base.plan", **shown)
        difference = self.start - self.plan
        names = listed([Message.of(code).text() for code in self.relaxed])
        if abs(difference) <= SAME * abs(self.plan):
            return (
                Message.of("base.equal", relaxed=names, **shown) if self.relaxed else Message.of("base.plan", **shown)
            )
        share = share_words(abs(difference / self.plan), ".2%") if self.plan else ""
        shown |= {
            "start": with_unit(self.start, self.unit),
            "difference": f"{with_unit(abs(difference), self.unit)} ({share})",
        }
        side = "more" if difference > 0 else "less"
        return (
            Message.of(f"base.{side}_relaxed", relaxed=names, **shown)
            if self.relaxed
            else Message.of(f"base.{side}", **shown)
        )

    def row(self) -> dict[str, Any]:
        """Write it as JSON."""
        return {"status": self.status, "plan": self.plan, "start": self.start, "unit": self.unit, "relaxed": list(self.relaxed), **self.message.row()}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a spec; `document`: the spec as a study varies it, its `problem` and `variants`; `relaxed`: codes of what it leaves out."""

    plan: Plan
    document: dict[str, Any]
    variants: Variants
    relaxed: tuple[str, ...]

    @property
    def problem(self) -> ResolvedSpec:
        """Return the problem that the study varies."""
        return self.variants.base

    def base(self, start: float | None, *, relaxed: Sequence[str] = ()) -> Base:
        """Put the value that a study starts from beside that of the plan; `relaxed`: what this study leaves out beside the rest."""
        objective = self.plan.objective
        left_out = (*self.relaxed, *relaxed)
        if objective["value"] is not None and start is not None and self._has_later_steps(start):
            left_out = (*left_out, STEPS)
        return Base(self.plan.status, objective["value"], start, objective["unit"], left_out)

    def base_at_cost(self, start: float | None, unit: str) -> Base:
        """Do the same for a study of least cost, whatever the objective of the spec."""
        if self.plan.objective["unit"] == unit or not self.plan.has_answer:
            return self.base(start)
        return Base(self.plan.status, self.plan.totals["cost"], start, unit, (*self.relaxed, OBJECTIVE))

    def _has_later_steps(self, start: float) -> bool:
        """Tell whether the plan gave up something of the best one found for fewer parts or a surer plan."""
        value = self.plan.value
        sign = -1.0 if self.plan.objective["sense"] == "max" else 1.0
        simplicity = self.plan.document.get("simplicity")
        given_up = 0.0 if simplicity is None else value - simplicity["best"]["value"]
        difference = value - start
        return bool(sign * given_up > SAME * abs(value) and sign * difference > SAME * abs(value))


def planned(
    document: dict[str, Any], overlays: Sequence[Path] = (), *, progress: Progress | None = None, threads: int = THREADS, plan: Plan | None = None
) -> Planned:  # fmt: skip
    """Solve a spec as `flopwatt plan` does, unless its `plan` is there already, and choose how a study varies it. Raises SpecError for an invalid spec."""
    problem = resolved(document, overlays)
    if progress is not None:
        progress(Message.of("progress.start").text())
    if plan is None:
        plan = solve_unverified(dict(document), overlays=overlays, progress=progress, threads=threads)
    varied = edited(document, later_deadlines(problem, plan))
    relaxed: list[str] = [] if problem.spec.robust is None else [SCENARIOS]
    variants = Variants(varied, overlays, resolved(varied, overlays))
    if problem.spec.solver.replicas == "auto" and plan.has_answer:
        divided = edited(varied, (("solver.replicas", DIVISIBLE),))
        variants = Variants(divided, overlays, resolved(divided, overlays))
        if plan.document.get("replicas") == WHOLE:
            if _divisible_are_apart(plan, variants, threads):
                whole = edited(varied, (("solver.replicas", WHOLE),))
                variants = Variants(whole, overlays, resolved(whole, overlays))
            else:
                relaxed.append(REPLICAS)
    return Planned(plan, dict(variants.document), variants, tuple(relaxed))


def solved(
    variants: Variants, edits: Edits, options: Options, *, problem: ResolvedSpec | None = None, of_points: Edits | None = None, **how: Any
) -> Answer | None:  # fmt: skip
    """Solve a variant within the time limit of the options, operating points included; None where the time or memory was up before these.

    `problem`: with other prices than the edits give; `of_points`: the edits that change points; `how`: as `answered` takes them.
    Raises Unbounded where nothing limits the throughput.
    """
    ends_s = time.perf_counter() + options.time_limit_s
    problem = problem or variants.problem(edits)
    variants.until = ends_s
    try:
        candidates = variants.candidates(problem, edits if of_points is None else of_points)
    except OutOfTime:
        return None
    left_s = max(ends_s - time.perf_counter(), LEAST_S)
    return answered(problem, candidates, replace(options, time_limit_s=left_s), **how)


def _divisible_are_apart(plan: Plan, variants: Variants, threads: int) -> bool:
    """Tell whether divisible replicas are no relaxation of a plan with whole ones that a study may start from.

    Either the bound of the plan is worse than the best value with divisible replicas by more than the asked gap, or divisible ones are proven
    to be worse, for the batches of their operating points differ.
    """
    problem = variants.base
    options = study_options(problem, threads)
    try:
        answer = solved(variants, (), options)
    except Unbounded:
        return True
    value, bound = None if answer is None else answer.value, plan.document["bound"]
    if answer is None or value is None or bound is None or problem.spec.robust is not None:
        return value is None
    sign, best = -1.0 if plan.objective["sense"] == "max" else 1.0, answer.solution.bound
    is_better = sign * (bound - value) > options.enough * abs(bound)
    is_worse = best is not None and sign * (best - plan.value) > SAME * abs(plan.value)
    return bool(is_better or is_worse)


def later_deadlines(problem: ResolvedSpec, plan: Plan) -> Edits:
    """Give jobs that wait the deadlines that the plan gives them; a job that is left out stays as asked, for places in the spec are counted."""
    jobs = {job.name: job for job in problem.training}
    return tuple(
        edit
        for row in plan.document.get("postponed", ())
        if row["deadline_s"] is not None
        for edit in put_off(row["path"], jobs[row["workload"]].spec, row["deadline_s"])
    )


def study_options(problem: ResolvedSpec, threads: int = THREADS) -> Options:
    """Return the solver options of a spec with its limit of memory."""
    return replace(options_of(problem.spec, threads), memory=MemoryWatch(most_for_a_step(problem.spec.solver.memory)))
