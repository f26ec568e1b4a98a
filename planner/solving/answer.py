"""Answer a problem with given candidates: program data, solve, marginal values, plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.messages import Message
from planner.plan import Plan
from planner.solving.deadline import LEAST_S, PROGRAM_SHARE, SHARE_BEFORE_DISPATCH, Deadline
from planner.spec.model import PlanSpec

if TYPE_CHECKING:
    from planner.candidates.points import Candidates
    from planner.facts import Fact
    from planner.formulate.formulation import Formulation
    from planner.problem.facts import ResolvedSpec
    from planner.solving.confidence_gain import Chosen
    from planner.solving.priority import Postponement
    from solvers.interface import Options
    from solvers.model.data import PlanData
    from solvers.solution import Solution


Progress = Callable[[str], None]


THREADS = 2
NAMED_SHARE = 0.25  # share of the time left for the limits in conflict, where a workload alone has none


@dataclass(frozen=True, slots=True)
class Asked:
    """A problem with its candidates and how it is to be answered; `diagnosing`: say why, and how sure, as well."""

    problem: ResolvedSpec
    candidates: Candidates
    document: dict[str, Any]
    overlays: Sequence[Path]
    progress: Progress | None
    threads: int
    until: Deadline
    diagnosing: bool

    def say(self, line: str) -> None:
        """Tell the progress, where somebody listens."""
        if self.progress is not None:
            self.progress(line)

    @property
    def options(self) -> Options:
        """Return the solver options of the spec, with its whole limit of time."""
        return options_of(self.problem.spec, self.threads)

    @property
    def options_left(self) -> Options:
        """Return the solver options with the time that is left."""
        return self.until.options(self.options)

    def told(self, reasons: Sequence[Fact]) -> Sequence[Fact]:
        """Tell the progress why there is no plan."""
        for reason in reasons:
            self.say(reason.message.text())
        return reasons

    def unanswered(
        self,
        status: str,
        solution: Solution | None = None,
        diagnosis: dict[str, Any] | None = None,
        reasons: Sequence[Fact] = (),
    ) -> Plan:
        """Build the document of a question without a plan."""
        from planner.interpret.framing import without_answer

        return without_answer(self.problem, self.candidates, status, solution, self.document, diagnosis, reasons)


def answer(
    problem: ResolvedSpec, candidates: Candidates, document: dict[str, Any], *, overlays: Sequence[Path] = (), progress: Progress | None = None,
    threads: int = THREADS, solve_program: Callable[[PlanData, Options], Solution] | None = None, diagnosing: bool = True,
    prepare: Callable[[Formulation], Formulation] | None = None, deadline: Deadline | None = None,
) -> Plan:  # fmt: skip
    """Solve a problem and build its plan by the `deadline`, or within the time limit of the spec from now on.

    `solve_program`: used in place of `solvers.search.joint.solve`. `diagnosing`: say why there is no plan, or what the next best
    architecture would cost and how sure the plan is. `prepare`: changes the program's input before it is solved.
    """
    from planner.formulate.formulation import formulate
    from planner.formulate.limits import Unbounded
    from planner.solving.throughput import is_none
    from solvers.search.joint import solve as solve_cold

    until = deadline or Deadline.after(problem.spec.solver.time_limit)
    asked = Asked(problem, candidates, document, overlays, progress, threads, until, diagnosing)
    try:
        form = formulate(problem, candidates)
    except Unbounded:
        return asked.unanswered("unbounded")
    form = prepare(form) if prepare is not None else form
    within = _room_to_solve(asked, form)
    if isinstance(within, tuple):
        return asked.unanswered("limit", reasons=asked.told(within))
    solution = (solve_program or solve_cold)(form.data, within)
    asked.say(_solved_words(solution))
    if is_none(problem, solution) or not solution.values:
        return _without_plan(asked, form, solution, within)
    return _planned(asked, form, solution, within, prepared=prepare is not None)


def _room_to_solve(asked: Asked, form: Formulation) -> Options | tuple[Fact, ...]:
    """Return the options for the search of the program, or why there is no time or memory left for any."""
    from planner.solving.full_year_dispatch import is_asked
    from planner.solving.stopped import without_program
    from solvers.memory import MemoryWatch, TimeWatch, most_for_a_step, resident_bytes
    from solvers.model.size import least_program_bytes

    if asked.until.left_s < -LEAST_S:  # up to then a program that takes no time may still be solved
        return without_program(asked.problem, asked.candidates, None)
    watch = MemoryWatch(most_for_a_step(asked.problem.spec.solver.memory))
    free = watch.most_bytes - resident_bytes()
    if (needed := least_program_bytes(form.data, free)) > free:
        return without_program(asked.problem, asked.candidates, needed)
    share = SHARE_BEFORE_DISPATCH if is_asked(asked.problem) else PROGRAM_SHARE
    limits = asked.until.options(options_of(asked.problem.spec, asked.threads, asked.progress), share)
    return replace(limits, memory=watch, clock=TimeWatch())


def _without_plan(asked: Asked, form: Formulation, solution: Solution, within: Options) -> Plan:
    """Answer without a plan: why there is none, or the plan in which jobs of less priority wait."""
    from planner.interpret.framing import with_ending
    from planner.solving.alone import impossible_alone
    from planner.solving.priority import has_priorities, postponed
    from planner.solving.reach import demand_within_reach
    from planner.solving.stopped import without_solution
    from planner.solving.throughput import is_none
    from solvers.search.joint import is_small

    problem, nothing = asked.problem, is_none(asked.problem, solution)
    status = "infeasible" if nothing and solution.status != "limit" else solution.status
    diagnosis: dict[str, Any] | None = None
    reasons = asked.told(impossible_alone(problem, asked.candidates)) if asked.diagnosing else ()
    if reasons:
        asked = replace(asked, until=asked.until.share(NAMED_SHARE))
    if status == "infeasible" and asked.diagnosing:
        if has_priorities(problem):
            asked.say("no plan meets all limits; looking for the jobs that wait")
            waiting = postponed(asked.document, asked.overlays, asked.options, asked.until)
            if waiting is not None:
                return _answer_without_the_late(waiting, asked)
        asked.say(Message.of("solving.no_plan_meets_all_limits").text())
        reach = [] if nothing else demand_within_reach(problem, form, asked.options_left)
        diagnosis = _diagnosed(asked, solution, nothing, is_small(form.data))
        if diagnosis is not None and reach:
            diagnosis = {**diagnosis, "reach": reach}
    if status == "limit":
        full = within.memory is not None and within.memory.was_full
        reasons = (*reasons, *asked.told(without_solution(problem, solution, full)))
    return with_ending(asked.unanswered(status, solution, diagnosis, reasons), solution, within)


def _planned(asked: Asked, form: Formulation, solution: Solution, within: Options, prepared: bool) -> Plan:
    """Build the plan of the last step that holds: that of highest confidence, else that of fewest parts, else the best found; a note says which was undone.

    A plan of a later step is verified before it replaces the one before, and an error in it loses no plan. `prepared`: the program is not the
    spec's alone; its plan is built as it is, as is that of a study.
    """
    from planner.facts.later_steps import CONFIDENCE, SIMPLEST, undone
    from planner.solving.confidence_gain import Chosen
    from planner.solving.replicas import as_found, asking_for
    from planner.verify.plan import findings

    problem, form = as_found(asked.problem, form, solution)
    first = Chosen(form, solution)
    steps: list[tuple[str, Callable[[], Chosen]]] = [
        (CONFIDENCE, lambda: _last_steps(asked, problem, first, within, prepared))
    ]
    if asked.diagnosing and not prepared:
        steps.append((SIMPLEST, lambda: first))
    if len(steps) > 1 and solution.earlier is not None:
        best = Chosen(form, solution.earlier)
        steps.append(("", lambda: best))
    noted, stated = problem, asking_for(asked.problem, (asked.document.get("solver") or {}).get("replicas", "auto"))
    for name, taken in steps[:-1]:
        try:
            sure = taken()
            if name == CONFIDENCE and sure.solution is solution:
                first = sure  # with what was measured of it
                continue
            plan = _plan_of(asked, noted, sure, within, prepared)
            wrong = [*map(str, findings(stated, plan.document, asked.overlays))] if plan.has_answer else ["no plan"]
        except Exception as error:  # whatever is wrong with a later step, the plan before it stands
            wrong = [f"{type(error).__name__}: {error}"]
        if not wrong:
            return plan
        asked.say(f"the {name} plan is left out: {wrong[0]}")
        noted = replace(problem, notes=(*problem.notes, undone(name)))
    return _plan_of(asked, noted, steps[-1][1](), within, prepared)


def _last_steps(asked: Asked, problem: ResolvedSpec, first: Chosen, within: Options, prepared: bool) -> Chosen:
    """Take the plan of highest confidence within the band, and let jobs make room in order."""
    from planner.solving.confidence_gain import most_confident
    from planner.solving.priority import making_room_in_order

    def searching() -> Options:
        return replace(asked.options_left, clock=within.clock)

    sure = first
    if asked.diagnosing and not prepared and within.noted(asked.until.left_s) > 0:
        sure = most_confident(problem, asked.candidates, first.form, first.solution, searching())
    return replace(sure, solution=making_room_in_order(problem, sure.form, sure.solution, searching()))


def _plan_of(asked: Asked, problem: ResolvedSpec, sure: Chosen, within: Options, prepared: bool) -> Plan:
    """Settle the architectures of a solution, price its limits, and build the plan."""
    from planner.interpret.document import interpret
    from planner.interpret.framing import sense_and_unit, with_ending
    from planner.interpret.load.looser import with_looser_limits
    from planner.solving.confidence import with_confidence
    from planner.solving.marginal_values import compute_marginal_values
    from planner.solving.quality import settle, with_runners_up
    from planner.solving.stopped import without_solution

    candidates, form, solution = asked.candidates, sure.form, sure.solution
    every, first = problem, solution
    if not prepared:  # else the program has more in it than its architectures
        limits = replace(asked.options_left, clock=within.clock)
        problem, candidates, form, solution = settle(problem, candidates, form, solution, limits)
    if not solution.values:
        full = within.memory is not None and within.memory.was_full
        return asked.unanswered("limit", solution, reasons=asked.told(without_solution(problem, solution, full)))
    unit = sense_and_unit(asked.document)[1]
    values = compute_marginal_values(problem, form, solution, unit, asked.options_left)
    plan = with_ending(interpret(problem, candidates, form, solution, asked.document, values), first, within)
    if every.quality and asked.diagnosing:
        plan = with_runners_up(plan, every, asked.candidates, lambda: asked.options_left, asked.say)
    if asked.diagnosing and asked.until.left_s > 0:
        plan = with_confidence(plan, problem, candidates, form, solution, sure.measured)
        plan = with_looser_limits(plan, problem, candidates, form, solution)
    return _with_dispatch(sure.stated_in(plan), asked, problem, candidates, form, solution)


def _with_dispatch(
    plan: Plan, asked: Asked, problem: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution
) -> Plan:
    """Add the dispatch on all hours of the year to a plan on fewer; null where the time was up before it."""
    from planner.solving.full_year_dispatch import dispatched, is_asked

    if not is_asked(problem):
        return plan
    found = dispatched(problem, candidates, form, solution, plan.totals, asked.overlays, asked.options_left)
    if found is None:
        asked.say("the time was up before the plan was dispatched on all hours of the year")
        return Plan({**plan.document, "dispatch": None})
    asked.say(
        f"dispatched on {found['slots']:,} hours: {found['difference']:+.3%} of the cost  {found['seconds']:.1f} s"
    )
    return Plan({**plan.document, "dispatch": found})


def _solved_words(solution: Solution) -> str:
    """State the size of a program and how its search ended."""
    gap = "" if solution.gap is None else f", gap {solution.gap:.3%}"
    size = f"{solution.rows:,} rows, {solution.columns:,} columns, {solution.integers:,} integers"
    return f"{size}  {solution.status}{gap} in {solution.seconds:.1f} s"


def _diagnosed(asked: Asked, solution: Solution, nothing: bool, small: bool) -> dict[str, Any] | None:
    """Say why there is no plan: with whole replicas where that takes little time, else with divisible ones, where not even those have one."""
    from planner.solving.replicas import asking_for

    if not solution.relaxed:
        return _diagnosis(asked.problem, asked, asked.until, nothing)
    diagnosis = _diagnosis(asked.problem, asked, asked.until.share(0.5), nothing) if small else None
    if diagnosis is None or not diagnosis["repair"]:
        diagnosis = _diagnosis(asking_for(asked.problem, "divisible"), asked, asked.until, nothing)
    return diagnosis


def _answer_without_the_late(found: Postponement, asked: Asked) -> Plan:
    """Answer the problem in which some jobs wait, and say which."""
    from planner.candidates.cache import OutOfTime
    from planner.interpret.framing import without_answer
    from planner.solving.replicas import asking_for, either_of
    from planner.solving.variants import points_found

    problem, solve_program = found.problem, either_of(found.problem.spec)
    if problem.spec.solver.replicas == "auto":
        problem = asking_for(problem, "whole")
    try:
        candidates = points_found(problem, until=asked.until.ends_s)
    except OutOfTime:
        return without_answer(problem, None, "limit", None, asked.document)
    plan = answer(
        problem,
        candidates,
        asked.document,
        overlays=asked.overlays,
        progress=asked.progress,
        threads=asked.threads,
        solve_program=solve_program,
        deadline=asked.until,
    )
    return Plan({**plan.document, "postponed": found.rows}) if plan.has_answer else plan


def _diagnosis(problem: ResolvedSpec, asked: Asked, until: Deadline, nothing: bool) -> dict[str, Any]:
    """Diagnose a spec without a plan; `nothing`: it asks for the most throughput, of which there is none.

    With whole replicas a repair of a throughput question has to serve some of the demand.
    """
    from planner.candidates.cache import OutOfTime
    from planner.solving.infeasibility import NOTHING_FOUND, diagnose
    from planner.solving.throughput import asking_for_some
    from planner.solving.variants import points_found, resolved
    from planner.spec.document import edited

    candidates, document = asked.candidates, asked.document
    if problem.spec.solver.whole:
        document = edited(document, (("solver.replicas", "whole"),))
    if nothing or (problem.spec.objective.maximise is not None and problem.spec.solver.whole):
        document = asking_for_some(document, problem)
        problem = resolved(document, asked.overlays)
        try:
            candidates = points_found(problem, until=until.ends_s)
        except OutOfTime:
            return NOTHING_FOUND
    return diagnose(problem, candidates, document, asked.overlays, until.options(asked.options))


def options_of(spec: PlanSpec, threads: int = THREADS, progress: Progress | None = None) -> Options:
    """Return the solver options that a spec asks for."""
    from solvers.interface import Options

    asked = spec.solver
    return Options(
        solver=asked.backend,
        gap=asked.search_gap,
        enough_gap=asked.gap,
        time_limit_s=asked.time_limit,
        node_limit=asked.node_limit,
        seed=asked.seed,
        threads=threads,
        method=asked.method,
        progress=progress,
    )
