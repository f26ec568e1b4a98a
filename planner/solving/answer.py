"""Answer a problem with given candidates: program data, solve, marginal values, plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.plan import Plan
from planner.solving.deadline import LEAST_S, PROGRAM_SHARE, SHARE_BEFORE_DISPATCH, Deadline
from planner.spec.model import PlanSpec

if TYPE_CHECKING:
    from planner.candidates.points import Candidates
    from planner.formulate.formulation import Formulation
    from planner.problem.facts import Problem
    from planner.solving.priority import Postponement
    from solvers.interface import Options
    from solvers.model.data import PlanData
    from solvers.solution import Solution


Progress = Callable[[str], None]


THREADS = 2
ASK_FOR_LESS = "allow more of it, or ask of fewer sites, offers, workloads or hours"


def answer(
    problem: Problem, candidates: Candidates, document: dict[str, Any], *, overlays: Sequence[Path] = (), progress: Progress | None = None,
    threads: int = THREADS, solve_program: Callable[[PlanData, Options], Solution] | None = None, diagnosing: bool = True,
    prepare: Callable[[Formulation], Formulation] | None = None, deadline: Deadline | None = None,
) -> Plan:  # fmt: skip
    """Solve a problem and build its plan by the `deadline`, or within the time limit of the spec from now on.

    `solve_program`: used in place of `solvers.joint.solve`. `diagnosing`: say why there is no plan, or what the next best
    architecture would cost and how sure the plan is. `prepare`: changes the program's input before it is solved.
    """
    from planner.formulate.formulation import formulate
    from planner.formulate.limits import Unbounded
    from planner.interpret.document import interpret
    from planner.interpret.framing import sense_and_unit, with_ending, without_answer
    from planner.solving.confidence import with_confidence
    from planner.solving.full_year_dispatch import dispatched, is_asked
    from planner.solving.marginal_values import compute_marginal_values
    from planner.solving.priority import has_priorities, making_room_in_order, postponed
    from planner.solving.quality import settle, with_runners_up
    from planner.solving.reach import demand_within_reach
    from planner.solving.replicas import as_found
    from planner.solving.surest import Surest, surest
    from planner.solving.throughput import is_none
    from solvers.joint import is_small
    from solvers.joint import solve as solve_cold
    from solvers.memory import MemoryWatch, most_for_a_step, resident_bytes
    from solvers.model.size import least_program_bytes

    say = progress or (lambda line: None)
    until = deadline or Deadline.after(problem.spec.solver.time_limit)
    try:
        form = formulate(problem, candidates)
    except Unbounded:
        return without_answer(problem, candidates, "unbounded", None, document)
    form = prepare(form) if prepare is not None else form
    if until.left_s < -LEAST_S:  # up to then a program that takes no time may still be solved
        say("the time was up before the program was built; allow more of it under solver.time_limit")
        return without_answer(problem, candidates, "limit", None, document)
    options = options_of(problem.spec, threads)
    watch = MemoryWatch(most_for_a_step(problem.spec.solver.memory))
    free = watch.most_bytes - resident_bytes()
    if (needed := least_program_bytes(form.data, free)) > free:
        say(
            f"the program takes at least {needed / 1e9:,.1f} GB beside what is held, more than solver.memory allows; {ASK_FOR_LESS}"
        )
        return without_answer(problem, candidates, "limit", None, document)
    share = SHARE_BEFORE_DISPATCH if is_asked(problem) else PROGRAM_SHARE
    within = replace(until.options(options_of(problem.spec, threads, progress), share), memory=watch)
    solution = (solve_program or solve_cold)(form.data, within)
    say(_solved_words(solution))
    nothing = is_none(problem, solution)
    if nothing or not solution.values:
        status = "infeasible" if nothing and solution.status != "limit" else solution.status
        diagnosis: dict[str, Any] | None = None
        if status == "infeasible" and diagnosing:
            asked = (candidates, document, overlays, options)
            if has_priorities(problem):
                say("no plan meets all limits; looking for the jobs that wait")
                waiting = postponed(document, overlays, options, until)
                if waiting is not None:
                    return _answer_without_the_late(waiting, document, overlays, threads, progress, until)
            say("no plan meets all limits; looking for the limits in conflict and the smallest repair")
            reach = [] if nothing else demand_within_reach(problem, form, until.options(options))
            diagnosis = _diagnosed(problem, asked, until, solution, nothing, is_small(form.data))
            if diagnosis is not None and reach:
                diagnosis = {**diagnosis, "reach": reach}
        return with_ending(without_answer(problem, candidates, status, solution, document, diagnosis), solution, within)
    problem, form = as_found(problem, form, solution)
    sure = Surest(form, solution)
    if diagnosing and prepare is None and until.left_s > 0:
        sure = surest(problem, candidates, form, solution, until.options(options))
        form = sure.form
    solution = making_room_in_order(problem, form, sure.solution, until.options(options))
    every, points, first = problem, candidates, solution
    if prepare is None:  # else the program has more in it than its architectures
        problem, candidates, form, solution = settle(problem, candidates, form, solution, until.options(options))
    if not solution.values:
        return without_answer(problem, candidates, "limit", solution, document)
    values = compute_marginal_values(problem, form, solution, sense_and_unit(document)[1], until.options(options))
    plan = with_ending(interpret(problem, candidates, form, solution, document, values), first, within)
    if every.quality and diagnosing:
        plan = with_runners_up(plan, every, points, lambda: until.options(options), say)
    if diagnosing and until.left_s > 0:
        plan = with_confidence(plan, problem, candidates, form, solution, sure.measured)
    plan = sure.stated_in(plan)
    if not is_asked(problem):
        return plan
    found = dispatched(problem, candidates, form, solution, plan["totals"], overlays, until.options(options))
    if found is None:
        say("the time was up before the plan was dispatched on all hours of the year")
        return Plan({**plan.document, "dispatch": None})
    say(f"dispatched on {found['slots']:,} hours: {found['difference']:+.3%} of the cost  {found['seconds']:.1f} s")
    return Plan({**plan.document, "dispatch": found})


def _solved_words(solution: Solution) -> str:
    """State the size of a program and how its search ended."""
    gap = "" if solution.gap is None else f", gap {solution.gap:.3%}"
    size = f"{solution.rows:,} rows, {solution.columns:,} columns, {solution.integers:,} integers"
    return f"{size}  {solution.status}{gap} in {solution.seconds:.1f} s"


def _diagnosed(
    problem: Problem, asked: tuple[Candidates, dict[str, Any], Sequence[Path], Options], until: Deadline, solution: Solution,
    nothing: bool, small: bool,
) -> dict[str, Any] | None:  # fmt: skip
    """Say why there is no plan: with whole replicas where that takes little time, else with divisible ones, where not even those have one."""
    from planner.solving.replicas import asking_for

    if not solution.relaxed:
        return _diagnosis(problem, *asked, until, nothing)
    diagnosis = _diagnosis(problem, *asked, until.first_half(), nothing) if small else None
    if diagnosis is None or not diagnosis["repair"]:
        diagnosis = _diagnosis(asking_for(problem, "divisible"), *asked, until, nothing)
    return diagnosis


def _answer_without_the_late(
    found: Postponement, document: dict[str, Any], overlays: Sequence[Path], threads: int, progress: Progress | None, until: Deadline
) -> Plan:  # fmt: skip
    """Answer the problem in which some jobs wait, and say which."""
    from planner.candidates.cache import OutOfTime
    from planner.candidates.search import find_candidates
    from planner.interpret.framing import without_answer
    from planner.solving.replicas import asking_for, either_of

    problem, solve_program = found.problem, either_of(found.problem.spec)
    if problem.spec.solver.replicas == "auto":
        problem = asking_for(problem, "whole")
    try:
        candidates = find_candidates(problem, until=until.ends_s)
    except OutOfTime:
        return without_answer(problem, None, "limit", None, document)
    plan = answer(
        problem, candidates, document, overlays=overlays, progress=progress, threads=threads, solve_program=solve_program,
        deadline=until,
    )  # fmt: skip
    return Plan({**plan.document, "postponed": found.rows}) if plan.has_answer else plan


def _diagnosis(
    problem: Problem,
    candidates: Candidates,
    document: dict[str, Any],
    overlays: Sequence[Path],
    options: Options,
    until: Deadline,
    nothing: bool,
) -> dict[str, Any]:
    """Diagnose a spec without a plan; `nothing`: it asks for the most throughput, of which there is none.

    With whole replicas a repair of a throughput question has to serve some of the demand.
    """
    from planner.candidates.cache import OutOfTime
    from planner.candidates.search import find_candidates
    from planner.resolve.resolver import resolve_document
    from planner.solving.infeasibility import NOTHING_FOUND, diagnose
    from planner.solving.throughput import asking_for_some
    from planner.spec.document import edited

    if problem.spec.solver.whole:
        document = edited(document, (("solver.replicas", "whole"),))
    if nothing or (problem.spec.objective.maximise is not None and problem.spec.solver.whole):
        document = asking_for_some(document, problem)
        problem = resolve_document(document, overlays)
        try:
            candidates = find_candidates(problem, until=until.ends_s)
        except OutOfTime:
            return NOTHING_FOUND
    return diagnose(problem, candidates, document, overlays, until.options(options))


def options_of(spec: PlanSpec, threads: int = THREADS, progress: Progress | None = None) -> Options:
    """Return the solver options that a spec asks for."""
    from solvers.interface import Options

    asked = spec.solver
    return Options(
        solver=asked.backend,
        gap=asked.gap,
        time_limit_s=asked.time_limit,
        node_limit=asked.node_limit,
        seed=asked.seed,
        threads=threads,
        method=asked.method,
        progress=progress,
    )
