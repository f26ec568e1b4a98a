"""Decide which jobs wait where limits leave no room for all of them by their deadlines.

Jobs with a priority are admitted one after the other, by class and as listed within one, beside all that has none: on time where the
limits allow it, else as soon after the deadline as they do, else not at all. A job that is admitted is never put off for one behind it.
Every answer comes from solving: whether there is a plan with the jobs admitted so far and this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from catalog.units import HOUR_S, YEAR_S
from planner.candidates.cache import OutOfTime
from planner.formulate.formulation import Formulation, formulate
from planner.plan.rows.quality import IfFirst, Postponed
from planner.problem.facts import ResolvedSpec, TrainingFacts
from planner.solving.deadline import Deadline
from planner.solving.trials import Trials, merged
from planner.solving.variants import resolved
from planner.spec.document import Edits
from planner.spec.requirements.priority import put_off, queue_of
from solvers.interface import Options
from solvers.search.joint import solve
from solvers.search.proven import rated
from solvers.search.yielding import yielding_in_order
from solvers.solution import Solution

PART = 50  # part of a job's own time, to which its delay is found; to an hour at the finest
Deadlines = dict[str, float | None]  # by job that waits: when it is done [s], None where it does not run


@dataclass(frozen=True, slots=True)
class Admitted:
    """What fits: the workloads of the plan, the edits by which some of them finish later, and the jobs that wait."""

    names: frozenset[str]
    edits: Edits
    deadlines: Deadlines


@dataclass(frozen=True, slots=True)
class Postponement:
    """A problem in which jobs wait, and the rows that say so."""

    problem: ResolvedSpec
    rows: list[Postponed]


def making_room_in_order(problem: ResolvedSpec, form: Formulation, solution: Solution, options: Options) -> Solution:
    """Let jobs of higher numbers make room first, as far as the asked gap leaves room; only jobs that lose time when they return.

    Priorities are as in the spec, also where jobs wait; a job without one comes first.
    """
    of = {workload.name: getattr(workload, "priority", None) or 0 for workload in problem.spec.workloads}
    counted = {of[job.name] for job in problem.training if job.spec.preemption is not None}
    if len(counted) < 2 or solution.value is None or not solution.values:
        return solution
    classes = [
        np.array([of[job.name] == number and job.spec.preemption is not None for job in problem.training])
        for number in sorted(counted)
    ]
    off = 0.0 if solution.bound is None else abs(solution.value - solution.bound)
    room = max(options.gap * abs(solution.value) - off, 0.0)
    found = yielding_in_order(form.data, solution, classes, room, options)
    return rated(found, options) if found is not solution and solution.before is None else found


def has_priorities(problem: ResolvedSpec) -> bool:
    """Tell whether any job may wait."""
    return bool(queue_of(problem.training))


def postponed(
    document: dict[str, Any], overlays: Sequence[Path], options: Options, until: Deadline
) -> Postponement | None:
    """Find which jobs of an infeasible spec wait; None where that gives no plan, or takes more than half of the time that is left.

    Whether jobs fit is tested with divisible replicas unless the spec asks for whole ones.
    """
    problem = resolved(document, overlays)  # as asked: with replicas of either kind if the spec leaves them open
    trials = Trials(problem, None, document, overlays, until.share(0.5).options(options))
    queue = queue_of(problem.training)
    try:
        admitted = _admit(trials, problem, queue)
        if admitted is None or not admitted.deadlines:
            return None
        rows = _rows(trials, problem, queue, admitted)
    except OutOfTime:
        return None
    return Postponement(_without(trials.problem(admitted.edits), admitted.names), rows)


def _without(problem: ResolvedSpec, names: frozenset[str]) -> ResolvedSpec:
    """Leave out the jobs that do not run, and take the priorities of the others away: they wait no further."""
    kept = (job for job in problem.training if job.name in names)
    return replace(
        problem,
        training=tuple(replace(job, spec=job.spec.model_copy(update={"priority": None})) for job in kept),
    )


def _admit(trials: Trials, problem: ResolvedSpec, queue: Sequence[TrainingFacts]) -> Admitted | None:
    """Admit jobs in the order of the `queue`; None where not even the rest of the problem has a plan."""
    waiting = {job.name for job in queue}
    names = frozenset(
        {w.asked for w in problem.serving} | {job.name for job in problem.training if job.name not in waiting}
    )
    if names and not _fits(trials, names, ()):
        return None
    edits: Edits = ()
    deadlines: Deadlines = {}
    for job in queue:
        if _fits(trials, names | {job.name}, edits):
            names |= {job.name}
            continue
        deadlines[job.name] = _soonest(trials, names | {job.name}, edits, job, problem.spec.horizon.years * YEAR_S)
        if (done_s := deadlines[job.name]) is not None:
            names, edits = names | {job.name}, merged(edits, put_off(job.path, job.spec, done_s))
    return Admitted(names, edits, deadlines)


def _fits(trials: Trials, names: frozenset[str], edits: Edits) -> bool:
    """Tell whether there is a plan. Raises OutOfTime where that is not known in time."""
    found = trials.has_plan(names, edits)
    if found is None:
        raise OutOfTime
    return found


def _soonest(trials: Trials, names: frozenset[str], edits: Edits, job: TrainingFacts, end_s: float) -> float | None:
    """Find the soonest time by which a job that cannot keep its deadline is done, in whole hours, by bisection."""

    def fits(hours: int) -> bool:
        return _fits(trials, names, merged(edits, put_off(job.path, job.spec, hours * HOUR_S)))

    late, done = int(job.spec.deadline // HOUR_S), int(end_s // HOUR_S)
    if done <= late or not fits(done):
        return None
    near = max(int((job.spec.deadline - job.spec.start) / (PART * HOUR_S)), 1)
    step = near
    while late + step < done:  # close to the deadline first: most delays are short
        if fits(late + step):
            done = late + step
            break
        late, step = late + step, 2 * step
    while done - late > near:
        middle = (late + done) // 2
        late, done = (late, middle) if fits(middle) else (middle, done)
    return done * HOUR_S


def _rows(trials: Trials, problem: ResolvedSpec, queue: Sequence[TrainingFacts], admitted: Admitted) -> list[Postponed]:
    """Write a row for each job that waits, in the order of the queue: for which jobs, and what its going first would change."""
    rows: list[Postponed] = []
    value = _value(trials, admitted)
    first_class = {job.name for job in problem.training} - {job.name for job in queue}
    for i, job in enumerate(queue):
        if job.name not in admitted.deadlines:
            continue
        ahead = [name for name in (*first_class, *(other.name for other in queue[:i])) if name in admitted.names]
        rows.append(
            {
                "workload": job.name,
                "path": job.path,
                "priority": job.spec.priority or 0,
                "asked_s": job.spec.deadline,
                "deadline_s": admitted.deadlines[job.name],
                "waits_for": _waits_for(trials, problem, job, sorted(ahead), admitted),
                "first": _first(trials, problem, queue, job, value),
            }
        )
    return rows


def _waits_for(
    trials: Trials, problem: ResolvedSpec, job: TrainingFacts, ahead: Sequence[str], admitted: Admitted
) -> list[str] | None:
    """Name the jobs `ahead` without any one of which the job would be on time, or all of them if only without all; None if out of time.

    Empty where it would be late beside no other job.
    """
    serving = frozenset(w.asked for w in problem.serving)
    edits = tuple(edit for edit in admitted.edits if not edit[0].startswith(f"{job.path}."))
    try:
        found = [name for name in ahead if _fits(trials, serving | ({job.name, *ahead} - {name}), edits)]
        if found or not ahead:
            return found
        return list(ahead) if _fits(trials, serving | {job.name}, edits) else []
    except OutOfTime:
        return None


def _first(
    trials: Trials, problem: ResolvedSpec, queue: Sequence[TrainingFacts], job: TrainingFacts, value: float | None
) -> IfFirst | None:
    """Say what changes if the job goes before all others that may wait: which then wait, and the objective; None if out of time."""
    try:
        other = _admit(trials, problem, [job, *(each for each in queue if each is not job)])
    except OutOfTime:
        return None
    if other is None:
        return None
    changed = _value(trials, other)
    return {
        "postponed": other.deadlines,
        "difference": None if changed is None or value is None else changed - value,
    }


def _value(trials: Trials, admitted: Admitted) -> float | None:
    """Solve what was admitted for the least objective; None if out of time."""
    if trials.seconds_left <= 0:
        return None
    problem, candidates = trials.answerable(admitted.names, admitted.edits)
    return solve(formulate(problem, candidates).data, trials.limited_options()).value
